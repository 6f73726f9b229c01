"""What a user hands in to have a captured graph run as a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, Protocol

import numpy as np

from miriam.errors import UsageError
from miriam.kernels import DTYPE_BYTES, Buffer


class OnGpu(Protocol):
    """An array in the GPU's memory, as PyTorch, CuPy, Numba and others describe theirs."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]:
        """Address, shape, type and strides (CUDA Array Interface, version 3)."""


@dataclass(frozen=True, slots=True)
class GpuArray:
    """A dense, row-major array of which one knows where it lies; ``dtype`` as numpy names it."""

    address: int
    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]:
        """Itself in the common form."""
        kind = np.dtype(self.dtype).str
        return {"data": (self.address, False), "shape": self.shape, "typestr": kind, "version": 3}


class HasGraph(Protocol):
    """A ``torch.cuda.CUDAGraph(keep_graph=True)`` whose capture has ended."""

    def raw_cuda_graph(self) -> int:
        """The CUgraph."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A captured graph for one request in flight, and where its inputs and outputs lie.

    ``graph``: the CUgraph, or a PyTorch graph that keeps it. ``inputs`` are read and ``outputs``
    written by the graph, under the names that requests use. ``keep``: whatever else owns memory
    that the graph works on, the model for example. All of it is held as long as the device is.
    """

    graph: int | HasGraph
    inputs: Mapping[str, OnGpu]
    outputs: Mapping[str, OnGpu]
    keep: Sequence[object] = ()

    @property
    def handle(self) -> int:
        """The CUgraph."""
        return self.graph if isinstance(self.graph, int) else int(self.graph.raw_cuda_graph())

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The inputs and outputs as a program has them; UsageError for one that is not dense."""
        inputs = (_buffer(name, array, "input") for name, array in self.inputs.items())
        outputs = (_buffer(name, array, "output") for name, array in self.outputs.items())
        return *inputs, *outputs

    @property
    def addresses(self) -> dict[str, int]:
        """Where each of them lies."""
        arrays: dict[str, Any] = {**self.inputs, **self.outputs}
        return {n: int(a.__cuda_array_interface__["data"][0]) for n, a in arrays.items()}


def _buffer(name: str, array: OnGpu, role: Literal["input", "output"]) -> Buffer:
    described: Any = array.__cuda_array_interface__
    shape, dtype = tuple(map(int, described["shape"])), np.dtype(described["typestr"])
    field = f"captured {role} {name}"
    if dtype.name not in DTYPE_BYTES:
        raise UsageError(field, f"one of {', '.join(DTYPE_BYTES)}", dtype.name)
    strides = described.get("strides") or ()
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=False)):
        if size > 1 and stride != dtype.itemsize * prod(shape[axis + 1 :]):
            raise UsageError(
                field, "row-major without gaps", strides, "capture a copy to or from such an array"
            )
    return Buffer(name, shape, role, dtype.name)
