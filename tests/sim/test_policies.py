"""The policies in the simulator: what each one is for, and that none loses or repeats a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miriam.coordinator import Policy, Task
from miriam.coordinator.policies import get
from miriam.coordinator.policies.vacate import Vacate
from miriam.devices.sim import SimDevice
from miriam.kernels import Cost, Program, Resources, Variant
from tests.sim.programs import POLICIES, gpu, kernel, program
from tests.sim.test_session import LONG, SHORT, collect, open_recorded

WINDOW_NS = 10_000_000
COMPUTE = Cost(flop=400_000, l2_bytes=1e3, dram_bytes=1e2)
MEMORY = Cost(flop=2_000, l2_bytes=2e4, dram_bytes=2e4)

CRITICAL = Task("c", program("c", [(kernel(8), COMPUTE), (kernel(20), SHORT)] * 3), critical=True)
NORMAL = Task("n", program("n", [(kernel(64), COMPUTE), (kernel(8), MEMORY)] * 4), in_flight=2)


def closed_loop(
    policy: Policy, tasks: tuple[Task, ...] = (CRITICAL, NORMAL), pause_ns: int = 0
) -> tuple[float, int]:
    """Mean critical latency in ns, and how many normal requests finished in the window."""
    session = SimDevice(gpu()).open(tasks, policy)
    for i, task in enumerate(tasks):
        for _ in range(task.in_flight):
            session.submit(i, 0)
    latencies, normal = [], 0
    while session.now_ns < WINDOW_NS:
        for done in session.advance(WINDOW_NS):
            critical = tasks[done.task].critical
            if critical:
                latencies.append(done.finish_ns - done.arrival_ns)
            else:
                normal += 1
            session.submit(done.task, session.now_ns + critical * pause_ns)
    return mean(latencies), normal


def test_a_split_keeps_normal_blocks_from_slowing_a_critical_alu_bound_kernel() -> None:
    alone_ns, _ = closed_loop(get("partition"), (CRITICAL,))
    beside_ns, served = closed_loop(get("partition"))
    shared_ns, _ = closed_loop(get("multistream"))
    assert beside_ns == pytest.approx(alone_ns, rel=0.02)
    assert served > 0
    assert shared_ns > 1.5 * beside_ns


def test_vacating_beats_a_split_for_the_normal_task_at_no_cost_in_latency() -> None:
    """The critical task pauses; a static split holds its SMs meanwhile."""
    split_ns, split_served = closed_loop(get("partition"), pause_ns=200_000)
    vacate_ns, vacate_served = closed_loop(Vacate(share=0.5), pause_ns=200_000)
    assert vacate_served > 1.4 * split_served
    assert vacate_ns < 1.15 * split_ns


def test_barriers_cost_throughput() -> None:
    """Kernels on a few SMs each would run side by side, but wait for each other's groups."""

    def uneven(name: str, lengths: Sequence[int], in_flight: int = 1) -> Task:
        steps = [
            (kernel(4, 128), Cost(flop=1e4 * n, l2_bytes=1e3, dram_bytes=1e2)) for n in lengths
        ]
        return Task(name, program(name, steps), critical=name == "c", in_flight=in_flight)

    tasks = (uneven("c", (16, 1, 1, 8, 2, 1, 1, 4)), uneven("n", (3, 11, 1, 1, 7, 2), in_flight=2))
    free_ns, free = closed_loop(get("multistream"), tasks)
    bound_ns, bound = closed_loop(get("barrier"), tasks)
    one_by_one_ns, one_by_one = closed_loop(get("sequential"), tasks)
    assert one_by_one < bound < 0.9 * free
    assert free_ns < bound_ns < one_by_one_ns


def test_orion_lies_between_gate_and_multistream() -> None:
    """Beside a critical task bound by memory, small steps that compute are let through."""
    critical = Task("c", program("c", [(kernel(64), replace(MEMORY, dram_bytes=4e4))] * 20), True)
    steps = [(kernel(8), COMPUTE)] * 6 + [(kernel(64), COMPUTE)] * 2
    tasks = (critical, Task("n", program("n", steps)))
    gate_ns, gate_served = closed_loop(get("gate"), tasks)
    orion_ns, orion_served = closed_loop(get("orion"), tasks)
    shared_ns, shared_served = closed_loop(get("multistream"), tasks)
    assert gate_ns <= orion_ns < 0.9 * shared_ns
    assert gate_served < orion_served < shared_served


@st.composite
def programs(draw: st.DrawFn) -> Program:
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        spec = kernel(draw(st.integers(1, 40)), draw(st.sampled_from([32, 256, 1_024])))
        if draw(st.booleans()) and spec.threads > 32:
            half = Variant(spec.threads // 2, Resources(40, 0), fold=2)
            spec = replace(spec, variants=(*spec.variants, half))
        steps.append((spec, draw(st.sampled_from([LONG, SHORT, COMPUTE, MEMORY]))))
    made = program("p", steps)
    rigid = [draw(st.sampled_from([None, None, "closed source"])) for _ in steps]
    changed = (replace(s, rigid=why) for s, why in zip(made.steps, rigid, strict=True))
    return replace(made, steps=tuple(changed))


arrivals = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 300_000)), min_size=1, max_size=8)


@pytest.mark.parametrize("policy", POLICIES)
@given(
    works=st.tuples(programs(), programs(), programs(), programs()),
    requests=arrivals,
    in_flight=st.integers(1, 3),
)
@settings(max_examples=25, deadline=None)
def test_every_policy_finishes_every_request_exactly_once(
    policy: str, works: tuple[Program, ...], requests: list[tuple[int, int]], in_flight: int
) -> None:
    """Two critical and two normal tasks of any programs, arriving at any times."""
    tasks = [
        Task(f"t{i}", work, critical=i < 2, priority=i % 2, in_flight=in_flight)
        for i, work in enumerate(works)
    ]
    session = open_recorded(tasks, get(policy))
    wanted = {(task, session.submit(task, at_ns)) for task, at_ns in requests}
    done = collect(session, len(requests))
    assert {(c.task, c.request) for c in done} == wanted
    for completion in done:
        assert completion.runs is not None
        assert all((counts == 1).all() for counts in completion.runs)
