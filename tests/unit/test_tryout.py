"""Trying plans: what a session that is not simulated step by step shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from miriam.coordinator import ORDERED, Level, Mix, Plan, Policy, StepPlan, Task, TaskPlan
from miriam.coordinator.corun import Candidate
from miriam.coordinator.policies import get
from miriam.devices.contract import Arrays, Completion, Usage
from miriam.devices.observe import Observer
from miriam.devices.tryout import PAUSE, Length, Tried, tried, warm_up_requests
from miriam.kernels import Cost, GpuSpec
from tests.sim.programs import kernel, program

US = 1_000
LENGTH = Length(requests=4, shortest_ns=0, longest_ns=100 * US, percentile=95)
WORK = program("work", [(kernel(8), Cost(1e4, 1e3, 10.0))])
MIX = Mix(
    GpuSpec("test", "sm_75", 4, 100.0),
    (Task("c", WORK, critical=True), Task("n", WORK)),
    ((10 * US,), (10 * US,)),
)
PLANS = [get(name).plan(MIX) for name in ("gate", "multistream")]


class Clockwork:
    """A session in which each request of a task takes the same time."""

    def __init__(self, takes_ns: Sequence[int]) -> None:
        self.now_ns = 0
        self._takes_ns = takes_ns
        self._ends: list[tuple[int, int, int]] = []

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        self._ends.append((arrival_ns + self._takes_ns[task], task, arrival_ns))
        return 0

    def withdraw(self, task: int, request: int) -> bool:
        return False

    def advance(self, until_ns: int) -> Sequence[Completion]:
        end_ns, task, began_ns = min(self._ends)
        if end_ns > until_ns:
            self.now_ns = until_ns
            return []
        self._ends.remove((end_ns, task, began_ns))
        self.now_ns = end_ns
        return [Completion(task, 0, began_ns, began_ns, end_ns)]

    def usage(self) -> Usage:
        return Usage(0.0, 0.0)

    def close(self) -> None:
        pass


def shown(*critical_us: int) -> list[float]:
    """The slow-downs of plans under which a critical request takes so long."""
    sessions = [Clockwork((us * US, 10 * US)) for us in critical_us]

    def opened(policy: Policy, observers: Sequence[Observer]) -> Clockwork:
        return sessions.pop(0)

    plans = [PLANS[place > 0] for place in range(len(critical_us))]
    found = tried(MIX, plans, opened, LENGTH, [None, None], warm_up_ns=0, by_step=False)
    return [candidate.slowdown for candidate in found]


def test_slowdowns_are_over_the_first_plan() -> None:
    assert shown(10, 12, 5) == [1.0, pytest.approx(1.2), 0.5]


class Slower(Clockwork):
    """A normal request takes 20 us beside a critical one, alone 12.

    A critical one takes 30 us right after another one, after a pause ``late_us`` more.
    """

    def __init__(self, late_us: int) -> None:
        super().__init__((0, 0))
        self._late_ns = late_us * US

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        beside = any(other == 0 and began_ns <= self.now_ns for _, other, began_ns in self._ends)
        late_ns = self._late_ns if arrival_ns > self.now_ns else 0
        self._takes_ns = (30 * US + late_ns, (20 if beside else 12) * US)
        return super().submit(task, arrival_ns, inputs)


def after_pauses(*late_us: int) -> Sequence[Candidate]:
    sessions = [Slower(us) for us in late_us]

    def opened(policy: Policy, observers: Sequence[Observer]) -> Slower:
        return sessions.pop(0)

    length = Length(requests=20, shortest_ns=120 * US, longest_ns=10_000 * US, percentile=99)
    plans = [PLANS[place > 0] for place in range(len(late_us))]
    return tried(MIX, plans, opened, length, [None, None], warm_up_ns=0, by_step=False)


def test_gains_are_beside_closed_loops_and_with_pauses() -> None:
    """10 us of work alone in 20 us beside critical requests, and in 12 us half of the time."""
    (found, _) = after_pauses(0, 0)
    assert found.gain == pytest.approx(0.5, rel=0.1)
    assert found.paused_gain == pytest.approx((10 / 20 + 10 / 12) / 2, rel=0.1)


def test_a_plan_keeps_to_a_budget_only_if_it_does_so_after_pauses_too() -> None:
    assert [c.slowdown for c in after_pauses(0, 15, 0)] == [1.0, pytest.approx(1.5), 1.0]
    assert [c.slowdown for c in after_pauses(15, 15)] == [1.0, 1.0]


def test_a_plan_under_which_no_critical_request_ended_keeps_to_no_budget() -> None:
    assert shown(60, 150) == [1.0, float("inf")]
    assert shown(150, 150) == [float("inf")] * 2


def test_equal_plans_are_tried_once_for_equal_tasks() -> None:
    calls: list[int] = []

    def trying() -> tuple[Candidate, ...]:
        calls.append(1)
        return tuple(Candidate(plan, 1.0, 0.0) for plan in PLANS)

    def other(plans: Sequence[Plan], tasks: tuple[Task, ...]) -> None:
        known.of(tasks, plans, trying)

    known = Tried()
    first = known.of(MIX.tasks, PLANS, trying)
    assert known.of(tuple(MIX.tasks), list(PLANS), trying) is first
    assert len(calls) == 1
    other(PLANS[:1], MIX.tasks)
    other(PLANS, (*MIX.tasks, Task("n", WORK)))
    assert len(calls) == 3


class Kept(Clockwork):
    """It keeps what it is handed: tasks, how much later, and inputs; and whether it was closed."""

    def __init__(self, takes_ns: Sequence[int]) -> None:
        super().__init__(takes_ns)
        self.handed: list[tuple[int, int, Arrays | None]] = []
        self.closed = 0

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        self.handed.append((task, arrival_ns - self.now_ns, inputs))
        return super().submit(task, arrival_ns, inputs)

    def close(self) -> None:
        self.closed += 1


def kept(mix: Mix, length: Length, *takes_us: int) -> list[Kept]:
    """The sessions in which two plans were tried, with inputs that have the tasks' numbers."""
    made: list[Kept] = []

    def opened(policy: Policy, observers: Sequence[Observer]) -> Kept:
        made.append(Kept([us * US for us in takes_us]))
        return made[-1]

    inputs = [{"x": np.full(1, task)} for task in range(len(mix.tasks))]
    tried(mix, PLANS, opened, length, inputs, warm_up_ns=0, by_step=False)
    return made


def test_each_task_gets_its_inputs_and_as_many_requests_as_it_may_have_in_flight() -> None:
    work = replace(MIX, tasks=(MIX.tasks[0], replace(MIX.tasks[1], in_flight=3)))
    for session in kept(work, LENGTH, 10, 10):
        assert [task for task, _, _ in session.handed[:4]] == [0, 1, 1, 1]
        assert all(inputs and inputs["x"] == task for task, _, inputs in session.handed)
        assert session.closed == 1


def test_pauses_are_of_several_lengths_about_their_average() -> None:
    """Else all critical requests could come at the same point of a normal one."""
    length = replace(LENGTH, requests=40, longest_ns=10**9)
    (session, _) = kept(MIX, length, 10, 10)
    pauses_us = [after_ns / US for task, after_ns, _ in session.handed if task == 0 and after_ns]
    assert len(set(pauses_us)) > 30
    assert 20 <= min(pauses_us) < 22 and 38 < max(pauses_us) <= 40
    assert np.mean(pauses_us) == pytest.approx(10 * PAUSE, rel=0.02)
    assert all(after_ns == 0 for task, after_ns, _ in session.handed if task == 1)


def test_a_plan_is_tried_until_enough_requests_of_each_critical_task_have_ended() -> None:
    assert LENGTH.goes_on(50 * US, [3, 4]) and not LENGTH.goes_on(50 * US, [4, 5])
    assert not LENGTH.goes_on(100 * US, [3, 4])
    longer = replace(LENGTH, shortest_ns=60 * US)
    assert longer.goes_on(59 * US, [9]) and not longer.goes_on(60 * US, [9])


class Uneven(Clockwork):
    """Every tenth critical request takes ``late_us`` instead of 10."""

    def __init__(self, late_us: int) -> None:
        super().__init__((0, 0))
        self._late_us, self._count = late_us, 0

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        self._count += not task
        us = self._late_us if not task and self._count % 10 == 0 else 10
        self._takes_ns = (us * US, us * US)
        return super().submit(task, arrival_ns, inputs)


def test_the_percentile_of_the_service_counts_and_not_what_most_requests_take() -> None:
    sessions = [Uneven(us) for us in (10, 30)]
    length = replace(LENGTH, requests=100, longest_ns=10**9)
    found = tried(
        MIX,
        PLANS,
        lambda policy, observers: sessions.pop(0),
        length,
        [None, None],
        warm_up_ns=0,
        by_step=False,
    )
    assert [candidate.slowdown for candidate in found] == [1.0, pytest.approx(3.0)]


def test_to_warm_up_takes_a_request_for_each_gate_of_the_task_that_has_most() -> None:
    gate, elastic = StepPlan(Level.GATE, Level.GATE), StepPlan(Level.GRANT, Level.YIELD)
    work = replace(MIX, tasks=(*MIX.tasks, Task("m", WORK)))
    tasks = (TaskPlan(0, (gate,) * 9), TaskPlan(1, (gate, ORDERED, elastic)), TaskPlan(1, (gate,)))
    assert warm_up_requests(work, Plan(tasks)) == 2
    assert warm_up_requests(MIX, PLANS[1]) == 0


class Late(Clockwork):
    """Each request takes 10 us, and waits for ``wait_us`` before it starts."""

    def __init__(self, wait_us: int) -> None:
        super().__init__(((wait_us + 10) * US, 10 * US))

    def advance(self, until_ns: int) -> Sequence[Completion]:
        return [
            replace(done, start_ns=done.finish_ns - 10 * US) for done in super().advance(until_ns)
        ]


def test_waiting_before_the_first_kernel_is_no_slow_down() -> None:
    sessions = [Late(wait_us) for wait_us in (0, 20)]
    found = tried(
        MIX,
        PLANS,
        lambda policy, observers: sessions.pop(0),
        replace(LENGTH, longest_ns=1_000 * US),
        [None, None],
        warm_up_ns=0,
        by_step=False,
    )
    assert [candidate.slowdown for candidate in found] == [1.0, 1.0]
