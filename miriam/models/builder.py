"""Builds a program step by step: buffers, launches, compiled forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

from miriam.kernels import (
    Argument,
    Buffer,
    Cost,
    Dim3,
    KernelSpec,
    Pointer,
    Program,
    Scalar,
    Step,
    Variant,
)
from miriam.models.measured import Needs

SOURCES = Path(__file__).parent / "cuda"

Lookup = Callable[[str], Needs]


@dataclass(frozen=True, slots=True)
class View:
    """An array inside a buffer, from element ``offset`` on; row major, as in torch."""

    buffer: str
    shape: tuple[int, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes of its fp32 elements."""
        return 4 * self.size

    def part(self, first: int, count: int) -> View:
        """``count`` entries of the first axis from ``first`` on: channels, or time steps."""
        stride = self.size // self.shape[0]
        return View(self.buffer, (count, *self.shape[1:]), self.offset + first * stride)


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with its launch: name expression, source file, grid, threads, cost of a block."""

    kernel: str
    source: str
    grid: Dim3
    threads: int
    cost: Cost


def variants(threads: int, needs: Needs) -> tuple[Variant, ...]:
    """The original with its ``threads``, and the elastic blocks that it has, most threads first."""
    folded = (
        Variant(-(-threads // fold), resources, fold)
        for fold, resources in sorted(needs.folded.items())
    )
    return Variant(threads, needs.original), *folded


class Builder:
    """Collects the buffers and steps of one network.

    ``needs`` gives what the forms of a kernel need, by name expression.
    """

    def __init__(self, name: str, arch: str, needs: Lookup) -> None:
        self._name, self._arch, self._needs = name, arch, needs
        self._buffers: list[Buffer] = []
        self._steps: list[Step] = []
        self._workspace = 0

    def input(self, *shape: int) -> View:
        """The buffer that the user fills, ``input``."""
        self._buffers.append(Buffer("input", shape, "input"))
        return View("input", shape)

    def output(self, *shape: int) -> View:
        """The buffer that the user reads, ``output``."""
        self._buffers.append(Buffer("output", shape, "output"))
        return View("output", shape)

    def weight(self, name: str, *shape: int) -> View:
        """A trained tensor, named as in torch's ``state_dict``."""
        self._buffers.append(Buffer(name, shape, "weight"))
        return View(name, shape)

    def scratch(self, name: str, *shape: int) -> View:
        """A buffer for one layer's result."""
        self._buffers.append(Buffer(name, shape, "scratch"))
        return View(name, shape)

    def workspace(self, size: int) -> View:
        """``size`` elements for what the next step reads at once; all steps share the buffer.

        Steps of a request run one after the other, and each request in flight has its own buffers.
        """
        self._workspace = max(self._workspace, size)
        return View("workspace", (size,))

    def step(
        self, name: str, layer: str, launch: Launch, args: tuple[View | int | float, ...], out: View
    ) -> View:
        """Append a launch that completes ``layer`` by writing ``out``, which it returns."""
        needs = self._needs(launch.kernel)
        kernel = KernelSpec(
            name=launch.kernel,
            source=str(SOURCES / launch.source),
            grid=launch.grid,
            block=Dim3(launch.threads),
            variants=variants(launch.threads, needs),
            elastic=needs.elastic,
        )
        bound = tuple(_argument(arg) for arg in args)
        self._steps.append(Step(name, layer, kernel, bound, launch.cost, out.buffer))
        return out

    def build(self) -> Program:
        """The program."""
        shared = [Buffer("workspace", (self._workspace,), "scratch")] if self._workspace else []
        buffers = (*self._buffers, *shared)
        return Program(self._name, self._arch, tuple(self._steps), buffers)


def _argument(value: View | int | float) -> Argument:
    if isinstance(value, View):
        return Pointer(value.buffer, value.offset)
    return Scalar(value, "float32" if isinstance(value, float) else "int32")
