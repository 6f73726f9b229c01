"""Gates, grants, yields and resumes on the simulated GPU: nothing lost, nothing run twice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from miriam import devices, models
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
    Waiting,
    admit_in_flight,
)
from miriam.coordinator.policies import get
from miriam.coordinator.policy import Snapshot
from miriam.devices.contract import Completion
from miriam.devices.observe import Observer
from miriam.devices.sim.device import SimDevice
from miriam.devices.sim.session import SimSession
from miriam.errors import UsageError
from miriam.kernels import Cost, Program, Resources, Variant
from tests.sim.programs import POLICIES, gpu, kernel, program

END_NS = 10**12
LONG = Cost(flop=200_000, l2_bytes=1e4, dram_bytes=1e3)
SHORT = Cost(flop=2_000, l2_bytes=1e3, dram_bytes=1e2)


class Recorder:
    """Stands in for the host: counts how often each logical block was run."""

    def load(self, work: Program, weights: object, *, elastic: bool) -> RecordedProgram:
        return RecordedProgram([step.kernel.blocks for step in work.steps])


@dataclass(frozen=True)
class RecordedProgram:
    blocks: Sequence[int]

    def request(self) -> Recorded:
        return Recorded(self.blocks)


class Recorded:
    def __init__(self, blocks: Sequence[int]) -> None:
        self.counts = [np.zeros(n, np.int32) for n in blocks]
        self.threads = np.zeros(0, np.int32)

    def write(self, inputs: object) -> None:
        pass

    def run(self, step: int, blocks: range) -> None:
        self.counts[step][blocks.start : blocks.stop] += 1

    def run_slice(self, step: int, first: int, count: int, threads: int) -> None:
        self.run(step, range(first, first + count))
        self.threads = np.union1d(self.threads, threads)

    def outputs(self) -> dict[str, np.ndarray]:
        return {"threads": self.threads}

    def runs(self) -> tuple[np.ndarray, ...]:
        return tuple(self.counts)


@dataclass(frozen=True)
class Fixed:
    """A policy that grants what it was told, step by step."""

    grants: tuple[tuple[Grant, ...], ...]
    level: Level = Level.GRANT
    alone: Level = Level.YIELD
    name: str = "fixed"

    def plan(self, mix: Mix) -> Plan:
        tasks, tables = [], {}
        for i, task in enumerate(mix.tasks):
            steps = (StepPlan(self.level, self.alone),) * len(task.program.steps)
            if task.critical:
                steps = (ORDERED,) * len(task.program.steps)
            tasks.append(TaskPlan(mix.stream_priority(i), steps))
        for c in mix.critical:
            for n in mix.normal:
                tables[c, n] = tuple(
                    tuple(
                        self.grants[i % len(self.grants)][j % len(self.grants[0])]
                        for j in range(len(mix.tasks[n].program.steps))
                    )
                    for i in range(len(mix.tasks[c].program.steps))
                )
        return Plan(tuple(tasks), tables)

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        return admit_in_flight(mix, snapshot)


def collect(session: SimSession, wanted: int) -> list[Completion]:
    done: list[Completion] = []
    while len(done) < wanted:
        now_ns = session.now_ns
        done += session.advance(END_NS)
        assert session.now_ns > now_ns or done, "the session hangs"
        assert session.now_ns < END_NS, "the session hangs"
    return done


def open_recorded(tasks: Sequence[Task], policy: object) -> SimSession:
    return SimDevice(gpu(), Recorder()).open(tasks, policy)  # type: ignore[arg-type]


def critical(blocks: int = 8, steps: int = 3, cost: Cost = SHORT) -> Task:
    return Task("c", program("c", [(kernel(blocks), cost)] * steps), critical=True)


def normal(name: str = "n", blocks: int = 40, in_flight: int = 1) -> Task:
    spec = kernel(blocks)
    half = Variant(128, Resources(40, 0), fold=2)
    spec = replace(spec, variants=(*spec.variants, half))
    steps = [(spec, LONG), (spec, SHORT), (spec, LONG)]
    return Task(name, program(name, steps), in_flight=in_flight)


grants = st.builds(
    Grant,
    blocks=st.integers(0, 24),
    threads=st.sampled_from([0, 128, 256]),
    sms=st.sampled_from([None, (0, 2), (1, 4)]),
)


@given(
    table=st.lists(st.tuples(grants, grants), min_size=1, max_size=4),
    arrivals=st.lists(st.integers(0, 400_000), min_size=1, max_size=8),
    alone=st.sampled_from([Level.GATE, Level.YIELD]),
    in_flight=st.integers(1, 3),
)
@settings(max_examples=120, deadline=None)
def test_every_block_runs_exactly_once_under_any_grants(
    table: list[tuple[Grant, Grant]], arrivals: list[int], alone: Level, in_flight: int
) -> None:
    tasks = [critical(), normal(in_flight=in_flight), normal("m", blocks=7)]
    session = open_recorded(tasks, Fixed(tuple(table), alone=alone))
    for at_ns in arrivals:
        session.submit(0, at_ns)
    for task in (1, 1, 2, 1):
        session.submit(task, 0)
    done = collect(session, len(arrivals) + 4)
    assert {(c.task, c.request) for c in done} == {(0, i) for i in range(len(arrivals))} | {
        (1, 0),
        (1, 1),
        (1, 2),
        (2, 0),
    }
    for completion in done:
        assert completion.runs is not None
        assert all((counts == 1).all() for counts in completion.runs)
        assert completion.arrival_ns <= completion.start_ns < completion.finish_ns


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_runs_every_block_exactly_once(policy: str) -> None:
    tasks = [critical(), normal(in_flight=2), normal("m")]
    session = open_recorded(tasks, get(policy))
    for i in range(6):
        session.submit(0, 70_000 * i)
        session.submit(1 + i % 2, 0)
    for completion in collect(session, 12):
        assert completion.runs is not None
        assert all((counts == 1).all() for counts in completion.runs)


def test_a_closed_gate_holds_normal_steps_until_the_critical_request_ends() -> None:
    session = open_recorded([critical(steps=20), normal()], get("gate"))
    session.submit(0, 0)
    session.submit(1, 2_000)
    first, second = collect(session, 2)
    assert (first.task, second.task) == (0, 1)
    assert second.start_ns > first.finish_ns


def test_an_elastic_step_yields_within_one_block_and_resumes() -> None:
    tasks = [critical(), normal(blocks=400)]
    alone = open_recorded(tasks, get("multistream"))
    alone.submit(0, 0)
    (solo,) = collect(alone, 1)
    block_ns = 4_700

    def response_ns(policy: object) -> int:
        session = open_recorded(tasks, policy)
        session.submit(1, 0)
        session.submit(0, 50_000)
        found = {c.task: c for c in collect(session, 2)}
        assert found[1].finish_ns > found[0].finish_ns
        return found[0].finish_ns - found[0].arrival_ns

    solo_ns = solo.finish_ns - solo.arrival_ns
    yielding = Fixed(((CLOSED,),))
    assert response_ns(yielding) <= solo_ns + 2 * block_ns
    rigid = Fixed(((CLOSED,),), level=Level.GATE, alone=Level.GATE)
    assert response_ns(rigid) > response_ns(yielding)


def test_a_grant_bounds_what_all_normal_steps_hold_together() -> None:
    tasks = [critical(steps=400), normal(in_flight=2), normal("m")]
    session = open_recorded(tasks, Fixed(((Grant(5),),)))
    session.submit(0, 0)
    for task in (1, 1, 2):
        session.submit(task, 20_000)
    held = set()
    while session.now_ns < 300_000:
        done = session.advance(session.now_ns + 1_000)
        assert all(c.task != 0 for c in done), "the critical request still runs"
        held.add(session._ledger.held)
    assert max(held) == 5


def test_shards_are_computed_on_the_threads_that_were_granted() -> None:
    table = ((Grant(8, threads=128),) * 3,)
    session = open_recorded([critical(steps=30), normal()], Fixed(table))
    session.submit(0, 0)
    session.submit(1, 10_000)
    (served,) = (c for c in collect(session, 2) if c.task == 1)
    assert served.outputs is not None
    assert 128 in served.outputs["threads"]
    assert set(served.outputs["threads"]) <= {128, 256}


def test_a_second_critical_request_during_the_first_keeps_the_gate_shut() -> None:
    tasks = [replace(critical(steps=10), in_flight=2), normal()]
    session = open_recorded(tasks, get("gate"))
    session.submit(0, 0)
    session.submit(0, 15_000)
    session.submit(1, 1_500)
    done = collect(session, 3)
    assert [c.task for c in done] == [0, 0, 1]
    assert done[2].start_ns > done[1].finish_ns


def test_the_smallest_grant_of_several_critical_tasks_counts() -> None:
    tasks = [critical(), replace(critical(steps=9), name="d"), normal()]

    @dataclass(frozen=True)
    class OneShuts(Fixed):
        def plan(self, mix: Mix) -> Plan:
            plan = super().plan(mix)
            tables = {**plan.grants, (0, 2): ((UNLIMITED,) * 3,) * 3}
            return replace(plan, grants=tables)

    session = open_recorded(tasks, OneShuts(((CLOSED,),)))
    session.submit(0, 0)
    session.submit(1, 0)
    session.submit(2, 2_000)
    done = {c.task: c for c in collect(session, 3)}
    assert done[2].start_ns > done[1].finish_ns > done[0].finish_ns


def test_sequential_takes_turns() -> None:
    session = open_recorded([critical(), normal(), normal("m")], get("sequential"))
    for task in (1, 1, 2, 2, 0, 0):
        session.submit(task, 0)
    done = collect(session, 6)
    assert [c.task for c in done] == [1, 2, 0, 1, 2, 0]
    for before, after in pairwise(done):
        assert after.start_ns >= before.finish_ns


def test_the_same_submissions_give_the_same_times() -> None:
    def once() -> list[tuple[int, int, int]]:
        session = open_recorded([critical(), normal(in_flight=2)], get("miriam"))
        for i in range(5):
            session.submit(0, 33_000 * i)
            session.submit(1, 0)
        return [(c.task, c.start_ns, c.finish_ns) for c in collect(session, 10)]

    assert once() == once()


def test_bad_submissions_name_field_rule_and_value() -> None:
    session = open_recorded([critical()], get("multistream"))
    with pytest.raises(UsageError, match="task: 0 to 0, got 3"):
        session.submit(3, 0)
    session.advance(1_000)
    with pytest.raises(UsageError, match="arrival_ns: not before now, 1000, got 10"):
        session.submit(0, 10)


shared = st.builds(Grant, blocks=st.integers(1, 24), threads=st.sampled_from([0, 256]))


@given(
    table=st.lists(st.tuples(shared), min_size=1, max_size=3),
    blocks=st.integers(1, 40),
    in_flight=st.integers(1, 4),
)
@example(table=[(Grant(4),), (Grant(8),)], blocks=8, in_flight=2)
@settings(max_examples=40, deadline=None)
def test_steps_that_share_a_grant_all_make_progress(
    table: list[tuple[Grant]], blocks: int, in_flight: int
) -> None:
    """No step leaves for a wider launch again and again without running a block."""
    # More critical blocks than the GPU holds: what is launched waits before it is placed.
    tasks = [critical(20, 600, LONG), normal(blocks=blocks, in_flight=in_flight)]
    session = open_recorded(tasks, Fixed(tuple(table)))
    session.submit(0, 0)
    for _ in range(in_flight):
        session.submit(1, 20_000)
    done = collect(session, in_flight)
    assert [c.task for c in done] == [1] * in_flight


class _Places(Observer):
    """How many blocks were seen on how many SMs."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def ran(
        self,
        launch: int,
        sms: Sequence[int],
        blocks: Sequence[tuple[int, int]],
        began_ns: float,
        ended_ns: float,
    ) -> None:
        self.seen.append((sum(count for _, count in blocks), len(sms)))


def test_every_place_has_a_logical_block() -> None:
    """Where a persistent block gets none when it begins, because others have, it leaves."""
    device, watch = devices.get("sim:orin"), _Places()
    tasks = [
        Task("critical", models.load("alexnet", device.gpu.arch), critical=True),
        Task("normal", models.load("cifarnet", device.gpu.arch), in_flight=4),
    ]
    with closing(device.open(tasks, get("miriam"), (watch,))) as session:
        for task in (0, 1, 1, 1, 1):
            session.submit(task, 0)
        while session.now_ns < 6_000_000:
            for done in session.advance(6_000_000):
                session.submit(done.task, session.now_ns)
    assert all(blocks and not blocks % sms for blocks, sms in watch.seen)
