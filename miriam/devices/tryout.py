"""Tries plans with all tasks of a mix, for a policy that chooses by what it sees.

Every task runs in a closed loop, each time on the same inputs; then the critical ones pause between
their requests. How often those come nobody knows: beside a closed loop hardly anything normal runs
when a critical request begins, after a pause everything does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

PAUSE = 3.0
"""On average, over the critical request's time alone."""

_GOLDEN = 0.618
"""The fractions of its multiples spread evenly."""


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
            busy, gain = trial.run(pause=0)
            paused, paused_gain = trial.run(pause=PAUSE)
            seen.append(([*busy, *paused], gain, paused_gain))
    first, _, _ = seen[0]
    return tuple(
        Candidate(plan, max(map(_over, services_ns, first)), gain, paused_gain)
        for plan, (services_ns, gain, paused_gain) in zip(plans, seen, strict=True)
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
        self._loop(length, 0)

    def run(self, pause: float) -> tuple[list[float], float]:
        """The percentile of each critical task's service, ns, and the normal work done per ns.

        ``pause``: between requests of a critical task, over its time alone. Of a task of which no
        request ended the service is infinite.
        """
        session, work = self.session, self.work
        began_ns, before_ns = session.now_ns, work.done_ns if work else 0
        done = self._loop(self.length, pause)
        requests_ns = sum(len(done[n]) * sum(self.mix.step_ns[n]) for n in self.mix.normal)
        work_ns = work.done_ns - before_ns if work else requests_ns
        services = [[d.finish_ns - d.start_ns for d in done[c]] for c in self.mix.critical]
        percentile = self.length.percentile
        found = [float(np.percentile(s, percentile)) if s else inf for s in services]
        return found, work_ns / max(1, session.now_ns - began_ns)

    def _loop(self, length: Length, pause: float) -> list[list[Completion]]:
        """Hand in each request anew when it has ended, or a pause later; what ended, by task."""
        session, began_ns = self.session, self.session.now_ns
        done: list[list[Completion]] = [[] for _ in self.mix.tasks]
        while length.goes_on(session.now_ns - began_ns, [len(done[c]) for c in self.mix.critical]):
            for completion in session.advance(began_ns + length.longest_ns):
                task = completion.task
                done[task].append(completion)
                paused = pause if self.mix.tasks[task].critical else 0
                # From two thirds to four thirds of it, so that it is not in step with anything.
                share = 2 / 3 * (1 + len(done[task]) * _GOLDEN % 1)
                self._submit(task, round(paused * share * sum(self.mix.step_ns[task])))
        return done

    def _submit(self, task: int, after_ns: int = 0) -> None:
        self.session.submit(task, self.session.now_ns + after_ns, self.inputs[task])
