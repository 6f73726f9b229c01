"""The tables of design-space shrinking for people."""

from __future__ import annotations

from decimal import Decimal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from miriam.bench.pruning import Choice, ShrinkReport


def show(report: ShrinkReport, console: Console) -> None:
    """Print what the rules remove, and what the kernels that were tried say to it."""
    if not console.is_terminal:
        console.width = 120
    kind = "simulated" if report.simulated else "measured"
    shares = Table(title=f"{report.title} on {report.device} ({kind})", box=SIMPLE_HEAD)
    for heading in ("normal", "beside", "full space", "candidates", "blocks", "threads"):
        shares.add_column(heading, justify="right")
    shares.add_column("overhead", justify="right")
    shares.add_column("all rules", justify="right")
    for pair in report.pairs:
        removed = [f"{share:.1%}" for share in (*pair.removed.values(), pair.removed_jointly)]
        full_space = _scientific(pair.full_space_log10)
        shares.add_row(pair.normal, pair.critical, full_space, str(pair.candidates), *removed)
    tried = Table(
        title="Blocks of the normal kernel per us beside the critical one", box=SIMPLE_HEAD
    )
    for heading in ("critical kernel", "normal kernel", "kept of all", "best of all"):
        tried.add_column(heading, justify="right")
    tried.add_column("best kept", justify="right")
    tried.add_column("miriam grants", justify="right")
    for pair in report.pairs:
        tried.add_section()
        for row in pair.tried:
            tried.add_row(
                f"{pair.critical} {row.critical}", f"{pair.normal} {row.normal}",
                f"{row.kept}/{row.candidates}", *map(_cell, (row.best, row.best_kept, row.granted)),
            )  # fmt: skip
    console.print(shares, tried)
    console.print(
        f"In each cell: blocks x threads, blocks per us. Best: of those that leave the critical "
        f"kernel within {report.allowed:g} x its time alone.",
        style="dim",
        markup=False,
        highlight=False,
    )


def _scientific(log10: float) -> str:
    """A number that is too large for a float, from its logarithm."""
    return f"{Decimal(10) ** Decimal(log10):.1e}"


def _cell(choice: Choice | None) -> str:
    if choice is None:
        return "none"
    return f"{choice.blocks} x {choice.threads}, {choice.blocks_per_us:.2f}"
