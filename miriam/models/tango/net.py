"""Builds a program from launches without source."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from miriam.errors import UnknownNameError
from miriam.kernels import Buffer, Cost, Dim3, KernelSpec, Program, Resources, Step, Variant
from miriam.models.measured import STAND_INS
from miriam.models.tango.pipes import L1_BYTES, WARP, Loop
from miriam.models.tango.registers import REGISTERS, STATIC_SHARED_BYTES

_BYTES = {"float32": 4, "float64": 8, "int32": 4}
_FOLDS = (2, 4)
_LOOP_REGISTERS = 8

Dtype = Literal["float32", "float64"]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a naive kernel.

    ``kernel``: its name in Tango. ``active``: the threads of a block that get past the kernel's
    bounds check, in whole warps unless told by ``warps``. ``turns``: of ``loop``, per thread.
    ``region_bytes``: what a block reads of the input, in whole sectors, ``passes`` times over;
    only what exceeds L1 is read again. ``weights`` and ``outputs``: elements of the step's own,
    of which a block reads ``block_weights`` (by default its share of them).
    """

    kernel: str
    grid: int
    block: tuple[int, int]
    loop: Loop
    turns: float
    outputs: int
    region_bytes: float
    input_bytes: float
    weights: int = 0
    block_weights: float | None = None
    passes: int = 1
    warps: int | None = None


@dataclass(slots=True)
class Net:
    """Collects the steps and buffers of one network; ``dtype`` is that of all its arrays."""

    name: str
    arch: str
    dtype: Dtype
    inputs: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    def add(self, layer: str, launch: Launch, *, in_place: bool = False) -> None:
        """Append a launch; its result gets a buffer of its own unless it is ``in_place``."""
        unit = _BYTES[self.dtype]
        output = f"{layer}.out"
        if launch.weights:
            self.buffers.append(Buffer(f"{layer}.weight", (launch.weights,), "weight", self.dtype))
        if not in_place:
            self.buffers.append(Buffer(output, (launch.outputs,), "scratch", self.dtype))
        block = Dim3(*launch.block)
        kernel = KernelSpec(
            launch.kernel, "", Dim3(launch.grid), block, _variants(self.arch, launch.kernel, block)
        )
        warps = launch.warps or ceil(block.size / WARP)
        weights = launch.block_weights
        if weights is None:
            weights = launch.weights / launch.grid
        again = launch.passes if launch.region_bytes > L1_BYTES else 1
        moved = unit * (weights + launch.outputs / launch.grid)
        once = unit * (launch.weights + launch.outputs) + launch.input_bytes
        cost = Cost(
            warps * launch.turns * launch.loop.flop(self.arch),
            again * launch.region_bytes + moved,
            once / launch.grid,
        )
        self.steps.append(Step(layer, layer, kernel, (), cost, output))

    def build(self) -> Program:
        """The program; the last step's result is its output."""
        last = self.buffers[-1]
        buffers = (
            Buffer("input", self.inputs, "input"),
            *self.buffers[:-1],
            Buffer(last.name, last.shape, "output", last.dtype),
        )
        return Program(self.name, self.arch, tuple(self.steps), buffers)


def _variants(arch: str, kernel: str, block: Dim3) -> tuple[Variant, ...]:
    """The original, and as estimates its elastic blocks: whole warps, a loop around the body."""
    known = REGISTERS[kernel]
    arch = STAND_INS.get(arch, arch)
    if arch not in known:
        raise UnknownNameError("architecture", arch, (*known, *STAND_INS))
    shared = STATIC_SHARED_BYTES.get(kernel, 0)
    forms = [Variant(block.size, Resources(known[arch], shared))]
    needs = Resources(known[arch] + _LOOP_REGISTERS, shared)
    for fold in _FOLDS:
        threads = ceil(ceil(block.size / WARP) / fold) * WARP
        if threads < forms[-1].threads:
            forms.append(Variant(threads, needs, fold, estimated=True))
    return tuple(forms)
