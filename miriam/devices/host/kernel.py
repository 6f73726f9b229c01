"""A compiled kernel, launched with any grid and any arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from miriam.devices.host.runtime import Launch, Runtime, raw_memory
from miriam.errors import UsageError
from miriam.kernels import Dim3

Schedule = Literal["shuffled", "given", "together"]

_SCHEDULES: dict[Schedule, int] = {"shuffled": 0, "given": 1, "together": 2}  # as in shim/block.hpp
_SIGNATURE_BYTES = 4_096


class HostKernel:
    """A kernel in a loaded shared object.

    ``signature``: a letter and the bytes of each parameter, ``p8`` for a pointer, ``i4`` for an
    int, ``f4`` for a float, ``s40`` for a struct.
    """

    def __init__(self, runtime: Runtime, library: ctypes.CDLL, index: int, name: str) -> None:
        self._runtime, self._library, self.name = runtime, library, name
        entry = ctypes.cast(getattr(library, f"miriam_entry_{index}"), ctypes.c_void_p).value
        self._entry = entry or 0
        text = ctypes.create_string_buffer(_SIGNATURE_BYTES)
        getattr(library, f"miriam_signature_{index}")(text, ctypes.c_size_t(_SIGNATURE_BYTES))
        self.signature = tuple(text.value.decode().split())
        self._segment = runtime.segment(self._entry)

    @property
    def data(self) -> NDArray[np.uint8]:
        """The variables of the shared object, in place: ``__device__`` ones, and others."""
        return raw_memory(self._segment.data, self._segment.data_bytes)

    def prepare(
        self,
        title: str,
        grid: Dim3,
        block: Dim3,
        arguments: int,
        runs: NDArray[np.int32],
        *,
        shared_bytes: int = 0,
        workers: int = 1,
        seed: int = 0,
        schedule: Schedule = "shuffled",
    ) -> Launch:
        """What the runtime takes; ``arguments``: where the addresses of the values are.

        The caller keeps ``runs`` (one count per block) and what ``arguments`` leads to.
        """
        return Launch(
            entry=self._entry,
            args=arguments,
            kernel=title.encode(),
            grid=(grid.x, grid.y, grid.z),
            block=(block.x, block.y, block.z),
            dynamic_bytes=shared_bytes,
            shared_module=self._segment.shared_module,
            shared_bytes=self._segment.shared_bytes,
            seed=seed & (1 << 64) - 1,
            runs=runs.ctypes.data,
            workers=workers,
            schedule=_SCHEDULES[schedule],
        )

    def launch(
        self,
        grid: Dim3,
        block: Dim3,
        arguments: Sequence[bytes],
        *,
        shared_bytes: int = 0,
        blocks: Sequence[int] | None = None,
        workers: int = 1,
        seed: int = 0,
        schedule: Schedule = "shuffled",
    ) -> None:
        """Run ``blocks`` (linear, x fastest; None: all) with the parameters' bytes ``arguments``.

        ``schedule``: the blocks run in a random order that ``seed`` fixes, in the order given,
        or all at the same time on an OS thread each. UsageError for arguments of wrong sizes,
        ExecutionError when a block breaks the execution model.
        """
        got = tuple(len(a) for a in arguments)
        wanted = tuple(int(s[1:]) for s in self.signature)
        if got != wanted:
            raise UsageError(f"kernel {self.name} arguments", f"values of {wanted} bytes", got)
        values = [ctypes.create_string_buffer(a, len(a)) for a in arguments]
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        runs = np.zeros(grid.size, np.int32)
        prepared = self.prepare(
            self.name,
            grid,
            block,
            ctypes.addressof(addresses),
            runs,
            shared_bytes=shared_bytes,
            workers=workers,
            seed=seed,
            schedule=schedule,
        )
        chosen = range(grid.size) if blocks is None else blocks
        self._runtime.launch(prepared, np.asarray(chosen, np.int64))
