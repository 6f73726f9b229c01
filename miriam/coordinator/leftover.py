"""What a critical step leaves over: Eq. 2, and three things that Eq. 2 does not see."""

from __future__ import annotations

from dataclasses import dataclass

from miriam.coordinator.gates import YIELD_TARGET_NS
from miriam.kernels import GpuSpec, Step, resident_blocks
from miriam.shrink import Critical, Limits, left_over

OUTLASTING = 2
"""A block that runs longer than so many critical steps is in the way of those that follow."""

MEMORY_BOUND = 0.5
"""A step that alone uses this share of the DRAM bandwidth is bound by it."""

MEMORY_FREE = 0.1
"""Up to this share of the DRAM bandwidth, a step does not notice that another one saturates it."""

MEMORY_BOUND_THREADS = 0.125
"""Share of each SM's threads that a step bound by DRAM can spare: fewer warps still keep enough
bytes in flight, and its issue slots are mostly idle."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step and its time alone on the GPU."""

    step: Step
    alone_ns: int

    @property
    def costed(self) -> bool:
        """Whether its cost is known: every kernel moves bytes, of a captured one nobody knows."""
        return self.step.cost.dram_bytes > 0

    def memory_share(self, gpu: GpuSpec) -> float:
        """Share of the DRAM bandwidth that it uses alone; 0 where the GPU's is unknown.

        A step of unknown cost is taken to need all of it.
        """
        if not self.costed:
            return 1.0
        could_move_bytes = gpu.dram_gbps * self.alone_ns
        moved_bytes = self.step.cost.dram_bytes * self.step.kernel.blocks
        return moved_bytes / could_move_bytes if could_move_bytes else 0.0

    def waves(self, gpu: GpuSpec) -> int:
        """How often the GPU has to be filled with its blocks."""
        kernel = self.step.kernel
        full = gpu.sms * resident_blocks(kernel, kernel.original, gpu.limits)
        return -(-kernel.blocks // full)

    def block_ns(self, gpu: GpuSpec) -> float:
        """About how long one of its blocks runs."""
        return self.alone_ns / self.waves(gpu)


def left_beside(gpu: GpuSpec, critical: TimedStep, normal: TimedStep) -> Limits | None:
    """What ``normal`` may hold beside ``critical``, None for nothing; Eq. 2 where no rule holds."""
    kernel, limits = critical.step.kernel, gpu.limits
    if normal.block_ns(gpu) > max(OUTLASTING * critical.alone_ns, YIELD_TARGET_NS):
        return None
    share = critical.memory_share(gpu)
    # A few blocks of a step bound by DRAM saturate it. A short one moves little: held, it would
    # stop its whole request for the length of the critical step.
    saturating = normal.memory_share(gpu) > MEMORY_BOUND and normal.alone_ns >= YIELD_TARGET_NS
    if saturating and share > MEMORY_FREE:
        return None
    # Only a step that is known to be bound by DRAM has issue slots to spare.
    if critical.costed and share > MEMORY_BOUND and critical.alone_ns >= YIELD_TARGET_NS:
        threads = int(MEMORY_BOUND_THREADS * limits.threads)
        per_sm = max(1, threads // normal.step.kernel.threads)
        return Limits(gpu.sms * per_sm, threads)
    # A critical step with more blocks than the GPU holds wants every place that a persistent block
    # would keep. What its last wave leaves comes too late to be handed out.
    if kernel.blocks >= gpu.sms * resident_blocks(kernel, kernel.original, limits):
        return None
    return left_over(gpu, Critical(kernel.blocks, kernel.threads))
