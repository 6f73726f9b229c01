"""Builds a program from launches without source."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from miriam.errors import UnknownNameError
from miriam.kernels import Buffer, Cost, Dim3, KernelSpec, Program, Resources, Step
from miriam.models.builder import variants
from miriam.models.measured import STAND_INS, Needs
from miriam.models.tango.folded import YIELD_ROWS
from miriam.models.tango.pipes import L1_BYTES, WARP, Loop
from miriam.models.tango.registers import ARCHITECTURES, FOLDS, REGISTERS, STATIC_SHARED_BYTES

_BYTES = {"float32": 4, "float64": 8, "int32": 4}
_CLAIM_SHARED_BYTES = 8

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
        needs = _needs(self.arch, launch.kernel, block)
        forms = variants(block.size, needs)
        kernel = KernelSpec(
            launch.kernel, "", Dim3(launch.grid), block, forms, elastic=needs.elastic
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


def _needs(arch: str, kernel: str, block: Dim3) -> Needs:
    """What the forms need, but for a fold that saves no warp or takes more registers in all."""
    arch = STAND_INS.get(arch, arch)
    if arch not in ARCHITECTURES:
        raise UnknownNameError("architecture", arch, (*ARCHITECTURES, *STAND_INS))
    at, shared = ARCHITECTURES.index(arch), STATIC_SHARED_BYTES.get(kernel, 0)
    original = Resources(REGISTERS[kernel][arch], shared)
    elastic, *others = (
        Resources(YIELD_ROWS[kernel, fold][at], shared + _CLAIM_SHARED_BYTES) for fold in FOLDS
    )
    folded, warps = dict[int, Resources](), ceil(block.size / WARP)
    for fold, needs in zip(FOLDS[1:], others, strict=True):
        threads = ceil(block.size / fold)
        taken = needs.registers * threads
        if 0 < taken <= original.registers * block.size and ceil(threads / WARP) < warps:
            folded[fold], warps = needs, ceil(threads / WARP)
    return Needs(original, elastic, folded)
