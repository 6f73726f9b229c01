"""Partition: a static split, the critical tasks on the first SMs, the normal ones on the rest.

What green contexts (CUDA driver API, 12.4 and later) give without any change to kernels, and MIG
for the memory system too. Here the share of the critical tasks is a setting, half of the SMs
unless told otherwise, and is not searched. No SM is shared, so that only L2 and DRAM couple the
tasks; and no SM is lent, so that one side's idle SMs stay idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.plan import ORDERED, Plan, TaskPlan
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.split import check_share, split
from miriam.coordinator.task import Mix


@dataclass(frozen=True, slots=True)
class Partition:
    """Original kernels on SMs of their own; ``share`` of the SMs for the critical tasks."""

    name: str = "partition"
    share: float = 0.5

    def __post_init__(self) -> None:
        check_share(self.name, self.share)

    def plan(self, mix: Mix) -> Plan:
        """Ordered steps, each task on its side; UsageError on a GPU with one group of SMs."""
        critical, normal = split(mix.gpu, self.share)
        return Plan(
            tuple(
                TaskPlan(
                    mix.stream_priority(i),
                    (ORDERED,) * len(task.program.steps),
                    critical if task.critical else normal,
                )
                for i, task in enumerate(mix.tasks)
            )
        )

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


POLICY = Partition()
