"""What a user hands in to have a captured graph run as a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, SupportsInt

import numpy as np

from miriam.errors import UsageError
from miriam.kernels import DTYPE_BYTES, Buffer

_Role = str


class OnGpu(Protocol):
    """An array in the GPU's memory, as PyTorch, CuPy, Numba and others describe theirs."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]:
        """Address, shape, type and strides (CUDA Array Interface, version 3)."""


@dataclass(frozen=True, slots=True)
class GpuArray:
    """A dense array of which nothing is known but where it lies; ``dtype`` as numpy names it."""

    address: int
    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]:
        """Itself in the common form."""
        return {
            "data": (self.address, False),
            "shape": self.shape,
            "typestr": np.dtype(self.dtype).str,
            "strides": None,
            "version": 3,
        }


class HasGraph(Protocol):
    """A ``torch.cuda.CUDAGraph(keep_graph=True)`` whose capture has ended."""

    def raw_cuda_graph(self) -> int:
        """The CUgraph."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A captured graph for one request in flight, and where its inputs and outputs lie.

    ``graph``: the CUgraph, or a PyTorch graph that keeps it. ``inputs`` and ``outputs`` are read
    and written by the graph, by the names that requests use. ``keep``: whatever else owns memory
    that the graph works on, the model for example; all that is handed in is held as long as the
    device holds the program.
    """

    graph: SupportsInt | HasGraph
    inputs: Mapping[str, OnGpu]
    outputs: Mapping[str, OnGpu]
    keep: Sequence[object] = ()

    @property
    def handle(self) -> int:
        """The CUgraph."""
        raw = getattr(self.graph, "raw_cuda_graph", None)
        return int(raw() if raw is not None else self.graph)


def buffers_of(recording: Recording) -> tuple[Buffer, ...]:
    """The inputs and outputs as buffers of a program; UsageError for one that is not dense."""
    inputs = (_buffer(name, array, "input") for name, array in recording.inputs.items())
    outputs = (_buffer(name, array, "output") for name, array in recording.outputs.items())
    return *inputs, *outputs


def addresses_of(recording: Recording) -> dict[str, int]:
    """Where the inputs and outputs lie."""
    arrays = {**recording.inputs, **recording.outputs}
    return {name: _address(array) for name, array in arrays.items()}


def _address(array: OnGpu) -> int:
    data = array.__cuda_array_interface__["data"]
    assert isinstance(data, tuple)  # so the interface says
    return int(data[0])


def _buffer(name: str, array: OnGpu, role: _Role) -> Buffer:
    described = array.__cuda_array_interface__
    shape = tuple(described["shape"])  # type: ignore[call-overload]
    dtype = np.dtype(str(described["typestr"]))
    field = f"captured {role} {name}"
    if dtype.name not in DTYPE_BYTES:
        raise UsageError(field, f"one of {', '.join(DTYPE_BYTES)}", dtype.name)
    strides = described.get("strides")
    dense = np.empty((0,), dtype).itemsize
    expected = tuple(int(dense * np.prod(shape[i + 1 :], dtype=int)) for i in range(len(shape)))
    if strides is not None and tuple(strides) != expected:  # type: ignore[call-overload]
        raise UsageError(
            field, "row-major, without gaps", strides, "capture a copy to or from a dense array"
        )
    return Buffer(name, shape, role, dtype.name)  # type: ignore[arg-type]
