"""How many blocks of a kernel fit on one SM (the CUDA occupancy calculator's arithmetic)."""

from __future__ import annotations

from dataclasses import dataclass

from miriam.errors import UsageError
from miriam.kernels.gpu import SmLimits
from miriam.kernels.spec import KernelSpec, Variant


@dataclass(frozen=True, slots=True)
class BlockFootprint:
    """What one resident block takes of an SM, rounded up to the allocation units."""

    threads: int
    registers: int
    shared_bytes: int

    @property
    def warps(self) -> int:
        """Warps, 32 threads each."""
        return self.threads // 32


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def footprint(kernel: KernelSpec, variant: Variant, limits: SmLimits) -> BlockFootprint:
    """What a block of ``variant`` takes of an SM; UsageError if not even one fits."""
    threads = _round_up(variant.threads, limits.warp)
    per_warp = _round_up(variant.resources.registers * limits.warp, limits.register_unit)
    # Warps are dealt out to the schedulers, each with its own quarter of the register file.
    warps = _round_up(threads // limits.warp, limits.schedulers)
    shared = variant.resources.static_shared_bytes + kernel.dynamic_shared_bytes
    shared = _round_up(shared + limits.system_shared_bytes, limits.shared_unit_bytes)
    taken = BlockFootprint(threads, per_warp * warps, shared)
    for name, got, limit in (
        ("threads", variant.threads, limits.threads_per_block),
        ("registers per thread", variant.resources.registers, limits.registers_per_thread),
        ("registers", taken.registers, limits.registers),
        ("shared bytes", taken.shared_bytes, limits.shared_bytes),
    ):
        if got > limit:
            raise UsageError(f"kernel {kernel.name} {name}", f"at most {limit} per block", got)
    return taken


def resident_blocks(kernel: KernelSpec, variant: Variant, limits: SmLimits) -> int:
    """Blocks of ``variant`` that one empty SM holds at once."""
    taken = footprint(kernel, variant, limits)
    fits = min(limits.blocks, limits.threads // taken.threads)
    fits = min(fits, limits.registers // taken.registers) if taken.registers else fits
    return min(fits, limits.shared_bytes // taken.shared_bytes) if taken.shared_bytes else fits
