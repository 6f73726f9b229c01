"""Programs: the ordered steps and buffers of one inference."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from miriam.errors import UsageError
from miriam.kernels.spec import KernelSpec

DTYPE_BYTES = {
    **{"int8": 1, "int16": 2, "int32": 4, "int64": 8},
    **{"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8},
    **{"float16": 2, "float32": 4, "float64": 8},
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one logical block asks of the machine.

    ``flop``: floating-point operations issued, padding of a tile included (an FMA is two).
    ``l2_bytes``: bytes that its loads and stores move between the SM and L2.
    ``dram_bytes``: its share of the bytes that the whole step must move at least once.
    """

    flop: float
    l2_bytes: float
    dram_bytes: float


@dataclass(frozen=True, slots=True)
class Buffer:
    """A named array of a program; weights are read only, inputs and outputs are the user's."""

    name: str
    shape: tuple[int, ...]
    role: Literal["input", "output", "weight", "scratch"]
    dtype: str = "float32"

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.size * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A kernel argument: the address of element ``offset`` of ``buffer``."""

    buffer: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Scalar:
    """A kernel argument passed by value."""

    value: int | float
    dtype: Literal["int32", "float32"] = "int32"


Argument = Pointer | Scalar


@dataclass(frozen=True, slots=True)
class Step:
    """One launch of a kernel in a program.

    ``layer`` names the layer that the step completes (several steps may serve one layer) and
    ``output`` the buffer that it writes. ``rigid`` is the reason why the kernel can not be
    sliced or stopped (closed source, cooperative, refused), or None when it is elastic.
    """

    name: str
    layer: str
    kernel: KernelSpec
    args: tuple[Argument, ...]
    cost: Cost
    output: str
    rigid: str | None = None

    @property
    def alike(self) -> tuple[object, ...]:
        """Equal for steps that do the same work, if on other buffers.

        Numbers are part of it, as they may say how much of it there is.
        """
        return self.kernel, tuple(arg for arg in self.args if isinstance(arg, Scalar))


@dataclass(frozen=True, slots=True)
class Program:
    """The ordered steps and the buffers of one inference, for one architecture."""

    name: str
    arch: str
    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]

    def __post_init__(self) -> None:
        sizes = {b.name: b.size for b in self.buffers}
        if len(sizes) != len(self.buffers):
            raise UsageError(
                f"program {self.name} buffers", "distinct names", [b.name for b in self.buffers]
            )
        if not self.steps:
            raise UsageError(f"program {self.name} steps", "at least one step", self.steps)
        for step in self.steps:
            for arg in step.args:
                if isinstance(arg, Pointer) and not 0 <= arg.offset < sizes.get(arg.buffer, 0):
                    raise UsageError(
                        f"program {self.name} step {step.name}",
                        "each pointer lies inside a buffer of the program",
                        arg,
                    )

    def buffer(self, name: str) -> Buffer:
        """The buffer called ``name``; KeyError if there is none."""
        for candidate in self.buffers:
            if candidate.name == name:
                return candidate
        raise KeyError(name)

    def named(self, role: str) -> tuple[Buffer, ...]:
        """The buffers with ``role``, in order."""
        return tuple(b for b in self.buffers if b.role == role)

    @property
    def footprint_bytes(self) -> int:
        """Bytes of all buffers together, weights included."""
        return sum(b.bytes for b in self.buffers)
