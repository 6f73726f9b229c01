"""The ladder: what a budget opens for steps that would starve, and the plans from rung to rung."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import median

import pytest

from miriam.coordinator import CLOSED, Mix, Plan, Task
from miriam.coordinator.ladder import BUDGET, RUNGS
from miriam.coordinator.leftover import TimedStep
from miriam.coordinator.policies.miriam import Miriam
from miriam.devices.sim import SimDevice
from miriam.errors import UsageError
from miriam.kernels import Cost, GpuSpec, KernelSpec
from tests.sim.programs import gpu, kernel, program

GPU = GpuSpec("test", "sm_75", 4, 100.0)
COST = Cost(flop=1e4, l2_bytes=1e3, dram_bytes=10.0)
US = 1_000


def mix(
    critical: list[tuple[KernelSpec, int]],
    normal: list[tuple[KernelSpec, int]],
    rigid: str | None = None,
) -> Mix:
    """One critical and one normal task of kernels with their times alone, us."""
    c = program("c", [(spec, COST) for spec, _ in critical])
    n = program("n", [(spec, COST) for spec, _ in normal])
    n = replace(n, steps=tuple(replace(step, rigid=rigid) for step in n.steps))
    times = tuple(tuple(us * US for _, us in work) for work in (critical, normal))
    return Mix(GPU, (Task("c", c, critical=True), Task("n", n)), times)


# Blocks of 400 us outlast every critical step; there is room beside the first (2 of 4 SMs).
SPARING, FILLING = kernel(2), kernel(400)
STARVING = mix([(SPARING, 10), (FILLING, 100)], [(kernel(4), 400), (kernel(4), 10)])


def column(plan: Plan, step: int) -> list[int]:
    return [row[step].blocks for row in plan.grants[0, 1]]


def cost_us(plan: Plan) -> int:
    """How many blocks may stand beside the critical steps, weighed by their times."""
    if not plan.grants:
        return 10**9
    times = STARVING.step_ns[0]
    return sum(row[0].blocks * ns for row, ns in zip(plan.grants[0, 1], times, strict=True))


def test_without_a_budget_a_step_may_stand_beside_none() -> None:
    assert column(Miriam(budget=0).plan(STARVING), 0) == [0, 0]


def test_a_budget_opens_where_it_costs_least() -> None:
    opened = column(Miriam().plan(STARVING), 0)
    assert opened[0] > 0
    assert opened[1] == 0


def test_a_larger_budget_opens_more() -> None:
    assert column(Miriam(budget=2.0).plan(STARVING), 0)[1] > 0


def test_a_step_whose_cheapest_opening_is_beyond_the_budget_still_gets_that_one() -> None:
    filled = mix([(FILLING, 100), (FILLING, 50)], [(kernel(4), 400)])
    opened = column(Miriam(budget=1e-6).plan(filled), 0)
    assert [blocks > 0 for blocks in opened] == [False, True]
    assert max(opened) == 1


def test_steps_that_have_a_place_keep_it_as_it_is() -> None:
    assert column(Miriam().plan(STARVING), 1) == column(Miriam(budget=0).plan(STARVING), 1)


def test_rigid_steps_are_never_opened() -> None:
    held = mix([(SPARING, 10)], [(kernel(4), 400)], rigid="closed source")
    assert Miriam().plan(held).grants[0, 1] == ((CLOSED,),)


def test_rungs_lead_from_closed_to_everything() -> None:
    ladder = Miriam().rungs(STARVING)
    table = ladder[0].grants[0, 1]
    assert {grant for row in table for grant in row} == {CLOSED}
    assert dict(ladder[-1].grants) == {}
    assert Miriam().plan(STARVING) in ladder
    costs = [cost_us(rung) for rung in ladder]
    assert costs == sorted(costs)
    assert all(one != other for one, other in pairwise(ladder))
    assert tuple(sorted(RUNGS)) == RUNGS and BUDGET in RUNGS


@pytest.mark.parametrize("budget", [-0.1, float("nan"), float("inf")])
def test_a_budget_is_a_share(budget: float) -> None:
    with pytest.raises(UsageError, match="miriam budget: a finite share, not negative, got"):
        Miriam(budget=budget)


def test_steps_without_time_do_not_stop_the_plan() -> None:
    assert column(Miriam().plan(mix([(FILLING, 0)], [(kernel(4), 400)])), 0) == [1]


def test_equal_steps_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[TimedStep, TimedStep]] = []
    grant = Miriam._grant

    def counted(self: Miriam, gpu: GpuSpec, critical: TimedStep, normal: TimedStep) -> object:
        seen.append((critical, normal))
        return grant(self, gpu, critical, normal)

    monkeypatch.setattr(Miriam, "_grant", counted)
    repeated = mix([(SPARING, 10), (FILLING, 100)] * 20, [(kernel(4), 400), (kernel(4), 10)] * 20)
    table = Miriam().plan(repeated).grants[0, 1]
    assert len(seen) == 2 * 2
    assert len(table) == len(table[0]) == 40


def test_nothing_starves_beside_a_critical_task_that_never_pauses() -> None:
    """In the simulator: served with the budget, not without, and the critical task is as fast."""
    small = Cost(flop=100_000, l2_bytes=1e3, dram_bytes=10)
    critical = Task("c", program("c", [(kernel(2), small)] * 4), critical=True)
    normal = Task("n", program("n", [(kernel(8), Cost(4_000_000, 1e3, 10))] * 2))
    served, median_ns = {}, {}
    for budget in (0.0, BUDGET):
        session = SimDevice(gpu()).open((critical, normal), Miriam(budget=budget))
        session.submit(0, 0)
        session.submit(1, 0)
        done = []
        while session.now_ns < 5_000_000:
            for completion in session.advance(5_000_000):
                done.append(completion)
                session.submit(completion.task, session.now_ns)
        served[budget] = sum(c.task == 1 for c in done)
        median_ns[budget] = median(c.finish_ns - c.arrival_ns for c in done if c.task == 0)
    assert served[0.0] == 0
    assert served[BUDGET] > 5
    assert median_ns[BUDGET] < 1.1 * median_ns[0.0]
