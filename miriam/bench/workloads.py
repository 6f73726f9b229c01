"""Workloads: tasks that share one GPU, critical and normal, and when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass

from miriam.bench.arrivals import Arrivals
from miriam.errors import UsageError


@dataclass(frozen=True, slots=True)
class WorkloadTask:
    """One task of a workload: a network of the zoo and when it is asked for.

    ``in_flight``: how many of its requests may run at the same time. ``priority``: smaller is
    more urgent among the critical or among the normal tasks.
    """

    name: str
    network: str
    arrivals: Arrivals
    critical: bool = False
    priority: int = 0
    in_flight: int = 1


@dataclass(frozen=True, slots=True)
class Point:
    """Where a workload stands in a grid of them; None where the grid has no such axis.

    ``gap_us``: from a critical completion to the next arrival. ``world``: the device, by name.
    ``scale``: factor on the given rates. ``rates_hz``: those that came of it, in the order of
    the tasks. ``normals``: number of normal tasks.
    """

    gap_us: float | None = None
    world: str | None = None
    scale: float | None = None
    rates_hz: tuple[float, ...] | None = None
    normals: int | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """Tasks that share one GPU, with distinct names and at least one critical among them."""

    name: str
    tasks: tuple[WorkloadTask, ...]
    point: Point = Point()

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        if len(set(names)) != len(names):
            raise UsageError(f"workload {self.name} tasks", "distinct names", names)
        if not self.critical:
            raise UsageError(f"workload {self.name} tasks", "at least one critical task", names)

    @property
    def ordered(self) -> tuple[WorkloadTask, ...]:
        """All tasks: the critical ones, then the normal ones."""
        return self.critical + self.normal

    @property
    def critical(self) -> tuple[WorkloadTask, ...]:
        """The critical tasks, most urgent first."""
        chosen = [task for task in self.tasks if task.critical]
        return tuple(sorted(chosen, key=lambda task: task.priority))

    @property
    def normal(self) -> tuple[WorkloadTask, ...]:
        """The normal tasks, most urgent first."""
        chosen = [task for task in self.tasks if not task.critical]
        return tuple(sorted(chosen, key=lambda task: task.priority))
