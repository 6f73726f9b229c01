"""Who wins where: the policy that brings most within a bound on the critical network's p99."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.pairs_rows import Cell, Row, floor, frontier
from miriam.coordinator.policies import miriam_measured

BOUNDS = (1.1, 1.2, 1.5)
LEVEL = 0.02
"""Rows this near in H are level, and points in p50 and H: two runs of a policy differ as much."""

DEFAULTS = (f"{miriam_measured.POLICY.name}:budget={miriam_measured.POLICY.budget:g}", "gate")
"""What users get who set nothing."""

SIMPLER = ("multistream", "gate", "partition", "mps")
DRIFT = 0.05
NAMED = 1.2
"""The bound for which cells are named at the top."""

COUNTS = """The question is which policy brings the normal network most while the critical one stays
within a bound. *Best within a bound* of a cell (pair, world, gap): of all policies with a service
p99 of at most that times the p99 alone, the one with the highest H. Where others come within
{same:g} of that H, the simplest is named:
{simpler},
then the rest, Miriam last. So Miriam (`miriam`, `miriam-measured`) *wins* where nothing simpler
brings as much within the bound, a plain `gate` *is enough* where it is named, and `multistream` is
the better choice where it is. Counts of cells, for bounds of {bounds} x alone:

| world | gap | cells | Miriam wins | gate is enough | multi-stream | another | none within |
|---|---|---|---|---|---|---|---|"""
KINDS = {
    "miriam": "Miriam wins",
    "gate": "a plain gate is enough",
    "multistream": "multi-stream is the better choice",
    "other": "another policy is best",
    "none": "no policy is within the bound",
}
CELLS = """
Cell by cell, with its H. The *floor* is the service p50 and p99 of `sequential`: nothing runs
beside the critical network, but the caches are as the normal one left them.

| world | gap | pair | floor | {bounds} |
|---|---|---|---|{columns}"""
FRONTIERS = """
The frontier of each cell, the rows that no other one beats in both service p50 and H, from the
fastest critical network on: policy (service p50, H).

| world | gap | pair | floor p50 | frontier |
|---|---|---|---|---|"""


def best_within(rows: Sequence[Row], bound: float) -> Row | None:
    """The row with the highest H and a p99 within ``bound``; of equal ones the simplest."""
    within = [row for row in rows if row.placed and row.service(tail=True) <= bound]
    most = max((row.H for row in within), default=0.0)
    near = [row for row in within if most - row.H <= LEVEL]
    return min(near, key=lambda row: (_rank(row), -row.H), default=None)


def winner(rows: Sequence[Row], bound: float) -> str:
    """Which of ``KINDS`` is best within ``bound``."""
    best = best_within(rows, bound)
    if best is None:
        return "none"
    if best.own:
        return "miriam"
    return best.base if best.base in KINDS else "other"


def who_wins(cells: dict[Cell, list[Row]]) -> Iterator[str]:
    """Counts per world and gap, then the names of the cells for one bound."""
    yield COUNTS.format(
        same=LEVEL,
        simpler=", ".join(f"`{name}`" for name in SIMPLER),
        bounds=" / ".join(f"{bound:g}" for bound in BOUNDS),
    )
    for place in dict.fromkeys((cell.world, cell.gap) for cell in cells):
        those = [rows for cell, rows in cells.items() if (cell.world, cell.gap) == place]
        yield f"| {' | '.join([*place, str(len(those)), *_counts(those)])} |"
    if len({(cell.world, cell.gap) for cell in cells}) > 1:
        yield f"| all | all | {len(cells)} | {' | '.join(_counts(list(cells.values())))} |"
    yield ""
    yield f"{only_default(cells)}\n"
    yield doubts(list(cells.values()))
    yield f"\nThe cells for {NAMED:g} x alone:\n"
    for kind, title in KINDS.items():
        here = {cell: rows for cell, rows in cells.items() if winner(rows, NAMED) == kind}
        names = _policies(here.values()) if kind == "other" else _names(here)
        yield f"- {title}: {names or 'nowhere'}."


def only_default(cells: dict[Cell, list[Row]]) -> str:
    """The counts if Miriam were its default setting alone, and a gate too."""
    kept = [
        [row for row in rows if (not row.own and row.base != "gate") or row.policy in DEFAULTS]
        for rows in cells.values()
    ]
    miriam, gate, *_ = _counts(kept)
    return (
        "Each is the best of its settings, chosen by the same rows that are counted. With their "
        f"defaults only, {' and '.join(f'`{name}`' for name in DEFAULTS)}, and all others as "
        f"before, Miriam wins in {miriam} of {len(cells)} cells and a gate is enough in {gate}."
    )


def doubts(cells: Sequence[Sequence[Row]]) -> str:
    """How few requests some rows have, and how often the latency alone drifted."""
    drifting = sum(any((row.drift or 0.0) > DRIFT for row in rows) for rows in cells)
    counts = [row.n for rows in cells for row in rows]
    return (
        f"Rows have {min(counts)} to {max(counts)} critical requests, and in {drifting} of "
        f"{len(cells)} cells the latency alone drifted by more than {DRIFT:.0%} from round to "
        "round: a difference of some hundredths decides nothing."
    )


def each_cell(cells: dict[Cell, list[Row]]) -> Iterator[str]:
    """What is best in each cell within each bound, and the cell's floor."""
    within = " | ".join(f"within {bound:g}" for bound in BOUNDS)
    yield CELLS.format(bounds=within, columns="---|" * len(BOUNDS))
    for cell, rows in cells.items():
        best = " | ".join(_brings(best_within(rows, bound)) for bound in BOUNDS)
        yield f"| {cell.world} | {cell.gap} | {cell.pair} | {_floor(rows)} | {best} |"


def frontiers(cells: dict[Cell, list[Row]]) -> Iterator[str]:
    """The frontier of each cell, and its floor."""
    yield FRONTIERS
    for cell, rows in cells.items():
        lowest = floor(rows)
        least = "-" if lowest is None else f"{lowest.service(tail=False):.2f}"
        best = ", ".join(point(row) for row in frontier(rows))
        yield f"| {cell.world} | {cell.gap} | {cell.pair} | {least} | {best} |"


def point(row: Row) -> str:
    """A row as a point: its policy, service p50 and H."""
    return f"{row.policy} ({row.service(tail=False):.2f}, {row.H:.2f})"


def _rank(row: Row) -> int:
    if row.own:
        return len(SIMPLER) + 1
    return SIMPLER.index(row.base) if row.base in SIMPLER else len(SIMPLER)


def _counts(cells: Sequence[Sequence[Row]]) -> list[str]:
    found = [[winner(rows, bound) for rows in cells] for bound in BOUNDS]
    return [" / ".join(str(kinds.count(kind)) for kinds in found) for kind in KINDS]


def _policies(cells: Iterable[Sequence[Row]]) -> str:
    best = [best_within(rows, NAMED) for rows in cells]
    counts = Counter(row.base for row in best if row is not None)
    return ", ".join(f"{name} in {count}" for name, count in counts.most_common())


def _names(cells: Iterable[Cell]) -> str:
    pairs: dict[str, list[str]] = {}
    for cell in cells:
        pairs.setdefault(f"{cell.world}, {cell.gap}", []).append(cell.pair)
    return "; ".join(f"{place} ({', '.join(names)})" for place, names in pairs.items())


def _brings(row: Row | None) -> str:
    return "none" if row is None else f"{row.policy} {row.H:.2f}"


def _floor(rows: Sequence[Row]) -> str:
    lowest = floor(rows)
    if lowest is None:
        return "-"
    return f"{lowest.service(tail=False):.2f}, {lowest.service(tail=True):.2f}"
