"""Multi-stream without priority: everything at once, on streams that are all the same.

What a program gets that starts its models on streams of their own and thinks no further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.plan import ORDERED, Plan, TaskPlan
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix


@dataclass(frozen=True, slots=True)
class MultiStreamEqual:
    """No gates, no grants, no priorities."""

    name: str = "multistream-equal"

    def plan(self, mix: Mix) -> Plan:
        """Ordered steps on streams of equal priority."""
        return Plan(tuple(TaskPlan(0, (ORDERED,) * len(t.program.steps)) for t in mix.tasks))

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


POLICY = MultiStreamEqual()
