"""Partition and vacate: whose SMs are whose, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miriam.coordinator import CLOSED, UNLIMITED, Grant, Level, Mix, StepPlan, Task
from miriam.coordinator.policies import get
from miriam.coordinator.policies.partition import Partition
from miriam.coordinator.policies.vacate import Vacate
from miriam.coordinator.split import split
from miriam.errors import UsageError
from miriam.kernels import Cost, Program
from tests.sim.programs import gpu, kernel, program

COST = Cost(flop=1e4, l2_bytes=1e3, dram_bytes=1e2)
SHORT_NS, LONG_NS = 5_000, 500_000


def mix(sms: int = 8) -> Mix:
    work = program("p", [(kernel(16), COST)] * 3)
    rigid = replace(work.steps[2], rigid="closed source")
    normal = Program("n", "sm_75", (*work.steps[:2], rigid), work.buffers)
    tasks = (Task("c", work, critical=True), Task("n", normal))
    return Mix(gpu(sms).spec, tasks, ((SHORT_NS,) * 3, (SHORT_NS, LONG_NS, LONG_NS)))


@given(st.integers(2, 200), st.floats(0.01, 0.99))
def test_both_sides_have_an_sm_and_share_none(sms: int, share: float) -> None:
    (first, border), (again, end) = split(gpu(sms).spec, share)
    assert first == 0 < border == again < end == sms


@given(st.integers(16, 200), st.floats(0.01, 0.99), st.sampled_from([2, 4, 8]))
def test_both_sides_have_whole_groups(sms: int, share: float, group: int) -> None:
    (first, border), (again, end) = split(replace(gpu(sms).spec, sm_group=group), share)
    assert first == 0 < border == again < end == sms
    assert border % group == 0 and end - border >= group


def test_half_is_the_default_of_a_static_split() -> None:
    plan = get("partition").plan(mix(8))
    assert [task.sms for task in plan.tasks] == [(0, 4), (4, 8)]
    assert not plan.grants
    assert Partition(share=0.75).plan(mix(8)).tasks[0].sms == (0, 6)


@pytest.mark.parametrize("policy", ["partition", "vacate"])
def test_one_sm_can_not_be_split(policy: str) -> None:
    with pytest.raises(UsageError, match="GPU test groups of 1 SMs: at least 2 to be split, got 1"):
        get(policy).plan(mix(1))
    grouped = replace(mix(8), gpu=replace(gpu(8).spec, sm_group=8))
    with pytest.raises(UsageError, match="GPU test groups of 8 SMs: at least 2 to be split, got 1"):
        get(policy).plan(grouped)


def test_a_share_is_between_nothing_and_everything() -> None:
    for name in ("partition", "vacate"):
        text = f"policy {name} share: more than 0 and less than 1, got 1"
        with pytest.raises(UsageError, match=text):
            get(f"{name}:share=1")


def test_vacate_confines_the_critical_task_and_normal_steps_only_beside_it() -> None:
    critical, normal = get("vacate").plan(mix(8)).tasks
    assert critical.sms == (0, 6)
    assert normal.sms is None
    assert Vacate(share=0.5).plan(mix(8)).tasks[0].sms == (0, 4)


def test_vacate_lets_elastic_steps_leave_and_holds_rigid_ones() -> None:
    plan = get("vacate").plan(mix(8))
    elsewhere = Grant(UNLIMITED.blocks, sms=(6, 8))
    assert plan.grants[0, 1] == ((elsewhere, elsewhere, CLOSED),) * 3
    assert plan.tasks[1].steps == (
        StepPlan(Level.GRANT, Level.GATE),
        StepPlan(Level.GRANT, Level.YIELD),
        StepPlan(Level.GATE, Level.GATE),
    )
