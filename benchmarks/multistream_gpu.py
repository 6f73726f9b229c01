"""Measures the simulator's yardstick on a real GPU: our networks alone and under multi-stream.

Each network is one CUDA graph. A critical network is launched again and again on the stream of
highest priority while k streams of lowest priority keep two requests of a normal network in
flight each. Everything lies in a green context of 8, 16 or 32 SMs, or on the whole GPU. Times
are between two events around a request. Nothing is verified here: the same kernels are, against
PyTorch and on the host, in tests/unit/test_models_torch.py.

    python -m benchmarks.multistream_gpu OUT.json       needs a GPU and miriam-gpu[cuda]
    python -m benchmarks.compare_sim OUT.json           the simulator beside it
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuda.bindings import driver

from benchmarks.gpu import Memory, Modules, World, about, ask, begin, launch, quantile
from miriam import models
from miriam.kernels import Program

WORLDS = (None, 32, 16, 8)
PAIRS = (
    ("alexnet", "cifarnet", (1, 2, 4, 8)),
    ("squeezenet", "alexnet", (2,)),
    ("gru", "resnet50", (2,)),
    ("lstm", "squeezenet", (2,)),
    ("resnet50", "squeezenet", (2,)),
)
SECONDS = 0.4


class Request:
    """A network with its own buffers, captured as one graph on one stream."""

    def __init__(self, program: Program, modules: Modules, stream: Any) -> None:
        self._stream = stream
        memory = Memory(program)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        ask(driver.cuStreamBeginCapture(stream, mode))
        for step in program.steps:
            kernel = step.kernel
            launch(
                modules.function(kernel.source, kernel.name),
                (kernel.grid.x, kernel.grid.y, kernel.grid.z),
                (kernel.block.x, kernel.block.y, kernel.block.z),
                kernel.dynamic_shared_bytes,
                stream,
                [memory.argument(a) for a in step.args],
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
    device, primary, arch = begin()
    programs = {name: models.load(name, arch) for name in models.NAMES}
    modules = Modules(list(programs.values()), arch)
    worlds = [measure(World(device, primary, sms), programs, modules) for sms in WORLDS]
    figures = {**about(device), "worlds": worlds}
    Path(sys.argv[1]).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
