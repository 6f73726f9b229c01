"""Eq. 2: what a critical kernel leaves to the normal kernel that runs beside it."""

from __future__ import annotations

from dataclasses import dataclass

from miriam.errors import UsageError
from miriam.kernels import GpuSpec


@dataclass(frozen=True, slots=True)
class Critical:
    """The running critical kernel: its thread blocks and the threads of each."""

    blocks: int
    threads: int

    def __post_init__(self) -> None:
        for field, got in (("blocks", self.blocks), ("threads", self.threads)):
            if got < 1:
                raise UsageError(f"critical kernel {field}", "at least 1", got)

    def covers(self, n_sm: int) -> bool:
        """Whether it has a block for every one of ``n_sm`` SMs, so that no SM is without one."""
        return self.blocks >= n_sm


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a normal kernel may hold: resident blocks, and threads of each of them."""

    blocks: int
    threads: int


def max_blocks(n_sm: int, critical_blocks: int) -> int:
    """Blocks of the normal kernel at most: the SMs that the critical's last wave leaves free.

    The first line of Eq. 2: N_SM - (N_blk_rt mod N_SM).
    """
    return n_sm - critical_blocks % n_sm


def max_threads(l_threads: int, critical_threads: int, resident: bool) -> int:
    """Threads of a normal block at most (the second line of Eq. 2).

    ``resident``: a critical block sits on the same SM, which leaves L_threads - S_blk_rt; the
    paper always counts so. Where none does, a whole SM's ``l_threads`` are free. UsageError for
    a critical block that no SM could hold.
    """
    if not 0 <= critical_threads <= l_threads:
        raise UsageError("critical_threads", f"0 to {l_threads}", critical_threads)
    return l_threads - critical_threads if resident else l_threads


def left_over(gpu: GpuSpec, critical: Critical, *, literal: bool = False) -> Limits:
    """What ``critical`` leaves over on ``gpu``: both lines of Eq. 2.

    The second binds only where the critical kernel covers every SM, since a smaller one leaves
    SMs without a critical block and the first line grants no more blocks than those.
    ``literal``: it always binds, as the paper prints it.
    """
    resident = literal or critical.covers(gpu.sms)
    return Limits(
        max_blocks(gpu.sms, critical.blocks),
        max_threads(gpu.limits.threads, critical.threads, resident),
    )
