"""Trying plans: what a session that is not simulated step by step shows of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from miriam.coordinator import Mix, Plan, Policy, Task
from miriam.coordinator.corun import Candidate
from miriam.coordinator.policies import get
from miriam.devices.contract import Arrays, Completion, Usage
from miriam.devices.observe import Observer
from miriam.devices.tryout import Length, Tried, tried
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
