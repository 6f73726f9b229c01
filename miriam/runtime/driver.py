"""The driver: feeds what is asked for to a session of any device, and keeps what became of it.

Deadlines, bounded queues and weights live here and not in a device: they are about requests that
have not started.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heappop, heappush
from math import inf
from typing import Protocol

from miriam.coordinator import Task
from miriam.coordinator.shares import next_in_share
from miriam.devices.contract import Arrays, Completion, Session, Usage
from miriam.errors import UsageError


class Following(Protocol):
    """Which arrivals follow from a completion."""

    def following(self, finish_ns: int) -> int | None:
        """Arrival time of the request that the end of another brings about, None for none."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What happens to late and to surplus requests.

    ``drop_late``: a request whose deadline passes before it starts is dropped. ``queue``: how
    many requests of a task may wait beyond its ``in_flight``, None for any number.
    """

    drop_late: bool = False
    queue: int | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A task and what it is asked for.

    ``times_ns``: the arrivals known beforehand, ascending; ``arrivals`` says which follow.
    ``inputs``: the input arrays of the task's k-th request, None where nothing is computed.
    ``turn_ns``: a request's time alone / the task's weight, None where weights do not count.
    """

    task: Task
    arrivals: Following
    times_ns: tuple[int, ...]
    inputs: Callable[[int], Arrays | None] = lambda ordinal: None
    turn_ns: float | None = None

    def __post_init__(self) -> None:
        if self.turn_ns is not None and (self.task.critical or not 0 < self.turn_ns < inf):
            rule = "above 0, for a normal task"
            raise UsageError(f"task {self.task.name} turn_ns", rule, self.turn_ns)


class Fate(Enum):
    """What became of a request."""

    DONE = "done"
    DROPPED = "dropped"
    REFUSED = "refused"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Served:
    """The times of a request that was done, ns since the session opened."""

    arrival_ns: int
    start_ns: int
    end_ns: int

    @property
    def latency_ns(self) -> int:
        """From arrival to completion."""
        return self.end_ns - self.arrival_ns

    @property
    def service_ns(self) -> int:
        """From the start of its first kernel to completion."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a task, its ``ordinal``-th. Times are ns since the session opened.

    ``number``: the session's, None if it never got there. ``start_ns`` is that of its first
    kernel, ``end_ns`` when it was done, dropped or refused.
    """

    ordinal: int
    arrival_ns: int
    fate: Fate
    number: int | None = None
    start_ns: int | None = None
    end_ns: int | None = None

    @property
    def served(self) -> Served | None:
        """Its times, None unless it was done."""
        if self.start_ns is None or self.end_ns is None:
            return None
        return Served(self.arrival_ns, self.start_ns, self.end_ns)


@dataclass(frozen=True, slots=True)
class Record:
    """What became of every request that arrived in the window, per task in order of arrival.

    ``window_ns`` is shorter than asked for where enough was done before.
    """

    window_ns: int
    requests: tuple[tuple[Request, ...], ...]
    usage: Usage

    @property
    def served(self) -> tuple[tuple[Served, ...], ...]:
        """The requests that were done."""
        return tuple(tuple(s for r in mine if (s := r.served)) for mine in self.requests)


Watch = Callable[[int, Request, Completion], None]


class Driver:
    """The requests of one session; ``watch`` sees each completion whole."""

    def __init__(
        self,
        session: Session,
        offers: Sequence[Offer],
        rules: Rules = Rules(),
        watch: Watch = lambda task, request, done: None,
    ) -> None:
        self._session, self._offers, self._rules, self._watch = session, offers, rules, watch
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._requests: list[list[Request]] = [[] for _ in offers]
        self._ordinals: dict[tuple[int, int], int] = {}
        self._open = [0] * len(offers)
        self._submitted = [0] * len(offers)
        self._held: list[deque[int]] = [deque() for _ in offers]
        self._served = [0.0] * len(offers)
        self._turn = 0.0
        self._finished = 0

    def run(self, window_ns: int, enough: int | None = None) -> Record:
        """Run until ``window_ns`` of the device's time have passed; what arrived in them.

        It ends earlier when ``enough`` requests are done, if that is given.
        """
        for task, offer in enumerate(self._offers):
            for time in offer.times_ns:
                self._schedule(time, task)
        session, events = self._session, self._events
        while session.now_ns < window_ns and (enough is None or self._finished < enough):
            while events and events[0][0] <= session.now_ns:
                heappop(events)[2]()
            self._share()
            until_ns = min(events[0][0], window_ns) if events else window_ns
            for done in session.advance(until_ns):
                if done.finish_ns <= window_ns:
                    self._completed(done)
        requests = tuple(tuple(requests) for requests in self._requests)
        return Record(min(window_ns, session.now_ns), requests, session.usage())

    def _schedule(self, time_ns: int, task: int) -> None:
        self._at(time_ns, lambda: self._arrive(task, time_ns))

    def _at(self, time_ns: int, event: Callable[[], None]) -> None:
        self._scheduled += 1
        heappush(self._events, (time_ns, self._scheduled, event))

    def _arrive(self, task: int, arrival_ns: int) -> None:
        offer, requests = self._offers[task], self._requests[task]
        ordinal, queue = len(requests), self._rules.queue
        requests.append(Request(ordinal, arrival_ns, Fate.UNFINISHED))
        if queue is not None and self._open[task] >= offer.task.in_flight + queue:
            self._end(task, ordinal, Fate.REFUSED, arrival_ns)
            return
        if not self._open[task]:
            # What a task did not ask for while it was idle is not owed to it.
            self._served[task] = max(self._served[task], self._turn)
        self._open[task] += 1
        if offer.turn_ns is None:
            self._submit(task, ordinal)
        else:
            self._held[task].append(ordinal)
        if self._rules.drop_late and offer.task.deadline_ns is not None:
            due_ns = arrival_ns + offer.task.deadline_ns
            self._at(due_ns, lambda: self._drop(task, ordinal, due_ns))

    def _submit(self, task: int, ordinal: int) -> None:
        request = self._requests[task][ordinal]
        arrival_ns = max(request.arrival_ns, self._session.now_ns)
        number = self._session.submit(task, arrival_ns, self._offers[task].inputs(ordinal))
        self._submitted[task] += 1
        self._ordinals[task, number] = ordinal
        self._requests[task][ordinal] = replace(request, number=number)

    def _completed(self, done: Completion) -> None:
        task, ordinal = done.task, self._ordinals.pop((done.task, done.request))
        self._finished += 1
        self._open[task] -= 1
        self._submitted[task] -= 1
        request = replace(self._requests[task][ordinal], start_ns=done.start_ns)
        self._requests[task][ordinal] = request
        self._end(task, ordinal, Fate.DONE, done.finish_ns)
        self._watch(task, self._requests[task][ordinal], done)

    def _drop(self, task: int, ordinal: int, now_ns: int) -> None:
        request = self._requests[task][ordinal]
        if request.fate is not Fate.UNFINISHED:
            return
        if request.number is None:
            self._held[task].remove(ordinal)
        elif self._session.withdraw(task, request.number):
            self._submitted[task] -= 1
            del self._ordinals[task, request.number]
        else:
            return
        self._open[task] -= 1
        self._end(task, ordinal, Fate.DROPPED, now_ns)

    def _end(self, task: int, ordinal: int, fate: Fate, now_ns: int) -> None:
        request = self._requests[task][ordinal]
        self._requests[task][ordinal] = replace(request, fate=fate, end_ns=now_ns)
        # Who waits for the end hears of it now, on a real device a little later than it was.
        heard_ns = max(now_ns, self._session.now_ns)
        following = self._offers[task].arrivals.following(heard_ns)
        if following is not None:
            self._schedule(following, task)

    # Weights.

    def _working(self) -> dict[int, float]:
        offers = self._offers
        tasks = (t for t, o in enumerate(offers) if o.turn_ns is not None and self._open[t])
        return {task: self._served[task] for task in tasks}

    def _share(self) -> None:
        while any(self._held):
            ready = [
                task
                for task, held in enumerate(self._held)
                if held and self._submitted[task] < self._offers[task].task.in_flight
            ]
            task = next_in_share(self._working(), ready)
            if task is None:
                return
            self._turn = self._served[task]
            self._served[task] += self._offers[task].turn_ns or 0.0
            self._submit(task, self._held[task].popleft())
