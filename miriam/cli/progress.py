"""Progress of a benchmark on standard error."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status

from miriam.bench import RowFigures


class Progress:
    """Shows the row that runs: a live line on a terminal, else a line per row if ``plain``.

    A context: the live line is gone, and the cursor back, when it ends.
    """

    def __init__(self, rows: int, window_ns: int, plain: bool) -> None:
        self._console = Console(stderr=True)
        self._rows, self._window_ns = rows, window_ns
        self._plain = plain and not self._console.is_terminal
        self._status: Status | None = None
        self._row, self._name = 0, ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def row_started(self, workload: str, policy: str) -> None:
        """Name the row that runs now."""
        self._row += 1
        self._name = f"[{self._row}/{self._rows}] {workload} {policy}"
        if self._console.is_terminal:
            self._status = self._console.status(self._name)
            self._status.start()

    def request_done(self, finish_ns: int) -> None:
        """Show which share of the row's window has passed."""
        if self._status is not None:
            self._status.update(f"{self._name} {finish_ns / self._window_ns:.0%}")

    def row_finished(self, row: RowFigures) -> None:
        """Say how many requests the row completed and whether they were right."""
        self._stop()
        if self._plain:
            requests = sum(task.latency.count for task in row.tasks)
            verdict = {True: ", verified", False: ", WRONG", None: ""}[row.verified]
            self._console.print(f"{self._name}: {requests} requests{verdict}", markup=False)

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
