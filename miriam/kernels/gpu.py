"""Per-architecture limits of one SM, and the GPU that policies plan for.

Limits: "Technical Specifications per Compute Capability" and the occupancy calculator's
allocation units, CUDA C++ Programming Guide 12.9 (sm_72) and 13.0 (the rest).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one SM can hold at once, and the units in which it hands it out."""

    threads: int
    blocks: int
    shared_bytes: int
    shared_unit_bytes: int
    system_shared_bytes: int
    registers: int = 65_536
    register_unit: int = 256
    registers_per_thread: int = 255
    threads_per_block: int = 1_024
    warp: int = 32
    schedulers: int = 4

    @property
    def warps(self) -> int:
        """Resident warps per SM."""
        return self.threads // self.warp


ARCHITECTURES: dict[str, SmLimits] = {
    "sm_72": SmLimits(2_048, 32, 98_304, 256, 0),
    "sm_75": SmLimits(1_024, 16, 65_536, 256, 0),
    "sm_80": SmLimits(2_048, 32, 167_936, 128, 1_024),
    "sm_86": SmLimits(1_536, 16, 102_400, 128, 1_024),
    "sm_87": SmLimits(1_536, 16, 167_936, 128, 1_024),
    "sm_89": SmLimits(1_536, 24, 102_400, 128, 1_024),
    "sm_90": SmLimits(2_048, 32, 233_472, 128, 1_024),
    "sm_110": SmLimits(1_536, 24, 233_472, 128, 1_024),
}


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """A GPU as a policy sees it: name, architecture, SMs, DRAM bandwidth (0: unknown).

    ``sm_group``: how many SMs can only be given to a task together.
    """

    name: str
    arch: str
    sms: int
    dram_gbps: float = 0.0
    sm_group: int = 1

    @property
    def sm_groups(self) -> int:
        """How many tasks could have SMs of their own."""
        return self.sms // self.sm_group

    @property
    def limits(self) -> SmLimits:
        """The limits of one of its SMs."""
        return ARCHITECTURES[self.arch]
