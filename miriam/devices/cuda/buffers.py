"""The buffers of a request on the GPU, and what counts the runs of its blocks."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miriam.devices.arrays import check_arrays
from miriam.devices.contract import Arrays
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.memory import Memory, padded
from miriam.kernels import DTYPE_BYTES, Argument, Buffer, Pointer, Program, Step

_SCALARS: dict[str, Any] = {"int32": ctypes.c_int32, "float32": ctypes.c_float}

CArgument = Any
"""A kernel argument as ctypes has it."""


class Weights:
    """The weights of a task, which all of its lanes share: ``bytes`` from ``address`` on.

    All zero where there are no ``arrays``.
    """

    def __init__(self, program: Program, arrays: Arrays | None, memory: Memory) -> None:
        if arrays is not None:
            check_arrays(f"program {program.name} weight", program.named("weight"), arrays)
        self.bytes = sum(padded(buffer.bytes) for buffer in program.named("weight"))
        self.address = address = memory.device(self.bytes) if self.bytes else 0
        self.addresses: dict[str, int] = {}
        for buffer in program.named("weight"):
            self.addresses[buffer.name] = address
            if arrays is not None:
                data = np.ascontiguousarray(arrays[buffer.name])
                ask(driver.cuMemcpyHtoD(address, data.ctypes.data, data.nbytes))
            address += padded(buffer.bytes)


class Staging:
    """Page-locked copies of arrays that nobody writes to any more, so that each is made once.

    An array that has its own memory and is read-only is taken for such a one: whoever writes to it
    all the same, through a view made before, has requests run on the old values.
    There is room for ``places`` arrays of up to ``size_bytes``; others are not kept.
    """

    def __init__(self, places: int, size_bytes: int, memory: Memory) -> None:
        self._size_bytes = size_bytes
        self._free = [memory.host(size_bytes) for _ in range(places)]
        self._kept: dict[int, tuple[NDArray[np.generic], int]] = {}

    def address(self, array: NDArray[np.generic]) -> int | None:
        """Where the copy of ``array`` lies, None where there is none and none can be kept."""
        known = self._kept.get(id(array))
        if known is not None:
            return known[1]
        if not self._free or array.nbytes > self._size_bytes or not _is_settled(array):
            return None
        address, view = self._free.pop()
        view[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        # The array is kept too, so that no other one can have its identity.
        self._kept[id(array)] = array, address
        return address


def _is_settled(array: NDArray[np.generic]) -> bool:
    """Whether nobody can write to ``array``: not through it, nor through what it is a view of."""
    return array.base is None and not array.flags.writeable


class Buffers:
    """All buffers of one request, and page-locked copies of its inputs and outputs."""

    def __init__(
        self,
        program: Program,
        known: Mapping[str, int],
        memory: Memory,
        staging: Staging | None = None,
    ) -> None:
        """``known``: addresses of buffers that are there, the weights at least."""
        self._program = program
        self._staging = staging or Staging(0, 0, memory)
        self._addresses = dict(known)
        others = [b for b in program.buffers if b.name not in known]
        base = memory.device(sum(padded(b.bytes) for b in others))
        for buffer in others:
            self._addresses[buffer.name] = base
            base += padded(buffer.bytes)
        self._staged = {
            buffer.name: _staged(buffer, memory)
            for role in ("input", "output")
            for buffer in program.named(role)
        }

    def address(self, name: str) -> int:
        """Where the buffer called ``name`` lies."""
        return self._addresses[name]

    def arguments(self, step: Step) -> list[CArgument]:
        """The arguments of ``step`` as ctypes has them."""
        return [self._argument(argument) for argument in step.args]

    def _argument(self, argument: Argument) -> CArgument:
        if isinstance(argument, Pointer):
            size = DTYPE_BYTES[self._program.buffer(argument.buffer).dtype]
            return ctypes.c_void_p(self._addresses[argument.buffer] + size * argument.offset)
        return _SCALARS[argument.dtype](argument.value)

    def copy_in(self, inputs: Arrays, stream: Any) -> None:
        """Submit the copies of ``inputs`` to the GPU; the request before must have ended."""
        for buffer in self._program.named("input"):
            source = self._staging.address(inputs[buffer.name])
            if source is None:
                source, view = self._staged[buffer.name]
                np.copyto(view, inputs[buffer.name])
            to = self._addresses[buffer.name]
            ask(driver.cuMemcpyHtoDAsync(to, source, buffer.bytes, stream))

    def copy_out(self, stream: Any) -> None:
        """Submit the copies of the outputs to the host."""
        for buffer in self._program.named("output"):
            target = self._staged[buffer.name][0]
            ask(
                driver.cuMemcpyDtoHAsync(target, self._addresses[buffer.name], buffer.bytes, stream)
            )

    def outputs(self) -> dict[str, NDArray[np.generic]]:
        """The outputs of the request that has ended, as arrays of their own."""
        return {b.name: self._staged[b.name][1].copy() for b in self._program.named("output")}


def _staged(buffer: Buffer, memory: Memory) -> tuple[int, NDArray[np.generic]]:
    address, view = memory.host(buffer.bytes)
    return address, view.view(buffer.dtype).reshape(buffer.shape)


class Runs:
    """How often each logical block ran: counted by elastic forms, one launch for the others."""

    def __init__(self, program: Program, elastic: Sequence[bool], memory: Memory) -> None:
        self._program, self._elastic = program, elastic
        sizes = [s.kernel.blocks if e else 0 for s, e in zip(program.steps, elastic, strict=True)]
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.words = int(self._offsets[-1])
        self._address = memory.device(4 * self.words) if self.words else 0
        self._target, view = memory.host(4 * self.words)
        self._counted = view.view(np.int32)

    def address(self, step: int) -> int:
        """Where the counts of ``step`` begin."""
        return self._address + 4 * int(self._offsets[step])

    def clear(self, stream: Any) -> None:
        """Submit the reset."""
        if self.words:
            ask(driver.cuMemsetD32Async(self._address, 0, self.words, stream))

    def copy_out(self, stream: Any) -> None:
        """Submit the copy to the host."""
        if self.words:
            ask(driver.cuMemcpyDtoHAsync(self._target, self._address, 4 * self.words, stream))

    def result(self) -> tuple[NDArray[np.int32], ...]:
        """The counts per step; an original's blocks ran once in the one launch of its graph."""
        return tuple(
            self._counted[self._offsets[i] : self._offsets[i + 1]].copy()
            if self._elastic[i]
            else np.ones(step.kernel.blocks, np.int32)
            for i, step in enumerate(self._program.steps)
        )
