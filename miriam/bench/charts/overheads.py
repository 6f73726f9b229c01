"""Overheads: decisions, launch delays, and what coordination adds to a request alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from miriam.bench.charts.style import Chart, colour, new_figure, png
from miriam.bench.overheads import PROMPT_NS, Overhead, OverheadsReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GROUP = 0.84
_PAPER_MS = 0.35
_PAPER_PROMPT = 80


def charts(report: OverheadsReport) -> list[Chart]:
    """One chart: decisions, launch delays, and what is added to a request alone."""
    figure = new_figure(report, width=15, height=4.8)
    plan, delay, normal = figure.subplots(1, 3)
    _bars(plan, report, lambda row: row.plan_ms, "{:.2f}")
    plan.set_yscale("log")
    plan.axhline(_PAPER_MS, color="black", linewidth=0.8, linestyle="--")
    plan.set_title(
        f"A plan for all pairs of steps, ms, measured on the host\n"
        f"once for each set of tasks; dashed: the paper's selection, {_PAPER_MS} ms a network",
        fontsize=9,
    )
    _bars(delay, report, lambda row: 100 * row.prompt, "{:.0f}")
    delay.set_ylim(0, 110)
    delay.axhline(_PAPER_PROMPT, color="black", linewidth=0.8, linestyle="--")
    delay.set_title(
        f"Critical kernels that start within {PROMPT_NS / 1e3:g} us of their launch, %\n"
        f"beside the normal network; dashed: the paper's, over {_PAPER_PROMPT} %",
        fontsize=9,
    )
    _bars(normal, report, _added, "{:+.1f}")
    normal.set_title(
        "Normal request alone: gates, elastic forms\n% longer than as plain kernels", fontsize=9
    )
    handles, labels = plan.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return [Chart("Overheads of decisions and launches", png(figure))]


def _added(row: Overhead) -> float:
    return 100 * (row.normal_us / row.normal_plain_us - 1)


def _bars(
    axes: Axes, report: OverheadsReport, figure: Callable[[Overhead], float], form: str
) -> None:
    pairs = list(dict.fromkeys((row.critical, row.normal) for row in report.rows))
    names = report.options.policies
    width = _GROUP / len(names)
    for place, policy in enumerate(names):
        rows = [row for row in report.rows if row.policy == policy]
        offset = (place - (len(names) - 1) / 2) * width
        where = [pairs.index((row.critical, row.normal)) + offset for row in rows]
        heights = [figure(row) for row in rows]
        axes.bar(where, heights, width * 0.92, color=colour(policy), label=policy)
        for x, height in zip(where, heights, strict=True):
            text, above = form.format(height), (0, 2)
            axes.annotate(
                text, (x, height), above, textcoords="offset points", ha="center", fontsize=6.5
            )
    axes.set_xticks(range(len(pairs)), [f"{c}\n+ {n}" for c, n in pairs], fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.15)
