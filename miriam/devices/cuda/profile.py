"""Measured times of a program's steps on an idle world, and which form of each is the fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

from miriam.devices.cuda.buffers import Buffers, CArgument, Weights
from miriam.devices.cuda.capture import recording
from miriam.devices.cuda.code import Function
from miriam.devices.cuda.driver import ask, driver, event
from miriam.devices.cuda.kernels import Form, Kernels
from miriam.devices.cuda.memory import Memory
from miriam.devices.cuda.patience import drain
from miriam.devices.cuda.world import World
from miriam.elastic.launch import Control
from miriam.kernels import KernelSpec, Program, Step

REPEATS = 6
"""Launches in a row; their mean counts, so that the gap to the next kernel is in it."""

RUNS = 5


@dataclass(frozen=True, slots=True)
class StepProfile:
    """A step alone: ns of its original, and per number of threads its fastest yield form.

    ``elastic_ns``: that form's time with everything open, the claims included.
    """

    original_ns: int
    forms: dict[int, Form]
    elastic_ns: dict[int, int]


class Profiler:
    """Measures steps in one world, on buffers whose contents do not matter."""

    def __init__(self, world: World, kernels: Kernels) -> None:
        self._world, self._kernels = world, kernels

    def profile(self, program: Program) -> tuple[StepProfile, ...]:
        """The profile of each step of ``program``; steps that are alike are measured once."""
        self._world.enter()
        known: dict[tuple[object, ...], StepProfile] = {}
        with ExitStack() as owned:
            memory = Memory()
            owned.callback(memory.free)
            buffers = Buffers(program, Weights(program, None, memory).addresses, memory)
            stream = self._world.stream(0, owned)
            counters = memory.device(4 * REPEATS)
            for step in program.steps:
                if step.alike not in known:
                    known[step.alike] = self._step(step, buffers, stream, counters)
        return tuple(known[step.alike] for step in program.steps)

    def _step(self, step: Step, buffers: Buffers, stream: Any, counters: int) -> StepProfile:
        kernel, arguments = step.kernel, buffers.arguments(step)
        original = self._kernels.original(step)
        grid = kernel.grid.x, kernel.grid.y, kernel.grid.z
        block = kernel.block.x, kernel.block.y, kernel.block.z
        shared = kernel.dynamic_shared_bytes

        def plain(at: int) -> None:
            original.launch(stream, grid, block, arguments, shared)

        forms: dict[int, Form] = {}
        elastic_ns: dict[int, int] = {}
        for threads in {v.threads for v in kernel.variants}:
            for form in self._kernels.forms(step, threads):
                taken_ns = self._timed_ns(
                    self._elastic(step, form, arguments, counters, stream), stream, counters
                )
                if taken_ns < elastic_ns.get(threads, taken_ns + 1):
                    forms[threads], elastic_ns[threads] = form, taken_ns
        return StepProfile(self._timed_ns(plain, stream, counters), forms, elastic_ns)

    def _elastic(
        self, step: Step, form: Form, arguments: Sequence[CArgument], counters: int, stream: Any
    ) -> Callable[[int], None]:
        kernel = step.kernel
        full = resident_blocks(form.function, form.threads, kernel, self._world)

        def claim(at: int) -> None:
            control = Control(counters + 4 * at)
            form.launch(stream, kernel, arguments, min(kernel.blocks, full), control)

        return claim

    def _timed_ns(self, submit: Callable[[int], None], stream: Any, counters: int) -> int:
        times: list[float] = []
        with ExitStack() as owned:
            with recording(stream) as graph:
                owned.callback(graph.destroy)
                for at in range(REPEATS):
                    submit(at)
            began, ended = event(owned), event(owned)
            for _ in range(RUNS):
                ask(driver.cuMemsetD32Async(counters, 0, REPEATS, stream))
                ask(driver.cuEventRecord(began, stream))
                graph.launch(stream)
                ask(driver.cuEventRecord(ended, stream))
                drain(stream)
                times.append(ask(driver.cuEventElapsedTime(began, ended)) * 1e6 / REPEATS)
        return round(median(times))


def resident_blocks(function: Function, threads: int, kernel: KernelSpec, world: World) -> int:
    """Blocks of a form of ``kernel`` that fill ``world``."""
    return world.sms * max(1, function.resident_blocks(threads, kernel.dynamic_shared_bytes))
