"""The table of a benchmark for people."""

from __future__ import annotations

from itertools import chain, groupby, repeat

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from miriam.bench.metrics import BenchResult, RowFigures, Sample

NOTES = (
    "Critical latency: arrival to completion; p50 ± its 95 % interval, p99 (of n < 1,000).",
    "vs alone: p50 / p50 alone on the same device.",
    "service vs seq: p50 from the first kernel on / sequential's, as the paper has it.",
    "H: normal rate / its rate alone. STP: sum of rates / rates alone.",
)
_ENOUGH_FOR_P99 = 1_000
ON_HOST = (
    "host: requests run one after the other in a policy's order, and nothing is held: policies of "
    "the same order differ by chance."
)
_NOTHING = "-"
_WIDE = 110
_HEADINGS = (
    "critical\np50 ms",
    "\np99 ms",
    "p50 vs\nalone",
    "service\nvs seq",
    "normal\nH",
    "\nreq/s",
    "req/s\nvs seq",
    "\nSTP",
    "occu-\npancy",
)


def show(result: BenchResult, console: Console) -> None:
    """Print the table and what its columns mean."""
    if not console.is_terminal:
        console.width = _WIDE
    console.print(table(result))
    workloads = {row.workload: _mix(row) for row in result.rows}
    notes = (*NOTES, ON_HOST) if result.device == "host" else NOTES
    for note in (*workloads.values(), *notes):
        console.print(note, style="dim", markup=False, highlight=False)


def table(result: BenchResult) -> Table:
    """One row per workload and policy; the title says which device, and whether simulated."""
    kind = "simulated" if result.simulated else "measured"
    worlds = {row.point.world or result.device for row in result.rows}
    # Several worlds stand in the names of the rows.
    device = worlds.pop() if len(worlds) == 1 else result.device
    view = Table(
        title=f"{result.title} on {device} ({kind}), seed {result.seed}",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    view.add_column("")
    view.add_column("policy")
    for heading in (*_HEADINGS, "\nverified") if _computed(result) else _HEADINGS:
        view.add_column(heading, justify="right")
    for workload, rows in groupby(result.rows, key=lambda row: row.workload):
        view.add_section()
        for name, row in zip(chain([workload], repeat("")), rows, strict=False):
            view.add_row(name, row.policy, *_cells(result, row))
    return view


def _cells(result: BenchResult, row: RowFigures) -> tuple[str, ...]:
    critical = row.critical[0]
    cells = (
        _median(critical.latency),
        _p99(critical.latency),
        _times(critical.overhead(50)),
        _times(result.latency_vs_sequential(row)),
        " ".join(_number(task.relative_rate) for task in row.normal) or _NOTHING,
        f"{row.throughput_rps:.0f}",
        _times(result.throughput_vs_sequential(row)),
        _number(row.stp),
        f"{row.achieved_occupancy:.0%}",
    )
    return (*cells, _verdict(row.verified)) if _computed(result) else cells


def _mix(row: RowFigures) -> str:
    critical, normal = (
        ", ".join(task.task for task in part) for part in (row.critical, row.normal)
    )
    return f"{row.workload}: critical {critical}, normal {normal} with {row.in_flight} in flight."


def _computed(result: BenchResult) -> bool:
    return any(row.verified is not None for row in result.rows)


def _median(sample: Sample) -> str:
    median, interval = sample.percentile(50), sample.median_interval()
    if median is None:
        return _NOTHING
    if interval is None:
        return _ms(median)
    half = max(median - interval[0], interval[1] - median) / median
    return f"{_ms(median)} ±{half:.0%}"


def _p99(sample: Sample) -> str:
    value = sample.percentile(99)
    if value is None:
        return _NOTHING
    few = f" ({sample.count})" if sample.count < _ENOUGH_FOR_P99 else ""
    return f"{_ms(value)}{few}"


def _ms(time_ns: int) -> str:
    value = time_ns / 1e6
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _number(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.2f}"


def _times(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.2f}x"


def _verdict(verified: bool | None) -> str:
    return {True: "yes", False: "NO", None: _NOTHING}[verified]
