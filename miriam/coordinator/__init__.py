"""The coordinator: tasks, grants, plans, the shaded tree, and the policies that make plans."""

from miriam.coordinator.plan import CLOSED, UNLIMITED, Grant, GrantTable, Level, Plan, TaskPlan
from miriam.coordinator.policy import Policy, Snapshot, Waiting, admit_in_flight
from miriam.coordinator.task import Mix, Task

__all__ = [
    "CLOSED",
    "UNLIMITED",
    "Grant",
    "GrantTable",
    "Level",
    "Mix",
    "Plan",
    "Policy",
    "Snapshot",
    "Task",
    "TaskPlan",
    "Waiting",
    "admit_in_flight",
]
