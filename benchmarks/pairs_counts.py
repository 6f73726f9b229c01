"""What the rows of all cells come to: the counts that README's reading of them rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.pairs_rows import CLOSED_LOOP_US, Cell, Row, floor, frontier
from benchmarks.pairs_verdicts import SPARSE_US, baselines, short_of_sparse
from benchmarks.pairs_wins import DEFAULTS, LEVEL, NAMED, best_within, winner
from miriam.bench.pytorch import is_captured
from miriam.coordinator.policies import miriam_measured

MEASURED = miriam_measured.POLICY.name
DEFAULT, GATE = DEFAULTS
HELD = f"{MEASURED}:budget=0"
SMALL = 0.05
"""Of H, by which a win is a small one."""

ABOVE = 1.3
"""So far above the bound of a win others are looked at."""

BUDGETS = (0.05, 0.1, 0.2)

HEAD = """
## Counts

Over all cells; a *setting* is a row of `{measured}`, and its default `{default}`.

| what | count |
|---|---|"""


def counts(cells: Mapping[Cell, Sequence[Row]]) -> Iterator[str]:
    """A line per count."""
    yield HEAD.format(measured=MEASURED, default=DEFAULT)
    lines = _frontiers(cells), _wins(cells), _beside_gate(cells), _budgets(cells), _targets(cells)
    for line in (line for some in lines for line in some):
        yield f"| {line[0]} | {line[1]} |"


def _settings(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.base == MEASURED and row.placed]


def _named(rows: Sequence[Row], policy: str) -> Row | None:
    return next((row for row in rows if row.policy == policy and row.placed), None)


def _frontiers(cells: Mapping[Cell, Sequence[Row]]) -> Iterator[tuple[str, str]]:
    best = {cell: frontier(rows) for cell, rows in cells.items()}
    there = sum(any(_settings(rows)) for rows in cells.values())
    yield (
        "on the frontier: a setting",
        f"{sum(map(bool, map(_settings, best.values())))} of {there}",
    )
    for policy in (DEFAULT, "multistream", GATE, "miriam"):
        ran = [cell for cell, rows in cells.items() if _named(rows, policy)]
        on = sum(_named(best[cell], policy) is not None for cell in ran)
        yield f"on the frontier: `{policy}`", f"{on} of {len(ran)}"


def _wins(cells: Mapping[Cell, Sequence[Row]]) -> Iterator[tuple[str, str]]:
    won = {cell: rows for cell, rows in cells.items() if winner(rows, NAMED) == "miriam"}
    small, gates, above, captured = 0, 0, 0, 0
    for cell, rows in won.items():
        best = best_within(rows, NAMED)
        others = [row for row in rows if row.placed and not row.own]
        assert best is not None  # or it would not be won
        near = [r for r in others if r.service(tail=True) <= NAMED and best.H - r.H <= SMALL]
        small += bool(near)
        gates += any(row.base == GATE for row in near)
        beyond = (r for r in others if NAMED < r.service(tail=True) <= ABOVE)
        above += any(row.H - best.H > LEVEL for row in beyond)
        captured += all(map(is_captured, cell.pair.split(" + ")))
    whole = f"of {len(won)}"
    yield f"wins within {NAMED:g} x alone by {SMALL:g} of H or less", f"{small} {whole}"
    yield "those of them in which a gate is so near", str(gates)
    what = f"wins beside others with a p99 of up to {ABOVE:g} and H more than {LEVEL:g} higher"
    yield what, f"{above} {whole}"
    yield "wins of captured networks", f"{captured} {whole}"


def _beside_gate(cells: Mapping[Cell, Sequence[Row]]) -> Iterator[tuple[str, str]]:
    below, best_below, both, known = 0, 0, 0, 0
    for rows in cells.values():
        gate, default = _named(rows, GATE), _named(rows, DEFAULT)
        if gate is None or default is None:
            continue
        limit, taken = gate.service(tail=True), default.service(tail=True)
        known += 1
        below += taken < limit
        best_below += min(row.service(tail=True) for row in _settings(rows)) < limit
        both += taken <= limit and default.H >= gate.H
    yield "p99 lower than under `gate`: the default", f"{below} of {known}"
    yield "p99 lower than under `gate`: a setting", f"{best_below} of {known}"
    yield "the default at least as good as the gate in p99 and H", f"{both} of {known}"


def _budgets(cells: Mapping[Cell, Sequence[Row]]) -> Iterator[tuple[str, str]]:
    kept = {"of the row with all held": 0, "of the floor": 0, "alone": 0}
    known = 0
    for rows in cells.values():
        held, lowest = _named(rows, HELD), floor(rows)
        for budget in BUDGETS:
            row = _named(rows, f"{MEASURED}:budget={budget:g}")
            if row is None or held is None or lowest is None:
                continue
            known += 1
            limits = held.service(tail=True), lowest.service(tail=True), 1.0
            for over, limit in zip(kept, limits, strict=True):
                kept[over] += row.service(tail=True) <= limit * (1 + budget)
    for over, count in kept.items():
        yield (
            f"p99 within a budget of {BUDGETS[-1]:g} or less over that {over}",
            f"{count} of {known}",
        )


def _targets(cells: Mapping[Cell, Sequence[Row]]) -> Iterator[tuple[str, str]]:
    sparse = [rows for cell, rows in cells.items() if cell.gap_us == SPARSE_US and _settings(rows)]
    for who, chosen in (
        ("a setting", [_settings(rows) for rows in sparse]),
        ("the default", [[row for row in rows if row.policy == DEFAULT] for rows in sparse]),
        ("a gate", [[row for row in rows if row.base == GATE] for rows in sparse]),
    ):
        reached = sum(any(short_of_sparse(row) <= 0 for row in rows) for rows in chosen)
        yield f"the target for gaps of 4 ms reached by {who}", f"{reached} of {len(sparse)}"
    closed = [rows for cell, rows in cells.items() if cell.gap_us == CLOSED_LOOP_US]
    judged = [rows for rows in closed if any(row.own and row.placed for row in rows)]
    above = sum(bool(baselines(rows).below) for rows in judged)
    what = f"closed loops in which a baseline is more than {LEVEL:g} above ours"
    yield what, f"{above} of {len(judged)}"
