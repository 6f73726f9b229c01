"""What a policy is: a pure two-method object, one file each in ``policies/``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from miriam.coordinator.plan import Plan
from miriam.coordinator.task import Mix


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that has arrived and not started: its task and its number."""

    task: int
    request: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queues at one moment.

    ``waiting``: in order of arrival. ``running``: the task of each request that has started and
    not finished. ``last``: the task that was started last, -1 before the first.
    """

    waiting: tuple[Waiting, ...]
    running: tuple[int, ...]
    last: int


class Policy(Protocol):
    """A scheduling policy: no clock, no device, no state."""

    @property
    def name(self) -> str:
        """The name that a user types."""

    def plan(self, mix: Mix) -> Plan:
        """The plan for ``mix``, made when tasks come and go."""

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """The waiting requests to start now, in order."""


def admit_in_flight(mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
    """Start every request whose task has a free stream, in order of arrival."""
    free = [t.in_flight for t in mix.tasks]
    for task in snapshot.running:
        free[task] -= 1
    started = []
    for waiting in snapshot.waiting:
        if free[waiting.task] > 0:
            free[waiting.task] -= 1
            started.append(waiting)
    return started
