"""Who delays a critical request by how much: its timeline against the one that it has alone.

At any moment a step progresses at some rate v (logical blocks per ns); alone, at the same
progress, its rate would be v0. Then it loses 1 - v/v0 of each ns, and over the step these losses
sum to the delay. With n and n0 blocks resident,

    1 - v/v0  =  (n0 - n)/n0          places: fewer of its blocks run
              +  n/n0 - v/v0          those that run are slower: issue, l2, dram, or its data has
                                      been driven out of the L2 (cache)

and each part goes to the tasks in proportion to what they use of that resource. What passes
between the steps is compared directly: the queue, the host's launches, barriers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from miriam.bench.alone import Alone, timeline_alone
from miriam.bench.delay import Delay, Explained
from miriam.coordinator import Task
from miriam.devices.contract import Device
from miriam.devices.observe import LaunchInfo, Look, Observer

POLICY = "the policy"
ITSELF = "itself"
_Parts = dict[tuple[str, str], float]


@dataclass(slots=True)
class _Running:
    """A critical request under way."""

    alone: Alone
    arrival_ns: int
    since_ns: int
    parts: _Parts = field(default_factory=lambda: defaultdict(float))
    step: int = 0
    issued: bool = False
    launch: int | None = None
    seen: Look | None = None
    began_ns: int = 0
    lost_ns: float = 0.0
    done: float = 0.0
    place: int = 0


class Delays(Observer):
    """Explains every critical request of a session on a simulated device.

    ``explained`` grows as they finish. Steps of critical tasks are launched once each, as whole
    kernels, by every policy.
    """

    def __init__(self, device: Device, tasks: Sequence[Task]) -> None:
        self._names = [task.name for task in tasks]
        self._alone = {i: timeline_alone(device, t) for i, t in enumerate(tasks) if t.critical}
        self._running: dict[tuple[int, int], _Running] = {}
        self._launch_task: dict[int, int] = {}
        self._started: dict[tuple[int, int], int] = {}
        self.explained: list[Explained] = []

    def parts(self, task: int, request: int, now_ns: int) -> tuple[Delay, ...]:
        """What has delayed a critical request: all of it, or up to ``now_ns`` if it is not done."""
        for done in self.explained:
            if (done.task, done.request) == (task, request):
                return done.delays
        run = self._running[task, request]
        if not run.issued:
            self._queued(task, run, now_ns)
        elif run.launch is not None:
            self._account(run, now_ns)
        return _delays(run.parts)

    def arrived(self, task: int, request: int, now_ns: int) -> None:
        """Follow the request if it is critical."""
        if task in self._alone:
            self._running[task, request] = _Running(self._alone[task], now_ns, now_ns)

    def issued(self, task: int, request: int, now_ns: int, begins_ns: int) -> None:
        """What it waited for its turn, and what for the host."""
        run = self._running.get((task, request))
        if run is not None:
            self._queued(task, run, now_ns)
            run.issued = True
            busy = [t for (t, _), begins in self._started.items() if begins > now_ns]
            self._split(run, "launch", busy, begins_ns - now_ns - self._host_ns(run))
            run.since_ns = begins_ns - self._host_ns(run)
        self._started[task, request] = begins_ns

    def launched(self, launch: LaunchInfo, now_ns: int) -> None:
        """What passed since the last step, and the new one begins."""
        self._launch_task[launch.number] = launch.task
        run = self._running.get((launch.task, launch.request))
        if run is not None:
            before_ns = now_ns - run.since_ns - run.alone.before_ns[launch.step]
            others = [t for t, _ in self._started if t != launch.task]
            self._split(run, "barrier", others, before_ns)
            run.step, run.launch, run.since_ns = launch.step, launch.number, now_ns
            run.seen, run.done, run.place = None, 0.0, 0
            run.began_ns, run.lost_ns = now_ns, 0.0

    def passed(self, now_ns: int, look: Callable[[int], Look]) -> None:
        """Account for the time since the last change."""
        for run in self._running.values():
            if run.launch is not None:
                self._account(run, now_ns)
                run.seen = look(run.launch)

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        """Account for the step's last moments."""
        run = self._running.get((task, request))
        if run is not None:
            self._account(run, ended_ns)
            more_ns = ended_ns - run.began_ns - run.alone.took_ns[step]
            self._share(run, "rest", {}, more_ns - run.lost_ns)
            run.launch = None

    def finished(self, task: int, request: int, now_ns: int) -> None:
        """The request's account is closed, and those that wait may have waited for it."""
        for (waiting, _), other in self._running.items():
            if not other.issued:
                self._queued(waiting, other, now_ns)
        del self._started[task, request]
        run = self._running.pop((task, request), None)
        if run is not None:
            alone_ns = run.alone.latency_ns
            self.explained.append(
                Explained(task, request, run.arrival_ns, now_ns, alone_ns, _delays(run.parts))
            )

    def _queued(self, task: int, run: _Running, now_ns: int) -> None:
        """Until now it has waited for a request of its own task, else for those that run."""
        others = [t for t, _ in self._started]
        same = [t for t in others if t == task]
        self._split(run, "queue", same or others, now_ns - run.since_ns)
        run.since_ns = now_ns

    def _host_ns(self, run: _Running) -> int:
        return run.alone.before_ns[0]

    def _split(self, run: _Running, cause: str, tasks: Sequence[int], ns: float) -> None:
        self._share(run, cause, {self._names[t]: 1.0 for t in tasks}, ns)

    def _share(self, run: _Running, cause: str, by: Mapping[str, float], ns: float) -> None:
        total = sum(by.values())
        for name, weight in by.items() if total else ((ITSELF, 1.0),):
            run.parts[cause, name] += ns * weight / (total or 1.0)

    def _tasks(self, by: Mapping[int, float]) -> dict[str, float]:
        """Launches to the names of their tasks."""
        names: dict[str, float] = defaultdict(float)
        for launch, weight in by.items():
            task = self._launch_task.get(launch)
            names[POLICY if task is None else self._names[task]] += weight
        return names

    def _account(self, run: _Running, now_ns: int) -> None:
        left_ns = float(now_ns - run.since_ns)
        run.since_ns = now_ns
        if run.seen is None or left_ns <= 0:
            return
        rate, stretches = run.seen.rate, run.alone.steps[run.step]
        places = slower = cache = 0.0
        while left_ns > 0:
            here = stretches[run.place]
            last = run.place + 1 == len(stretches)
            ahead = float("inf") if last else stretches[run.place + 1].done - run.done
            took_ns = min(left_ns, ahead / rate) if rate else left_ns
            share = run.seen.resident / here.resident
            lost = took_ns * (share - rate / here.rate)
            cold = took_ns * share * (1 - here.alone_ns / max(run.seen.alone_ns, here.alone_ns))
            places += took_ns * (1 - share)
            cache += min(cold, max(lost, 0.0))
            slower += lost - min(cold, max(lost, 0.0))
            run.done += rate * took_ns
            left_ns -= took_ns
            if not last and run.done >= stretches[run.place + 1].done - 1e-9:
                run.place += 1
        run.lost_ns += places + slower + cache
        self._attribute(run, run.seen, places, slower, cache)

    def _attribute(
        self, run: _Running, seen: Look, places: float, slower: float, cache: float
    ) -> None:
        used = {cause: self._tasks(by) for cause, by in seen.by.items()}
        slowed = {c: w for c, w in seen.slowed.items() if sum(used[c].values())}
        total = sum(slowed.values())
        if slower > 0 and total > 0:
            for cause, weight in slowed.items():
                self._share(run, cause, used[cause], slower * weight / total)
        else:
            # Fewer of its own blocks beside each other: what it gains comes with the places.
            places += slower
        if places:
            self._share(run, "places", used["places"], places)
        if cache:
            self._share(run, "cache", used["l2"] or used["places"], cache)


def _delays(parts: Mapping[tuple[str, str], float]) -> tuple[Delay, ...]:
    """The parts of at least a ns, largest first."""
    found = [Delay(cause, by, round(ns)) for (cause, by), ns in parts.items() if round(ns)]
    return tuple(sorted(found, key=lambda d: (-d.ns, d.cause, d.by)))
