"""miriam-measured in the simulator: what is measured, what is tried, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from miriam.cli import app
from miriam.coordinator import (
    CLOSED,
    UNLIMITED,
    Grant,
    Mix,
    Plan,
    Policy,
    Snapshot,
    Task,
    Waiting,
    admit_in_flight,
)
from miriam.coordinator.corun import Candidate, CoRun, Measuring, Trial
from miriam.coordinator.policies import get
from miriam.coordinator.policies.miriam_measured import MiriamMeasured
from miriam.devices.sim import SimDevice, corun
from miriam.devices.tryout import Given
from miriam.kernels import Cost, Program
from tests.sim.programs import gpu, kernel, program

COMPUTE = Cost(flop=400_000, l2_bytes=1e3, dram_bytes=1e2)
MEMORY = Cost(flop=2_000, l2_bytes=2e4, dram_bytes=2e4)
LONG = Cost(flop=4_000_000, l2_bytes=1e3, dram_bytes=1e2)

SMS, STEPS = gpu().spec.sms, 10
FULL = 4 * SMS
"""So many blocks of 256 threads fill the GPU."""

UNIT = (0, 1)
WINDOW_NS = 20_000_000
BUDGETS = (0.0, 0.05, 0.1, 0.2, 0.5)


def steps(blocks: int, cost: Cost, count: int = STEPS) -> Program:
    return program("p", [(kernel(blocks), cost)] * count)


TWO_SORTS = program("c", [(kernel(8), COMPUTE)] * STEPS + [(kernel(40), MEMORY)] * STEPS)
"""The first half is bound by issue slots, the second by DRAM."""

NORMAL = {
    "waves": Task("n", program("n", [(kernel(200), COMPUTE), (kernel(8), MEMORY)] * 3)),
    "memory": Task("n", steps(400, MEMORY, 3), in_flight=2),
    "one wave": Task("n", steps(FULL, LONG, 3), in_flight=2),
    "stopped": Task(
        "n", program("n", [(kernel(FULL), LONG)] * 10 + [(kernel(800), COMPUTE)]), in_flight=2
    ),
}
"""Of ``stopped`` all steps but the last pass a gate whole. Where all is held they do so once each,
in the pauses between critical requests, and never again."""


class Asking:
    """A policy that wants to know what it is told to ask for, and holds nothing."""

    name = "asking"

    def __init__(self, asked: Sequence[Trial]) -> None:
        self.asked = asked
        self.shown: tuple[CoRun, ...] = ()

    def trials(self, mix: Mix, critical: int, normal: int) -> Sequence[Trial]:
        return self.asked

    def candidates(self, mix: Mix) -> Sequence[Plan]:
        return [get("multistream").plan(mix)]

    def plan(self, mix: Mix) -> Plan:
        self.shown = mix.coruns[0, 1]
        return mix.candidates[0].plan

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        return admit_in_flight(mix, snapshot)


class Seeing(MiriamMeasured):
    """miriam-measured, and what was tried for it."""

    seen: tuple[Candidate, ...] = ()

    def plan(self, mix: Mix) -> Plan:
        object.__setattr__(self, "seen", mix.candidates)
        return super().plan(mix)


def beside(work: Program, other: Program, grant: Grant) -> tuple[CoRun, CoRun]:
    """What the halves of a critical request show beside the first step of ``other``."""
    half, end = len(work.steps) // 2, len(work.steps)
    asking = Asking([Trial(each, UNIT, grant) for each in ((0, half), (half, end))])
    assert isinstance(asking, Measuring)
    SimDevice(gpu()).open((Task("c", work, critical=True), Task("n", other)), asking)
    first, second = asking.shown
    assert [first.trial, second.trial] == asking.asked
    return first, second


def test_what_may_hold_nothing_costs_and_brings_nothing() -> None:
    for shown in beside(steps(FULL, COMPUTE), steps(FULL, COMPUTE), CLOSED):
        assert (shown.slowdown, shown.progress) == (1.0, 0.0)


def test_blocks_that_fit_side_by_side() -> None:
    """Steps of 8 us, and between two of them 2.1 us for a node of the graph and a gate."""
    for shown in beside(steps(SMS, COMPUTE), steps(SMS, COMPUTE), UNLIMITED):
        assert shown.slowdown < 1.02
        assert shown.progress == pytest.approx(8 / 10.1, rel=0.05)


def test_where_both_want_all_of_an_sm_they_share_it() -> None:
    for shown in beside(steps(FULL, COMPUTE), steps(FULL, COMPUTE), UNLIMITED):
        assert shown.slowdown > 1.5
        assert 1 / shown.slowdown + shown.progress == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_of_few_blocks_each_brings_its_part(blocks: int) -> None:
    """16 blocks at once keep the issue slots of 4 SMs full, as two on each SM would."""
    grant = Grant(blocks, 256, ahead=True)
    for shown in beside(steps(SMS, COMPUTE), steps(10 * FULL, COMPUTE), grant):
        assert shown.progress == pytest.approx(blocks / (2 * SMS), rel=0.1)


def test_confined_blocks_slow_only_what_shares_their_sms() -> None:
    grant = Grant(UNLIMITED.blocks, sms=(SMS - 1, SMS))
    for shown in beside(steps(SMS - 1, COMPUTE), steps(10 * FULL, COMPUTE), grant):
        assert shown.slowdown < 1.02
        assert shown.progress == pytest.approx(1 / SMS, rel=0.1)


def test_every_segment_has_its_own_cost() -> None:
    issue, dram = beside(TWO_SORTS, steps(400, MEMORY), Grant(SMS, 256, ahead=True))
    assert issue.slowdown < 1.05
    assert dram.slowdown > 1.2
    issue, dram = beside(TWO_SORTS, steps(400, COMPUTE), Grant(2 * SMS, 256, ahead=True))
    assert issue.slowdown > 1.3
    assert dram.slowdown < issue.slowdown


def test_blocks_that_outlast_the_critical_request_count_for_what_they_did() -> None:
    for shown in beside(steps(SMS, COMPUTE, 2), steps(SMS, LONG), UNLIMITED):
        assert 0.8 < shown.progress <= 1


def opened(budget: float, normal: Task, device: SimDevice | None = None) -> Seeing:
    policy = Seeing(budget=budget)
    tasks = Task("c", TWO_SORTS, critical=True), normal
    (device or SimDevice(gpu())).open(tasks, policy)
    return policy


def chosen(policy: Seeing) -> Candidate:
    plan = policy.plan(Mix(gpu().spec, (), (), candidates=policy.seen))
    return next(candidate for candidate in policy.seen if candidate.plan == plan)


def closed_loop(policy: Policy, normal: Task) -> tuple[float, int]:
    """The 95th percentile of the critical service, ns, and how many normal requests ended.

    What it is at first does not count.
    """
    session = SimDevice(gpu()).open((Task("c", TWO_SORTS, critical=True), normal), policy)
    for task in (0, *[1] * normal.in_flight):
        session.submit(task, 0)
    services, ended = [], 0
    while session.now_ns < WINDOW_NS:
        for done in session.advance(WINDOW_NS):
            ended += done.task
            if done.task == 0 and session.now_ns > WINDOW_NS / 4:
                services.append(done.finish_ns - done.start_ns)
            session.submit(done.task, session.now_ns)
    return float(np.percentile(services, 95)), ended


def p95_ns(policy: Policy, normal: Task) -> float:
    return closed_loop(policy, normal)[0]


@pytest.mark.parametrize("name", NORMAL)
def test_a_budget_is_kept_as_it_was_tried_and_a_larger_one_brings_no_less(name: str) -> None:
    device = SimDevice(gpu())
    found = [chosen(opened(budget, NORMAL[name], device)) for budget in BUDGETS]
    assert all(c.slowdown <= 1 + b for c, b in zip(found, BUDGETS, strict=True))
    gains = [candidate.gain for candidate in found]
    assert gains == sorted(gains)


@pytest.mark.parametrize("name", NORMAL)
@pytest.mark.parametrize("budget", [0.0, 0.2])
def test_a_closed_loop_keeps_to_the_budget(name: str, budget: float) -> None:
    policy = opened(budget, NORMAL[name])
    held_ns = p95_ns(Given(policy.seen[0].plan), NORMAL[name])
    measured_ns = p95_ns(MiriamMeasured(budget=budget), NORMAL[name])
    assert measured_ns <= 1.01 * (1 + budget) * held_ns


def test_the_budget_matters() -> None:
    """What nothing holds back costs more than the budget, and a budget buys normal work."""
    normal = NORMAL["waves"]
    policy = opened(0.2, normal)
    held_ns = p95_ns(Given(policy.seen[0].plan), normal)
    assert p95_ns(get("multistream"), normal) > 1.5 * held_ns
    assert chosen(policy).gain > policy.seen[0].gain + 0.2


def test_beside_one_wave_steps_that_a_gate_lets_pass_a_part_of_them_is_less_in_the_way() -> None:
    """Holding is not the least that a closed loop can cost: what has begun is not taken back."""
    held, *others = opened(0.0, NORMAL["one wave"]).seen
    assert held.gain > 0
    assert min(candidate.slowdown for candidate in others) < 0.8


def test_the_slowdown_is_that_of_a_longer_run() -> None:
    seen = opened(0.1, NORMAL["stopped"]).seen
    longer_ns = [p95_ns(Given(candidate.plan), NORMAL["stopped"]) for candidate in seen]
    for candidate, longer in zip(seen, longer_ns, strict=True):
        assert candidate.slowdown == pytest.approx(longer / longer_ns[0], rel=0.05)


def test_the_gain_is_that_of_a_longer_run() -> None:
    """Four requests in flight end together: until the first have ended, none would count."""
    normal = Task("n", steps(400, MEMORY, 3), in_flight=4)
    alone_ns = 3 * 80_000
    for candidate in opened(0.1, normal).seen:
        _, ended = closed_loop(Given(candidate.plan), normal)
        assert candidate.gain == pytest.approx(ended * alone_ns / WINDOW_NS, abs=0.08)


@pytest.mark.parametrize("name", NORMAL)
def test_equal_runs_give_equal_plans(name: str) -> None:
    assert opened(0.1, NORMAL[name]).seen == opened(0.1, NORMAL[name]).seen


def test_what_is_known_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimDevice(gpu())
    first = opened(0.1, NORMAL["waves"], device)
    monkeypatch.delattr(corun, "SimSession")
    assert opened(0.3, NORMAL["waves"], device).seen is first.seen


@pytest.mark.parametrize("critical", [True, False])
def test_with_tasks_of_one_kind_there_is_nothing_to_try(critical: bool) -> None:
    policy = Seeing()
    session = SimDevice(gpu()).open([Task("t", TWO_SORTS, critical=critical)], policy)
    session.submit(0, 0)
    assert len(session.advance(WINDOW_NS)) == 1
    assert [candidate.slowdown for candidate in policy.seen] == [1.0]


def test_a_report_replays(tmp_path: Path) -> None:
    report = str(tmp_path / "report.json")
    options = ["--device", "sim:orin", "--pair", "cifarnet+cifarnet", "--gap-us", "0", "--jobs"]
    options += ["1", "--policy", "miriam-measured", "--seconds", "0.004", "--json", report]
    for args in (["pairs", *options], ["--jobs", "1", "--replay", report]):
        result = CliRunner().invoke(app, ["bench", *args])
        assert result.exit_code == 0, result.output
    assert "the same, byte for byte" in result.output
