"""Programs made of bare numbers, for tests that only ask how long things take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from miriam.coordinator.policies import names
from miriam.devices.sim import GpuModel
from miriam.kernels import (
    Buffer,
    Cost,
    Dim3,
    GpuSpec,
    KernelSpec,
    Program,
    Resources,
    Step,
    Variant,
)

POLICIES = tuple(names())


def kernel(blocks: int, threads: int = 256, registers: int = 32, shared: int = 0) -> KernelSpec:
    return KernelSpec(
        "k", "k.cu", Dim3(blocks), Dim3(threads), (Variant(threads, Resources(registers, shared)),)
    )


def program(name: str, steps: Sequence[tuple[KernelSpec, Cost]]) -> Program:
    made = tuple(
        Step(f"s{i}", f"s{i}", spec, (), cost, "out") for i, (spec, cost) in enumerate(steps)
    )
    # Larger than any L2, so that DRAM traffic counts.
    return Program(name, "sm_75", made, (Buffer("out", (1 << 26,), "output"),))


def gpu(sms: int = 4, **changes: Any) -> GpuModel:
    """A small round GPU: 100 flop/ns per SM, 100 bytes/ns of DRAM."""
    figures: dict[str, Any] = {
        "clock_mhz": 1_000,
        "fp32_lanes_per_sm": 50,
        "l2_bytes": 1 << 20,
        "l2_bytes_per_clock_per_sm": 1_000,
        "issue_efficiency": 1.0,
        "saturating_warps": 16,
        "bytes_in_flight_per_warp": 2_048,
        "block_start_ns": 0.0,
        **changes,
    }
    return GpuModel(spec=GpuSpec("test", "sm_75", sms, 100.0), source="made up", **figures)
