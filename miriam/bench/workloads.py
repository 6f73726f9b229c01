"""MDTB, the paper's benchmark: a critical and a normal network with their arrivals.

Source: arXiv 2307.04339, where ResNet is the ResNet-50 of the Tango suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miriam.bench.arrivals import Arrivals, Closed, Poisson, Uniform
from miriam.errors import UnknownNameError, UsageError


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
class Workload:
    """Tasks that share one GPU, with distinct names and at least one critical among them."""

    name: str
    tasks: tuple[WorkloadTask, ...]

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        if len(set(names)) != len(names):
            raise UsageError(f"workload {self.name} tasks", "distinct names", names)
        if not self.critical:
            raise UsageError(f"workload {self.name} tasks", "at least one critical task", names)

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


MDTB: dict[str, tuple[str, Arrivals, str]] = {
    "A": ("alexnet", Closed(), "cifarnet"),
    "B": ("squeezenet", Uniform(hz=10), "alexnet"),
    "C": ("gru", Poisson(hz=10), "resnet50"),
    "D": ("lstm", Uniform(hz=10), "squeezenet"),
}


def mdtb(names: Sequence[str] = tuple(MDTB), in_flight: int = 2) -> tuple[Workload, ...]:
    """The MDTB workloads called ``names``; the normal task runs closed loop, ``in_flight`` deep.

    UnknownNameError lists the known names.
    """
    return tuple(_mdtb(name, in_flight) for name in names)


def _mdtb(name: str, in_flight: int) -> Workload:
    if name not in MDTB:
        raise UnknownNameError("workload", name, MDTB)
    critical, arrivals, normal = MDTB[name]
    return Workload(
        name,
        (
            WorkloadTask(critical, critical, arrivals, critical=True),
            WorkloadTask(normal, normal, Closed(in_flight), in_flight=in_flight),
        ),
    )
