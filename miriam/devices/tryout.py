"""Tries plans with all tasks of a mix, for a policy that chooses by what it sees.

Every task runs in a closed loop, each time on the same inputs; in the end the normal ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from miriam.coordinator import (
    Level,
    Mix,
    Plan,
    Policy,
    Snapshot,
    Task,
    Waiting,
    admit_in_flight,
)
from miriam.coordinator.corun import Candidate
from miriam.devices.contract import Arrays, Completion, Session
from miriam.devices.observe import Observer


@dataclass(frozen=True, slots=True)
class Given:
    """The policy of a plan that is there."""

    given: Plan
    name: str = "given"

    def plan(self, mix: Mix) -> Plan:
        """The plan."""
        return self.given

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        """Everything that has a free stream."""
        return admit_in_flight(mix, snapshot)


@dataclass(frozen=True, slots=True)
class Length:
    """A plan is tried until ``requests`` of each critical task have ended.

    But at least for ``shortest_ns``, as several normal requests have to end too, and at most for
    ``longest_ns``. ``percentile``: the one of their service that counts.
    """

    requests: int
    shortest_ns: int
    longest_ns: int
    percentile: int

    def goes_on(self, passed_ns: int, ended: Sequence[int]) -> bool:
        """Whether a plan is tried on, of which so many critical requests have ``ended``."""
        if passed_ns < self.shortest_ns:
            return True
        return passed_ns < self.longest_ns and min(ended) < self.requests


class Tried:
    """What plans showed on one device; equal ones are not tried again with equal tasks."""

    def __init__(self) -> None:
        self._known: list[tuple[tuple[Task, ...], tuple[Candidate, ...]]] = []

    def of(
        self,
        tasks: tuple[Task, ...],
        plans: Sequence[Plan],
        trying: Callable[[], tuple[Candidate, ...]],
    ) -> tuple[Candidate, ...]:
        """What ``plans`` show with ``tasks``: known, or what ``trying`` them returns."""
        for known, candidates in self._known:
            if known == tasks and [candidate.plan for candidate in candidates] == list(plans):
                return candidates
        self._known.append((tasks, trying()))
        return self._known[-1][1]


def warm_up_requests(mix: Mix, plan: Plan) -> int:
    """How many critical requests pass until what happens once only has happened.

    Where all is held, a normal request comes one gate further each time that a critical one has
    ended, until it is in a step that can be stopped.
    """
    levels = [[step.level for step in plan.tasks[n].steps] for n in mix.normal]
    return max((sum(level >= Level.GATE for level in steps) for steps in levels), default=0)


class _Work(Observer):
    """The normal work done, step by step, in ns of its time alone."""

    def __init__(self, mix: Mix) -> None:
        self._step_ns = {task: mix.step_ns[task] for task in mix.normal}
        self.done_ns = 0

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        if task in self._step_ns:
            self.done_ns += self._step_ns[task][step]


def tried(
    mix: Mix,
    plans: Sequence[Plan],
    opened: Callable[[Policy, Sequence[Observer]], Session],
    length: Length,
    inputs: Sequence[Arrays | None],
    *,
    warm_up_ns: int,
    by_step: bool,
) -> tuple[Candidate, ...]:
    """What each of ``plans`` shows; slow-downs are over the first one.

    ``opened``: a session of the tasks of ``mix``. ``inputs``: of each task. ``warm_up_ns``: for how
    long at most what happens does not count yet. ``by_step``: normal work counts as soon as a step
    has ended, not a request; for devices where an observer takes no time. A plan that there is no
    other one to choose than is not tried. The slow-down is infinite where no request of a critical
    task ended in time.
    """
    if len(plans) == 1:
        return (Candidate(plans[0], 1.0, 0.0),)
    seen = []
    for plan in plans:
        work = _Work(mix) if by_step else None
        with closing(opened(Given(plan), (work,) if work else ())) as session:
            trial = _Trial(session, mix, length, inputs, work)
            requests = warm_up_requests(mix, plan)
            begin = replace(length, requests=requests, shortest_ns=0, longest_ns=warm_up_ns)
            trial.begin(begin)
            seen.append((*trial.run(), trial.idle()))
    first, _, _ = seen[0]
    return tuple(
        Candidate(plan, max(map(_over, services_ns, first)), gain, idle_gain)
        for plan, (services_ns, gain, idle_gain) in zip(plans, seen, strict=True)
    )


def _over(service_ns: float, first_ns: float) -> float:
    """Nothing is known of how slow it is where nothing has ended, under neither plan."""
    return service_ns / first_ns if service_ns < inf else inf


@dataclass(frozen=True, slots=True)
class _Trial:
    """A session in which a plan is tried."""

    session: Session
    mix: Mix
    length: Length
    inputs: Sequence[Arrays | None]
    work: _Work | None

    def begin(self, length: Length) -> None:
        """All requests that may be in flight, again and again, for ``length``."""
        for number, task in enumerate(self.mix.tasks):
            for _ in range(task.in_flight):
                self._submit(number)
        self._loop(length, range(len(self.mix.tasks)))

    def run(self) -> tuple[list[float], float]:
        """The percentile of each critical task's service, ns, and the normal work done per ns.

        Of a task of which no request ended the service is infinite.
        """
        done, gain = self._gain(self.length, range(len(self.mix.tasks)))
        services = [[d.finish_ns - d.start_ns for d in done[c]] for c in self.mix.critical]
        percentile = self.length.percentile
        return [float(np.percentile(s, percentile)) if s else inf for s in services], gain

    def idle(self) -> float:
        """The normal work done per ns once no critical request runs any more."""
        session, normal = self.session, self.mix.normal
        left = sum(self.mix.tasks[c].in_flight for c in self.mix.critical)
        until_ns = session.now_ns + self.length.longest_ns
        while left and session.now_ns < until_ns:
            for completion in session.advance(until_ns):
                if completion.task in normal:
                    self._submit(completion.task)
                else:
                    left -= 1
        return self._gain(replace(self.length, requests=0), normal)[1]

    def _gain(self, length: Length, tasks: Collection[int]) -> tuple[list[list[Completion]], float]:
        """What ended, by task, and the normal work done per ns."""
        session, work = self.session, self.work
        began_ns, before_ns = session.now_ns, work.done_ns if work else 0
        done = self._loop(length, tasks)
        requests_ns = sum(len(done[n]) * sum(self.mix.step_ns[n]) for n in self.mix.normal)
        work_ns = work.done_ns - before_ns if work else requests_ns
        return done, work_ns / max(1, session.now_ns - began_ns)

    def _loop(self, length: Length, tasks: Collection[int]) -> list[list[Completion]]:
        """Hand in each request of ``tasks`` anew when it has ended; what ended, by task."""
        session, began_ns = self.session, self.session.now_ns
        done: list[list[Completion]] = [[] for _ in self.mix.tasks]
        while length.goes_on(session.now_ns - began_ns, [len(done[c]) for c in self.mix.critical]):
            for completion in session.advance(began_ns + length.longest_ns):
                done[completion.task].append(completion)
                if completion.task in tasks:
                    self._submit(completion.task)
        return done

    def _submit(self, task: int) -> None:
        self.session.submit(task, self.session.now_ns, self.inputs[task])
