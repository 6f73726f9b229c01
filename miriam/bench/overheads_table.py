"""The table of the overheads for people."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from miriam.bench.overheads import PROMPT_NS, Overhead, OverheadsReport

HEADINGS = (
    "critical + normal",
    "policy",
    "steps",
    "plan, ms",
    "admit, us",
    "launch delay p80, us",
    "critical alone, us",
    "normal alone, us",
)


def show(report: OverheadsReport, console: Console) -> None:
    """Print a line per pair and policy, and where each kind of figure is from."""
    if not console.is_terminal:
        console.width = 120
    view = Table(title=f"{report.title} on {report.device} (simulated)", box=SIMPLE_HEAD)
    for place, heading in enumerate(HEADINGS):
        view.add_column(heading, justify="left" if place < 2 else "right")
    for row in report.rows:
        view.add_row(*cells(row))
    console.print(view)
    console.print(note(report), style="dim", markup=False, highlight=False)


def cells(row: Overhead) -> tuple[str, ...]:
    """The texts of one line."""
    return (
        f"{row.critical} + {row.normal}",
        row.policy,
        f"{row.steps[0]} + {row.steps[1]}",
        f"{row.plan_ms:.2f}",
        f"{row.admit_us:.1f}",
        _delay(row),
        f"{row.critical_us:.1f} ({row.critical_us / row.critical_plain_us - 1:+.1%})",
        f"{row.normal_us:.1f} ({row.normal_us / row.normal_plain_us - 1:+.1%})",
    )


def note(report: OverheadsReport) -> str:
    """What the columns mean and where they are from."""
    return (
        "Plan: all pairs of steps, once, when tasks come and go; admit: per request; both measured "
        f"on {report.host}. Launch delay: from the launch of a critical kernel to its first block, "
        f"both tasks in closed loops, and how many stay under {PROMPT_NS / 1e3:g} us. Alone: a "
        "request on the idle GPU under the policy, and how much longer that is than as plain "
        "kernels. Delays and times alone are simulated."
    )


def _delay(row: Overhead) -> str:
    delay_ns = row.delays.percentile(80)
    return "-" if delay_ns is None else f"{delay_ns / 1e3:.1f} ({row.prompt:.0%})"
