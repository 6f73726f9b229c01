"""How long normal work takes to leave: which requests count, and from which plans."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench_fakes import tiny_program

from miriam import devices
from miriam.coordinator import CLOSED, UNLIMITED, Mix, Plan, Task
from miriam.coordinator.policies import get
from miriam.devices.cuda.waits import holds_all, yields_ns


def test_a_yield_lasts_until_the_last_lane_has_left() -> None:
    left = [[50, 1_030, 5_020], [1_080, 1_200]]
    assert yields_ns([(1_000, 2_000), (5_000, 6_000)], left) == (80, 20)


def test_lanes_that_had_nothing_to_leave_do_not_count() -> None:
    assert yields_ns([(1_000, 2_000)], [[1_030], [900, 2_500], []]) == (30,)
    assert yields_ns([(1_000, 2_000)], [[2_500], []]) == ()


def mix() -> Mix:
    tasks = (
        Task("c", tiny_program("c"), critical=True),
        Task("d", tiny_program("d"), critical=True),
        Task("n", tiny_program("n")),
        Task("m", tiny_program("m")),
    )
    gpu = devices.get("sim:h200").gpu
    return Mix(gpu, tasks, tuple((30_000,) * len(task.program.steps) for task in tasks))


@pytest.mark.parametrize(
    ("policy", "held"),
    [("gate", True), ("tally", True), ("vacate", False), ("miriam", False), ("multistream", False)],
)
def test_only_a_plan_that_holds_everything_makes_all_normal_work_leave(
    policy: str, held: bool
) -> None:
    assert holds_all(get(policy).plan(mix()), mix(), 0) is held


def test_one_open_grant_is_enough_to_let_some_stay() -> None:
    plan = get("gate").plan(mix())
    opened: Plan = replace(plan, grants={**plan.grants, (1, 3): ((CLOSED,), (UNLIMITED,))})
    missing = replace(plan, grants={k: v for k, v in plan.grants.items() if k != (1, 3)})
    assert [holds_all(opened, mix(), task) for task in (0, 1)] == [True, False]
    assert [holds_all(missing, mix(), task) for task in (0, 1)] == [True, False]
