"""The headline chart: critical overhead against H, every policy a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from benchmarks.pairs_rows import CLOSED_LOOP_US, Cell, Row, floor, frontier, gap_text
from miriam.bench.charts.style import colour, png, require_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPARSE_US = 4_000.0
GAPS_US = (CLOSED_LOOP_US, SPARSE_US)
_MARKS = "osD^vP*X<>hp"
_FLOOR = "#777777"
_LOG_ABOVE = 2.5


def overhead_against_rate(cells: dict[Cell, list[Row]], source: str, *, tail: bool) -> bytes:
    """A panel per gap and world as a PNG; a line joins the frontier of each pair.

    ``tail``: the overhead of the p99, not of the p50.
    MissingCapabilityError if matplotlib is not installed.
    """
    require_plot()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    gaps = [gap for gap in GAPS_US if any(cell.gap_us == gap for cell in cells)]
    large_first = sorted(cells, key=lambda cell: -(cell.sms or 1_000_000))
    worlds = list(dict.fromkeys(cell.world for cell in large_first if cell.gap_us in gaps))
    size = (max(7.0, 4.2 * len(worlds)), 1.6 + 3.4 * len(gaps))
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"Critical overhead against the normal network's rate\n{source}", fontsize=11)
    panels = figure.subplots(len(gaps), len(worlds), squeeze=False, sharey=True)
    pairs = list(dict.fromkeys(cell.pair for cell in cells))
    for across, gap_us in zip(panels, gaps, strict=True):
        for axes, world in zip(across, worlds, strict=True):
            shown = {c: r for c, r in cells.items() if (c.gap_us, c.world) == (gap_us, world)}
            _panel(axes, shown, pairs, tail)
            axes.set_title(f"{world}, {gap_text(gap_us)}", fontsize=10)
        across[0].set_ylabel("H: normal rate / alone", fontsize=9)
    top = max(row.H for rows in cells.values() for row in rows if row.placed)
    panels[0][0].set_ylim(0, 1.06 * top)
    for axes in panels[-1]:
        axes.set_xlabel(f"critical service, {'p99' if tail else 'p50'} / alone", fontsize=9)
    policies = dict.fromkeys(row.base for rows in cells.values() for row in rows if row.placed)
    figure.legend(
        handles=_legend(list(policies), pairs),
        loc="outside lower center",
        ncols=max(3, len(worlds) * 2),
        frameon=False,
        fontsize=8,
    )
    return png(figure)


def _panel(axes: Axes, cells: dict[Cell, list[Row]], pairs: Sequence[str], tail: bool) -> None:
    overheads: list[float] = []
    for cell, rows in cells.items():
        best = frontier(rows, tail=tail)
        line = [row.service(tail=tail) for row in best], [row.H for row in best]
        axes.plot(*line, color="#BBBBBB", linewidth=0.8, zorder=1)
        mark, fill = _mark(pairs.index(cell.pair))
        lowest = floor(rows)
        if lowest is not None:
            at = lowest.service(tail=tail)
            axes.plot(at, 0, mark, fillstyle="none", color=_FLOOR, markersize=6, clip_on=False)
        points: dict[str, list[tuple[float, float]]] = {}
        for row in (row for row in rows if row.placed):
            points.setdefault(row.base, []).append((row.service(tail=tail), row.H))
        for base, places in points.items():
            across, up = zip(*sorted(places), strict=True)
            axes.plot(
                across,
                up,
                marker=mark,
                markersize=6,
                fillstyle=fill,
                color=colour(base),
                linewidth=0.8,
                zorder=2,
            )
            overheads += across
    if max(overheads, default=1.0) > _LOG_ABOVE:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}")
    axes.axvline(1, color="black", linewidth=0.7)
    axes.tick_params(labelsize=7, which="both")
    axes.spines[["top", "right"]].set_visible(False)


def _mark(pair: int) -> tuple[str, Literal["full", "none"]]:
    """The mark of the pair of this number; when all are used they come hollow."""
    turn, place = divmod(pair, len(_MARKS))
    return _MARKS[place], "none" if turn else "full"


def _legend(policies: Sequence[str], pairs: Sequence[str]) -> list[object]:
    from matplotlib.lines import Line2D

    def entry(text: str, mark: str, tint: str, fill: Literal["full", "none"]) -> object:
        return Line2D([], [], marker=mark, linestyle="", color=tint, fillstyle=fill, label=text)

    found = [entry(name, "s", colour(name), "full") for name in policies]
    found.append(entry("floor", "s", _FLOOR, "none"))
    for index, pair in enumerate(pairs):
        mark, fill = _mark(index)
        found.append(entry(pair, mark, "#444444", fill))
    return found
