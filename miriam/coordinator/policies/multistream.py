"""Multi-stream with priority: everything at once, the critical task on a high-priority stream.

The baseline of the paper (section 8.1) and of NVIDIA Triton's priorities. Priority decides
whose blocks are placed next; it never takes a resident block away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.plan import ORDERED, Plan, TaskPlan
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix


@dataclass(frozen=True, slots=True)
class MultiStream:
    """No gates, no grants: streams with priorities."""

    name: str = "multistream"

    def plan(self, mix: Mix) -> Plan:
        """Ordered steps; critical streams first."""
        return Plan(
            tuple(
                TaskPlan(mix.stream_priority(i), (ORDERED,) * len(t.program.steps))
                for i, t in enumerate(mix.tasks)
            )
        )

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


POLICY = MultiStream()
