"""What a critical step leaves over: Eq. 2, and two things that Eq. 2 does not see."""

from __future__ import annotations

from dataclasses import dataclass

from miriam.coordinator.gates import YIELD_TARGET_NS
from miriam.kernels import GpuSpec, Step, resident_blocks
from miriam.shrink import Critical, Limits, left_over

MEMORY_BOUND = 0.5
"""A step that alone uses this share of the DRAM bandwidth is bound by it."""

MEMORY_BOUND_THREADS = 0.25
"""Share of each SM's threads that a step bound by DRAM can spare: fewer warps still keep enough
bytes in flight, and its issue slots are mostly idle."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step and its time alone on the GPU."""

    step: Step
    alone_ns: int

    def memory_bound(self, gpu: GpuSpec) -> bool:
        """Whether DRAM bandwidth is what it waits for; False where the GPU's is unknown."""
        moved_bytes = self.step.cost.dram_bytes * self.step.kernel.blocks
        return moved_bytes > MEMORY_BOUND * gpu.dram_gbps * self.alone_ns > 0


def left_beside(gpu: GpuSpec, critical: TimedStep, normal: TimedStep) -> Limits | None:
    """What ``normal`` may hold beside ``critical``, None for nothing.

    Two steps bound by DRAM would halve each other's bandwidth; a short one, which moves little, is
    let through, or it would stop its whole request for the length of the critical step. A
    critical step with more blocks than the GPU holds takes every place that a persistent block
    would keep from it; only its last wave leaves something, too late to be handed out.
    Otherwise Eq. 2.
    """
    kernel = critical.step.kernel
    limits = gpu.limits
    if critical.memory_bound(gpu):
        if normal.memory_bound(gpu) and normal.alone_ns >= YIELD_TARGET_NS:
            return None
        threads = int(MEMORY_BOUND_THREADS * limits.threads)
        per_sm = max(1, threads // normal.step.kernel.threads)
        return Limits(gpu.sms * per_sm, threads)
    if kernel.blocks >= gpu.sms * resident_blocks(kernel, kernel.original, limits):
        return None
    return left_over(gpu, Critical(kernel.blocks, kernel.threads))
