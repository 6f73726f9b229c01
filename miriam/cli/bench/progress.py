"""Progress of a benchmark on standard error."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.status import Status

from miriam.bench import Job, JobRecord


class Progress:
    """Shows how far the runs are: a live line on a terminal, else a line per row if ``plain``.

    A context: the live line is gone, and the cursor back, when it ends.
    """

    def __init__(self, plain: bool) -> None:
        self._console = Console(stderr=True)
        self._plain = plain and not self._console.is_terminal
        self._status: Status | None = None
        self._jobs: Sequence[Job] = ()
        self._rows = self._done = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def started(self, jobs: Sequence[Job]) -> None:
        """Count the rows to come; what tasks do alone goes along with them."""
        self._jobs = jobs
        self._rows, self._done = sum(not job.solo for job in jobs), 0
        if self._console.is_terminal and self._status is None:
            self._status = self._console.status("")
            self._status.start()

    def passed(self, shares: Sequence[float]) -> None:
        """Show which runs are under way, and how far all of them are."""
        if self._status is not None:
            under_way = [
                f"{_name(job)} {share:.0%}"
                for job, share in zip(self._jobs, shares, strict=True)
                if 0 < share < 1
            ]
            self._status.update(f"[{self._done}/{self._rows}] {', '.join(under_way)}")

    def finished(self, job: Job, record: JobRecord) -> None:
        """Say how many requests the row completed and whether they were right."""
        if job.solo:
            return
        self._done += 1
        if self._plain:
            requests = sum(task.latency.count for task in record.tasks)
            verdict = {True: ", verified", False: ", WRONG", None: ""}[record.verified]
            line = f"[{self._done}/{self._rows}] {_name(job)}: {requests} requests{verdict}"
            self._console.print(line, markup=False)


def _name(job: Job) -> str:
    return f"{job.tasks[0].network} alone" if job.solo else f"{job.workload} {job.policy}"
