"""Design-space shrinking: what each rule removes, and what the best kept schedule brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from miriam.bench.charts.style import Chart, new_figure, png
from miriam.bench.pruning import ShrinkReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RULES = {
    "blocks": ("Eq. 2, blocks", "#0072B2"),
    "threads": ("Eq. 2, threads", "#56B4E9"),
    "overhead": ("Eq. 4, overhead", "#E69F00"),
}
_JOINT = "#444444"
_POINTS = (("best_kept", "best that the rules keep", "#E69F00", "o"),
           ("granted", "what the policy miriam grants", "#009E73", "^"))  # fmt: skip


def charts(report: ShrinkReport) -> list[Chart]:
    """One chart: shares removed, and blocks run beside each critical kernel."""
    figure = new_figure(report, width=15, height=5.2)
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    _removed(left, report)
    _tried(right, report)
    return [Chart("Pruning per rule and per network (Fig. 10 of the paper)", png(figure))]


def _removed(axes: Axes, report: ShrinkReport) -> None:
    width = 0.2
    for index, (rule, (name, line)) in enumerate(_RULES.items()):
        heights = [100 * pair.removed[rule] for pair in report.pairs]
        _bars(axes, index, heights, width, line, name)
    _bars(axes, 3, [100 * p.removed_jointly for p in report.pairs], width, _JOINT, "all together")
    names = [f"{pair.normal}\nbeside {pair.critical}" for pair in report.pairs]
    axes.set_xticks([at + 1.5 * width for at in range(len(names))], names, fontsize=8)
    axes.set_title("Candidates of the slicing plan removed, %", fontsize=10)
    axes.set_ylim(0, 100)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper left", bbox_to_anchor=(0, -0.12))
    axes.spines[["top", "right"]].set_visible(False)


def _bars(axes: Axes, index: int, heights: list[float], width: float, line: str, name: str) -> None:
    places = [at + index * width for at in range(len(heights))]
    axes.bar(places, heights, width * 0.92, color=line, label=name)
    for place, height in zip(places, heights, strict=True):
        axes.annotate(
            f"{height:.0f}", (place, height), (0, 2), textcoords="offset points",
            ha="center", fontsize=7,
        )  # fmt: skip


def _tried(axes: Axes, report: ShrinkReport) -> None:
    rows = [(pair, tried) for pair in report.pairs for tried in pair.tried if tried.best]
    for field, name, line, marker in _POINTS:
        heights = []
        for _, tried in rows:
            choice = getattr(tried, field)
            best = tried.best.blocks_per_us if tried.best else 0.0
            harmless = choice is not None and choice.stretch <= report.allowed
            heights.append(100 * choice.blocks_per_us / best if harmless and best else 0.0)
        axes.plot(
            range(len(rows)), heights, marker, color=line, label=name, markersize=6, alpha=0.8
        )
    axes.axhline(100, color="black", linewidth=0.8)
    axes.set_ylim(-5, 115)
    names = [f"{tried.normal} | {tried.critical}" for _, tried in rows]
    axes.set_xticks(range(len(rows)), names, rotation=90, fontsize=6)
    title = "Blocks run beside the critical kernel, % of the best schedule that trying all finds"
    harmless = f"harmless: critical time up to {report.allowed:g} x alone; 0: none"
    axes.set_title(f"{title}\n({harmless})", fontsize=10, pad=22)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
