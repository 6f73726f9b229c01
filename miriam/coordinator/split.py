"""Two ranges of SMs, one for the critical tasks and one for the normal ones."""

from __future__ import annotations

from miriam.errors import UsageError
from miriam.kernels import GpuSpec

Range = tuple[int, int]
"""SMs, half-open."""
"""Half-open: first SM, first SM after it."""


def split(gpu: GpuSpec, share: float) -> tuple[Range, Range]:
    """The first ``share`` of the SMs, rounded to whole groups, and the rest; each has a group.

    UsageError for a GPU with one group of SMs.
    """
    group = gpu.sm_group
    if gpu.sm_groups < 2:
        raise UsageError(
            f"GPU {gpu.name} groups of {group} SMs",
            "at least 2 to be split",
            gpu.sm_groups,
            f"choose another policy, or {2 * group} SMs and more",
        )
    first = group * min(max(1, round(share * gpu.sms / group)), gpu.sm_groups - 1)
    return (0, first), (first, gpu.sms)


def check_share(policy: str, share: float) -> None:
    """UsageError unless ``share`` leaves SMs on both sides."""
    if not 0 < share < 1:
        field = f"policy {policy.partition(':')[0]} share"
        raise UsageError(field, "more than 0 and less than 1", share)
