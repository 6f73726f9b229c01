"""Two networks in depth: what ran on which SM, and occupancy layer by layer (Fig. 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from miriam.bench.charts.style import Chart, colour, new_figure, png
from miriam.bench.deep import Deep, Piece
from miriam.bench.metrics import BenchResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CRITICAL, _NORMAL, _SHARD = "#1F77B4", "#2CA02C", "#E377C2"
_KINDS = {"critical": _CRITICAL, "normal, original kernel": _NORMAL, "normal, shard": _SHARD}


def charts(result: BenchResult) -> list[Chart]:
    """A timeline of one critical request per policy, and the layers of all."""
    return [_timelines(result), _layers(result)]


def _timelines(result: BenchResult) -> Chart:
    from matplotlib.patches import Patch

    rows = [(row.policy, row.deep) for row in result.rows if row.deep]
    figure = new_figure(result, width=14, height=1 + 2.4 * len(rows))
    panels = figure.subplots(len(rows), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (policy, deep) in zip(panels, rows, strict=True):
        _timeline(axes, deep)
        axes.set_title(f"{policy}: one critical request", fontsize=10, loc="left")
    panels[-1].set_xlabel("us since its first kernel began")
    patches = [Patch(color=line, label=name) for name, line in _KINDS.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches), frameon=False)
    return Chart(
        "What ran on which SM during one critical request (Fig. 9 of the paper)", png(figure)
    )


def _timeline(axes: Axes, deep: Deep) -> None:
    """A lane per SM: the critical network in its upper half, the normal one in the lower."""
    from matplotlib.collections import PolyCollection

    for task, line in ((True, _CRITICAL), (False, None)):
        for elastic in (False, True):
            pieces = [p for p in deep.timeline if (p.task == 0) == task and p.elastic == elastic]
            shapes = [shape for piece in pieces for shape in _lanes(piece, task)]
            face = line or (_SHARD if elastic else _NORMAL)
            axes.add_collection(PolyCollection(shapes, facecolors=face, edgecolors="none"))
    lanes = max((sm for piece in deep.timeline for sm in piece.sms), default=0) + 1
    axes.set_ylim(0, lanes)
    axes.set_xlim(0, max((piece.ended_us for piece in deep.timeline), default=1))
    axes.set_ylabel("SM")
    axes.spines[["top", "right"]].set_visible(False)


def _lanes(piece: Piece, upper: bool) -> list[list[tuple[float, float]]]:
    low, high = (0.5, 0.95) if upper else (0.05, 0.5)
    left, right = piece.began_us, piece.ended_us
    return [
        [(left, sm + low), (right, sm + low), (right, sm + high), (left, sm + high)]
        for sm in piece.sms
    ]


def _layers(result: BenchResult) -> Chart:
    rows = [(row.policy, row.deep) for row in result.rows if row.deep]
    names = [layer.layer for layer in rows[0][1].layers]
    figure = new_figure(result, width=14, height=4.4)
    axes = figure.subplots(1, 1)
    width = 0.86 / len(rows)
    for index, (policy, deep) in enumerate(rows):
        ms = sum(layer.ms for layer in deep.layers)
        mean = sum(layer.ms * layer.achieved_occupancy for layer in deep.layers) / ms
        places = [at + (index - (len(rows) - 1) / 2) * width for at in range(len(names))]
        heights = [100 * layer.achieved_occupancy for layer in deep.layers]
        text = f"{policy} (mean over time {mean:.0%})"
        axes.bar(places, heights, width * 0.92, color=colour(policy), label=text)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    axes.set_ylim(0, 100)
    axes.set_title(
        "Achieved occupancy while each layer of the critical network runs, %", fontsize=10
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=len(rows), frameon=False)
    return Chart("Achieved occupancy by layer of the critical network", png(figure))
