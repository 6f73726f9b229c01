"""Writes README's part on measured pairs, between its two marks, from the reports.

python -m benchmarks.pairs_headline docs/results/data/h200-{pairs-*,mps}.json
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from textwrap import wrap

from benchmarks.pairs_chart import GAPS_US
from benchmarks.pairs_rows import Cell, Merged, Row, gap_text, load
from benchmarks.pairs_verdicts import BUDGET_ROW
from benchmarks.pairs_wins import BOUNDS, DEFAULTS, KINDS, LEVEL, doubts, only_default, winner

README = Path("README.md")
BEGIN, END = "<!-- measured pairs: begin -->", "<!-- measured pairs: end -->"
POLICIES = (
    "miriam-measured:budget=0",
    DEFAULTS[0],
    BUDGET_ROW,
    "miriam",
    "gate",
    "partition",
    "multistream",
    "mps",
)

TEXT = """![Critical overhead against the normal network's rate](docs/results/pairs-h200.png)

Measured on {gpu}, driver {driver}, {date}: {rows} rows, {verified} of them with every output
equal to that of the network alone, bit for bit. Each point is a policy, each mark a pair of
networks; further left and further up is better. A *world* is so many SMs for both networks; in a
*closed loop* the next critical request comes when the last one has ended, else a gap later. In
each of {cells} *cells* (pair, world, gap) that policy counts which brings the normal network most
(*H*, its rate over alone) while the critical one's p99 (first kernel to outputs, over alone) stays
within a bound. Of those within {level:g} of the highest H the simplest does, Miriam last; *Miriam*
is any row of `miriam` or `miriam-measured`, a *plain gate* one of two:

{counts}

{default}

{doubts}

Medians of the critical network's p99 over alone, and of H, over the pairs that were run under all
of these policies:

{table}

Every row, the targets that were missed, and the commands:
[docs/results/pairs-h200.md](docs/results/pairs-h200.md)."""


def headline(merged: Merged) -> str:
    """The part, without its marks."""
    cells = {cell: rows for cell, rows in merged.cells.items() if cell.gap_us in GAPS_US}
    first = merged.reports[0]
    return TEXT.format(
        gpu=first["gpu"],
        driver=first["driver"]["name"],
        date=", ".join(dict.fromkeys(report["date"] for report in merged.reports)),
        rows=len(merged.rows),
        verified=sum(row.verified is True for row in merged.rows),
        cells=len(cells),
        counts="\n".join(_counts(cells)),
        level=LEVEL,
        default=_filled(only_default(cells)),
        doubts=_filled(doubts(list(cells.values()))),
        table="\n".join(_table(cells)),
    )


def _filled(text: str) -> str:
    return "\n".join(wrap(text, 100, break_on_hyphens=False))


def _counts(cells: dict[Cell, list[Row]]) -> Iterator[str]:
    yield "| p99 within | Miriam | plain gate | multi-stream | another policy | none |"
    yield "|---|---|---|---|---|---|"
    for bound in BOUNDS:
        kinds = [winner(rows, bound) for rows in cells.values()]
        yield f"| {bound:g} x alone | {' | '.join(str(kinds.count(kind)) for kind in KINDS)} |"


def _table(cells: dict[Cell, list[Row]]) -> Iterator[str]:
    worlds = list(dict.fromkeys(cell.world for cell in cells))
    yield f"| critical network | policy | {' | '.join(worlds)} |"
    yield f"|---|---|{'---|' * len(worlds)}"
    for gap_us in GAPS_US:
        places = [
            _whole([r for c, r in cells.items() if (c.gap_us, c.world) == (gap_us, w)])
            for w in worlds
        ]
        pairs = " | ".join(str(len(place)) for place in places)
        yield f"| {gap_text(gap_us)} | (pairs) | {pairs} |"
        for policy in POLICIES:
            shown = [[row[policy] for row in place if policy in row] for place in places]
            if any(shown):
                line = " | ".join(map(_median, shown))
                yield f"| {gap_text(gap_us)} | {policy} | {line} |"


def _whole(cells: Sequence[Sequence[Row]]) -> list[dict[str, Row]]:
    """Of one place, by policy, the rows of the pairs that have all policies which any pair has."""
    found = [{r.policy: r for r in rows if r.policy in POLICIES and r.placed} for rows in cells]
    known = {policy for rows in found for policy in rows}
    return [rows for rows in found if set(rows) == known]


def _median(rows: Sequence[Row]) -> str:
    if not rows:
        return "-"
    return f"{median(r.service(tail=True) for r in rows):.2f}, {median(r.H for r in rows):.2f}"


def replaced(text: str, part: str) -> str:
    """``text`` with ``part`` between the marks; SystemExit where they are not there, each once."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit(f"{README}: {BEGIN} and {END} are wanted, each once")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{part}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Rewrite the part in README.md."""
    part = headline(load(map(Path, sys.argv[1:])))
    README.write_text(replaced(README.read_text(), part))


if __name__ == "__main__":
    main()
