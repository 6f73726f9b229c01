"""The table of a benchmark for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from miriam.bench.metrics import BenchResult, RowFigures, Sample

NOTES = (
    "Critical latency from arrival to completion; [95 % confidence interval of the median].",
    "vs alone: the same percentile alone on the same device. "
    "service vs seq: from the first kernel on, against sequential (the paper's column).",
    "H: normal rate / its rate alone. STP: sum of rates / rates alone.",
)
_ENOUGH_FOR_P99 = 1_000
_NOTHING = "-"
_WIDE = 150


def show(result: BenchResult, console: Console) -> None:
    """Print the table and what its columns mean."""
    if not console.is_terminal:
        console.width = _WIDE
    console.print(table(result))
    for note in NOTES:
        console.print(note, style="dim", markup=False, highlight=False)


def table(result: BenchResult) -> Table:
    """One row per workload and policy; the title says which device, and whether simulated."""
    kind = "simulated" if result.simulated else "measured"
    view = Table(title=f"MDTB on {result.device} ({kind}), seed {result.seed}")
    view.add_column("workload")
    view.add_column("policy")
    for heading in _numbers(result):
        view.add_column(heading, justify="right")
    previous = ""
    for row in result.rows:
        if row.workload != previous:
            view.add_section()
        first = _tasks(row) if row.workload != previous else ""
        view.add_row(first, row.policy, *_cells(result, row))
        previous = row.workload
    return view


def _numbers(result: BenchResult) -> tuple[str, ...]:
    headings = (
        "critical\np50 ms",
        "\np99 ms",
        "p50 vs\nalone",
        "p99 vs\nalone",
        "service\nvs seq",
        "normal\nH",
        "\nreq/s",
        "req/s\nvs seq",
        "\nSTP",
        "occu-\npancy",
    )
    return (*headings, "\nverified") if _computed(result) else headings


def _cells(result: BenchResult, row: RowFigures) -> tuple[str, ...]:
    critical = row.critical[0]
    cells = (
        _median(critical.latency),
        _p99(critical.latency),
        _times(critical.overhead(50)),
        _times(critical.overhead(99)),
        _times(result.latency_vs_sequential(row)),
        " ".join(_number(task.relative_rate) for task in row.normal) or _NOTHING,
        f"{row.throughput_rps:.0f}",
        _times(result.throughput_vs_sequential(row)),
        _number(row.stp),
        f"{row.achieved_occupancy:.0%}",
    )
    return (*cells, _verdict(row.verified)) if _computed(result) else cells


def _computed(result: BenchResult) -> bool:
    return any(row.verified is not None for row in result.rows)


def _tasks(row: RowFigures) -> str:
    critical, normal = ([task.task for task in part] for part in (row.critical, row.normal))
    return f"{row.workload}: {' + '.join(critical)}\n   beside {' + '.join(normal) or 'nothing'}"


def _median(sample: Sample) -> str:
    interval = sample.median_interval()
    if interval is None:
        return _NOTHING
    low, high = (f"{ns / 1e6:.3f}" for ns in interval)
    return f"{(sample.percentile(50) or 0) / 1e6:.3f} [{low}, {high}]"


def _p99(sample: Sample) -> str:
    value = sample.percentile(99)
    if value is None:
        return _NOTHING
    few = f" (of {sample.count})" if sample.count < _ENOUGH_FOR_P99 else ""
    return f"{value / 1e6:.3f}{few}"


def _number(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.2f}"


def _times(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.2f}x"


def _verdict(verified: bool | None) -> str:
    return {True: "yes", False: "NO", None: _NOTHING}[verified]
