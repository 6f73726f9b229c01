"""Miriam with the grid alone: the ablation that shows what elastic blocks bring.

Normal steps are granted blocks of the original's size and no other, so that they shrink on the SMs
only by fewer blocks; all else is `miriam`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from miriam.coordinator.plan import Plan
from miriam.coordinator.policies.miriam import POLICY as MIRIAM
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix, Task
from miriam.kernels import Step


@dataclass(frozen=True, slots=True)
class MiriamGrid:
    """Shards of the original's blocks."""

    name: str = "miriam-grid"

    def plan(self, mix: Mix) -> Plan:
        """Miriam's plan for kernels that have no folded variant."""
        return MIRIAM.plan(replace(mix, tasks=tuple(map(_whole_blocks, mix.tasks))))

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


def _whole_blocks(task: Task) -> Task:
    steps = tuple(map(_original_only, task.program.steps))
    return replace(task, program=replace(task.program, steps=steps))


def _original_only(step: Step) -> Step:
    return replace(step, kernel=replace(step.kernel, variants=(step.kernel.original,)))


POLICY = MiriamGrid()
