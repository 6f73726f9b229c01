"""The C++ runtime as Python sees it: launches, and memory with a page that faults behind it."""

from __future__ import annotations

import ctypes
import mmap
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miriam.devices.host.build import load_library
from miriam.errors import ExecutionError
from miriam.kernels import Buffer

_ERROR_BYTES = 4_096
_MARGIN = 0xA5
POISON = 0xFF  # NaN in every floating-point format, -1 in the signed integers


class Launch(ctypes.Structure):
    """A launch, field by field as ``Launch`` in shim/block.hpp."""

    _fields_ = (
        ("entry", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("kernel", ctypes.c_char_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("dynamic_bytes", ctypes.c_uint64),
        ("shared_module", ctypes.c_uint64),
        ("shared_bytes", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("blocks", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("runs", ctypes.c_void_p),
        ("workers", ctypes.c_int32),
        ("schedule", ctypes.c_int32),
        ("error_bytes", ctypes.c_int32),
        ("error", ctypes.c_char_p),
    )


@dataclass(frozen=True, slots=True)
class Segment:
    """The TLS module and size of an object's static shared memory; address and size of its data."""

    shared_module: int
    shared_bytes: int
    data: int
    data_bytes: int


class Runtime:
    """The loaded runtime library."""

    def __init__(self, path: Path) -> None:
        # Global, because the kernels' objects leave the runtime's names open.
        self._library = load_library(path, "the host runtime", ctypes.RTLD_GLOBAL)
        self._library.miriam_host_reserve.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        self._library.miriam_host_reserve.restype = ctypes.c_void_p
        self._library.miriam_host_release.argtypes = [
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
        ]
        self._library.miriam_host_read_only.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def launch(self, launch: Launch, blocks: NDArray[np.int64]) -> None:
        """Run ``blocks`` of ``launch``; ExecutionError when a block breaks the model."""
        if not blocks.size:
            return
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        launch.error = ctypes.cast(error, ctypes.c_char_p)
        launch.error_bytes = _ERROR_BYTES
        launch.blocks, launch.count = blocks.ctypes.data, blocks.size
        if self._library.miriam_host_launch(ctypes.byref(launch)):
            raise ExecutionError(error.value.decode(errors="replace"))

    def segment(self, entry: int) -> Segment:
        """Where the shared object around ``entry`` keeps what."""
        found = [ctypes.c_uint64() for _ in range(4)]
        self._library.miriam_host_segment(ctypes.c_void_p(entry), *map(ctypes.byref, found))
        return Segment(*(f.value for f in found))

    def reserve(self, size: int, guard: int) -> int:
        """The address of ``size`` fresh bytes, with ``guard`` bytes that fault on both sides."""
        address = self._library.miriam_host_reserve(size, guard)
        if address is None:
            raise ExecutionError(f"the host has no {size} bytes for a buffer")
        return int(address)

    def release(self, address: int, size: int, guard: int) -> None:
        """Give back what ``reserve`` gave."""
        self._library.miriam_host_release(address, size, guard)

    def make_read_only(self, address: int, size: int) -> None:
        """Let writes to what ``reserve`` gave fault from now on."""
        self._library.miriam_host_read_only(address, size)


_loaded: list[Runtime] = []
_loading = threading.Lock()


def process_runtime(build: Callable[[], Path]) -> Runtime:
    """The runtime of this process; ``build`` gives its shared object when none is loaded yet."""
    with _loading:
        if not _loaded:
            _loaded.append(Runtime(build()))
        return _loaded[0]


class Memory:
    """The memory of some buffers of a program; it lives as long as this object.

    Each buffer starts aligned to 256 bytes and ends (but for that alignment) at a page that
    faults, so that a kernel that runs over it is an ExecutionError. ``guard_bytes`` of such
    pages lie on both sides.
    """

    def __init__(
        self, runtime: Runtime, buffers: Sequence[Buffer], guard_bytes: int = mmap.PAGESIZE
    ) -> None:
        self._runtime = runtime
        self._buffers = {b.name: b for b in buffers}
        self._addresses: dict[str, int] = {}
        weakref.finalize(self, _release_all, runtime, self._addresses, self._buffers, guard_bytes)
        for buffer in buffers:
            self._addresses[buffer.name] = runtime.reserve(buffer.bytes, guard_bytes)
            for margin in self._margins(buffer.name):
                margin.fill(_MARGIN)

    def address(self, name: str) -> int:
        """Where the buffer ``name`` starts."""
        return self._addresses[name]

    def view(self, name: str) -> NDArray[np.generic]:
        """The buffer ``name`` in place; not to be kept longer than this object."""
        buffer = self._buffers[name]
        raw = raw_memory(self._addresses[name], buffer.bytes)
        return raw.view(buffer.dtype).reshape(buffer.shape)

    def poison(self) -> None:
        """Fill all of it with NaN, so that reads before writes show."""
        for name, address in self._addresses.items():
            ctypes.memset(address, POISON, self._buffers[name].bytes)

    def overrun(self) -> str | None:
        """The first buffer beside which something was written, where no page faults yet."""
        for name in self._addresses:
            if any((margin != _MARGIN).any() for margin in self._margins(name)):
                return name
        return None

    def _margins(self, name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """What lies between a buffer and the ends of its pages."""
        start, size = self._addresses[name], self._buffers[name].bytes
        before, after = start % mmap.PAGESIZE, -(start + size) % mmap.PAGESIZE
        return raw_memory(start - before, before), raw_memory(start + size, after)

    def make_read_only(self) -> None:
        """Let writes fault from now on."""
        for name, address in self._addresses.items():
            self._runtime.make_read_only(address, self._buffers[name].bytes)


def raw_memory(address: int, size: int) -> NDArray[np.uint8]:
    """The bytes at ``address``, in place."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _release_all(
    runtime: Runtime, addresses: dict[str, int], buffers: dict[str, Buffer], guard: int
) -> None:
    for name, address in addresses.items():
        runtime.release(address, buffers[name].bytes, guard)
