"""The metrics: what the completions of a window say about each task and the GPU.

Latency runs from arrival to completion, service from the start of the first kernel to
completion. STP and ANTT are those of Eyerman and Eeckhout, IEEE Micro 28(3), 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from miriam.bench.deep import Deep
from miriam.bench.options import Options
from miriam.bench.workloads import Point

_SECOND_NS = 1_000_000_000
_Z95 = 1.959964
_FEWEST_FOR_INTERVAL = 6


@dataclass(frozen=True, slots=True)
class Sample:
    """Measured durations in ns, ascending."""

    values: tuple[int, ...]

    @classmethod
    def of(cls, values: Iterable[int]) -> Sample:
        """A sample of ``values`` in any order."""
        return cls(tuple(sorted(values)))

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Arithmetic mean in ns, None of nothing."""
        return sum(self.values) / self.count if self.values else None

    def percentile(self, percent: float) -> int | None:
        """The smallest value that ``percent`` % of all do not exceed (nearest rank), in ns.

        Always a value that occurred; None of nothing.
        """
        if not self.values:
            return None
        # Exact ranks must not be pushed up by rounding: 0.95 * 20 is a little above 19.
        rank = math.ceil(round(percent * self.count / 100, 9))
        return self.values[max(rank, 1) - 1]

    def median_interval(self) -> tuple[int, int] | None:
        """A 95 % confidence interval of the median in ns, None of fewer than six values.

        Between order statistics (normal approximation of the binomial), so no distribution is
        assumed; the whole range of five values covers the median only 94 times of 100.
        """
        if self.count < _FEWEST_FOR_INTERVAL:
            return None
        half = _Z95 * math.sqrt(self.count) / 2
        low = max(math.floor(self.count / 2 - half), 1)
        high = min(math.ceil(self.count / 2 + half) + 1, self.count)
        return self.values[low - 1], self.values[high - 1]


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """One task of a row. Rates count the requests completed in the window, per second.

    ``solo_*``: the same task alone on the same device, with plain kernels, the same arrivals
    and the same number in flight. ``beside_hz``: its progress while a critical request was
    running, None where that is not known.
    """

    task: str
    latency: Sample
    service: Sample
    solo_latency: Sample
    rate_hz: float
    solo_rate_hz: float
    beside_hz: float | None = None
    solo_service: Sample = field(default_factory=lambda: Sample(()))

    @property
    def relative_rate_beside(self) -> float | None:
        """Rate while a critical request is running / rate alone: h of a normal task."""
        return _ratio(self.beside_hz, self.solo_rate_hz)

    @property
    def relative_rate(self) -> float | None:
        """Rate / rate alone: H of a normal task."""
        return _ratio(self.rate_hz, self.solo_rate_hz)

    @property
    def relative_turnaround(self) -> float | None:
        """Mean latency / mean latency alone."""
        return _ratio(self.latency.mean, self.solo_latency.mean)

    def overhead(self, percent: float) -> float | None:
        """A percentile of the latency / the same percentile alone."""
        return _ratio(self.latency.percentile(percent), self.solo_latency.percentile(percent))


@dataclass(frozen=True, slots=True)
class RowFigures:
    """One workload under one policy; critical and normal tasks most urgent first.

    ``in_flight``: requests in flight of a normal task. ``verified``: whether every output and
    every block count was right, None when nothing was computed; ``faults`` says what was wrong.
    ``point``: where the row stands in its benchmark's grid. ``deep``: a closer look, if asked.
    ``drift``: how far the critical task's medians alone lay apart before, between and after.
    ``yields``: from a critical request's announcement until all normal work has left, in ns.
    """

    workload: str
    policy: str
    in_flight: int
    critical: tuple[TaskFigures, ...]
    normal: tuple[TaskFigures, ...]
    achieved_occupancy: float
    verified: bool | None = None
    faults: tuple[str, ...] = ()
    point: Point = field(default_factory=Point)
    deep: Deep | None = None
    drift: float | None = None
    yields: Sample = field(default_factory=lambda: Sample(()))

    @property
    def tasks(self) -> tuple[TaskFigures, ...]:
        """All tasks, the critical ones first."""
        return self.critical + self.normal

    @property
    def throughput_rps(self) -> float:
        """Requests completed per second, all tasks together."""
        return sum(task.rate_hz for task in self.tasks)

    @property
    def stp(self) -> float | None:
        """System throughput: sum of the tasks' relative rates; None if one never ran alone."""
        return _total(task.relative_rate for task in self.tasks)

    @property
    def antt(self) -> float | None:
        """Average normalised turnaround time; None if a task completed nothing."""
        total = _total(task.relative_turnaround for task in self.tasks)
        return None if total is None else total / len(self.tasks)


@dataclass(frozen=True, slots=True)
class MeasuredOn:
    """The machine of a run: GPU, driver, versions of what took part, date, clocks in MHz."""

    gpu: str
    driver: Mapping[str, str | int]
    versions: Mapping[str, str]
    date: str
    clocks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BenchResult:
    """A whole benchmark: the rows in order of workload and policy.

    ``options``: what was asked for, None for rows that no command made. ``measured_on``: the
    machine, where nothing was simulated.
    """

    device: str
    simulated: bool
    seed: int
    policies: tuple[str, ...]
    rows: tuple[RowFigures, ...]
    title: str = "MDTB"
    options: Options | None = None
    measured_on: MeasuredOn | None = None

    def throughput_vs_sequential(self, row: RowFigures) -> float | None:
        """Throughput / that of ``sequential``; None if that policy was not run."""
        base = self._sequential(row)
        return _ratio(row.throughput_rps, base.throughput_rps) if base else None

    def latency_vs_sequential(self, row: RowFigures, critical: int = 0) -> float | None:
        """Median *service* of a critical task / that under ``sequential``, as the paper does.

        None if that policy was not run.
        """
        base = self._sequential(row)
        if base is None:
            return None
        mine, theirs = row.critical[critical].service, base.critical[critical].service
        return _ratio(mine.percentile(50), theirs.percentile(50))

    def _sequential(self, row: RowFigures) -> RowFigures | None:
        for other in self.rows:
            if other.policy == "sequential" and other.workload == row.workload:
                return other
        return None


def rate_hz(requests: int, window_ns: int) -> float:
    """Requests per second over a window."""
    return requests * _SECOND_NS / window_ns


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    if any(value is None for value in known):
        return None
    return sum(value for value in known if value is not None)
