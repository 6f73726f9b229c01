"""Barrier: where the borders go, and what the search prefers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miriam.coordinator import Mix, Task
from miriam.coordinator.policies import get
from miriam.coordinator.policies.barrier import BORDER_NS, balanced
from miriam.kernels import Cost
from tests.sim.programs import gpu, kernel, program

COST = Cost(flop=1e4, l2_bytes=1e3, dram_bytes=1e2)


def mix(critical_ns: Sequence[int], normal_ns: Sequence[int], blocks: int = 16) -> Mix:
    tasks = tuple(
        Task(name, program(name, [(kernel(blocks), COST)] * len(step_ns)), critical=name == "c")
        for name, step_ns in (("c", critical_ns), ("n", normal_ns))
    )
    return Mix(gpu().spec, tasks, (tuple(critical_ns), tuple(normal_ns)))


def test_equal_steps_are_cut_into_equal_groups() -> None:
    assert balanced([10] * 12, 4) == (0, 3, 6, 9)


def test_a_long_step_is_a_group_of_its_own() -> None:
    assert balanced([10, 10, 500, 10, 10], 3) == (0, 2, 3)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40), st.integers(1, 64))
def test_groups_cover_a_program_from_its_first_step(step_ns: list[int], groups: int) -> None:
    starts = balanced(step_ns, groups)
    assert starts[0] == 0
    assert list(starts) == sorted(set(starts))
    assert starts[-1] < len(step_ns) and len(starts) <= groups


def test_both_tasks_have_a_border_at_their_start_and_keep_their_priorities() -> None:
    plan = get("barrier").plan(mix([50_000] * 20, [50_000] * 40))
    assert all(0 in task.borders for task in plan.tasks)
    assert [task.stream_priority for task in plan.tasks] == [0, 1]
    assert not plan.grants


def test_a_task_twice_as_long_gets_twice_as_many_groups() -> None:
    critical, normal = get("barrier").plan(mix([50_000] * 40, [50_000] * 80)).tasks
    assert len(normal.borders) == pytest.approx(2 * len(critical.borders), abs=1)
    assert 1 < len(critical.borders) < 40


def test_steps_no_longer_than_a_border_costs_are_hardly_cut() -> None:
    few = get("barrier").plan(mix([BORDER_NS // 10] * 40, [BORDER_NS // 10] * 40))
    many = get("barrier").plan(mix([BORDER_NS * 10] * 40, [BORDER_NS * 10] * 40))
    assert len(few.tasks[0].borders) < len(many.tasks[0].borders) / 2


def test_nothing_beside_it_means_no_borders() -> None:
    both = mix([50_000] * 4, [50_000] * 4)
    alone = Mix(both.gpu, both.tasks[:1], both.step_ns[:1])
    assert get("barrier").plan(alone).tasks[0].borders == frozenset()
