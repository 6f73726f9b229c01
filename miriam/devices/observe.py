"""What a session tells about its run; nothing of it decides anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchInfo:
    """One launch of a step: ``number`` is its own in the session.

    ``threads``: per physical block. ``elastic``: its blocks are persistent and claim logical
    ones; ``blocks``: how many it places.
    """

    number: int
    task: int
    request: int
    step: int
    threads: int
    blocks: int
    elastic: bool


@dataclass(frozen=True, slots=True)
class Look:
    """How a launch stands at one moment, until something changes.

    ``resident``: its blocks that run, ``rate``: blocks that they finish per ns, ``alone_ns``:
    the time of one alone. ``slowed``: how much of the rate issue, l2 and dram take (blocks per
    ns). ``by``: for each of these and for ``places``, how much each other launch (by number)
    uses of it, in any unit; -1 is the SMs that the policy keeps from this launch.
    """

    resident: int
    rate: float
    alone_ns: float
    slowed: Mapping[str, float]
    by: Mapping[str, Mapping[int, float]]


def heard(observers: Iterable[Observer], name: str) -> tuple[Callable[..., None], ...]:
    """The method ``name`` of those observers that override it: the others need no call."""
    return tuple(
        getattr(o, name) for o in observers if getattr(type(o), name) is not getattr(Observer, name)
    )


class Observer:
    """Told what happened; times are ns since the session opened.

    Each method does nothing unless it is overridden. A device tells what it knows: the simulator
    everything, others at least ``step``.
    """

    def arrived(self, task: int, request: int, now_ns: int) -> None:
        """A request has arrived."""

    def issued(self, task: int, request: int, now_ns: int, begins_ns: int) -> None:
        """The policy has started a request; the host will have launched it at ``begins_ns``."""

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        """A step ended; it began when its predecessor's end let it."""

    def finished(self, task: int, request: int, now_ns: int) -> None:
        """A request is done."""

    def launched(self, launch: LaunchInfo, now_ns: int) -> None:
        """A launch is in the block scheduler's hands."""

    def ran(
        self,
        launch: int,
        sms: Sequence[int],
        blocks: Sequence[tuple[int, int]],
        began_ns: float,
        ended_ns: float,
    ) -> None:
        """Logical blocks (first, count) have run, spread evenly over ``sms`` in this order."""

    def held(self, task: int, request: int, step: int, since_ns: int, until_ns: int) -> None:
        """A gate held a step."""

    def wrote(self, task: int, request: int, step: int | None, now_ns: int) -> None:
        """A critical request's step became visible in the control words, None: its end."""

    def passed(self, now_ns: int, look: Callable[[int], Look]) -> None:
        """Something changed; ``look(number)`` is how that launch stands from now on."""
