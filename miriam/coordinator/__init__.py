"""The coordinator: tasks, grants, plans, the shaded tree, and the policies that make plans."""

from miriam.coordinator.plan import (
    CLOSED,
    ORDERED,
    UNLIMITED,
    Grant,
    GrantTable,
    Level,
    Plan,
    StepPlan,
    TaskPlan,
)
from miriam.coordinator.policy import Policy, Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix, Task
from miriam.coordinator.tree import ShadedTree, Shard

__all__ = [
    "CLOSED",
    "ORDERED",
    "UNLIMITED",
    "Grant",
    "GrantTable",
    "Level",
    "Mix",
    "Plan",
    "Policy",
    "ShadedTree",
    "Shard",
    "Snapshot",
    "StepPlan",
    "Task",
    "TaskPlan",
    "Waiting",
    "admit_in_flight",
]
