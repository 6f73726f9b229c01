"""Bars per workload and policy: critical latency, throughput and occupancy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from miriam.bench.charts.style import Chart, colour, new_figure, png
from miriam.bench.metrics import BenchResult, RowFigures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Figure = Callable[[RowFigures], float | None]
_GROUP = 0.86
_LOG_ABOVE = 6
# With more bars than these, the panels stand above each other.
_BESIDE = 20
# Where nothing is known there is no bar, and a logarithm still exists.
_UNKNOWN = 1e-9


def charts(result: BenchResult) -> list[Chart]:
    """One chart of three panels, one group per workload, one bar per policy."""
    workloads = len(dict.fromkeys(row.workload for row in result.rows))
    bars = workloads * len(result.policies)
    beside = bars <= _BESIDE
    figure = new_figure(result, width=15, height=4.6 if beside else 11)
    latency, throughput, occupancy = figure.subplots(*((1, 3) if beside else (3, 1)))
    _latency(latency, result)
    _throughput(throughput, result)
    _occupancy(occupancy, result)
    handles, labels = occupancy.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return [Chart("Critical latency, throughput and occupancy", png(figure))]


def _latency(axes: Axes, result: BenchResult) -> None:
    median = _of(result, lambda row: row.critical[0].overhead(50))
    tail = _of(result, lambda row: row.critical[0].overhead(99))
    highest = max((value for value in (*median, *tail) if value), default=1.0)
    if highest > _LOG_ABOVE:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    _bars(axes, result, median, "{:.2f}", tail)
    low, room = (0.7, 2.5) if highest > _LOG_ABOVE else (0, 1.15)
    axes.set_ylim(low, highest * room)
    scale = " (log scale)" if highest > _LOG_ABOVE else ""
    axes.set_title(f"Critical latency / alone{scale}\nbar: median, line: to p99; lower is better")
    axes.axhline(1, color="black", linewidth=0.8)


def _throughput(axes: Axes, result: BenchResult) -> None:
    _bars(axes, result, _of(result, lambda r: r.stp), "{:.2f}")
    axes.set_title("System throughput (STP)\nsum of rate / rate alone; higher is better")
    axes.axhline(1, color="black", linewidth=0.8)


def _occupancy(axes: Axes, result: BenchResult) -> None:
    _bars(axes, result, _of(result, lambda r: 100 * r.achieved_occupancy), "{:.0f}")
    axes.set_title("Achieved occupancy, %\nresident warps of busy SMs / their limit")
    axes.set_ylim(0, 100)


def _of(result: BenchResult, figure: _Figure) -> list[float | None]:
    return [figure(row) for row in result.rows]


def _bars(
    axes: Axes,
    result: BenchResult,
    heights: Sequence[float | None],
    form: str,
    tops: Sequence[float | None] | None = None,
) -> None:
    """Bars with their value above; a line from the bar to ``tops``, where there are any."""
    width = _GROUP / len(result.policies)
    for policy in result.policies:
        chosen = [i for i, row in enumerate(result.rows) if row.policy == policy]
        places = [_place(result, result.rows[i]) for i in chosen]
        known = [heights[i] or _UNKNOWN for i in chosen]
        axes.bar(places, known, width * 0.92, color=colour(policy), label=policy)
        ends = [(tops or heights)[i] or _UNKNOWN for i in chosen]
        axes.vlines(places, known, ends, color="black", linewidth=1)
        for i, place, end in zip(chosen, places, ends, strict=True):
            text, above = _label(heights[i], form), (0, 2)
            axes.annotate(
                text, (place, end), above, textcoords="offset points", ha="center", fontsize=6.5
            )
    workloads = list(dict.fromkeys(row.workload for row in result.rows))
    axes.set_xticks(range(len(workloads)), [_name(result, name) for name in workloads])
    axes.tick_params(axis="x", length=0, labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.12)


def _place(result: BenchResult, row: RowFigures) -> float:
    workloads = list(dict.fromkeys(other.workload for other in result.rows))
    offset = result.policies.index(row.policy) - (len(result.policies) - 1) / 2
    return workloads.index(row.workload) + offset * _GROUP / len(result.policies)


def _name(result: BenchResult, workload: str) -> str:
    row = next(row for row in result.rows if row.workload == workload)
    tasks = [", ".join(task.task for task in part) for part in (row.critical, row.normal)]
    if row.point.normals is not None:
        tasks = [f"{len(row.critical)} critical", f"{len(row.normal)} normal"]
    return f"{workload}\n{tasks[0]}\n+ {tasks[1]}"


def _label(value: float | None, form: str) -> str:
    if value is None:
        return "n/a"
    return form.format(value) if value < 100 else f"{value:.0f}"
