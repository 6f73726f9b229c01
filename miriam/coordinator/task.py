"""Tasks: a program with its criticality, priority and deadline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from miriam.errors import UsageError
from miriam.kernels import GpuSpec, Program

if TYPE_CHECKING:
    from miriam.coordinator.corun import Candidate, CoRun

Steps = tuple[int, int]
"""A half-open range of a program's steps."""


@dataclass(frozen=True, slots=True)
class Task:
    """A program that is asked for again and again.

    ``priority``: smaller is more urgent; every critical task goes before every normal one.
    ``in_flight``: how many of its requests may run at the same time, each on its own stream
    with its own buffers and counters. ``deadline_ns``: from arrival to completion.
    ``weights``: an array per weight buffer of the program, needed only where something is
    computed.
    """

    name: str
    program: Program
    critical: bool = False
    priority: int = 0
    deadline_ns: int | None = None
    in_flight: int = 1
    weights: Mapping[str, NDArray[np.generic]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise UsageError(f"task {self.name} in_flight", "at least 1", self.in_flight)


@dataclass(frozen=True, slots=True)
class Mix:
    """What a policy plans for: the tasks on one GPU.

    ``step_ns[task][step]`` is each step's time alone on that GPU, as the device measured it.
    ``coruns[critical task, normal task]``: what it measured of them beside each other, and
    ``candidates``: of whole plans, for a policy that asks for it (corun.py).
    """

    gpu: GpuSpec
    tasks: tuple[Task, ...]
    step_ns: tuple[tuple[int, ...], ...]
    coruns: Mapping[tuple[int, int], tuple[CoRun, ...]] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()

    @property
    def critical(self) -> tuple[int, ...]:
        """Indices of the critical tasks, most urgent first."""
        chosen = [i for i, t in enumerate(self.tasks) if t.critical]
        return tuple(sorted(chosen, key=lambda i: self.tasks[i].priority))

    @property
    def normal(self) -> tuple[int, ...]:
        """Indices of the normal tasks, most urgent first."""
        chosen = [i for i, t in enumerate(self.tasks) if not t.critical]
        return tuple(sorted(chosen, key=lambda i: self.tasks[i].priority))

    def stream_priority(self, task: int) -> int:
        """The priority of a task's streams: smaller is more urgent, critical before normal."""
        chosen = self.tasks[task]
        ranks = sorted({(not t.critical, t.priority) for t in self.tasks})
        return ranks.index((not chosen.critical, chosen.priority))
