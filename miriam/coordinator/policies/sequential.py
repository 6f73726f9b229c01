"""Sequential: one inference at a time, round robin over the tasks (the paper's baseline)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.plan import ORDERED, Plan, TaskPlan
from miriam.coordinator.policy import Snapshot, Waiting
from miriam.coordinator.task import Mix


@dataclass(frozen=True, slots=True)
class Sequential:
    """The whole GPU for one request, then the next task's turn."""

    name: str = "sequential"

    def plan(self, mix: Mix) -> Plan:
        """Ordered steps on streams of equal priority."""
        return Plan(tuple(TaskPlan(0, (ORDERED,) * len(t.program.steps)) for t in mix.tasks))

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """When the GPU is idle, the first waiting request of the next task in turn."""
        if snapshot.running or not snapshot.waiting:
            return ()
        turns = len(mix.tasks)
        chosen = min(snapshot.waiting, key=lambda w: (w.task - snapshot.last - 1) % turns)
        return (chosen,)


POLICY = Sequential()
