"""One chart of a benchmark: critical latency, throughput and occupancy."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from miriam.bench.metrics import BenchResult, RowFigures
from miriam.errors import MissingCapabilityError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Figure = Callable[[RowFigures], float | None]
# Okabe and Ito's palette: told apart with any colour vision. Miriam is always the green one.
_COLOURS = {
    "miriam": "#009E73",
    "sequential": "#7F7F7F",
    "multistream": "#D55E00",
    "gate": "#E69F00",
}
_GROUP = 0.86
_LOG_ABOVE = 6
_OTHERS = ("#0072B2", "#CC79A7", "#56B4E9", "#F0E442")


def require_plot() -> None:
    """MissingCapabilityError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingCapabilityError(
            "--plot", "matplotlib is not installed", "pip install 'miriam-gpu[plot]'"
        ) from error


def chart(result: BenchResult) -> bytes:
    """A PNG with three panels of grouped bars, one group per workload, one bar per policy.

    MissingCapabilityError if matplotlib is not installed.
    """
    require_plot()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    latency, throughput, occupancy = figure.subplots(1, 3)
    _latency(latency, result)
    _throughput(throughput, result)
    _occupancy(occupancy, result)
    kind = "simulated" if result.simulated else "measured"
    figure.suptitle(f"MDTB, {kind} ({result.device})", fontweight="bold")
    handles, labels = occupancy.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150)
    return png.getvalue()


def _latency(axes: Axes, result: BenchResult) -> None:
    median, tail = (
        _of(result, lambda r: r.critical[0].overhead(50)),
        _of(result, lambda r: r.critical[0].overhead(99)),
    )
    _bars(axes, result, median, "{:.2f}")
    _marks(axes, result, tail, "p99")
    if max([v for v in (*median, *tail) if v], default=1) > _LOG_ABOVE:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title("Critical latency / alone\n(bar: median; lower is better, 1 = undisturbed)")
    axes.axhline(1, color="black", linewidth=0.8)


def _throughput(axes: Axes, result: BenchResult) -> None:
    _bars(axes, result, _of(result, lambda r: r.stp), "{:.2f}")
    axes.set_title("System throughput STP\n(sum of rate / rate alone; higher is better)")
    axes.axhline(1, color="black", linewidth=0.8)


def _occupancy(axes: Axes, result: BenchResult) -> None:
    _bars(axes, result, _of(result, lambda r: 100 * r.achieved_occupancy), "{:.0f}")
    axes.set_title("Achieved occupancy, %\n(resident warps of busy SMs / limit)")
    axes.set_ylim(0, 100)


def _of(result: BenchResult, figure: _Figure) -> list[float | None]:
    return [figure(row) for row in result.rows]


def _bars(axes: Axes, result: BenchResult, heights: Sequence[float | None], form: str) -> None:
    width = _GROUP / len(result.policies)
    for index, policy in enumerate(result.policies):
        chosen = [i for i, row in enumerate(result.rows) if row.policy == policy]
        bars = axes.bar(
            [_place(result, result.rows[i]) for i in chosen],
            [heights[i] or 0 for i in chosen],
            width * 0.92,
            color=_COLOURS.get(policy, _OTHERS[index % len(_OTHERS)]),
            label=policy,
        )
        texts = [_label(heights[i], form) for i in chosen]
        axes.bar_label(bars, texts, fontsize=7, padding=2, rotation=0)
    workloads = list(dict.fromkeys(row.workload for row in result.rows))
    axes.set_xticks(range(len(workloads)), [_name(result, name) for name in workloads])
    axes.tick_params(axis="x", length=0, labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.title.set_fontsize(10)
    axes.margins(y=0.12)


def _marks(axes: Axes, result: BenchResult, heights: Sequence[float | None], text: str) -> None:
    places = [_place(result, row) for row in result.rows]
    seen = [(x, y) for x, y in zip(places, heights, strict=True) if y is not None]
    axes.plot(*zip(*seen, strict=True), "k_", markersize=7, label=text) if seen else None


def _place(result: BenchResult, row: RowFigures) -> float:
    workloads = list(dict.fromkeys(other.workload for other in result.rows))
    offset = result.policies.index(row.policy) - (len(result.policies) - 1) / 2
    return workloads.index(row.workload) + offset * _GROUP / len(result.policies)


def _name(result: BenchResult, workload: str) -> str:
    row = next(row for row in result.rows if row.workload == workload)
    tasks = [" + ".join(task.task for task in part) for part in (row.critical, row.normal)]
    return f"{workload}\n{tasks[0]}\n+ {tasks[1]}"


def _label(value: float | None, form: str) -> str:
    return "n/a" if value is None else form.format(value)
