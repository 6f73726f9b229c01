"""Every step's compiled forms as the simulator sees them: footprint, needs, resident blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from miriam.devices.sim.model import BlockProfile, GpuModel, block_profile
from miriam.kernels import BlockFootprint, Program, footprint, resident_blocks

CACHED_SHARE = 0.5
"""Programs whose buffers together fill at most this share of L2 find them there again."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of one step on one GPU; ``per_sm`` blocks of it fill an SM."""

    taken: BlockFootprint
    profile: BlockProfile
    per_sm: int


class Forms:
    """The forms of one program's steps, made when first asked for."""

    def __init__(self, model: GpuModel, program: Program, beside_bytes: int = 0) -> None:
        """``beside_bytes``: the buffers of the programs that share the L2."""
        self._model = model
        self._program = program
        used_bytes = program.footprint_bytes + beside_bytes
        self._cached = used_bytes <= CACHED_SHARE * model.l2_bytes
        self._made: dict[tuple[int, int, bool], Form] = {}

    def get(self, step: int, threads: int, *, elastic: bool) -> Form:
        """The form of ``step`` with ``threads`` per block (0: the original's)."""
        key = (step, threads, elastic)
        form = self._made.get(key)
        if form is None:
            form = self._made[key] = self._make(step, threads, elastic)
        return form

    def _make(self, step: int, threads: int, elastic: bool) -> Form:
        work = self._program.steps[step]
        kernel, model = work.kernel, self._model
        variant = kernel.variant(threads) if threads else kernel.original
        if elastic and kernel.elastic is not None and variant is kernel.original:
            variant = replace(variant, resources=kernel.elastic)
        profile = block_profile(
            model, kernel, variant, work.cost, cached=self._cached, claim=elastic
        )
        per_sm = resident_blocks(kernel, variant, model.spec.limits)
        return Form(footprint(kernel, variant, model.spec.limits), profile, per_sm)
