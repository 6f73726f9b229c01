"""The verdict of a simulated mix: what each task gets, and the first thing that breaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from miriam.bench.delay import Delay
from miriam.bench.metrics import Sample, rate_hz
from miriam.runtime import Fate, MixFile, Record, Request, Served, TaskEntry


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """What one task gets, here and alone (plain kernels, same arrivals, same in flight).

    ``due``: requests whose fate against the deadline is known in the window; ``missed``: those
    of them that were late, dropped or refused. Both 0 without a deadline. ``beside_hz``: its
    progress while a critical request was running, None where none was, and for arrivals that do
    not follow completions: there it would say when requests come.
    """

    entry: TaskEntry
    arrived: int
    latency: Sample
    solo_latency: Sample
    rate_hz: float
    solo_rate_hz: float
    beside_hz: float | None
    due: int
    missed: int
    dropped: int
    refused: int

    @property
    def held(self) -> bool | None:
        """Whether every deadline was held, None where the task has none."""
        return None if self.entry.deadline_ms is None else not self.missed

    @property
    def H(self) -> float | None:
        """Rate / rate alone."""
        return self.rate_hz / self.solo_rate_hz if self.solo_rate_hz else None

    @property
    def h(self) -> float | None:
        """Rate while a critical request was running / rate alone."""
        if self.beside_hz is None or not self.solo_rate_hz:
            return None
        return self.beside_hz / self.solo_rate_hz

    def overhead(self, percent: float) -> float | None:
        """A percentile of the latency / the same percentile alone."""
        here, alone = self.latency.percentile(percent), self.solo_latency.percentile(percent)
        return here / alone if here is not None and alone else None


@dataclass(frozen=True, slots=True)
class Break:
    """Something that should not happen: ``late``, ``dropped`` (late as well) or ``refused``.

    ``at_ns``: when the deadline passed, or the full queue refused. ``late_ns``: completion
    after the deadline, None if it did not complete. ``delays``: who delayed the request by how
    much, where it is critical and completed.
    """

    task: str
    request: int
    at_ns: int
    what: Literal["late", "dropped", "refused"]
    late_ns: int | None = None
    delays: tuple[Delay, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The whole verdict: the tasks in the file's order."""

    device: str
    policy: str
    seed: int
    window_ns: int
    mix: MixFile
    tasks: tuple[TaskVerdict, ...]
    first_break: Break | None

    @property
    def late_tasks(self) -> tuple[TaskVerdict, ...]:
        """The tasks that missed a deadline."""
        return tuple(task for task in self.tasks if task.held is False)


def judge(
    entry: TaskEntry, record: Record, task: int, alone: Record, beside_hz: float | None
) -> TaskVerdict:
    """What ``task`` got in ``record``; ``alone`` is its run alone, ``beside_hz`` as there."""
    requests, done, solo = record.requests[task], record.served[task], alone.served[0]
    breaks = [b for r in requests if (b := broken(entry, r, record.window_ns))]
    held = sum(r.fate is Fate.DONE and not broken(entry, r, record.window_ns) for r in requests)
    late = sum(b.what != "refused" for b in breaks)
    refused = sum(r.fate is Fate.REFUSED for r in requests)
    deadline = entry.deadline_ns is not None
    missed = late + refused if deadline else 0
    return TaskVerdict(
        entry=entry,
        arrived=len(requests),
        latency=Sample.of(r.latency_ns for r in done),
        solo_latency=Sample.of(r.latency_ns for r in solo),
        rate_hz=rate_hz(len(done), record.window_ns),
        solo_rate_hz=_solo_rate(entry, solo, alone.window_ns),
        beside_hz=beside_hz if entry.arrivals.kind == "closed" else None,
        due=missed + held if deadline else 0,
        missed=missed,
        dropped=sum(r.fate is Fate.DROPPED for r in requests),
        refused=refused,
    )


def broken(entry: TaskEntry, request: Request, window_ns: int) -> Break | None:
    """What is wrong with ``request``, None if nothing is, or not yet."""
    deadline_ns = entry.deadline_ns
    if request.fate is Fate.REFUSED:
        return Break(entry.title, request.ordinal, request.arrival_ns, "refused")
    if deadline_ns is None:
        return None
    due_ns = request.arrival_ns + deadline_ns
    if request.fate is Fate.DROPPED:
        return Break(entry.title, request.ordinal, due_ns, "dropped")
    if due_ns >= (window_ns if request.end_ns is None else request.end_ns):
        return None
    late_ns = None if request.end_ns is None else request.end_ns - due_ns
    return Break(entry.title, request.ordinal, due_ns, "late", late_ns)


def _solo_rate(entry: TaskEntry, done: Sequence[Served], window_ns: int) -> float:
    """Requests per second; a closed loop's run may be short, so from completion to completion."""
    ends = sorted(r.end_ns for r in done)
    if entry.arrivals.kind == "closed" and len(ends) > entry.in_flight:
        first = entry.in_flight - 1
        return rate_hz(len(ends) - 1 - first, ends[-1] - ends[first])
    return rate_hz(len(ends), window_ns)
