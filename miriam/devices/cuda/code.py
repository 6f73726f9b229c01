"""Loaded code: cubins on the GPU, and launches of their kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from miriam.compile import Compiled
from miriam.devices.cuda.driver import ask, driver
from miriam.kernels import Step

CONTROLS = Path(__file__).with_name("controls.cu")
_WITHOUT_ASKING_BYTES = 48 * 1024
"""Dynamic shared memory that any kernel may have; more has to be asked for."""

Shape = tuple[int, int, int]


class Original(Protocol):
    """A step as its author wrote it, ready to be submitted."""

    def submit(self, stream: Any, step: Step, arguments: Sequence[Any]) -> None:
        """Submit ``step`` to ``stream``; ``arguments`` of its kernel as ctypes has them."""


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel on the GPU, ready to be launched while others wait."""

    handle: Any
    name: str

    def allow(self, shared_bytes: int) -> None:
        """Let it be launched with so much dynamic shared memory; what was allowed stays so."""
        if shared_bytes <= _WITHOUT_ASKING_BYTES:
            return
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        if shared_bytes > ask(driver.cuFuncGetAttribute(most, self.handle)):
            ask(driver.cuFuncSetAttribute(self.handle, most, shared_bytes))

    def resident_blocks(self, threads: int, shared_bytes: int) -> int:
        """Blocks that one empty SM holds at once."""
        occupancy = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        return int(ask(occupancy(self.handle, threads, shared_bytes)))

    def launch(
        self,
        stream: Any,
        grid: Shape,
        block: Shape,
        arguments: Sequence[Any],
        shared_bytes: int = 0,
    ) -> None:
        """Launch it on ``stream``; ``arguments`` as ctypes has them."""
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        at = ctypes.addressof(pointers)
        ask(driver.cuLaunchKernel(self.handle, *grid, *block, shared_bytes, stream, at, 0))

    def submit(self, stream: Any, step: Step, arguments: Sequence[Any]) -> None:
        """Launch it as ``step`` says."""
        kernel = step.kernel
        grid, block = ((extent.x, extent.y, extent.z) for extent in (kernel.grid, kernel.block))
        self.launch(stream, grid, block, arguments, kernel.dynamic_shared_bytes)


class Module:
    """A cubin on the GPU."""

    def __init__(self, compiled: Compiled) -> None:
        self._module = ask(driver.cuModuleLoadData(compiled.cubin))
        self._lowered = compiled.lowered

    def function(self, name: str) -> Function:
        """The kernel ``name`` (a name expression)."""
        handle = ask(driver.cuModuleGetFunction(self._module, self._lowered[name].encode()))
        ask(driver.cuFuncLoad(handle))
        return Function(handle, name)

    def unload(self) -> None:
        """Take it off the GPU; nothing may still run it."""
        ask(driver.cuModuleUnload(self._module))


CONTROL_KERNELS = ("miriam_gate", "miriam_border", "miriam_where", "miriam_again", "miriam_now")
