"""miriam-measured: what its plans open beside which segments, with made-up measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miriam.coordinator import (
    CLOSED,
    ORDERED,
    UNLIMITED,
    Grant,
    Level,
    Mix,
    Plan,
    StepPlan,
    Task,
    TaskPlan,
)
from miriam.coordinator.corun import Candidate, CoRun, Measuring, Trial
from miriam.coordinator.gates import yield_target_ns
from miriam.coordinator.policies import get
from miriam.coordinator.policies.miriam_measured import OTHERS, POLICY, WRITE_NS, MiriamMeasured
from miriam.errors import MissingCapabilityError, UsageError
from miriam.kernels import Cost, GpuSpec, Resources, Variant
from tests.sim.programs import kernel, program

GPU = GpuSpec("test", "sm_75", 4, 100.0)
COST = Cost(1e4, 1e3, 10.0)
US = 1_000
CRITICAL_US = (20, 30, 30, 20, 50, 10)
"""Segments: steps 0 and 1, steps 2 and 3, steps 4 and 5."""

ONE_WAVE, MANY_WAVES = 8, 400
SHORT, LONG, STIFF = (ONE_WAVE, 10), (MANY_WAVES, 200), (ONE_WAVE, 40)


def task(name: str, steps: Sequence[tuple[int, int]], rigid: str | None = None) -> Task:
    made = program(name, [(kernel(blocks), COST) for blocks, _ in steps])
    made = replace(made, steps=tuple(replace(step, rigid=rigid) for step in made.steps))
    return Task(name, made, critical=name.startswith("c"))


def mix(*normal: Sequence[tuple[int, int]], critical: int = 1, rigid: str | None = None) -> Mix:
    """Critical tasks of `CRITICAL_US`, and normal ones of (blocks, us) per step."""
    steps = [(ONE_WAVE, us) for us in CRITICAL_US]
    tasks = [task(f"c{i}", steps) for i in range(critical)]
    tasks += [task(f"n{i}", steps, rigid) for i, steps in enumerate(normal)]
    works = [steps] * critical + list(normal)
    return Mix(GPU, tuple(tasks), tuple(tuple(us * US for _, us in work) for work in works))


Shown = Callable[[Trial], tuple[float, float]]


def measured(mix: Mix, shown: Shown) -> Mix:
    """``mix`` with what a device would find if ``shown`` were a trial's slowdown and progress."""
    coruns = {
        (c, n): tuple(CoRun(trial, *shown(trial)) for trial in POLICY.trials(mix, c, n))
        for c in mix.critical
        for n in mix.normal
    }
    return replace(mix, coruns=coruns)


def free(trial: Trial) -> tuple[float, float]:
    """Costs nothing anywhere."""
    return 1.0, 0.9


def beside_first(trial: Trial) -> tuple[float, float]:
    """Free beside the first segment, dear beside the others."""
    return (1.0, 0.9) if trial.critical == (0, 2) else (3.0, 0.9)


def own_candidates(work: Mix) -> list[Plan]:
    """The candidates that were made of measurements."""
    others = [policy.plan(work) for policy in OTHERS]
    return [plan for plan in POLICY.candidates(work) if plan not in others]


def first_opened(mix: Mix, shown: Shown) -> Plan:
    """The candidate after the one that holds everything."""
    return own_candidates(measured(mix, shown))[1]


def opened(plan: Plan, normal: int = 1) -> list[list[bool]]:
    return [[grant != CLOSED for grant in row] for row in plan.grants[0, normal]]


def test_it_is_a_policy_that_measures() -> None:
    assert isinstance(get("miriam-measured"), Measuring)
    assert not isinstance(get("miriam"), Measuring)


def test_trials_are_every_segment_with_every_unit_and_grant() -> None:
    trials = POLICY.trials(mix([SHORT, LONG]), 0, 1)
    assert len(set(trials)) == len(trials)
    assert {trial.critical for trial in trials} == {(0, 2), (2, 4), (4, 6)}
    short = {trial.grant for trial in trials if trial.normal == (0, 1)}
    long = {trial.grant for trial in trials if trial.normal == (1, 2)}
    assert short == {UNLIMITED}
    confined = Grant(UNLIMITED.blocks, sms=(3, 4))
    assert long == {UNLIMITED, confined, *(Grant(n, 256, ahead=True) for n in (4, 2, 1))}


def test_sms_are_given_in_whole_groups_or_not_at_all() -> None:
    def ranges(group: int) -> set[object]:
        work = replace(mix([SHORT, LONG]), gpu=replace(GPU, sm_group=group))
        candidates = POLICY.candidates(measured(work, free))
        return {task.sms for plan in candidates for task in plan.tasks}

    assert ranges(1) == {None, (0, 2), (2, 4), (0, 3), (3, 4)}
    assert ranges(2) == {None, (0, 2), (2, 4)}
    assert ranges(4) == {None}


def test_a_grant_is_never_for_all_blocks() -> None:
    trials = POLICY.trials(mix([(2, 40)]), 0, 1)
    assert {trial.grant.blocks for trial in trials} == {UNLIMITED.blocks, 1}


def test_candidates_lead_from_everything_held_to_everything_open() -> None:
    def shown(trial: Trial) -> tuple[float, float]:
        return 1.03 + 0.11 * trial.critical[0], 0.9

    found = own_candidates(measured(mix([SHORT]), shown))
    steps = [sum(map(sum, opened(plan))) for plan in found]
    assert steps[0] == 0
    assert {0, 6} < set(steps)
    assert all(plan not in found[:place] for place, plan in enumerate(found))


def test_plans_that_need_no_measurement_are_candidates_too() -> None:
    work = measured(mix([SHORT]), free)
    found = POLICY.candidates(work)
    for name in ("multistream", "vacate:share=0.5", "vacate", "partition"):
        assert get(name).plan(work) in found


def test_beside_a_task_that_was_not_measured_no_task_is_confined() -> None:
    """It may be captured, and keep the SMs that it was captured on: a device refuses the plan."""
    work = measured(mix([SHORT], critical=2), free)
    captured = replace(work, coruns={**work.coruns, (1, 2): ()})
    assert any(task.sms for plan in POLICY.candidates(work) for task in plan.tasks)
    assert not any(task.sms for plan in POLICY.candidates(captured) for task in plan.tasks)


@pytest.mark.parametrize("rigid", [None, "closed source"])
def test_holding_everything_is_tried_with_fewer_gates(rigid: str | None) -> None:
    """Beside a request of 1.6 ms gates are 80, 160 and 320 us apart, at normal steps of 40 us."""
    work = mix([(ONE_WAVE, 40)] * 16, critical=1, rigid=rigid)
    long = tuple(10 * ns for ns in work.step_ns[0])
    found = POLICY.candidates(measured(replace(work, step_ns=(long, work.step_ns[1])), free))
    held = [plan for plan in found if plan.grants and not any(map(any, opened(plan)))]
    gates = [sum(s.level >= Level.GATE for s in plan.tasks[1].steps) for plan in held]
    assert gates == [8, 4, 2]
    assert held[0] == found[0]


def test_some_candidates_hold_the_unit_that_costs_most() -> None:
    """The second of three short units, at four times the cost of both others together."""

    def shown(trial: Trial) -> tuple[float, float]:
        return (1.8 if trial.normal == (1, 2) else 1.1), 0.9

    found = own_candidates(measured(mix([(4, 20), (4, 15), (4, 20)]), shown))
    columns = [[any(column) for column in zip(*opened(plan), strict=True)] for plan in found]
    assert columns[0] == [False, False, False]
    assert [True, True, True] in columns
    assert [True, False, True] in columns


def test_what_costs_nothing_is_open_first() -> None:
    """And an end comes early enough for what runs to be gone: 10 us and the write's 8 us."""
    assert WRITE_NS == 8 * US
    plan = first_opened(mix([SHORT]), beside_first)
    assert opened(plan) == [[True], [False], [False], [False], [False], [False]]


def test_what_goes_on_beside_the_next_segment_does_not_end_early() -> None:
    assert opened(first_opened(mix([SHORT]), free)) == [[True]] * 6


def test_all_steps_of_a_unit_have_its_grant() -> None:
    plan = first_opened(mix([SHORT, SHORT, LONG]), free)
    assert set(plan.grants[0, 1]) == {(UNLIMITED,) * 3}


def test_the_cheapest_grant_is_taken_where_no_other_fits() -> None:
    def cheap_if_small(trial: Trial) -> tuple[float, float]:
        return (1.0, 0.2) if trial.grant.blocks == 1 else (3.0, 0.9)

    plan = first_opened(mix([LONG]), cheap_if_small)
    assert set(plan.grants[0, 1]) == {(Grant(1, 256, ahead=True),)}


def test_every_pair_has_its_own_grants() -> None:
    plan = first_opened(mix([SHORT], [LONG], critical=2), beside_first)
    assert set(plan.grants) == {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert [plan.stream_priority for plan in plan.tasks] == [0, 0, 1, 1]


def test_levels_a_gate_for_one_wave_and_elastic_for_what_can_leave() -> None:
    """A step of one wave is elastic only where it may hold a part of its blocks."""
    gate, elastic = StepPlan(Level.GATE, Level.GATE), StepPlan(Level.GRANT, Level.YIELD)
    work = mix([SHORT, (ONE_WAVE, 5), STIFF, LONG])
    whole = first_opened(work, free)
    assert whole.tasks[0].steps == (ORDERED,) * 6
    assert whole.tasks[1].steps == (gate, ORDERED, gate, elastic)

    def better_if_small(trial: Trial) -> tuple[float, float]:
        return (1.0, 0.9) if trial.grant.blocks == 1 else (1.0, 0.5)

    part = first_opened(work, better_if_small)
    assert part.tasks[1].steps == (gate, ORDERED, elastic, elastic)


def test_without_critical_tasks_there_is_one_candidate_with_levels_and_no_grants() -> None:
    (plan,) = POLICY.candidates(mix([SHORT, LONG], critical=0))
    assert not plan.grants
    assert [step.level for step in plan.tasks[0].steps] == [Level.GATE, Level.GRANT]


def tried(*shown: tuple[float, ...]) -> Mix:
    """Candidates of (slowdown, gain, paused gain), told apart by their streams' priorities."""
    candidates = tuple(
        Candidate(Plan((TaskPlan(place, ()),)), *each) for place, each in enumerate(shown)
    )
    return replace(mix([SHORT]), candidates=candidates)


def chosen(budget: float, seen: Mix) -> int:
    return MiriamMeasured(budget=budget).plan(seen).tasks[0].stream_priority


def test_the_plan_is_the_candidate_that_brings_most_within_the_budget() -> None:
    seen = tried((1.0, 0.1), (1.04, 0.5), (1.08, 0.4), (1.3, 0.9))
    assert [chosen(budget, seen) for budget in (0, 0.05, 0.1, 0.2, 0.5)] == [0, 1, 1, 1, 3]


def test_without_a_budget_only_what_costs_nothing_is_open() -> None:
    assert chosen(0, tried((1.0, 0.1), (0.99, 0.3), (1.001, 0.9))) == 1


def test_of_candidates_that_bring_the_same_the_one_that_opens_least_is_taken() -> None:
    assert chosen(0.1, tried((1.0, 0.5), (1.0, 0.5), (0.9, 0.5))) == 0


def test_what_is_done_where_critical_requests_pause_counts_as_much() -> None:
    assert chosen(0.1, tried((1.0, 0.4, 1.0), (1.05, 0.8, 0.7))) == 1
    assert chosen(0.1, tried((1.0, 0.4, 1.0), (1.05, 0.8, 0.5))) == 0


@given(
    st.lists(st.tuples(st.floats(0.9, 3.0), st.floats(0.0, 2.0)), max_size=6),
    st.floats(0.0, 2.0),
    st.floats(0.0, 2.0),
)
def test_a_larger_budget_never_brings_less(
    shown: list[tuple[float, float]], one: float, other: float
) -> None:
    seen = tried((1.0, 0.0), *shown)
    less, more = (seen.candidates[chosen(budget, seen)].gain for budget in sorted((one, other)))
    assert less <= more


def test_of_rigid_steps_nothing_is_measured_and_gates_hold_them() -> None:
    rigid = measured(mix([SHORT, LONG], rigid="closed source"), free)
    assert rigid.coruns == {(0, 1): ()}
    (plan,) = POLICY.candidates(rigid)
    assert opened(plan) == [[False] * 2] * 6
    assert [step.level for step in plan.tasks[1].steps] == [Level.GATE, Level.GATE]


@pytest.mark.parametrize("critical_ns", [(0,), (7,), (0, 60_000)])
@pytest.mark.parametrize("normal_ns", [(0,), (7,), (0, 40_000)])
def test_short_programs_and_steps_without_time(
    critical_ns: tuple[int, ...], normal_ns: tuple[int, ...]
) -> None:
    tasks = task("c", [(ONE_WAVE, 0)] * len(critical_ns)), task("n", [SHORT] * len(normal_ns))
    work = measured(Mix(GPU, tasks, (critical_ns, normal_ns)), lambda trial: (1.1, 0.5))
    for plan in own_candidates(work):
        assert len(plan.grants[0, 1]) == len(critical_ns)
        assert all(len(row) == len(normal_ns) for row in plan.grants[0, 1])


@pytest.mark.parametrize("budget", [-0.1, float("nan"), float("inf")])
def test_a_budget_is_a_share(budget: float) -> None:
    text = "policy miriam-measured budget: a finite share, not negative, got"
    with pytest.raises(UsageError, match=text):
        MiriamMeasured(budget=budget)


def test_a_device_that_does_not_measure_is_named_as_missing() -> None:
    with pytest.raises(MissingCapabilityError) as found:
        POLICY.plan(mix([SHORT]))
    text = str(found.value)
    assert text.startswith("policy miriam-measured")
    assert "a device that measures steps beside each other" in text
    assert "sim:<GPU> or cuda:<GPU>, or the policy miriam, which estimates" in text


def test_beside_a_long_request_trials_are_of_the_units_that_plans_open() -> None:
    """Gates are 80 us apart there: two steps of 30 us are one unit, and no long step."""
    work = mix([(ONE_WAVE, 30)] * 4)
    work = replace(work, step_ns=(tuple(10 * ns for ns in work.step_ns[0]), work.step_ns[1]))
    trials = POLICY.trials(work, 0, 1)
    assert {(trial.normal, trial.grant) for trial in trials} == {
        ((0, 2), UNLIMITED),
        ((2, 4), UNLIMITED),
    }
    assert opened(first_opened(work, free)) == [[True] * 4] * 6


def test_the_shortest_critical_request_says_how_long_normal_work_may_take_to_leave() -> None:
    work = mix([SHORT], critical=2)
    one, other = (tuple(times * ns for ns in work.step_ns[0]) for times in (10, 20))
    work = replace(work, step_ns=(other, one, work.step_ns[2]))
    assert yield_target_ns(work, 0.05) == 80 * US


def test_normal_tasks_need_not_have_equally_many_steps() -> None:
    plan = first_opened(mix([SHORT], [STIFF, SHORT, LONG]), free)
    assert [len(task.steps) for task in plan.tasks] == [6, 1, 3]


def test_a_candidate_that_is_just_as_slow_as_the_budget_allows_keeps_it() -> None:
    assert chosen(0, tried((1.0, 0.1), (1.0, 0.5))) == 1
    assert chosen(0.25, tried((1.0, 0.1), (1.25, 0.5))) == 1


def test_also_what_costs_more_than_any_share_of_the_request_is_opened_at_last() -> None:
    found = own_candidates(measured(mix([SHORT]), lambda trial: (3.0, 0.9)))
    assert [[True]] * 6 in map(opened, found)


def test_each_unit_is_told_to_leave_as_late_as_it_may() -> None:
    """Before the end of a segment of four steps of 15 us: two steps of 7 us and one whose blocks
    take 15.4 us need 22 and 23.4 us, a step of one wave of 25 us needs 33 us."""
    normal = [(ONE_WAVE, 7), (ONE_WAVE, 7), (ONE_WAVE, 25), LONG]
    work = mix(normal)
    critical_ns = tuple(us * US for us in (15, 15, 15, 15, 50, 50))
    work = replace(work, step_ns=(critical_ns, work.step_ns[1]))

    def shown(trial: Trial) -> tuple[float, float]:
        return (1.0, 0.9) if trial.critical == (0, 4) else (3.0, 0.9)

    plan = first_opened(work, shown)
    assert opened(plan) == [[True] * 4, [True, True, False, True], *[[False] * 4] * 4]


def test_a_step_that_may_only_run_on_some_sms_is_elastic() -> None:
    """Also one of one wave: only in that form it looks where it is."""

    def shown(trial: Trial) -> tuple[float, float]:
        return (1.0 if trial.grant.sms else 3.0), 0.9

    plan = first_opened(mix([STIFF]), shown)
    assert plan.tasks[1].steps == (StepPlan(Level.GRANT, Level.YIELD),)


@pytest.mark.parametrize(("us", "threads"), [(99, {256}), (100, {256, 128})])
def test_only_a_very_long_step_is_tried_with_fewer_threads_too(us: int, threads: set[int]) -> None:
    work = mix([(MANY_WAVES, us)])
    (step,) = work.tasks[1].program.steps
    variants = tuple(Variant(count, Resources(32, 0)) for count in (256, 128, 64))
    steps = (replace(step, kernel=replace(step.kernel, variants=variants)),)
    normal = replace(work.tasks[1], program=replace(work.tasks[1].program, steps=steps))
    work = replace(work, tasks=(work.tasks[0], normal))
    trials = POLICY.trials(work, 0, 1)
    assert {trial.grant.threads for trial in trials if trial.grant.ahead} == threads


def test_a_gate_is_closed_beside_every_critical_task() -> None:
    grants = get("gate").plan(mix([SHORT, LONG], [STIFF], critical=2)).grants
    closed = {2: ((CLOSED,) * 2,) * 6, 3: ((CLOSED,),) * 6}
    assert grants == {(c, n): closed[n] for c in (0, 1) for n in (2, 3)}
