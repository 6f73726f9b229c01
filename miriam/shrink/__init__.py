"""The design space of elastic kernels: slicing plan, limits, scores and pruning (Eq. 1 to 4)."""

from miriam.shrink.limits import Critical, Limits, left_over, max_blocks, max_threads
from miriam.shrink.scores import (
    BUDGET_SHARE,
    CLAIM_NS,
    RELAUNCH_NS,
    Overheads,
    oscore,
    wiscore,
)
from miriam.shrink.slicing import dichotomy, slices
from miriam.shrink.space import Candidate, Pruning, Space, best_measured, full_space

__all__ = [
    "BUDGET_SHARE",
    "CLAIM_NS",
    "RELAUNCH_NS",
    "Candidate",
    "Critical",
    "Limits",
    "Overheads",
    "Pruning",
    "Space",
    "best_measured",
    "dichotomy",
    "full_space",
    "left_over",
    "max_blocks",
    "max_threads",
    "oscore",
    "slices",
    "wiscore",
]
