"""Measures normal work beside a critical request, segment by segment (`miriam.coordinator.corun`).

The critical request runs once, while the steps of a normal unit run again and again under one
grant, which is in force before the first of them. Simulated times do not scatter, so one run of
each unit under each grant says it all: an observer sees when each critical step ended, and when
which logical blocks of the normal steps ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from miriam.coordinator import ORDERED, Grant, Level, Mix, Plan, StepPlan, Task, TaskPlan
from miriam.coordinator.corun import CoRun, Trial, is_long
from miriam.coordinator.leftover import TimedStep
from miriam.coordinator.task import Steps
from miriam.devices.observe import LaunchInfo, Observer
from miriam.devices.sim.forms import Forms
from miriam.devices.sim.model import GpuModel
from miriam.devices.sim.session import SimSession
from miriam.devices.tryout import Given
from miriam.kernels import Program

SLOWEST = 2.5
"""Beside others a critical request, or a block, is expected to take up to so many times as long;
where it takes longer, the normal work is handed in again."""

FOREVER_NS = 10**15

_CRITICAL, _NORMAL = 0, 1
_GATE = StepPlan(Level.GATE, Level.GATE)
_ELASTIC = StepPlan(Level.GRANT, Level.YIELD)

_Times = NDArray[np.float64]
_Pair = tuple[Program, Program, int, tuple[Steps, ...]]
_Shown = dict[Steps, tuple[float, float]]


class CoRunner:
    """Measures on one model of a GPU; what is known of equal programs is not measured again."""

    def __init__(self, model: GpuModel) -> None:
        self._model = model
        self._known: dict[_Pair, dict[tuple[Steps, Grant], _Shown]] = {}

    def measure(
        self, mix: Mix, critical: int, normal: int, trials: Sequence[Trial]
    ) -> tuple[CoRun, ...]:
        """``trials`` of two tasks of ``mix``; the buffers of all its tasks share the L2."""
        programs = mix.tasks[critical].program, mix.tasks[normal].program
        total_bytes = sum(task.program.footprint_bytes for task in mix.tasks)
        ranges = tuple(sorted({trial.critical for trial in trials}))
        known = self._known.setdefault((*programs, total_bytes, ranges), {})
        asked = dict.fromkeys((trial.normal, trial.grant) for trial in trials)
        missing = [pair for pair in asked if pair not in known]
        if missing:
            times_ns = mix.step_ns[critical], mix.step_ns[normal]
            bench = _Bench(self._model, programs, times_ns, total_bytes, ranges)
            known.update({pair: bench.run(*pair) for pair in missing})
        return tuple(CoRun(t, *known[t.normal, t.grant][t.critical]) for t in trials)


class _Bench:
    """What two programs are measured on."""

    def __init__(
        self,
        model: GpuModel,
        programs: tuple[Program, Program],
        times_ns: tuple[Sequence[int], Sequence[int]],
        total_bytes: int,
        ranges: Sequence[Steps],
    ) -> None:
        """``times_ns``: of each step alone. ``ranges``: the segments."""
        self._model, self._total_bytes, self._ranges = model, total_bytes, ranges
        (self._critical, self._normal), (critical_ns, self._normal_ns) = programs, times_ns
        self._lasts_ns = SLOWEST * sum(critical_ns)
        alone = _Watch(len(self._critical.steps), ())
        session = self._session([self._critical], Plan((self._critical_plan(),)), alone)
        session.submit(_CRITICAL, 0)
        session.advance(FOREVER_NS)
        self._alone_ns = _lasting(alone.bounds_ns(ranges))

    def run(self, unit: Steps, grant: Grant) -> _Shown:
        """Slow-down and progress (`CoRun`) of each segment beside ``unit`` under ``grant``."""
        steps, steps_ns = self._normal.steps[slice(*unit)], self._normal_ns[slice(*unit)]
        timed = [TimedStep(step, ns) for step, ns in zip(steps, steps_ns, strict=True)]
        repeats = 1 + int(self._lasts_ns / max(1, sum(steps_ns)))
        work = replace(self._normal, steps=steps * repeats)
        block_ns = [step.alone_ns / step.step.kernel.blocks for step in timed]
        watch = _Watch(len(self._critical.steps), block_ns)
        session = self._session([self._critical, work], self._plan(unit, grant, repeats), watch)
        # A block is seen when it ends, and some of the last segment's end after it.
        rest_ns = int(SLOWEST * max(step.block_ns(self._model.spec) for step in timed))
        _beside(session, rest_ns)
        bounds_ns = watch.bounds_ns(self._ranges)
        taken_ns = _lasting(bounds_ns)
        shown = np.hstack([taken_ns / self._alone_ns, np.diff(watch.done_ns(bounds_ns)) / taken_ns])
        return {
            segment: (s, p) for segment, (s, p) in zip(self._ranges, shown.tolist(), strict=True)
        }

    def _plan(self, unit: Steps, grant: Grant, repeats: int) -> Plan:
        first, stop = unit
        long = is_long(self._normal_ns, unit)
        levels = (_ELASTIC if long else _GATE, *[ORDERED] * (stop - first - 1)) * repeats
        row = (grant,) * len(levels)
        grants = {(_CRITICAL, _NORMAL): (row,) * len(self._critical.steps)}
        return Plan((self._critical_plan(), TaskPlan(1, levels)), grants)

    def _critical_plan(self) -> TaskPlan:
        return TaskPlan(0, (ORDERED,) * len(self._critical.steps))

    def _session(self, programs: Sequence[Program], plan: Plan, watch: _Watch) -> SimSession:
        tasks = tuple(Task(p.name, p, critical=not i) for i, p in enumerate(programs))
        mix = Mix(self._model.spec, tasks, tuple((0,) * len(p.steps) for p in programs))
        forms = [Forms(self._model, p, self._total_bytes - p.footprint_bytes) for p in programs]
        return SimSession(self._model, mix, Given(plan), forms, None, (watch,))


def _lasting(bounds_ns: _Times) -> _Times:
    """How long something lasts that began and ended so; where nothing costs anything, 1 ns."""
    return np.maximum(np.diff(bounds_ns), 1)


def _beside(session: SimSession, rest_ns: int) -> None:
    """Run the critical request beside the normal work, and this for ``rest_ns`` more."""
    # In this order, so that there is normal work when the critical request begins.
    session.submit(_NORMAL, 0)
    session.submit(_CRITICAL, 0)
    until_ns = FOREVER_NS
    while session.now_ns < until_ns:
        for completion in session.advance(until_ns):
            if completion.task == _CRITICAL:
                until_ns = session.now_ns + rest_ns
            else:
                session.submit(_NORMAL, session.now_ns)


class _Watch(Observer):
    """When each critical step ended, and when normal blocks ran."""

    def __init__(self, steps: int, block_ns: Sequence[float]) -> None:
        """``steps``: of the critical program.

        ``block_ns``: for each step of the unit, how many ns of its time alone a block stands for.
        """
        self._borders_ns = [0] * (steps + 1)
        self._block_ns = block_ns
        self._stands_for_ns: dict[int, float] = {}
        self._ran: list[tuple[float, float, float]] = []

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        if task == _CRITICAL:
            if step == 0:
                self._borders_ns[0] = began_ns
            self._borders_ns[step + 1] = ended_ns

    def launched(self, launch: LaunchInfo, now_ns: int) -> None:
        if launch.task == _NORMAL:
            self._stands_for_ns[launch.number] = self._block_ns[launch.step % len(self._block_ns)]

    def ran(
        self,
        launch: int,
        sms: Sequence[int],
        blocks: Sequence[tuple[int, int]],
        began_ns: float,
        ended_ns: float,
    ) -> None:
        if launch in self._stands_for_ns:
            work_ns = self._stands_for_ns[launch] * sum(count for _, count in blocks)
            self._ran.append((began_ns, ended_ns, work_ns))

    def bounds_ns(self, ranges: Sequence[Steps]) -> _Times:
        """When each range of critical steps began and ended: a row per range."""
        borders: _Times = np.array(self._borders_ns, np.float64)
        return np.array([borders[list(steps)] for steps in ranges])

    def done_ns(self, at_ns: _Times) -> _Times:
        """The normal work done by each of these times, in ns of its time alone.

        Of a block that runs, the part that has passed counts.
        """
        began_ns, ended_ns, work_ns = np.array(self._ran, np.float64).reshape(-1, 3).T
        passed = (at_ns[..., None] - began_ns) / np.maximum(ended_ns - began_ns, 1)
        done: _Times = np.clip(passed, 0, 1) @ work_ns
        return done
