"""One self-contained HTML page with every chart and table of a benchmark."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from html import escape

from rich.console import Console

from miriam.bench import overheads_table, pruning_table, table
from miriam.bench.charts import Chart, charts, label, shrink
from miriam.bench.charts import overheads as overheads_chart
from miriam.bench.metrics import BenchResult
from miriam.bench.overheads import OverheadsReport
from miriam.bench.pruning import ShrinkReport

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }
img { max-width: 100%; height: auto; }
figure { margin: 2rem 0; }
figcaption { color: #555; }
pre { overflow-x: auto; font-size: 12px; line-height: 1.35; }
"""


def page(result: BenchResult) -> bytes:
    """The page; each figure's caption says where its numbers are from.

    MissingCapabilityError if matplotlib is not installed.
    """
    return document(result.title, [section(result)])


def section(result: BenchResult) -> str:
    """Charts and table of one result, as a part of a page."""
    return part(result.title, label(result), charts(result), _table(result))


def shrinking(report: ShrinkReport) -> str:
    """Chart and tables of design-space shrinking, as a part of a page."""
    text = _printed(lambda console: pruning_table.show(report, console), 120)
    return part(report.title, label(report), shrink.charts(report), text)


def overheads(report: OverheadsReport) -> str:
    """Chart and table of the overheads, as a part of a page."""
    text = _printed(lambda console: overheads_table.show(report, console), 120)
    return part(report.title, label(report), overheads_chart.charts(report), text)


def part(title: str, where: str, shown: Sequence[Chart], text: str) -> str:
    """A part of a page: charts and a table, each with where its numbers are from."""
    figures = "".join(_figure(chart, where) for chart in shown)
    return (
        f"<h2>{escape(title)}, {escape(where)}</h2>{figures}"
        f"<figure><pre>{escape(text)}</pre>{_caption('Table', where)}</figure>"
    )


def document(title: str, sections: list[str]) -> bytes:
    """A whole page of ``sections``."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    body = f"<h1>{escape(title)}</h1>{''.join(sections)}"
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'.encode()
    )


def _figure(chart: Chart, where: str) -> str:
    data = base64.b64encode(chart.png).decode()
    image = f'<img alt="{escape(chart.title)}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}{_caption(chart.title, where)}</figure>"


def _caption(text: str, where: str) -> str:
    return f"<figcaption>{escape(text)}: {escape(where)}</figcaption>"


def _table(result: BenchResult) -> str:
    return _printed(lambda console: table.show(result, console), 130)


def _printed(show: Callable[[Console], None], width: int) -> str:
    text = io.StringIO()
    show(Console(file=text, width=width, force_terminal=False))
    return text.getvalue()
