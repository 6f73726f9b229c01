"""What gates cost on a GPU, as kernels and as waits in memory: to pass, to open, and held.

    python -m benchmarks.gates_gpu OUT.json

In worlds of all SMs, 32 and 16: a chain of short steps behind gates that are open; the time from a
control write to the start of what a gate held; and the service of a critical network while lanes
are held at gates and nothing runs beside it. What it showed: docs/results/gates.md.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from miriam import devices, models
from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.devices.cuda.buffers import Buffers, Weights
from miriam.devices.cuda.capture import Graph, add_wait, recording
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.graphs import WAITS_BYTES, Gate
from miriam.devices.cuda.memory import Memory, download
from miriam.devices.cuda.patience import drain

WORLDS = (0, 32, 16)
NETWORKS = ("resnet50", "alexnet", "squeezenet")
HELD = (0, 1, 2, 8)
CHAIN, RUNS, OPENINGS, REQUESTS = 40, 12, 60, 60
LIMIT_NS = 5_000_000_000
HOLD_S = 200e-6
SECOND_NS = 1_000_000_000

Kind = Literal["kernel", "memory"]
KINDS: tuple[Kind, ...] = ("kernel", "memory")


class Gates:
    """Gates of one world, all at one word."""

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        device.world.enter()
        self.memory = Memory()
        self.word = self.memory.device(64)
        self._abort, _ = self.memory.host(4)
        self._late, self._waits = self.memory.device(4), self.memory.device(WAITS_BYTES)
        self.times = self.memory.device(16)

    def set(self, value: int) -> None:
        """All open, or all shut."""
        ask(driver.cuMemsetD32(self.word, value, 16))
        drain(driver.CUstream(0))

    def record(self, stream: Any, kind: Kind, rows: int = 1) -> None:
        """A gate that looks at ``rows`` words."""
        if kind == "memory":
            add_wait(stream, [self.word + 4 * row for row in range(rows)])
            return
        gate = Gate(
            quota=self.word,
            forms=1,
            more_quotas=rows - 1,
            quota_stride=1,
            abort=self._abort,
            late=self._late,
            limit_ns=LIMIT_NS,
            waits=self._waits,
        )
        self.device.controls.function("miriam_gate").launch(stream, (1, 1, 1), (1, 1, 1), [gate])

    def now(self, stream: Any, place: int) -> None:
        """Write down the GPU's time."""
        function = self.device.controls.function("miriam_now")
        function.launch(stream, (1, 1, 1), (1, 1, 1), [ctypes.c_void_p(self.times + 8 * place)])


def passed(gates: Gates) -> dict[str, float]:
    """What an open gate adds to a short step of SqueezeNet, us."""
    device = gates.device
    program = models.load("squeezenet", device.gpu.arch)
    profiles = device.profile(program)
    nearest = min(range(len(profiles)), key=lambda i: abs(profiles[i].original_ns - 6_000))
    step = program.steps[nearest]
    weights = Weights(program, None, gates.memory)
    arguments = Buffers(program, weights.addresses, gates.memory).arguments(step)
    stream = device.world.stream(0)
    gates.set(1)

    def per_step_us(gate: Callable[[], None]) -> float:
        with recording(stream) as graph:
            for _ in range(CHAIN):
                gate()
                device.kernels.original(step).submit(stream, step, arguments)
        return _timed_us(graph, stream) / CHAIN

    plain_us = per_step_us(lambda: None)
    found = {"step": round(plain_us, 2)}
    for kind in KINDS:
        for rows in (1, 2, 4):

            def gate(kind: Kind = kind, rows: int = rows) -> None:
                gates.record(stream, kind, rows)

            found[f"{kind}, {rows} rows"] = round(per_step_us(gate) - plain_us, 2)
    return found


def _timed_us(graph: Graph, stream: Any) -> float:
    events = [ask(driver.cuEventCreate(0)) for _ in range(2)]
    times = []
    for _ in range(RUNS):
        ask(driver.cuEventRecord(events[0], stream))
        graph.launch(stream)
        ask(driver.cuEventRecord(events[1], stream))
        drain(stream)
        times.append(ask(driver.cuEventElapsedTime(*events)) * 1e3)
    return float(median(times[2:]))


def opened(gates: Gates, kind: Kind) -> dict[str, float]:
    """From the fill that opens a gate to the start of the kernel behind it, us."""
    world = gates.device.world
    held, writer = world.stream(0), world.stream(-(2**31))
    with recording(held) as waiting:
        gates.record(held, kind)
        gates.now(held, 0)
    with recording(writer) as opening:
        gates.now(writer, 1)
        ask(driver.cuMemsetD32Async(gates.word, 1, 1, writer))
    took_us = []
    for _ in range(OPENINGS):
        gates.set(0)
        waiting.launch(held)
        _spin(HOLD_S)
        opening.launch(writer)
        drain(held)
        drain(writer)
        began, wrote = (int(t) for t in download(gates.times, 2, "uint64"))
        took_us.append((began - wrote) / 1e3)
    return {f"p{q}": round(float(np.percentile(took_us, q)), 2) for q in (50, 99)}


def held(gates: Gates, network: str, kind: Kind, lanes: int) -> dict[str, float]:
    """The service of ``network`` while ``lanes`` are held and nothing runs beside it, us."""
    device = gates.device
    gates.set(0)
    streams = [device.world.stream(0) for _ in range(lanes)]
    graphs = []
    for stream in streams:
        with recording(stream) as graph:
            gates.record(stream, kind)
            gates.now(stream, 0)
        graph.upload(stream)
        drain(stream)
        graphs.append(graph)
    program = models.load(network, device.gpu.arch)
    task = Task(network, program, critical=True, weights=models.weights(network, 0))
    picture = models.example_input(network, 0)
    services_us = []
    with closing(device.open([task], get("multistream"))) as session:
        for graph, stream in zip(graphs, streams, strict=True):
            graph.launch(stream)
        for _ in range(REQUESTS):
            session.submit(0, session.now_ns, picture)
            (done,) = session.advance(session.now_ns + 10 * SECOND_NS)
            services_us.append((done.finish_ns - done.start_ns) / 1e3)
        gates.set(1)
    for stream in streams:
        drain(stream)
        ask(driver.cuStreamDestroy(stream))
    return {f"p{q}": round(float(np.percentile(services_us, q)), 1) for q in (50, 99)}


def _spin(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def measured(sms: int) -> dict[str, object]:
    """Everything in a world of ``sms`` SMs, 0 for all."""
    device = devices.get(f"cuda:0:{sms}" if sms else "cuda:0")
    assert isinstance(device, CudaDevice)
    gates = Gates(device)
    beside = {
        network: {
            f"{kind}, {lanes} held": held(gates, network, kind, lanes)
            for kind in KINDS
            for lanes in HELD
        }
        for network in NETWORKS
    }
    return {
        "world": device.name,
        "passed_us": passed(gates),
        "opened_us": {kind: opened(gates, kind) for kind in KINDS},
        "service_us": beside,
    }


def main(out: str) -> None:
    """Write what was measured to ``out``."""
    found = [measured(sms) for sms in WORLDS]
    Path(out).write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
