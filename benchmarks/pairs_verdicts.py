"""What rows of pairs say: who is on the frontier where, and which targets are reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.pairs_rows import CLOSED_LOOP_US, Cell, Row, frontier

SAME = 0.01
"""Figures that differ by less count as equal where one is called at least as good."""

SPARSE_US, SPARSE_SMS = 4_000.0, (None, 32, 16)
MOST_P99, LEAST_OF_REST = 1.10, 0.95
BUDGET, LEAST_H, BUDGET_SMS = 0.20, 0.5, 32
ROWS = 150
LEAST_ELASTIC = 0.5

WINS = """Cells, counted on service and H. *miriam on the frontier*: no other policy beats one of
its rows in both, by the p50 or by the p99. *gate is enough*: the plain gate is at least as good as
`miriam` in p50, p99 and H (to {same:g}). *multi-stream higher*: in the sum 1 / p50 + H, against
the best row of `miriam`.

| world | gap | cells | on the frontier by p50 | by p99 | gate is enough | multi-stream higher |
|---|---|---|---|---|---|---|"""
FRONTIERS = """
The frontier of each cell, from the fastest critical network on: policy (service p50, H).

| world | gap | pair | frontier | gate is enough | higher sum |
|---|---|---|---|---|---|"""
TARGETS = """Those of the project for this page, judged on the service. Where `miriam` was run with
several settings, the row that comes closest.

| target | cell | measured | | beside |
|---|---|---|---|---|"""


def who_wins(cells: dict[Cell, list[Row]]) -> Iterator[str]:
    """Counts per world and gap, then each cell."""
    yield WINS.format(same=SAME)
    for place in dict.fromkeys((cell.world, cell.gap) for cell in cells):
        here = [rows for cell, rows in cells.items() if (cell.world, cell.gap) == place]
        counts = (
            len(here),
            sum(any(row.own for row in frontier(rows)) for rows in here),
            sum(any(row.own for row in frontier(rows, tail=True)) for rows in here),
            sum(gate_is_enough(rows) is True for rows in here),
            sum(higher_sum(rows) == "multistream" for rows in here),
        )
        yield f"| {' | '.join(map(str, (*place, *counts)))} |"
    yield FRONTIERS
    for cell, rows in cells.items():
        best = ", ".join(_point(row) for row in frontier(rows))
        enough = {True: "yes", False: "no", None: "-"}[gate_is_enough(rows)]
        where = f"{cell.world} | {cell.gap} | {cell.pair}"
        yield f"| {where} | {best} | {enough} | {higher_sum(rows) or '-'} |"


def gate_is_enough(rows: Sequence[Row]) -> bool | None:
    """Whether `gate` is at least as good as `miriam` as it is; None unless both were run."""
    gate, own = _named(rows, "gate"), _named(rows, "miriam")
    if gate is None or own is None or not gate.placed or not own.placed:
        return None
    as_fast = all(
        gate.service(tail=tail) <= own.service(tail=tail) + SAME for tail in (False, True)
    )
    return as_fast and gate.H >= own.H - SAME


def higher_sum(rows: Sequence[Row]) -> str | None:
    """`miriam` or `multistream`, whichever has the higher sum; None unless both were run."""
    multistream = _named(rows, "multistream")
    own = [row.sum for row in rows if row.own and row.sum is not None]
    if multistream is None or multistream.sum is None or not own:
        return None
    return "multistream" if multistream.sum > max(own) else "miriam"


def targets(
    cells: dict[Cell, list[Row]], shares: Sequence[Mapping[str, Any]] = ()
) -> Iterator[str]:
    """A line per target and cell, then the targets of the whole page.

    ``shares``: rows of benchmarks.elastic_share_gpu.
    """
    yield TARGETS
    for cell, rows in cells.items():
        own = [row for row in rows if row.own and row.placed]
        if own and cell.gap_us == SPARSE_US and cell.sms in SPARSE_SMS:
            yield _sparse(cell, rows, own)
    for cell, rows in cells.items():
        own = [row for row in rows if row.own and row.placed]
        if own and cell.gap_us == CLOSED_LOOP_US:
            yield _above_all(cell, rows, own)
            if cell.sms == BUDGET_SMS:
                yield _within_budget(cell, rows, own)
    yield from map(_elastic, shares)
    yield _tail(list(cells.values()))
    yield _coordinator(list(cells.values()))
    yield _contract([row for rows in cells.values() for row in rows])


def _sparse(cell: Cell, rows: Sequence[Row], own: Sequence[Row]) -> str:
    best = min(own, key=_short_of_sparse)
    what = f"p99 <= {MOST_P99:.2f} with H / (1 - duty) >= {LEAST_OF_REST}"
    others = (_named(rows, name) for name in ("gate", "multistream"))
    beside = ", ".join(f"{row.policy} {_tail_and_rest(row)}" for row in others if row is not None)
    measured = f"{best.policy} {_tail_and_rest(best)}"
    return _line(what, cell, measured, _short_of_sparse(best) <= 0, beside)


def _short_of_sparse(row: Row) -> float:
    return max((row.service99 or 0.0) - MOST_P99, LEAST_OF_REST - (row.of_rest or 0.0))


def _tail_and_rest(row: Row) -> str:
    return f"{row.service99 or 0.0:.2f}, {row.of_rest or 0.0:.2f}"


def _above_all(cell: Cell, rows: Sequence[Row], own: Sequence[Row]) -> str:
    """Each baseline's point has one of miriam's that is at least as good in both."""

    def median(row: Row) -> float:
        return row.service(tail=False)

    others = [row for row in rows if row.placed and not row.own]
    out = [r for r in others if not any(median(m) <= median(r) and m.H >= r.H for m in own)]
    measured = f"above {len(others) - len(out)} of {len(others)}"
    beside = f"not above {', '.join(_point(row) for row in out)}" if out else ""
    return _line("miriam's frontier above every baseline's point", cell, measured, not out, beside)


def _point(row: Row) -> str:
    return f"{row.policy} ({row.service(tail=False):.2f}, {row.H:.2f})"


def _within_budget(cell: Cell, rows: Sequence[Row], own: Sequence[Row]) -> str:
    def most(chosen: Sequence[Row]) -> Row | None:
        held = [r for r in chosen if r.placed and r.service(tail=False) <= 1 + BUDGET]
        return max(held, key=lambda row: row.H, default=None)

    best, other = most(own), most([row for row in rows if not row.own])
    what = f"H >= {LEAST_H} with service p50 <= {1 + BUDGET:.2f}"
    measured = "no row within it" if best is None else f"{best.policy} {best.H:.2f}"
    beside = "" if other is None else f"best other {other.policy} {other.H:.2f}"
    return _line(what, cell, measured, best is not None and best.H >= LEAST_H, beside)


def _elastic(row: Mapping[str, Any]) -> str:
    share = row["elastic_us"] / row["alone_us"]
    where = f"{row['critical']} + {row['normal']}, {row['sms']} SMs"
    measured = f"{share:.0%}, {row['elastic_steps']} of {row['steps']} steps"
    verdict = "reached" if share >= LEAST_ELASTIC else "**missed**"
    what = f"at least {LEAST_ELASTIC:.0%} of the normal network's time alone in elastic steps"
    return f"| {what} | {where} | {measured} | {verdict} |  |"


def _tail(cells: Sequence[Sequence[Row]]) -> str:
    known = _both(cells, "gate")
    below = sum(own.service(tail=True) < gate.service(tail=True) for own, gate in known)
    reached = bool(known) and below == len(known)
    return _line("service p99 below the gate's", None, f"{below} of {len(known)} cells", reached)


def _coordinator(cells: Sequence[Sequence[Row]]) -> str:
    """What it buys that the coordinator is on the GPU: miriam beside miriam-host."""
    known = _both(cells, "miriam-host")
    faster = sum(own.service(tail=True) < host.service(tail=True) for own, host in known)
    more = sum(own.H > host.H for own, host in known)
    measured = f"lower p99 in {faster}, higher H in {more} of {len(known)} cells"
    return _line("miriam against miriam-host", None, measured if known else "not run", None)


def _both(cells: Sequence[Sequence[Row]], other: str) -> list[tuple[Row, Row]]:
    """The rows of `miriam` and ``other``, of the cells where both are."""
    pairs = [(_named(rows, "miriam"), _named(rows, other)) for rows in cells]
    return [(a, b) for a, b in pairs if a and b and a.placed and b.placed]


def _contract(rows: Sequence[Row]) -> str:
    wrong = sum(row.verified is not True for row in rows)
    measured = f"{len(rows)} rows, {wrong} not verified"
    what = f"at least {ROWS} rows, every one verified"
    return _line(what, None, measured, len(rows) >= ROWS and not wrong)


def _line(
    what: str, cell: Cell | None, measured: str, reached: bool | None, beside: str = ""
) -> str:
    where = "all" if cell is None else f"{cell.pair}, {cell.world}, {cell.gap}"
    verdict = {True: "reached", False: "**missed**", None: ""}[reached]
    return f"| {what} | {where} | {measured} | {verdict} | {beside} |"


def _named(rows: Sequence[Row], policy: str) -> Row | None:
    return next((row for row in rows if row.policy == policy), None)
