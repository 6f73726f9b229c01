"""What decides co-running on the simulated GPU, against hand-computed figures and simpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.devices.sim import Costs, GpuModel, SimDevice
from miriam.errors import UsageError
from miriam.kernels import Buffer, Cost, Program
from tests.sim.programs import gpu, kernel, program

NOTHING = Cost(0, 0, 0)
FREE = Costs(0, 0, 0, 0, 0, 0)
END_NS = 10**12


def finish_ns(
    model: GpuModel, tasks: Sequence[Task], arrivals: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], int]:
    """When each request finishes; arrivals are (task, ns)."""
    session = SimDevice(model).open(tasks, get("multistream"))
    for task, at_ns in arrivals:
        session.submit(task, at_ns)
    ends: dict[tuple[int, int], int] = {}
    while len(ends) < len(arrivals):
        for done in session.advance(END_NS):
            ends[done.task, done.request] = done.finish_ns
    return ends


def alone_ns(model: GpuModel, work: Program) -> int:
    return finish_ns(model, [Task("a", work)], [(0, 0)])[0, 0]


@pytest.mark.parametrize(("blocks", "waves"), [(1, 1), (16, 1), (17, 2), (160, 10), (161, 11)])
def test_blocks_run_in_waves_with_a_tail(blocks: int, waves: int) -> None:
    # 256 threads: 4 fit an SM of 1,024 threads, so 16 on the GPU; each takes 1,000 ns.
    model = gpu(block_start_ns=1_000.0, costs=FREE)
    assert alone_ns(model, program("p", [(kernel(blocks), NOTHING)])) == waves * 1_000


@given(
    loads=st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, 1), st.integers(0, 5_000)),
        min_size=1,
        max_size=5,
        # No arrival meets another or an end: who goes first then is a matter of convention.
        unique_by=lambda load: load[2] % 1_000,
    )
)
@settings(max_examples=60, deadline=None)
def test_placement_agrees_with_a_block_by_block_oracle(
    loads: list[tuple[int, int, int]],
) -> None:
    """Equal blocks of fixed length: the GPU is a non-preemptive priority queue of 16 places."""
    block_ns = 1_000
    model = gpu(block_start_ns=float(block_ns), end_slack=0, costs=FREE)
    tasks = [
        Task(f"t{i}", program(f"t{i}", [(kernel(blocks), NOTHING)]), critical=critical == 0)
        for i, (blocks, critical, _) in enumerate(loads)
    ]
    ends = finish_ns(model, tasks, [(i, at_ns) for i, (_, _, at_ns) in enumerate(loads)])

    env = simpy.Environment()
    places = simpy.PriorityResource(env, 16)
    oracle: dict[int, float] = {}

    def block(task: int, priority: int):  # type: ignore[no-untyped-def]
        with places.request(priority=priority) as place:
            yield place
            yield env.timeout(block_ns)
        oracle[task] = env.now

    def launch(task: int, blocks: int, priority: int, at_ns: int):  # type: ignore[no-untyped-def]
        yield env.timeout(at_ns)
        for _ in range(blocks):
            env.process(block(task, priority))

    for i, (blocks, priority, at_ns) in enumerate(loads):
        env.process(launch(i, blocks, priority, at_ns))
    env.run()
    assert {i: ends[i, 0] for i in range(len(loads))} == oracle


def test_one_block_alone_saturates_no_issue_slots() -> None:
    # 8 of the 16 warps that fill an SM: half the rate alone, the full rate for two.
    model = gpu(sms=1, costs=FREE)
    work = Cost(flop=100_000, l2_bytes=0, dram_bytes=0)
    assert alone_ns(model, program("p", [(kernel(1), work)])) == 2_000
    assert alone_ns(model, program("p", [(kernel(2), work)])) == 2_000
    assert alone_ns(model, program("p", [(kernel(4), work)])) == pytest.approx(4_000, rel=0.02)


def test_one_block_alone_saturates_no_memory() -> None:
    # Little's law: 8 warps x 2,048 bytes in flight over 600 ns is 27 of the 100 bytes/ns.
    model = gpu(costs=FREE)
    work = Cost(flop=0, l2_bytes=0, dram_bytes=1e6)
    one_ns = alone_ns(model, program("p", [(kernel(1), work)]))
    assert one_ns == pytest.approx(1e6 / (8 * 2_048) * 600, rel=0.01)
    assert alone_ns(model, program("p", [(kernel(16), work)])) == pytest.approx(16e4, rel=0.02)


def test_memory_contention_spares_what_computes() -> None:
    model = gpu(costs=FREE)
    computing = program("c", [(kernel(4), Cost(1e5, 0, 1e3))])
    loading = program("m", [(kernel(12, threads=256), Cost(0, 0, 1e6))])
    tasks = [Task("c", computing, critical=True), Task("m", loading)]
    ends = finish_ns(model, tasks, [(0, 0), (1, 0)])
    assert ends[0, 0] == pytest.approx(alone_ns(model, computing), rel=0.02)
    loaders = [Task("a", loading, critical=True), Task("b", loading)]
    ends = finish_ns(model, loaders, [(0, 0), (1, 0)])
    assert ends[0, 0] > 1.2 * alone_ns(model, loading)


def test_priority_goes_first_and_never_preempts() -> None:
    model = gpu(block_start_ns=10_000.0, costs=FREE)
    normal = program("n", [(kernel(160), NOTHING)])
    critical = program("c", [(kernel(16), NOTHING)])
    tasks = [Task("c", critical, critical=True), Task("n", normal)]
    ends = finish_ns(model, tasks, [(1, 0), (0, 5_000)])
    assert ends[0, 0] == 20_000, "waits for the first wave, then goes before the other nine"
    assert ends[1, 0] == 110_000


def test_blocks_go_to_the_emptiest_sms() -> None:
    """Six blocks on four SMs: two SMs hold two, so issue contention is on those two only."""
    model = gpu(costs=FREE)
    work = Cost(flop=100_000, l2_bytes=0, dram_bytes=0)
    assert alone_ns(model, program("p", [(kernel(4, threads=512), work)])) == 1_000
    ends_ns = alone_ns(model, program("p", [(kernel(6, threads=512), work)]))
    assert ends_ns == pytest.approx(2_000, rel=0.02)


def test_costs_of_launching_add_up() -> None:
    costs = Costs(host_launch_ns=8_000, node_ns=1_000)
    model = gpu(block_start_ns=500.0, costs=costs)
    work = program("p", [(kernel(1), NOTHING)] * 3)
    assert alone_ns(model, work) == 8_000 + 3 * 500 + 2 * 1_000


def test_small_programs_stay_in_l2() -> None:
    model = gpu(costs=FREE)
    large = program("p", [(kernel(16), Cost(1e5, 0, 1e6))])
    small = replace(large, buffers=(Buffer("out", (1_000,), "output"),))
    assert alone_ns(model, small) == pytest.approx(4_000, rel=0.02)
    assert alone_ns(model, large) == pytest.approx(160_000, rel=0.02)


def test_worlds_are_whole_groups_of_sms() -> None:
    model = gpu(sms=12, costs=FREE)
    grouped = replace(model, spec=replace(model.spec, sm_group=8))
    assert grouped.world(8).spec.sms == 8
    assert grouped.world(12).spec == grouped.spec
    with pytest.raises(UsageError, match="device sim:test: whole groups of 8 SMs, got 4"):
        grouped.world(4)


def test_worlds_keep_the_memory_and_lose_the_sms() -> None:
    model = gpu(sms=4, costs=FREE)
    assert model.world(2).spec.sms == 2
    assert model.world(2).spec.dram_gbps == model.spec.dram_gbps
    work = program("p", [(kernel(16), Cost(1e5, 0, 0))])
    assert alone_ns(model.world(2), work) == pytest.approx(2 * alone_ns(model, work), rel=0.02)
