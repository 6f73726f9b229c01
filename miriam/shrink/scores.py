"""Eq. 3 and Eq. 4: how full a choice leaves the GPU, and whether its overhead is bearable."""

from __future__ import annotations

from dataclasses import dataclass

from miriam.errors import UsageError
from miriam.kernels import GpuSpec
from miriam.shrink.limits import Critical

RELAUNCH_NS = 2_600
"""One more fragment of a step: a {gate, rest} pair of graph nodes in series, measured on an H200
(CUDA 13.0; on 8 SMs, and 3.3 us on 132). A launch from the host costs three times that."""

CLAIM_NS = 700
"""One claim of a logical block, derived from an H200: a step whose physical blocks each claim
twice, once in vain, was measured 1.4 us longer than its original on 8 SMs (2.2 us on 132)."""

BUDGET_SHARE = 0.5
"""Share of a kernel's solo time for each kind of overhead: both together at most double it."""


@dataclass(frozen=True, slots=True)
class Overheads:
    """What fragments and persistent threads cost, and the thresholds of Eq. 4, in ns.

    ``max_blk_ns`` and ``max_pt_ns`` are MAX_blk and MAX_pt, which the paper does not give.
    ``relaunch_ns``: launch of one more fragment; 0 where a resident form claims its fragments.
    ``claim_ns``: one claim of a logical block by a physical one.
    """

    max_blk_ns: int
    max_pt_ns: int
    relaunch_ns: int = RELAUNCH_NS
    claim_ns: int = CLAIM_NS

    @classmethod
    def of_solo(
        cls,
        solo_ns: int,
        *,
        share: float = BUDGET_SHARE,
        least_ns: int = 0,
        relaunch_ns: int = RELAUNCH_NS,
    ) -> Overheads:
        """Thresholds of ``share`` of the kernel's time alone on the GPU, each; not under
        ``least_ns``, which is what waiting for the critical kernel instead would cost."""
        if solo_ns < 0 or share < 0:
            raise UsageError("overhead budget", "no negative time or share", (solo_ns, share))
        budget_ns = max(least_ns, int(solo_ns * share))
        return cls(max_blk_ns=budget_ns, max_pt_ns=budget_ns, relaunch_ns=relaunch_ns)


def wiscore(
    gpu: GpuSpec, critical: Critical, blocks: int, threads: int, *, literal: bool = False
) -> float:
    """Workload-imbalance score of ``blocks`` of ``threads`` beside ``critical`` (Eq. 3).

    Higher is fuller; in [0, 1] under the limits of Eq. 2. An SM's threads are
    S_blk_rt + S_blk_be where a critical block is on every SM, S_blk_be alone where the normal
    blocks have SMs of their own. ``literal``: S_blk_be + S_blk_be as the paper prints it, which
    can exceed 1.
    """
    beside = critical.threads if critical.covers(gpu.sms) else 0
    if literal:
        beside = threads
    sms = (critical.blocks % gpu.sms + blocks) / gpu.sms
    return sms * (beside + threads) / gpu.limits.threads


def oscore(fragments: int, claims: int, overheads: Overheads) -> int:
    """1 if a kernel in ``fragments`` stays strictly under both thresholds, else 0 (Eq. 4).

    LO_blk sums to one relaunch for each fragment after the first, whose launch the original
    needs too; LO_pt to the ``claims`` that one physical block makes one after the other.
    """
    blk_ns = (fragments - 1) * overheads.relaunch_ns
    pt_ns = claims * overheads.claim_ns
    return int(blk_ns < overheads.max_blk_ns and pt_ns < overheads.max_pt_ns)
