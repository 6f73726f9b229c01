"""Runs jobs one after the other in this process, or side by side in several."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from miriam.bench.jobs import Job, JobRecord, Workshop
from miriam.bench.zoo import Zoo
from miriam.errors import UsageError

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import SynchronizedArray

_LOOK_S = 0.2


class Observer(Protocol):
    """Sees how far the jobs are."""

    def started(self, jobs: Sequence[Job]) -> None:
        """These jobs begin."""

    def passed(self, shares: Sequence[float]) -> None:
        """Which share of each job's window has passed."""

    def finished(self, job: Job, record: JobRecord) -> None:
        """A job is done; they end in any order."""


class Unobserved:
    """Nobody watches."""

    def started(self, jobs: Sequence[Job]) -> None:
        """Nothing."""

    def passed(self, shares: Sequence[float]) -> None:
        """Nothing."""

    def finished(self, job: Job, record: JobRecord) -> None:
        """Nothing."""


class Executor(Protocol):
    """Runs independent jobs."""

    def run(self, jobs: Sequence[Job]) -> list[JobRecord]:
        """What each of ``jobs`` found, in their order."""


class InProcess:
    """One job after the other."""

    def __init__(self, workshop: Workshop, observer: Observer) -> None:
        self._workshop, self._observer = workshop, observer

    def run(self, jobs: Sequence[Job]) -> list[JobRecord]:
        """What each of ``jobs`` found."""
        self._observer.started(jobs)
        shares = [0.0] * len(jobs)
        records = []
        for index, job in enumerate(jobs):

            def passed(share: float, index: int = index) -> None:
                shares[index] = share
                self._observer.passed(shares)

            records.append(self._workshop.run(job, passed))
            passed(1.0)
            self._observer.finished(job, records[-1])
        return records


class Processes:
    """Up to ``jobs`` at the same time, each in a process of its own with one worker thread.

    The order of the records, and what is in them, is that of ``InProcess``.
    """

    def __init__(self, seed: int, jobs: int, observer: Observer) -> None:
        self._seed, self._jobs, self._observer = seed, jobs, observer

    def run(self, jobs: Sequence[Job]) -> list[JobRecord]:
        """What each of ``jobs`` found."""
        if self._jobs == 1 or len(jobs) == 1:
            return InProcess(workshop(self._seed), self._observer).run(jobs)
        self._observer.started(jobs)
        # A fresh interpreter: this one may have threads, which a fork would not copy.
        context = multiprocessing.get_context("spawn")
        shares = context.Array("d", len(jobs))
        with ProcessPoolExecutor(
            min(self._jobs, len(jobs)), context, _begin, (self._seed, shares)
        ) as pool:
            futures = [pool.submit(_work, index, job) for index, job in enumerate(jobs)]
            try:
                self._watch(jobs, futures, shares)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [future.result() for future in futures]

    def _watch(
        self,
        jobs: Sequence[Job],
        futures: Sequence[Future[JobRecord]],
        shares: SynchronizedArray[float],
    ) -> None:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, _LOOK_S, FIRST_COMPLETED)
            self._observer.passed(shares[:])
            for index, future in enumerate(futures):
                if future in done:
                    self._observer.finished(jobs[index], future.result())


class Traced:
    """Runs jobs with ``executor``, one of them with its timeline: a file can show one run.

    ``trace`` is that timeline, for ui.perfetto.dev. UsageError if there is more than one row,
    before any of them runs.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.trace = b""

    def run(self, jobs: Sequence[Job]) -> list[JobRecord]:
        """What each of ``jobs`` found."""
        rows = [job for job in jobs if not job.solo]
        if len(rows) > 1:
            names = ", ".join(f"{job.workload} {job.policy}" for job in rows)
            raise UsageError(
                "--trace", "one workload under one policy", names, "choose one of each to be traced"
            )
        records = self._executor.run(
            [job if job.solo else replace(job, traced=True) for job in jobs]
        )
        for record in records:
            self.trace = record.trace or self.trace
        return [replace(record, trace=None) for record in records]


def cores() -> int:
    """The CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def workshop(seed: int, workers: int | None = None) -> Workshop:
    """A workshop for the networks of the zoo; ``workers`` threads compute, by default all."""
    return Workshop(
        lambda machine, compute: machine.open(compute=compute, workers=workers),
        lambda arch: Zoo(arch, seed, workers),
        seed,
    )


_here: list[Callable[[int, Job], JobRecord]] = []


def _begin(seed: int, shares: SynchronizedArray[float]) -> None:
    """Prepare a process of the pool."""
    bench = workshop(seed, workers=1)

    def work(index: int, job: Job) -> JobRecord:
        def passed(share: float) -> None:
            shares[index] = share

        record = bench.run(job, passed)
        passed(1.0)
        return record

    _here.append(work)


def _work(index: int, job: Job) -> JobRecord:
    return _here[0](index, job)
