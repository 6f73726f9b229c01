"""Tally-like: normal work runs only while no critical request is announced, and retreats.

Persistent blocks everywhere, also alone, that leave at the next logical block when a critical
request arrives ("Tally: Non-Intrusive Performance Isolation for Concurrent Deep Learning
Workloads", ASPLOS 2025). No co-running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.coordinator.gates import closed_tables
from miriam.coordinator.plan import ORDERED, Level, Plan, StepPlan, TaskPlan
from miriam.coordinator.policy import Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix
from miriam.kernels import Step


@dataclass(frozen=True, slots=True)
class Tally:
    """Elastic steps that hold nothing beside a critical request."""

    name: str = "tally"

    def plan(self, mix: Mix) -> Plan:
        """Every normal step can be asked to leave, and is."""
        tasks = [
            TaskPlan(
                mix.stream_priority(i),
                tuple(ORDERED if task.critical else _retreating(s) for s in task.program.steps),
            )
            for i, task in enumerate(mix.tasks)
        ]
        return Plan(tuple(tasks), closed_tables(mix))

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


def _retreating(step: Step) -> StepPlan:
    level = Level.YIELD if step.rigid is None else Level.GATE
    return StepPlan(level, level)


POLICY = Tally()
