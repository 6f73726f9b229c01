"""The report of a benchmark as JSON, schema ``miriam.bench/1``.

Times are in us, rates in requests per second, all rounded to three decimals. A figure that the
run can not give (nothing completed, ``sequential`` not run, nothing computed) is null. No dates,
no host names: in the simulator the same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from miriam.bench.deep import Deep
from miriam.bench.metrics import BenchResult, RowFigures, Sample, TaskFigures
from miriam.bench.options import Options

_T = TypeVar("_T")

CDF_PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100)
"""Where the distribution of a critical task's latency is read, for ``cdf_us``."""


@dataclass(frozen=True, slots=True)
class CriticalReport:
    """A critical task: latency percentiles, here and alone; service is from its first kernel.

    ``cdf_us``: latency at CDF_PERCENTS, in a grid of pairs.
    """

    task: str
    requests: int
    p50_us: float | None
    p90_us: float | None
    p95_us: float | None
    p99_us: float | None
    max_us: float | None
    service_p50_us: float | None
    service_p99_us: float | None
    solo_p50_us: float | None
    solo_p99_us: float | None
    solo_service_p50_us: float | None
    solo_service_p99_us: float | None
    latency_vs_sequential: float | None
    cdf_us: tuple[float, ...] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class NormalReport:
    """A normal task: its rate, here and alone; ``H`` is their ratio.

    ``h``: its rate while a critical request is running / alone, null where that is not known.
    """

    task: str
    requests: int
    rate_hz: float
    solo_rate_hz: float
    H: float | None
    h: float | None


@dataclass(frozen=True, slots=True)
class RowReport:
    """One workload under one policy; ``criticals`` only where there are several.

    ``gap_us``, ``world``, ``scale``, ``rates_hz``, ``normals`` as in `Point`, where the benchmark
    has them; ``n`` with a world: critical requests measured. ``deep``: the closer look, if any.
    ``drift``: largest median latency alone / smallest - 1, over the rounds of a run on a real
    device. ``yield_p50_us``, ``yield_p99_us``: from a critical request's announcement until all
    normal work has left; None under a plan that lets some run beside it, absent where simulated.
    """

    workload: str
    policy: str
    in_flight: int
    critical: CriticalReport
    normal: tuple[NormalReport, ...]
    throughput_rps: float
    throughput_vs_sequential: float | None
    stp: float | None
    antt: float | None
    achieved_occupancy: float
    verified: bool | None
    criticals: tuple[CriticalReport, ...] | UnsetType = UNSET
    gap_us: float | UnsetType = UNSET
    world: str | UnsetType = UNSET
    n: int | UnsetType = UNSET
    scale: float | UnsetType = UNSET
    rates_hz: tuple[float, ...] | UnsetType = UNSET
    normals: int | UnsetType = UNSET
    deep: Deep | UnsetType = UNSET
    drift: float | UnsetType = UNSET
    yield_p50_us: float | UnsetType | None = UNSET
    yield_p99_us: float | UnsetType | None = UNSET


@dataclass(frozen=True, slots=True)
class Report:
    """The whole document; ``options`` make it again (``miriam bench replay``).

    ``gpu`` to ``clocks``: the machine of a run that was not simulated.
    """

    schema: Literal["miriam.bench/1"]
    device: str
    simulated: bool
    seed: int
    policies: tuple[str, ...]
    rows: tuple[RowReport, ...]
    seconds: float | UnsetType = UNSET
    options: Options | UnsetType = UNSET
    gpu: str | UnsetType = UNSET
    driver: Mapping[str, str | int] | UnsetType = UNSET
    versions: Mapping[str, str] | UnsetType = UNSET
    date: str | UnsetType = UNSET
    clocks: Mapping[str, str] | UnsetType = UNSET


def report(result: BenchResult) -> Report:
    """The document that says what ``result`` says."""
    return Report(
        schema="miriam.bench/1",
        device=result.device,
        simulated=result.simulated,
        seed=result.seed,
        policies=result.policies,
        rows=tuple(_row(result, row) for row in result.rows),
        seconds=result.options.seconds if result.options else UNSET,
        options=result.options or UNSET,
        **(asdict(result.measured_on) if result.measured_on else {}),
    )


def encode(result: BenchResult) -> bytes:
    """The document as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(report(result)), indent=1) + b"\n"


def _row(result: BenchResult, row: RowFigures) -> RowReport:
    point = row.point
    critical = tuple(
        _critical(task, result.latency_vs_sequential(row, index), point.gap_us is not None)
        for index, task in enumerate(row.critical)
    )
    return RowReport(
        workload=row.workload,
        policy=row.policy,
        in_flight=row.in_flight,
        critical=critical[0],
        normal=tuple(_normal(task) for task in row.normal),
        throughput_rps=round(row.throughput_rps, 3),
        throughput_vs_sequential=_rounded(result.throughput_vs_sequential(row)),
        stp=_rounded(row.stp),
        antt=_rounded(row.antt),
        achieved_occupancy=round(row.achieved_occupancy, 3),
        verified=row.verified,
        criticals=critical if len(critical) > 1 else UNSET,
        gap_us=_known(point.gap_us),
        world=_known(point.world),
        n=UNSET if point.world is None else critical[0].requests,
        scale=_known(point.scale),
        rates_hz=_known(point.rates_hz),
        normals=_known(point.normals),
        deep=_known(row.deep),
        drift=_known(_rounded(row.drift)),
        yield_p50_us=UNSET if result.simulated else _us(row.yields, 50),
        yield_p99_us=UNSET if result.simulated else _us(row.yields, 99),
    )


def _critical(
    task: TaskFigures, latency_vs_sequential: float | None, spread: bool
) -> CriticalReport:
    return CriticalReport(
        task=task.task,
        requests=task.latency.count,
        p50_us=_us(task.latency, 50),
        p90_us=_us(task.latency, 90),
        p95_us=_us(task.latency, 95),
        p99_us=_us(task.latency, 99),
        max_us=_us(task.latency, 100),
        service_p50_us=_us(task.service, 50),
        service_p99_us=_us(task.service, 99),
        solo_p50_us=_us(task.solo_latency, 50),
        solo_p99_us=_us(task.solo_latency, 99),
        solo_service_p50_us=_us(task.solo_service, 50),
        solo_service_p99_us=_us(task.solo_service, 99),
        latency_vs_sequential=_rounded(latency_vs_sequential),
        cdf_us=_spread(task.latency) if spread else UNSET,
    )


def _normal(task: TaskFigures) -> NormalReport:
    return NormalReport(
        task=task.task,
        requests=task.latency.count,
        rate_hz=round(task.rate_hz, 3),
        solo_rate_hz=round(task.solo_rate_hz, 3),
        H=_rounded(task.relative_rate),
        h=_rounded(task.relative_rate_beside),
    )


def _us(sample: Sample, percent: float) -> float | None:
    value = sample.percentile(percent)
    return None if value is None else value / 1_000


def _spread(sample: Sample) -> tuple[float, ...]:
    found = (_us(sample, percent) for percent in CDF_PERCENTS)
    return tuple(value for value in found if value is not None)


def _known(value: _T | None) -> _T | UnsetType:
    return UNSET if value is None else value


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
