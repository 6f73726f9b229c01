"""Which targets the rows of pairs reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.pairs_rows import CLOSED_LOOP_US, Cell, Row, floor
from benchmarks.pairs_wins import LEVEL, point

SPARSE_US = 4_000.0
MOST_P99, LEAST_OF_REST = 1.10, 0.95
BUDGET, LEAST_H, BUDGET_SMS = 0.20, 0.5, 32
BUDGET_ROW, SPLIT = f"miriam-measured:budget={BUDGET:g}", "partition"
ROWS = 150
LEAST_ELASTIC = 0.5

TARGETS = """Those of the project for this page, judged on the service over alone. Of the rows of
`miriam` and `miriam-measured` the one that comes closest counts, unless one is named. *floor*: the
same percentile of `sequential`, and what the judged row is over it. A miss is *in the floor* where
the floor alone is above what the target allows. Where a p99 is missed although all normal work is
held, it is said how long that takes to leave (yield p99). *Level*: within {level:g} in p50 and H.
*Most*: the largest sum of both rates over alone (1 / service p50, and H) of any policy.

| target | cell | measured | | floor | beside |
|---|---|---|---|---|---|"""


def targets(
    cells: dict[Cell, list[Row]], shares: Sequence[Mapping[str, Any]] = ()
) -> Iterator[str]:
    """A line per target and cell, then the targets of the whole page.

    ``shares``: rows of benchmarks.elastic_share_gpu.
    """
    yield TARGETS.format(level=LEVEL)
    for cell, rows in cells.items():
        own = [row for row in rows if row.own and row.placed]
        if own and cell.gap_us == SPARSE_US:
            yield _sparse(cell, rows, own)
    for cell, rows in cells.items():
        own = [row for row in rows if row.own and row.placed]
        if own and cell.gap_us == CLOSED_LOOP_US:
            yield _above_all(cell, rows)
            if cell.sms == BUDGET_SMS:
                yield _within_budget(cell, rows)
    yield from map(_elastic, shares)
    yield _tail(list(cells.values()))
    yield _coordinator(list(cells.values()))
    yield _contract([row for rows in cells.values() for row in rows])


def _sparse(cell: Cell, rows: Sequence[Row], own: Sequence[Row]) -> str:
    best = min(own, key=short_of_sparse)
    what = f"p99 <= {MOST_P99:.2f} with H / (1 - duty) >= {LEAST_OF_REST}"
    others = [_named(rows, name) for name in ("gate", "multistream")]
    beside = ", ".join(f"{row.policy} {_tail_and_rest(row)}" for row in others if row is not None)
    measured = f"{best.policy} {_tail_and_rest(best)}"
    lowest = _floor(rows, best, MOST_P99, tail=True)
    if (best.service99 or 0.0) > MOST_P99:
        lowest += _leaving(rows, MOST_P99)
    return _line(what, cell, measured, short_of_sparse(best) <= 0, beside, lowest)


def _leaving(rows: Sequence[Row], most: float) -> str:
    """How long normal work takes to leave, where a p99 is above ``most`` although all is held."""
    held = next((row for row in rows if row.placed and row.yield99_us is not None), None)
    if held is None or held.yield99_us is None or held.service(tail=True) <= most:
        return ""
    share = held.yield99_us / held.alone_us
    return f"; leaves within {held.yield99_us:.0f} us ({held.policy}), {share:.0%} of the service"


def _floor(rows: Sequence[Row], judged: Row, most: float, *, tail: bool) -> str:
    """The floor of the cell, what ``judged`` is over it, and whether it is above ``most``."""
    lowest = floor(rows)
    if lowest is None:
        return ""
    least, found = lowest.service(tail=tail), judged.service(tail=tail)
    missed = found > most and least > most
    return f"{least:.2f}, {found / least:.2f} over it{', miss in the floor' if missed else ''}"


def short_of_sparse(row: Row) -> float:
    """How far a row is from the target for gaps of 4 ms; 0 and less where it is reached."""
    return max((row.service99 or 0.0) - MOST_P99, LEAST_OF_REST - (row.of_rest or 0.0))


def _tail_and_rest(row: Row) -> str:
    return f"{row.service99 or 0.0:.3f}, {row.of_rest or 0.0:.3f}"


@dataclass(frozen=True, slots=True)
class Baselines:
    """Points of others, in p50 and H: one of ours is at least as good, or none, not even level."""

    above: list[Row]
    below: list[Row]
    all: list[Row]


def baselines(rows: Sequence[Row]) -> Baselines:
    """The baselines of a cell, judged."""
    own = [row for row in rows if row.own and row.placed]
    others = [row for row in rows if row.placed and not row.own]

    def beaten(row: Row, by: float) -> bool:
        p50 = row.service(tail=False)
        return any(m.service(tail=False) <= p50 + by and row.H - by <= m.H for m in own)

    beaten_by = {by: [row for row in others if beaten(row, by)] for by in (0.0, LEVEL)}
    below = [row for row in others if row not in beaten_by[LEVEL]]
    return Baselines(beaten_by[0.0], below, others)


def _above_all(cell: Cell, rows: Sequence[Row]) -> str:
    """Each baseline's point has one of miriam's that is at least as good in both."""
    others = baselines(rows)
    level = len(others.all) - len(others.above) - len(others.below)
    measured = f"so it is for {len(others.above)} of {len(others.all)}, level with {level}"
    beside = f"below {', '.join(point(row) for row in others.below) or 'none'}"
    what = "miriam's frontier at least as good as every baseline's point"
    return _line(what, cell, measured, len(others.above) == len(others.all), beside)


def _within_budget(cell: Cell, rows: Sequence[Row]) -> str:
    own, split = _named(rows, BUDGET_ROW), _named(rows, SPLIT)
    what = f"H >= {LEAST_H} at a budget of {BUDGET:.0%}, service p50 <= {1 + BUDGET:.2f}"
    beside = [] if split is None or not split.placed else [point(split)]
    sums = {row.policy: 1 / row.service(tail=False) + row.H for row in rows if row.placed}
    if sums:
        most = max(sums, key=sums.__getitem__)
        wanted = 1 / (1 + BUDGET) + LEAST_H
        beside.append(f"most: {sums[most]:.2f} ({most}), wanted {wanted:.2f}")
    if own is None or not own.placed:
        why = "not run" if own is None else f"no verified row of {BUDGET_ROW}"
        return _line(what, cell, why, None, "; ".join(beside))
    reached = own.H >= LEAST_H and own.service(tail=False) <= 1 + BUDGET
    lowest = _floor(rows, own, 1 + BUDGET, tail=False)
    return _line(what, cell, point(own), reached, "; ".join(beside), lowest)


def _elastic(row: Mapping[str, Any]) -> str:
    share = row["elastic_us"] / row["alone_us"]
    where = f"{row['critical']} + {row['normal']}, {row['sms']} SMs"
    measured = f"{share:.0%}, {row['elastic_steps']} of {row['steps']} steps"
    verdict = "reached" if share >= LEAST_ELASTIC else "**missed**"
    what = f"at least {LEAST_ELASTIC:.0%} of the normal network's time alone in elastic steps"
    return f"| {what} | {where} | {measured} | {verdict} |  |  |"


def _tail(cells: Sequence[Sequence[Row]]) -> str:
    known, below, as_much = 0, 0, 0
    for rows in cells:
        gate, own = _named(rows, "gate"), [row for row in rows if row.own and row.placed]
        if gate is None or not gate.placed or not own:
            continue
        limit = gate.service(tail=True)
        faster = [row for row in own if row.service(tail=True) < limit]
        known += 1
        below += bool(faster)
        as_much += any(row.H >= gate.H for row in faster)
    measured = f"{below} of {known} cells, {as_much} of them with at least its H"
    return _line("service p99 below the gate's", None, measured, 0 < known == below)


def _coordinator(cells: Sequence[Sequence[Row]]) -> str:
    """What it buys that the coordinator is on the GPU: miriam beside miriam-host."""
    known = _both(cells, "miriam-host")
    faster = sum(own.service(tail=True) < host.service(tail=True) for own, host in known)
    more = sum(own.H > host.H for own, host in known)
    measured = f"lower p99 in {faster}, higher H in {more} of {len(known)} cells"
    beside = f"medians {', '.join(map(_middle, zip(*known, strict=True)))}" if known else ""
    return _line("miriam against miriam-host", None, measured if known else "not run", None, beside)


def _middle(rows: Sequence[Row]) -> str:
    """The medians of a policy's p99 and H."""
    p99, H = median(row.service(tail=True) for row in rows), median(row.H for row in rows)
    return f"{rows[0].policy} {p99:.2f}, {H:.2f}"


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
    what: str,
    cell: Cell | None,
    measured: str,
    reached: bool | None,
    beside: str = "",
    lowest: str = "",
) -> str:
    where = "all" if cell is None else f"{cell.pair}, {cell.world}, {cell.gap}"
    verdict = {True: "reached", False: "**missed**", None: ""}[reached]
    return f"| {what} | {where} | {measured} | {verdict} | {lowest} | {beside} |"


def _named(rows: Sequence[Row], policy: str) -> Row | None:
    return next((row for row in rows if row.policy == policy), None)
