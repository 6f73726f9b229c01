"""What the benchmarks on a GPU share: driver calls, worlds, kernels, buffers of a network."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuda.bindings import driver

from miriam.compile import compile_cubin
from miriam.kernels import Argument, Pointer, Program

DTYPES: dict[str, Any] = {"int32": ctypes.c_int, "float32": ctypes.c_float}


def ask(result: tuple[Any, ...]) -> Any:
    """The value of a driver call; raises with the driver's text."""
    status, *values = result
    if int(status):
        raise SystemExit(f"driver: {driver.cuGetErrorString(status)[1].decode()}")
    return values[0] if len(values) == 1 else tuple(values)


class World:
    """A context of so many SMs (None: the whole GPU) and its streams."""

    def __init__(self, device: Any, primary: Any, sms: int | None) -> None:
        self._green = None
        kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
        whole = ask(driver.cuDeviceGetDevResource(device, kind))
        self.sms, self.context = whole.sm.smCount, primary
        if sms is not None:
            groups = ask(driver.cuDevSmResourceSplitByCount(whole.sm.smCount // 8, whole, 0, 8))[0]
            taken = list(groups[: sms // 8])
            description = ask(driver.cuDevResourceGenerateDesc(taken, len(taken)))
            flags = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
            self._green = ask(driver.cuGreenCtxCreate(description, device, flags))
            self.sms = sum(group.sm.smCount for group in taken)
            self.context = ask(driver.cuCtxFromGreenCtx(self._green))
        self.enter()

    def enter(self) -> None:
        """Make this context the calling thread's."""
        ask(driver.cuCtxSetCurrent(self.context))

    def stream(self, priority: int) -> Any:
        """A new stream; smaller is more urgent."""
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        if self._green is None:
            return ask(driver.cuStreamCreateWithPriority(flags, priority))
        return ask(driver.cuGreenCtxStreamCreate(self._green, flags, priority))


class Modules:
    """The networks' kernels, compiled once for this GPU."""

    def __init__(self, programs: Sequence[Program], arch: str) -> None:
        names: dict[str, set[str]] = {}
        self._kernels = [s.kernel for p in programs for s in p.steps]
        for step in (s for p in programs for s in p.steps):
            names.setdefault(step.kernel.source, set()).add(step.kernel.name)
        self._functions: dict[tuple[str, str], Any] = {}
        for source, wanted in names.items():
            compiled = compile_cubin(Path(source), sorted(wanted), arch)
            module = ask(driver.cuModuleLoadData(compiled.cubin))
            for name in wanted:
                symbol = compiled.lowered[name].encode()
                self._functions[source, name] = ask(driver.cuModuleGetFunction(module, symbol))

    def function(self, source: str, name: str) -> Any:
        """The loaded function."""
        return self._functions[source, name]

    def resident_blocks(self, source: str, name: str) -> int:
        """Blocks that one SM holds."""
        kernel = next(k for k in self._kernels if (k.source, k.name) == (source, name))
        occupancy = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        function = self._functions[source, name]
        return int(ask(occupancy(function, kernel.threads, kernel.dynamic_shared_bytes)))


class Memory:
    """The buffers of one network: its weights, and all others in one piece."""

    def __init__(self, program: Program) -> None:
        def padded(size: int) -> int:
            return -(-size // 256) * 256

        self._addresses: dict[str, int] = {}
        others = [b for b in program.buffers if b.role != "weight"]
        self.bytes = sum(padded(b.bytes) for b in others)
        self.base = int(ask(driver.cuMemAlloc(self.bytes)))
        offset = 0
        for buffer in others:
            self._addresses[buffer.name] = self.base + offset
            offset += padded(buffer.bytes)
        for buffer in program.named("weight"):
            self._addresses[buffer.name] = int(ask(driver.cuMemAlloc(buffer.bytes)))
        for buffer in program.buffers:
            # 0.01f everywhere: a network that nobody fills runs on plain numbers.
            ask(driver.cuMemsetD32(self._addresses[buffer.name], 0x3C23D70A, buffer.size))

    def address(self, buffer: str, offset: int = 0) -> int:
        """Where element ``offset`` of ``buffer`` lies."""
        return self._addresses[buffer] + 4 * offset

    def argument(self, argument: Argument) -> Any:
        """A kernel argument as ctypes has it."""
        if isinstance(argument, Pointer):
            return ctypes.c_void_p(self.address(argument.buffer, argument.offset))
        return DTYPES[argument.dtype](argument.value)


def launch(
    function: Any,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int,
    stream: Any,
    arguments: Sequence[Any],
) -> None:
    """Launch ``function`` with ctypes ``arguments``."""
    pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
    address = ctypes.addressof(pointers)
    ask(driver.cuLaunchKernel(function, *grid, *block, shared_bytes, stream, address, 0))


def begin() -> tuple[Any, Any, str]:
    """The first device, its primary context (current from now on), and its architecture."""
    ask(driver.cuInit(0))
    device = ask(driver.cuDeviceGet(0))
    primary = ask(driver.cuDevicePrimaryCtxRetain(device))
    ask(driver.cuCtxSetCurrent(primary))
    attribute = driver.CUdevice_attribute
    major, minor = (
        ask(driver.cuDeviceGetAttribute(a, device))
        for a in (
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    return device, primary, f"sm_{major}{minor}"


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def about(device: Any) -> dict[str, Any]:
    """The GPU, the driver's API version and the date, for a report."""
    from datetime import date

    return {
        "gpu": ask(driver.cuDeviceGetName(64, device)).split(b"\0")[0].decode(),
        "driver": ask(driver.cuDriverGetVersion()),
        "date": date.today().isoformat(),
    }
