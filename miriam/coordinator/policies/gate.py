"""Gate: normal steps wait at their start while any critical request is announced.

Works for every kernel, closed source included (level 1). The baseline that elastic kernels
have to beat: it is hard on the normal tasks when the critical one is busy, and a long normal
kernel that has started still delays the critical task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.gates import (
    check_yield_share,
    closed_tables,
    gate_levels,
    yield_target_ns,
)
from miriam.coordinator.plan import ORDERED, Plan, StepPlan, TaskPlan
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix


@dataclass(frozen=True, slots=True)
class Gate:
    """Original kernels behind gates, grouped under the yield target.

    ``yield_share``: that target as a share of the shortest critical request's time alone, where
    that is more. Fewer gates cost the normal tasks less, and the critical ones some waiting.
    """

    name: str = "gate"
    yield_share: float = 0.0

    def __post_init__(self) -> None:
        check_yield_share(self.name, self.yield_share)

    def plan(self, mix: Mix) -> Plan:
        """Gates before the normal steps, closed beside every critical step."""
        tasks = []
        for i, task in enumerate(mix.tasks):
            steps = (ORDERED,) * len(task.program.steps)
            if not task.critical:
                target_ns = yield_target_ns(mix, self.yield_share)
                levels = gate_levels(mix.step_ns[i], target_ns)
                steps = tuple(StepPlan(level, level) for level in levels)
            tasks.append(TaskPlan(mix.stream_priority(i), steps))
        return Plan(tuple(tasks), closed_tables(mix))

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


POLICY = Gate()
