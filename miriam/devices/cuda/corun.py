"""Measures normal work beside critical work, stretch by stretch (`miriam.coordinator.corun`).

The critical steps run as a graph, again and again, while the normal ones do in another stream with
less priority. Their blocks claim from counters, which copies to the host read before and after: a
copy engine waits for no kernel. In the end a fill closes the grant, and what is left of the normal
graph falls through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miriam.coordinator import Grant
from miriam.coordinator.corun import CoRun, Trial
from miriam.coordinator.task import Steps
from miriam.devices.cuda.buffers import Buffers
from miriam.devices.cuda.capture import Graph, recording
from miriam.devices.cuda.code import Function
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.kernels import Form, Kernels
from miriam.devices.cuda.lane import EXTERNAL
from miriam.devices.cuda.memory import Memory, upload
from miriam.devices.cuda.patience import drain, wait_for
from miriam.devices.cuda.profile import StepProfile, resident_blocks
from miriam.devices.cuda.words import OPEN, SM_WORDS, Row, sm_set
from miriam.devices.cuda.world import World
from miriam.elastic.launch import Control
from miriam.kernels import Program, Step

WINDOW_NS = 300_000
"""The critical steps alone are repeated for about so long."""

SLOWEST = 3
"""Beside others they are expected to take at most so many times as long."""

RUNS = 2

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Normal:
    """Normal steps, recorded: ``claims`` are each launch's blocks, ns per block a weight.

    ``began`` is recorded by the graph.
    """

    graph: Graph
    began: Any
    weights_ns: NDArray[np.float64]
    most: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Critical:
    """Critical steps, recorded, with the events around them and their time alone."""

    graph: Graph
    began: Any
    ended: Any
    alone_ns: float = 0.0


class CoRunner:
    """Measures in one world; what is known of equal steps is not measured again."""

    def __init__(self, world: World, kernels: Kernels, where: Function) -> None:
        """``where``: the kernel miriam_where, by which SMs are found."""
        self._world, self._kernels, self._where = world, kernels, where
        self._known: dict[_Key, tuple[float, float]] = {}

    def measure(
        self,
        programs: tuple[Program, Program],
        profiles: tuple[Sequence[StepProfile], Sequence[StepProfile]],
        trials: Sequence[Trial],
    ) -> tuple[CoRun, ...]:
        """``trials`` of a critical and a normal program, whose kernels are loaded."""
        missing = [t for t in trials if _key(programs, t) not in self._known]
        if missing:
            bench = _Bench(self._world, self._kernels, programs, profiles)
            for sms in {t.grant.sms for t in missing if t.grant.sms}:
                bench.confine(sms, self._world.ids_of(*sms, self._where))
            for trial in missing:
                key = _key(programs, trial)
                if key not in self._known:
                    self._known[key] = bench.run(trial)
            bench.close()
        return tuple(CoRun(t, *self._known[_key(programs, t)]) for t in trials)


def _key(programs: tuple[Program, Program], trial: Trial) -> _Key:
    critical, normal = programs
    return (
        tuple(step.kernel for step in critical.steps[slice(*trial.critical)]),
        tuple(step.kernel for step in normal.steps[slice(*trial.normal)]),
        trial.grant,
    )


class _Bench:
    """What two programs are measured on: buffers whose contents do not matter, graphs, words."""

    def __init__(
        self,
        world: World,
        kernels: Kernels,
        programs: tuple[Program, Program],
        profiles: tuple[Sequence[StepProfile], Sequence[StepProfile]],
    ) -> None:
        self._world, self._kernels = world, kernels
        self._programs, self._profiles = programs, profiles
        world.enter()
        self._memory = Memory()
        self._buffers = [self._of(program) for program in programs]
        self._streams = world.stream(-(2**31)), world.stream(0)
        self._quota = self._memory.device(4)
        self._words = self._most_launches()
        self._counters = self._memory.device(4 * self._words)
        self._seen = [self._memory.host(4 * self._words) for _ in range(2)]
        self._sms = self._memory.device(4 * SM_WORDS)
        self._sets: dict[tuple[int, int] | None, Row] = {None: np.full(SM_WORDS, OPEN, np.uint32)}
        self._normals: dict[tuple[Steps, int], _Normal] = {}
        self._criticals: dict[Steps, _Critical] = {}

    def confine(self, sms: tuple[int, int], ids: Sequence[int]) -> None:
        """The hardware's numbers of the SMs that grants call ``sms``."""
        self._sets[sms] = sm_set(ids)

    def run(self, trial: Trial) -> tuple[float, float]:
        """Slow-down and progress (`CoRun`)."""
        critical = self._critical(trial.critical)
        normal = self._normal(trial.normal, trial.grant)
        found = [self._once(critical, normal, trial.grant) for _ in range(RUNS)]
        slowdown = median(elapsed_ns for elapsed_ns, _ in found) / critical.alone_ns
        return slowdown, fmean(done_ns / elapsed_ns for elapsed_ns, done_ns in found)

    def close(self) -> None:
        """Give back what was made."""
        for normal in self._normals.values():
            normal.graph.destroy()
            ask(driver.cuEventDestroy(normal.began))
        for critical in self._criticals.values():
            critical.graph.destroy()
            for event in (critical.began, critical.ended):
                ask(driver.cuEventDestroy(event))
        for stream in self._streams:
            ask(driver.cuStreamDestroy(stream))
        self._memory.free()

    def _of(self, program: Program) -> Buffers:
        weights = {b.name: self._memory.device(b.bytes) for b in program.named("weight")}
        return Buffers(program, weights, self._memory)

    def _repeats(self, steps: Steps) -> int:
        taken_ns = sum(p.original_ns for p in self._profiles[1][slice(*steps)])
        longest_ns = WINDOW_NS + max(p.original_ns for p in self._profiles[0]) * 2
        return -(-SLOWEST * longest_ns // max(taken_ns, 1)) + 1

    def _most_launches(self) -> int:
        shortest_ns = max(1, min(p.original_ns for p in self._profiles[1]))
        longest_ns = WINDOW_NS + max(p.original_ns for p in self._profiles[0]) * 2
        return (SLOWEST * longest_ns // shortest_ns + 2) * 2

    def _once(self, critical: _Critical, normal: _Normal, grant: Grant) -> tuple[float, float]:
        """The critical steps' time beside the normal ones, and how much those did then, in ns."""
        urgent, other = self._streams
        ask(driver.cuMemsetD32Async(self._quota, min(grant.blocks, OPEN), 1, urgent))
        ask(driver.cuMemsetD32Async(self._counters, 0, self._words, urgent))
        drain(urgent)
        upload(self._sms, self._sets[grant.sms])
        normal.graph.launch(other)
        wait_for(normal.began)
        elapsed_ns = self._timed_ns(critical)
        drain(other)
        before, after = (view.view(np.uint32)[: normal.most.size] for _, view in self._seen)
        claimed = np.minimum(after, normal.most) - np.minimum(before, normal.most)
        return elapsed_ns, float(claimed @ normal.weights_ns)

    def _timed_ns(self, critical: _Critical) -> float:
        urgent, _ = self._streams
        critical.graph.launch(urgent)
        drain(urgent)
        return float(ask(driver.cuEventElapsedTime(critical.began, critical.ended))) * 1e6

    def _critical(self, steps: Steps) -> _Critical:
        if steps not in self._criticals:
            made = self._record_critical(steps)
            self._timed_ns(made)
            alone_ns = median(self._timed_ns(made) for _ in range(2 * RUNS + 1))
            self._criticals[steps] = _Critical(made.graph, made.began, made.ended, alone_ns)
        return self._criticals[steps]

    def _record_critical(self, steps: Steps) -> _Critical:
        stream, _ = self._streams
        chosen = self._programs[0].steps[slice(*steps)]
        taken_ns = sum(p.original_ns for p in self._profiles[0][slice(*steps)])
        began, ended = (ask(driver.cuEventCreate(0)) for _ in range(2))
        with recording(stream) as graph:
            self._look(0)
            ask(driver.cuEventRecordWithFlags(began, stream, EXTERNAL))
            for _ in range(max(1, round(WINDOW_NS / max(taken_ns, 1)))):
                for step in chosen:
                    arguments = self._buffers[0].arguments(step)
                    self._kernels.original(step).submit(stream, step, arguments)
            ask(driver.cuEventRecordWithFlags(ended, stream, EXTERNAL))
            self._look(1)
            ask(driver.cuMemsetD32Async(self._quota, 0, 1, stream))
        return _Critical(graph, began, ended)

    def _look(self, which: int) -> None:
        address, _ = self._seen[which]
        stream, _ = self._streams
        ask(driver.cuMemcpyDtoHAsync(address, self._counters, 4 * self._words, stream))

    def _normal(self, steps: Steps, grant: Grant) -> _Normal:
        first, _ = steps
        kernel = self._programs[1].steps[first].kernel
        threads = grant.threads or kernel.threads
        key = steps, threads if threads < kernel.threads else 0
        if key not in self._normals:
            self._normals[key] = self._record_normal(steps, key[1])
        return self._normals[key]

    def _record_normal(self, steps: Steps, threads: int) -> _Normal:
        """``threads``: of the form, 0 for as many as the original's."""
        _, stream = self._streams
        chosen = [
            (self._programs[1].steps[i], self._form(i, threads), self._profiles[1][i])
            for i in range(*steps)
        ]
        began = ask(driver.cuEventCreate(0))
        weights_ns: list[float] = []
        most: list[int] = []
        with recording(stream) as graph:
            ask(driver.cuEventRecordWithFlags(began, stream, EXTERNAL))
            for _ in range(self._repeats(steps)):
                for step, form, profile in chosen:
                    self._submit(step, form, len(most))
                    weights_ns.append(profile.original_ns / step.kernel.blocks)
                    most.append(step.kernel.blocks)
        return _Normal(graph, began, np.array(weights_ns), np.array(most))

    def _form(self, step: int, threads: int) -> Form:
        forms = self._profiles[1][step].forms
        return forms[threads or self._programs[1].steps[step].kernel.threads]

    def _submit(self, step: Step, form: Form, number: int) -> None:
        _, stream = self._streams
        control = Control(self._counters + 4 * number, quota=self._quota, sms=self._sms)
        full = resident_blocks(form.function, form.threads, step.kernel, self._world)
        arguments = self._buffers[1].arguments(step)
        form.launch(stream, step.kernel, arguments, min(step.kernel.blocks, full), control)
