"""Pairs: what each gap costs and brings, and how a critical network's latency is distributed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from miriam.bench.charts.style import Chart, colour, new_figure, png
from miriam.bench.metrics import BenchResult, RowFigures, Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Value = Callable[[RowFigures], float | None]
_FIGURES: tuple[tuple[str, _Value], ...] = (
    ("critical p50 / alone", lambda row: row.critical[0].overhead(50)),
    ("H: normal rate / alone", lambda row: row.normal[0].relative_rate),
    ("h: the same while critical runs", lambda row: row.normal[0].relative_rate_beside),
)
_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")


def charts(result: BenchResult) -> list[Chart]:
    """One grid per world (a column per pair, a row per figure), then the distributions."""
    worlds = dict.fromkeys(row.point.world for row in result.rows)
    found = [_grid(result, world) for world in worlds]
    return [*found, *(_distributions(result, world) for world in worlds)]


def _pair(row: RowFigures) -> str:
    return f"{row.critical[0].task} + {row.normal[0].task}"


def _grid(result: BenchResult, world: str | None) -> Chart:
    rows = [row for row in result.rows if row.point.world == world]
    pairs = list(dict.fromkeys(_pair(row) for row in rows))
    figure = new_figure(result, width=max(7, 2.5 * len(pairs)), height=7)
    axes = figure.subplots(len(_FIGURES), len(pairs), squeeze=False, sharey="row", sharex=True)
    for column, pair in enumerate(pairs):
        mine = [row for row in rows if _pair(row) == pair]
        axes[0][column].set_title(pair.replace(" + ", "\n+ "), fontsize=9)
        for line, (name, value) in enumerate(_FIGURES):
            _lines(axes[line][column], result.policies, mine, value)
            if column == 0:
                axes[line][column].set_ylabel(name, fontsize=8)
        axes[-1][column].set_xlabel("gap, ms", fontsize=8)
    axes[0][0].set_yscale("log")
    axes[0][0].yaxis.set_major_formatter("{x:g}")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return Chart(f"Pairs in {world}: critical latency, H and h over the gap", png(figure))


def _lines(axes: Axes, policies: Sequence[str], rows: Sequence[RowFigures], value: _Value) -> None:
    gaps = sorted({row.point.gap_us or 0.0 for row in rows})
    for policy in policies:
        known = [
            (gaps.index(row.point.gap_us or 0.0), found)
            for row in rows
            if row.policy == policy and (found := value(row)) is not None
        ]
        axes.plot(
            [at for at, _ in known],
            [found for _, found in known],
            marker="o",
            markersize=4,
            color=colour(policy),
            label=policy,
        )
    axes.set_xticks(range(len(gaps)), [f"{gap / 1_000:g}" if gap else "closed" for gap in gaps])
    axes.axhline(1, color="black", linewidth=0.7)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def _distributions(result: BenchResult, world: str | None) -> Chart:
    """The paper's Fig. 2: one critical network's latency beside each of several others."""
    rows = [row for row in result.rows if row.point.world == world]
    gap = min(row.point.gap_us or 0.0 for row in rows)
    rows = [row for row in rows if (row.point.gap_us or 0.0) == gap]
    names = [row.critical[0].task for row in rows]
    critical = max(dict.fromkeys(names), key=names.count)
    rows = [row for row in rows if row.critical[0].task == critical]
    figure = new_figure(result, width=max(7, 3.2 * len(result.policies)), height=3.8)
    panels = figure.subplots(1, len(result.policies), squeeze=False, sharey=True, sharex=True)[0]
    for axes, policy in zip(panels, result.policies, strict=True):
        mine = [row for row in rows if row.policy == policy]
        _cdf(axes, mine[0].critical[0].solo_latency, "alone", "black")
        for row, line in zip(mine, _LINES, strict=False):
            _cdf(axes, row.critical[0].latency, f"beside {row.normal[0].task}", line)
        axes.set_title(policy, fontsize=10)
        axes.set_xlabel(f"{critical}: latency, ms", fontsize=9)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}")
        axes.tick_params(labelsize=7, which="both")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of requests", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return Chart(
        f"Latency of {critical} beside others in {world} (Fig. 2 of the paper)", png(figure)
    )


def _cdf(axes: Axes, sample: Sample, name: str, line: str) -> None:
    """An empirical distribution, from 0 to 1."""
    values = [value / 1e6 for value in sample.values]
    if values:
        shares = [(index + 1) / len(values) for index in range(len(values))]
        axes.step([values[0], *values], [0.0, *shares], where="post", color=line, label=name)
