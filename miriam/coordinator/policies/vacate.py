"""Vacate: the critical tasks keep to the first SMs, and normal blocks leave exactly these.

While a critical request is announced, elastic normal blocks on its SMs leave at their next logical
block and go on elsewhere without a limit; when it has finished they take the whole GPU again. So
the critical task has a partition only while it runs. Our own; its parts are known: SM masks confine
("Hardware Compute Partitioning on NVIDIA GPUs", Bakita and Anderson, RTAS 2023), and EffiSha's
persistent blocks retreat, from the whole GPU (Chen et al., PPoPP 2017).
In a world of some SMs a GPU's critical task is not confined (docs/bench.md, "A fault in worlds of
some SMs"). A rigid step cannot leave, so it waits at its gate; a short one is not worth an elastic
form where nothing runs beside it, and ends by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.gates import YIELD_TARGET_NS
from miriam.coordinator.plan import (
    CLOSED,
    ORDERED,
    UNLIMITED,
    Grant,
    Level,
    Plan,
    StepPlan,
    TaskPlan,
)
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.split import check_share, split
from miriam.coordinator.task import Mix
from miriam.kernels import Step


@dataclass(frozen=True, slots=True)
class Vacate:
    """Elastic normal steps off the critical SMs; ``share`` of all SMs is the critical tasks'."""

    name: str = "vacate"
    share: float = 0.75

    def __post_init__(self) -> None:
        check_share(self.name, self.share)

    def plan(self, mix: Mix) -> Plan:
        """One range of SMs for every normal step; UsageError on a GPU with one group of SMs."""
        critical, rest = split(mix.gpu, self.share)
        tasks = []
        for i, task in enumerate(mix.tasks):
            steps = (ORDERED,) * len(task.program.steps)
            if not task.critical:
                timed = zip(task.program.steps, mix.step_ns[i], strict=True)
                steps = tuple(_leaving(step, alone_ns) for step, alone_ns in timed)
            sms = critical if task.critical else None
            tasks.append(TaskPlan(mix.stream_priority(i), steps, sms))
        elsewhere = Grant(UNLIMITED.blocks, sms=rest)
        grants = {
            (c, n): (tuple(CLOSED if s.rigid else elsewhere for s in mix.tasks[n].program.steps),)
            * len(mix.tasks[c].program.steps)
            for c in mix.critical
            for n in mix.normal
        }
        return Plan(tuple(tasks), grants)

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


def _leaving(step: Step, alone_ns: int) -> StepPlan:
    if step.rigid:
        return StepPlan(Level.GATE, Level.GATE)
    long = alone_ns >= YIELD_TARGET_NS
    return StepPlan(Level.GRANT, Level.YIELD if long else Level.GATE)


POLICY = Vacate()
