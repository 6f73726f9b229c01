"""Runs jobs on a real device in rounds: all of them for a while, again and again.

So a machine that warms up, or that others use too, is the same for all that is compared; and what
a task does alone is measured before, between and after what it does in company.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from miriam.bench.execute import Observer
from miriam.bench.jobs import Job, JobRecord, TaskRecord, Workshop
from miriam.bench.metrics import Sample

ROUNDS = 4

TIMED_NS = 150_000_000
"""How long a job runs once more where its yields were not timed."""


class InRounds:
    """One job after the other in this process, each in ``ROUNDS`` parts of its window."""

    def __init__(self, workshop: Workshop, observer: Observer) -> None:
        self._workshop, self._observer = workshop, observer

    def run(self, jobs: Sequence[Job]) -> list[JobRecord]:
        """What each of ``jobs`` found, in their order; solo jobs run once more in the end."""
        self._observer.started(jobs)
        # Alone first: what it is compared with has then run before and after it.
        order = sorted(range(len(jobs)), key=lambda i: not jobs[i].solo)
        parts: list[list[JobRecord]] = [[] for _ in jobs]
        shares = [0.0] * len(jobs)
        for turn in range(ROUNDS + 1):
            for index in order:
                if turn < ROUNDS or jobs[index].solo:
                    parts[index].append(self._part(jobs[index]))
                    shares[index] = min(1.0, (turn + 1) / ROUNDS)
                    self._observer.passed(shares)
        records = [
            self._with_yields(job, merged(found)) for job, found in zip(jobs, parts, strict=True)
        ]
        for job, record in zip(jobs, records, strict=True):
            self._observer.finished(job, record)
        return records

    def _part(self, job: Job) -> JobRecord:
        enough = job.enough and -(-job.enough // ROUNDS)
        part = replace(job, window_ns=max(1, job.window_ns // ROUNDS), enough=enough)
        return self._workshop.run(part)

    def _with_yields(self, job: Job, record: JobRecord) -> JobRecord:
        """``record`` with the yields of a timed run, whose latencies do not count."""
        if not record.untimed:
            return record
        window_ns = min(job.window_ns, TIMED_NS)
        timed = self._workshop.run(replace(job, window_ns=window_ns, timed=True))
        return replace(
            record,
            yields=timed.yields,
            untimed=timed.untimed,
            verified=record.verified and timed.verified,
            faults=(*record.faults, *timed.faults),
        )


def merged(parts: Sequence[JobRecord]) -> JobRecord:
    """One record of equally long parts; its ``drift`` says how far they lie apart."""
    verdicts = [part.verified for part in parts if part.verified is not None]
    columns = zip(*(part.tasks for part in parts), strict=True)
    medians = [m for part in parts if (m := part.tasks[0].latency.percentile(50))]
    return replace(
        parts[0],
        tasks=tuple(_merged(column) for column in columns),
        untimed=any(part.untimed for part in parts),
        achieved_occupancy=sum(part.achieved_occupancy for part in parts) / len(parts),
        yields=Sample.of(value for part in parts for value in part.yields.values),
        verified=all(verdicts) if verdicts else None,
        faults=tuple(fault for part in parts for fault in part.faults),
        drift=max(medians) / min(medians) - 1 if medians else None,
    )


def _merged(parts: Sequence[TaskRecord]) -> TaskRecord:
    known = [part.beside_hz for part in parts if part.beside_hz is not None]
    return TaskRecord(
        latency=Sample.of(value for part in parts for value in part.latency.values),
        service=Sample.of(value for part in parts for value in part.service.values),
        rate_hz=sum(part.rate_hz for part in parts) / len(parts),
        beside_hz=sum(known) / len(known) if known else None,
    )
