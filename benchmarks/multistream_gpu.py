"""Measures the simulator's yardstick on a real GPU: our networks alone and under multi-stream.

Each network is one CUDA graph. A critical network is launched again and again on the stream of
highest priority while k streams of lowest priority keep two requests of a normal network in
flight each. Everything lies in a green context of 8, 16 or 32 SMs, or on the whole GPU. Times
are between two events around a request. Nothing is verified here: the same kernels are, against
PyTorch and on the host, in tests/unit/test_models_torch.py.

    python benchmarks/multistream_gpu.py OUT.json       needs a GPU and miriam-gpu[cuda]
    python benchmarks/compare_sim.py OUT.json           the simulator beside it
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from cuda.bindings import driver

from miriam import models
from miriam.compile import compile_cubin
from miriam.kernels import Pointer, Program

WORLDS = (None, 32, 16, 8)
PAIRS = (
    ("alexnet", "cifarnet", (1, 2, 4, 8)),
    ("squeezenet", "alexnet", (2,)),
    ("gru", "resnet50", (2,)),
    ("lstm", "squeezenet", (2,)),
    ("resnet50", "squeezenet", (2,)),
)
SECONDS = 0.4
DTYPES = {"int32": ctypes.c_int, "float32": ctypes.c_float}


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


class Request:
    """A network with its own buffers, captured as one graph on one stream."""

    def __init__(self, program: Program, modules: Modules, stream: Any) -> None:
        self._stream = stream
        memory = {b.name: ask(driver.cuMemAlloc(b.bytes)) for b in program.buffers}
        for buffer in program.buffers:
            ask(driver.cuMemsetD32(memory[buffer.name], 0x3C23D70A, buffer.size))  # 0.01f
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        ask(driver.cuStreamBeginCapture(stream, mode))
        for step in program.steps:
            values: list[int | float] = []
            types: list[Any] = []
            for argument in step.args:
                if isinstance(argument, Pointer):
                    values.append(int(memory[argument.buffer]) + 4 * argument.offset)
                    types.append(ctypes.c_void_p)
                else:
                    values.append(argument.value)
                    types.append(DTYPES[argument.dtype])
            kernel = step.kernel
            grid, block = kernel.grid, kernel.block
            ask(
                driver.cuLaunchKernel(
                    modules.function(kernel.source, kernel.name),
                    *(grid.x, grid.y, grid.z, block.x, block.y, block.z),
                    kernel.dynamic_shared_bytes,
                    stream,
                    (tuple(values), tuple(types)),
                    0,
                )
            )
        graph = ask(driver.cuStreamEndCapture(stream))
        self._graph = ask(driver.cuGraphInstantiate(graph, 0))
        ask(driver.cuGraphUpload(self._graph, stream))
        ask(driver.cuStreamSynchronize(stream))

    def launch(self, after: Any) -> None:
        """Launch it and record the event ``after`` behind it."""
        ask(driver.cuGraphLaunch(self._graph, self._stream))
        ask(driver.cuEventRecord(after, self._stream))

    def latencies_us(self, seconds: float) -> list[float]:
        """Launch one after the other for so long; each one's time on the GPU."""
        begin, end = ask(driver.cuEventCreate(0)), ask(driver.cuEventCreate(0))
        taken, until = [], time.perf_counter() + seconds
        while time.perf_counter() < until:
            ask(driver.cuEventRecord(begin, self._stream))
            self.launch(end)
            ask(driver.cuEventSynchronize(end))
            taken.append(ask(driver.cuEventElapsedTime(begin, end)) * 1e3)
        return taken


class Load:
    """Normal requests, two in flight on each stream, each stream fed by its own thread."""

    def __init__(self, world: World, requests: Sequence[Request]) -> None:
        self._stop = threading.Event()
        self._counts = [0] * len(requests)
        self._threads = [
            threading.Thread(target=self._feed, args=(world, i, request))
            for i, request in enumerate(requests)
        ]

    @property
    def completed(self) -> int:
        """Requests completed so far."""
        return sum(self._counts)

    def _feed(self, world: World, index: int, request: Request) -> None:
        world.enter()
        blocking = driver.CUevent_flags.CU_EVENT_BLOCKING_SYNC
        events = [ask(driver.cuEventCreate(blocking)) for _ in range(2)]
        for event in events:
            request.launch(event)
        while not self._stop.is_set():
            for event in events:
                ask(driver.cuEventSynchronize(event))
                self._counts[index] += 1
                request.launch(event)
        for event in events:
            ask(driver.cuEventSynchronize(event))

    @contextmanager
    def running(self) -> Iterator[Load]:
        """While the load runs, warmed up."""
        for thread in self._threads:
            thread.start()
        time.sleep(0.03)
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()


def rate_hz(load: Load, seconds: float) -> float:
    """How many requests of ``load`` complete alone."""
    with load.running():
        first, begin = load.completed, time.perf_counter()
        time.sleep(seconds)
        return (load.completed - first) / (time.perf_counter() - begin)


def co_run(critical: Request, load: Load, seconds: float) -> tuple[list[float], float]:
    """The critical request's times beside ``load``, and the load's rate."""
    with load.running():
        first, begin = load.completed, time.perf_counter()
        taken = critical.latencies_us(seconds)
        return taken, (load.completed - first) / (time.perf_counter() - begin)


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(world: World, programs: dict[str, Program], modules: Modules) -> dict[str, Any]:
    """All networks alone and all pairs in one world."""
    urgent, streams = world.stream(-5), [world.stream(0) for _ in range(8)]
    critical = {name: Request(p, modules, urgent) for name, p in programs.items()}
    solo, rows = {}, []
    for name, request in critical.items():
        request.latencies_us(0.05)
        solo[name] = quantile(request.latencies_us(SECONDS / 4), 0.5)
    for first, second, depths in PAIRS:
        requests = [Request(programs[second], modules, s) for s in streams[: max(depths)]]
        for depth in depths:
            alone = critical[first].latencies_us(SECONDS / 2)
            base = rate_hz(Load(world, requests[:depth]), SECONDS / 2)
            beside, rate = co_run(critical[first], Load(world, requests[:depth]), SECONDS)
            rows.append(
                {
                    "critical": first,
                    "normal": second,
                    "in_flight": depth,
                    "requests": len(beside),
                    "p50": quantile(beside, 0.5) / quantile(alone, 0.5),
                    "p99": quantile(beside, 0.99) / quantile(alone, 0.99),
                    "H": rate / base,
                }
            )
            print(world.sms, rows[-1], flush=True)
    return {"sms": world.sms, "solo_us": solo, "pairs": rows}


def main() -> None:
    """Measure every world and write the figures."""
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
    arch = f"sm_{major}{minor}"
    programs = {name: models.load(name, arch) for name in models.NAMES}
    modules = Modules(list(programs.values()), arch)
    figures = {
        "gpu": ask(driver.cuDeviceGetName(64, device)).split(b"\0")[0].decode(),
        "driver": ask(driver.cuDriverGetVersion()),
        "date": date.today().isoformat(),
        "worlds": [measure(World(device, primary, sms), programs, modules) for sms in WORLDS],
    }
    Path(sys.argv[1]).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
