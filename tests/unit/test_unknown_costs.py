"""Steps of unknown cost, as captured ones are: policies assume the worst of them."""

from __future__ import annotations

import pytest

from miriam.coordinator import CLOSED, Mix, Task
from miriam.coordinator.leftover import TimedStep, left_beside
from miriam.coordinator.policies import get
from miriam.kernels import Cost, GpuSpec, Step
from tests.sim.programs import kernel, program

GPU = GpuSpec("test", "sm_75", 4, 100.0)
STEP_NS = 100_000
UNKNOWN = Cost(0.0, 0.0, 0.0)
COMPUTE = Cost(flop=1e6, l2_bytes=1e3, dram_bytes=1e2)
# 16 blocks in 100 us: 96 % of the bandwidth.
MEMORY = Cost(flop=1e3, l2_bytes=6e5, dram_bytes=6e5)


def step(cost: Cost, blocks: int) -> Step:
    return program("p", [(kernel(blocks), cost)]).steps[0]


def timed(cost: Cost, blocks: int = 16) -> TimedStep:
    return TimedStep(step(cost, blocks), STEP_NS)


def test_nothing_that_saturates_the_memory_goes_beside_an_unknown_step() -> None:
    assert left_beside(GPU, timed(COMPUTE, 4), timed(MEMORY)) is not None
    assert left_beside(GPU, timed(UNKNOWN, 4), timed(MEMORY)) is None


def test_an_unknown_step_leaves_over_what_its_blocks_leave_and_no_more() -> None:
    normal = timed(COMPUTE)
    few = left_beside(GPU, timed(UNKNOWN, 4), normal)
    assert few is not None and few == left_beside(GPU, timed(COMPUTE, 4), normal)
    assert left_beside(GPU, timed(MEMORY, 16), normal) is not None
    assert left_beside(GPU, timed(UNKNOWN, 16), normal) is None


def test_an_unknown_step_goes_beside_none_that_needs_the_memory() -> None:
    assert left_beside(GPU, timed(MEMORY), timed(UNKNOWN)) is None


@pytest.mark.parametrize("costs", [(UNKNOWN, MEMORY), (MEMORY, UNKNOWN), (UNKNOWN, UNKNOWN)])
def test_orion_puts_nothing_beside_a_step_without_a_profile(costs: tuple[Cost, Cost]) -> None:
    tasks = tuple(
        Task(name, program(name, [(kernel(16), cost)]), critical=name == "c")
        for name, cost in zip("cn", costs, strict=True)
    )
    mix = Mix(GPU, tasks, ((STEP_NS,), (STEP_NS,)))
    assert get("orion").plan(mix).grants[0, 1] == ((CLOSED,),)
