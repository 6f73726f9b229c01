"""Charts of a benchmark (needs matplotlib): one file per kind of chart."""

from __future__ import annotations

from miriam.bench.charts import bars, depth, grid
from miriam.bench.charts.style import Chart, label, require_plot
from miriam.bench.metrics import BenchResult

__all__ = ["Chart", "charts", "label", "require_plot"]


def charts(result: BenchResult) -> list[Chart]:
    """What there is to show of ``result``, the main chart first.

    MissingCapabilityError if matplotlib is not installed.
    """
    if any(row.deep for row in result.rows):
        return [*depth.charts(result), *bars.charts(result)]
    if any(row.point.gap_us is not None for row in result.rows):
        return grid.charts(result)
    return bars.charts(result)
