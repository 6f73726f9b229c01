"""Orion: which normal steps pass their gates beside which critical ones."""

from __future__ import annotations

import pytest

from miriam.coordinator import CLOSED, Grant, Level, Mix, StepPlan, Task
from miriam.coordinator.policies import get
from miriam.coordinator.policies.orion import Orion
from miriam.kernels import Cost
from tests.sim.programs import gpu, kernel, program

STEP_NS = 100_000
COMPUTE = Cost(flop=1e6, l2_bytes=1e3, dram_bytes=1e2)
# 16 blocks in 100 us: 96 of the 100 bytes per ns that there are.
MEMORY = Cost(flop=1e3, l2_bytes=6e5, dram_bytes=6e5)


def mix() -> Mix:
    tasks = tuple(
        Task(name, program(name, [(kernel(16), COMPUTE), (kernel(16), MEMORY)]), critical=critical)
        for name, critical in (("c", True), ("n", False))
    )
    return Mix(gpu(4).spec, tasks, ((STEP_NS,) * 2,) * 2)


def test_only_opposite_profiles_go_side_by_side() -> None:
    # Four blocks of 256 threads per SM, on half of four SMs.
    beside = Grant(8)
    assert get("orion").plan(mix()).grants[0, 1] == ((CLOSED, beside), (beside, CLOSED))


def test_the_budget_is_a_share_of_the_sms() -> None:
    table = Orion(share=0.75).plan(mix()).grants[0, 1]
    assert table[0][1] == Grant(12)


@pytest.mark.parametrize("task, level", [(0, Level.ORDER), (1, Level.GATE)])
def test_kernels_stay_whole_behind_a_gate_each(task: int, level: Level) -> None:
    assert get("orion").plan(mix()).tasks[task].steps == (StepPlan(level, level),) * 2
