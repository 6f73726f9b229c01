"""The timeline of a request alone, against which delays are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from miriam.coordinator import Task, policies
from miriam.devices.contract import Device
from miriam.devices.observe import LaunchInfo, Look, Observer


@dataclass(slots=True)
class Stretch:
    """Progress of a step alone: from ``done`` blocks on, ``resident`` of them at ``rate``."""

    done: float
    resident: int
    rate: float
    alone_ns: float


@dataclass(slots=True)
class Alone:
    """The timeline of a request alone.

    Per step: its progress, ns from launch to end, and ns from the end of the one before to launch.
    """

    latency_ns: int = 0
    steps: list[list[Stretch]] = field(default_factory=list)
    took_ns: list[int] = field(default_factory=list)
    before_ns: list[int] = field(default_factory=list)


class _SoloTimeline(Observer):
    """Keeps the timeline of the one request of a session."""

    def __init__(self) -> None:
        self.alone = Alone()
        self._launch: int | None = None
        self._since_ns = self._began_ns = 0
        self._done = 0.0

    def launched(self, launch: LaunchInfo, now_ns: int) -> None:
        self.alone.before_ns.append(now_ns - self._since_ns)
        self.alone.steps.append([])
        self._launch, self._since_ns, self._done = launch.number, now_ns, 0.0
        self._began_ns = now_ns

    def passed(self, now_ns: int, look: Callable[[int], Look]) -> None:
        if self._launch is None:
            return
        stretches = self.alone.steps[-1]
        if stretches:
            self._done += stretches[-1].rate * (now_ns - self._since_ns)
        self._since_ns = now_ns
        seen = look(self._launch)
        stretches.append(Stretch(self._done, seen.resident, seen.rate, seen.alone_ns))

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        self._launch, self._since_ns = None, ended_ns
        self.alone.took_ns.append(ended_ns - self._began_ns)

    def finished(self, task: int, request: int, now_ns: int) -> None:
        self.alone.latency_ns = now_ns


def timeline_alone(device: Device, task: Task) -> Alone:
    """The timeline of one request of ``task`` on the idle ``device``, with plain kernels."""
    watch = _SoloTimeline()
    session = device.open([task], policies.get("multistream"), (watch,))
    session.submit(0, 0)
    while not session.advance(10**15):
        pass
    session.close()
    return watch.alone
