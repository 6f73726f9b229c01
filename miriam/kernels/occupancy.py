"""How many blocks of a kernel fit on one SM (the CUDA occupancy calculator's arithmetic)."""

from __future__ import annotations

from dataclasses import dataclass

from miriam.errors import UsageError
from miriam.kernels.gpu import SmLimits
from miriam.kernels.spec import KernelSpec, Variant


@dataclass(frozen=True, slots=True)
class BlockFootprint:
    """What one resident block takes of an SM, rounded up to the allocation units.

    ``registers`` counts a warp as its share of a scheduler's registers, those that no further
    warp fits into included, so that footprints of several kernels can be added up.
    """

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
    needs = variant.resources
    _at_most(kernel, "threads", variant.threads, limits.threads_per_block)
    _at_most(kernel, "registers per thread", needs.registers, limits.registers_per_thread)
    threads = _round_up(variant.threads, limits.warp)
    per_warp = _round_up(max(1, needs.registers) * limits.warp, limits.register_unit)
    # Each scheduler holds whole warps in its own part of the register file.
    part = limits.registers // limits.schedulers
    registers = threads // limits.warp * (part // (part // per_warp))
    _at_most(kernel, "registers", registers, limits.registers)
    shared = needs.static_shared_bytes + kernel.dynamic_shared_bytes + limits.system_shared_bytes
    shared = _round_up(shared, limits.shared_unit_bytes)
    _at_most(kernel, "shared bytes", shared, limits.shared_bytes)
    return BlockFootprint(threads, registers, shared)


def _at_most(kernel: KernelSpec, name: str, got: int, limit: int) -> None:
    if got > limit:
        raise UsageError(f"kernel {kernel.name} {name}", f"at most {limit} per block", got)


def resident_blocks(kernel: KernelSpec, variant: Variant, limits: SmLimits) -> int:
    """Blocks of ``variant`` that one empty SM holds at once."""
    taken = footprint(kernel, variant, limits)
    fits = min(limits.blocks, limits.threads // taken.threads, limits.registers // taken.registers)
    return min(fits, limits.shared_bytes // taken.shared_bytes) if taken.shared_bytes else fits
