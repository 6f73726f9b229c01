"""Steps as normal graphs hold them, alone in a world with everything open, and their times.

The doctor's own steps are synthetic: a short one, and two that leave no register free, with blocks
of 6 and 45 us on an H200.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from miriam.coordinator import Task
from miriam.devices.cuda.buffers import Buffers, Weights
from miriam.devices.cuda.capture import Graph, recording
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.graphs import WAITS_BYTES, WHILE_FROM_NS, Controls, Place, record_step
from miriam.devices.cuda.lane import Lane
from miriam.devices.cuda.memory import Memory, download
from miriam.devices.cuda.patience import drain, wait_for
from miriam.devices.cuda.profile import resident_blocks
from miriam.devices.cuda.words import OPEN, SM_WORDS, StepWords
from miriam.elastic.launch import Control, launch_bytes
from miriam.kernels import (
    Buffer,
    Dim3,
    KernelSpec,
    Pointer,
    Program,
    Resources,
    Scalar,
    Step,
    Variant,
)
from miriam.kernels import Cost as StepCost

SOURCE = Path(__file__).with_name("subject.cu")
FLOATS = 1 << 20
LIMIT_S = 5.0
"""No measurement here takes so long: the GPU hangs."""

Mode = Literal["original", "gate", "claim", "chain", "while", "chosen"]
"""``claim``: the yield form alone. ``chosen``: chain or WHILE node, as a session would."""


def synthetic(arch: str, sms: int) -> Program:
    """The steps ``short``, ``fill 5 us`` and ``fill 30 us`` for a world of ``sms`` SMs."""
    return Program(
        "doctor",
        arch,
        (
            _step("short", "busy", sms * 8, 128, 4_000),
            _step("fill 5 us", "fill", sms * 100, 1_024, 20),
            _step("fill 30 us", "fill", sms * 20, 1_024, 200),
        ),
        (Buffer("in", (FLOATS,), "scratch"), Buffer("out", (FLOATS,), "scratch")),
    )


def busy_program(
    name: str, arch: str, steps: int, *, blocks: int, threads: int, rounds: int
) -> Program:
    """``steps`` short steps of ``blocks`` blocks."""
    return Program(
        name,
        arch,
        tuple(_step(f"step {i}", "busy", blocks, threads, rounds) for i in range(steps)),
        (Buffer("in", (FLOATS,), "scratch"), Buffer("out", (FLOATS,), "scratch")),
    )


def _step(name: str, kernel: str, blocks: int, threads: int, rounds: int) -> Step:
    # What the compiler reports is not planned with here.
    variants = (Variant(threads, Resources(0, 0)),)
    spec = KernelSpec(kernel, str(SOURCE), Dim3(blocks), Dim3(threads), variants)
    arguments = (Pointer("in"), Pointer("out"), Scalar(rounds))
    return Step(name, name, spec, arguments, StepCost(0.0, 0.0, 0.0), "out")


class Subject:
    """A program's buffers, words and streams in the world of ``device``.

    One word per step of the program says what it may hold; all are open.
    """

    def __init__(self, device: CudaDevice, program: Program) -> None:
        self.device, self.program = device, program
        self.profiles = device.profile(program)
        device.world.enter()
        self._memory = Memory()
        weights = Weights(program, None, self._memory)
        buffers = Buffers(program, weights.addresses, self._memory)
        self._side = device.world.stream(0)
        self.lane = Lane(Task(program.name, program), device.world, 0, buffers, self._side)
        self.urgent = device.world.stream(-(2**31))
        self.width = SM_WORDS + len(program.steps)
        flags = self._memory.device(8)
        self.controls = Controls(
            gate=device.controls.function("miriam_gate"),
            again=device.controls.function("miriam_again"),
            rows=self._memory.device(4 * self.width),
            width=self.width,
            slots=1,
            abort=flags,
            late=flags + 4,
            limit_ns=1_000_000_000,
            confined=False,
            waits=self._memory.device(WAITS_BYTES),
        )
        self._counters = self._memory.device(4 * 2 * _MOST_REPEATS)
        self.open_all()

    def open_all(self) -> None:
        """Let every step go on, and forget what was claimed."""
        self.write(self.controls.rows, OPEN, self.width)
        self.write(self._counters, 0, 2 * _MOST_REPEATS)

    def write(self, address: int, value: int, words: int = 1) -> None:
        """Set words on the GPU, and wait until they are."""
        ask(driver.cuMemsetD32Async(address, value, words, self.urgent))
        drain(self.urgent)

    def word(self, step: int) -> int:
        """The address of the word of ``step``."""
        return self.controls.rows + 4 * (SM_WORDS + step)

    def counter(self, repeat: int = 0) -> int:
        """The address of the counter of the repeat number ``repeat``."""
        return self._counters + 4 * repeat

    def claimed(self) -> int:
        """How often a block was claimed from the first counter; may overshoot."""
        return int(download(self.counter(), 1, "uint32")[0])

    def place(self, index: int, mode: Mode, repeat: int = 0) -> Place:
        """Step ``index`` as ``mode`` has it; its counters are those of ``repeat``."""
        return self.place_at(
            index, mode, self.counter(repeat), self.counter(_MOST_REPEATS + repeat)
        )

    def place_at(self, index: int, mode: Mode, counter: int, shrunk: int) -> Place:
        """Step ``index`` as ``mode`` has it, its counter and its shrunk word at these addresses."""
        step, profile = self.program.steps[index], self.profiles[index]
        kernel, original = step.kernel, self.device.kernels.original(step)
        plain = Place(step, 0, original)
        if mode == "original":
            return plain
        elastic = mode != "gate"
        gated = replace(plain, words=StepWords(SM_WORDS + index, (kernel.threads,), elastic))
        if not elastic:
            return gated
        form = profile.forms[kernel.threads]
        alone_ns = {"while": WHILE_FROM_NS, "chosen": profile.original_ns}
        resident = resident_blocks(form.function, form.threads, kernel, self.device.world)
        return replace(
            gated,
            alone_ns=alone_ns.get(mode, 0),
            forms=(form,),
            resident=(resident,),
            counter=counter,
            shrunk=shrunk,
        )

    def record(self, index: int, mode: Mode, repeats: int) -> Graph:
        """A graph of ``repeats`` times step ``index``, between the lane's two events."""
        lane = self.lane
        with recording(lane.stream) as graph:
            ask(driver.cuMemsetD32Async(self._counters, 0, 2 * _MOST_REPEATS, lane.stream))
            lane.mark(lane.began)
            for repeat in range(repeats):
                if mode == "claim":
                    self.claim(index, repeat)
                else:
                    record_step(lane, self.place(index, mode, repeat), self.controls)
            lane.mark(lane.ended)
        graph.upload(lane.stream)
        return graph

    def claim(self, index: int, repeat: int = 0, *, sms: int = 0) -> None:
        """Submit the yield form of step ``index`` alone; ``sms``: a set of SMs that it asks."""
        place = self.place(index, "claim", repeat)
        kernel, form = place.step.kernel, place.forms[0]
        control = Control(place.counter, self.word(index), sms=sms, shrunk=place.shrunk)
        launch = launch_bytes(kernel.grid, 0, kernel.blocks, control, block=kernel.block)
        words = (ctypes.c_char * len(launch)).from_buffer_copy(launch)
        form.function.launch(
            self.lane.stream,
            (min(kernel.blocks, place.resident[0]), 1, 1),
            (kernel.block.x, kernel.block.y, kernel.block.z),
            [words, *self.lane.buffers.arguments(place.step)],
            kernel.dynamic_shared_bytes,
        )

    def times_us(
        self, index: int, modes: Sequence[Mode], repeats: int, samples: int
    ) -> Mapping[Mode, list[float]]:
        """Times of one step in each of ``modes``, in turn, the first two of each left out."""
        repeats = min(repeats, _MOST_REPEATS)
        graphs: dict[Mode, Graph] = {mode: self.record(index, mode, repeats) for mode in modes}
        found: dict[Mode, list[float]] = {mode: [] for mode in modes}
        for _ in range(samples + 2):
            for mode, graph in graphs.items():
                found[mode].append(self.run_us(graph) / repeats)
        for graph in graphs.values():
            graph.destroy()
        return {mode: times[2:] for mode, times in found.items()}

    def run_us(self, graph: Graph) -> float:
        """Launch ``graph``; the time between the lane's two events in it."""
        lane = self.lane
        graph.launch(lane.stream)
        wait_for(lane.ended, LIMIT_S)
        return elapsed_us(lane.began, lane.ended)

    def settle(self) -> None:
        """Until nothing of it runs; DeviceError after ``LIMIT_S``."""
        for stream in (self.lane.stream, self.urgent):
            drain(stream)

    def close(self) -> None:
        """Give everything back; nothing of it may be running."""
        self.lane.close()
        for stream in (self.urgent, self._side):
            ask(driver.cuStreamDestroy(stream))
        self._memory.free()


_MOST_REPEATS = 64


def elapsed_us(first: object, last: object) -> float:
    """The time between two events that have happened."""
    elapsed_ms: float = ask(driver.cuEventElapsedTime(first, last))
    return elapsed_ms * 1e3


def sampled(measure: Callable[[], float], samples: int) -> list[float]:
    """``samples`` results of ``measure``, after two that do not count."""
    return [measure() for _ in range(samples + 2)][2:]


def spin(seconds: float) -> None:
    """Let so much time pass without giving up the processor."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
