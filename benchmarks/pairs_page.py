"""Writes docs/results/pairs-h200.md and its charts from what was measured on a GPU.

    miriam bench pairs --device cuda:0 ... --json docs/results/data/h200-pairs-1.json
    python -m benchmarks.mps_gpu docs/results/data/h200-mps.json
    python -m benchmarks.elastic_share_gpu docs/results/data/h200-share.json
    python -m benchmarks.pairs_page docs/results/data/h200-{pairs-*,mps,share}.json \
        > docs/results/pairs-h200.md

Several reports are merged; the charts go to docs/results. Every sentence that judges is counted
from the rows.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pairs_chart import overhead_against_rate
from benchmarks.pairs_counts import counts
from benchmarks.pairs_rows import CLOSED_LOOP_US, QUEUED, Cell, Merged, Row, floor, frontier, load
from benchmarks.pairs_verdicts import targets
from benchmarks.pairs_wins import each_cell, frontiers, who_wins

CHARTS = {False: Path("docs/results/pairs-h200.png"), True: Path("docs/results/pairs-h200-p99.png")}

HEAD = """# Pairs on a GPU: every policy and baseline, measured

A critical network beside a normal one on one GPU, under every policy that was run; {count} rows,
{verified} of them with every output equal, bit for bit, to that of the same network alone. *H* is
the normal network's rate / its rate alone; p50 and p99 are over the same percentile alone.

## Who wins where

{wins}

![Critical overhead, p50, against the normal network's rate]({median})

![Critical overhead, p99, against the normal network's rate]({tail})

Each point is a policy, each mark a pair; further left and further up is better. A grey line joins
the policies of a pair that no other one beats in both, a coloured one the settings of a policy. The
hollow marks at the bottom are the pairs' floors.
{cells}
{frontiers}

## How it was measured

All policies of a cell take turns in one process (`mps` in two, in a run of its own), and each
network was measured alone before, between and after. `python -m benchmarks.pairs_page` writes this
page and its charts from the reports below, made by the commands at its end; all that judges is
counted from their rows.

{runs}

## How to read it

- *service*: from a critical request's first kernel to the end of its outputs' copy, timed by events
  of the GPU. *latency*: from its arrival, which on a real device includes the Python loop of the
  benchmark that hands requests in and collects them; with more to collect beside a normal network
  the loop is slower, and that is no property of a policy. Judgements here use the service. It
  begins after the copy of the inputs, so it does not see what a request waits before. `{queued}`
  lets critical requests wait there on purpose: it is in the tables and in no judgement, like rows
  whose outputs were not all right.
- *floor*: the service of `{queued}`, p50 and p99 over alone. Nothing runs beside the critical
  network there either, but its weights may have left the caches since its last request. *over
  floor*: a row's service / the floor's.
- A p99 of n < 1,000 requests is a rough one.
- *H*: with the same number in flight alone. *of rest*: H / (1 - duty), where the duty is the
  critical service alone / (latency alone + gap): what was got of the time in which no critical
  request runs.
- *yield*: from a critical request's announcement until all normal work has left, p99 in us. Empty
  for policies that let some of it run beside some critical steps, or do not make it leave. A normal
  request that begins meanwhile has nothing to leave, and does not count.
- A closed loop is one of the host: alone, the critical networks are under way for {loop} of the
  time, and in what is left a policy that holds everything lets normal work go on.
- 132 SMs are 16 groups of 8 and 4 more, which `partition` gives to nobody.
- A world of k SMs is a green context of k SMs, for both networks. `vacate` does not confine the
  critical one in there: contexts that overlap may not have work at once (docs/bench.md).
- *drift*: largest median latency alone / smallest - 1 over the rounds of a cell, the Python loop
  included. Where it is above 5 %, differences of that size mean nothing.
"""
MPS = """- `mps`: two processes under the Multi-Process Service, the critical one with client
  priority 0, the normal one with 1; no other control. Rows in worlds that are active thread
  percentages are left out: those limit how many SMs a process uses and not which, so two processes
  are not confined to the same ones. {worlds}.
"""
COLUMNS = (
    "pair",
    "policy",
    "service p50",
    "p99",
    "over floor p50",
    "p99",
    "latency p50",
    "p99",
    "H",
    "of rest",
    "yield p99",
    "n",
    "drift",
    "verified",
    "frontier",
)
RUN = """| file | GPU | driver | CUDA | date | SM clock when written, MHz | Miriam | rows |
|---|---|---|---|---|---|---|---|"""


def run_lines(reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table with a line per report of ``miriam bench``: what it was measured on; then notes."""
    yield RUN
    for report in reports:
        driver, clocks = report["driver"], report["clocks"]
        cells = (
            f"data/{report['file']}",
            report["gpu"],
            driver["name"],
            f"{driver['cuda'] // 1000}.{driver['cuda'] % 1000 // 10}",
            report["date"],
            f"{clocks['clocks.sm']} of {clocks['clocks.max.sm']}",
            report["versions"].get("miriam-gpu", "-"),
            len(report["rows"]),
        )
        yield f"| {' | '.join(map(str, cells))} |"
    yield from note_lines(reports)


def note_lines(reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was noted in reports, as ``note``, that later changes have overtaken."""
    noted: dict[str, list[str]] = {}
    for report in reports:
        if "note" in report:
            noted.setdefault(report["note"], []).append(f"`data/{report['file']}`")
    for note, files in noted.items():
        yield f"\n*{', '.join(files)}: {note}*"


def command_lines(reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The commands that made the reports, indented as Markdown has code."""
    for report in reports:
        file = f"docs/results/data/{report['file']}"
        if "mps" in report:
            yield f"    python -m benchmarks.mps_gpu {file} {report['mps']['arguments']}".rstrip()
            continue
        asked = report["options"]
        given = {
            "device": asked["device"],
            "pair" if asked["benchmark"] == "pairs" else "workload": asked["workloads"],
            "gap-us": [f"{gap:g}" for gap in asked["gaps_us"]],
            "world": [str(sms) for sms in asked["worlds"]],
            "policy": asked["policies"],
            "seconds": f"{asked['seconds']:g}",
            "in-flight": str(asked["in_flight"]),
            "seed": str(asked["seed"]),
            "json": file,
        }
        yield f"    miriam bench {asked['benchmark']} \\"
        words = [
            f"--{name} {shlex.quote(value if isinstance(value, str) else ','.join(value))}"
            for name, value in given.items()
            if value
        ]
        yield "        " + " \\\n        ".join(words)


def head(merged: Merged) -> str:
    """The page down to the tables."""
    text = HEAD.format(
        count=len(merged.rows),
        verified=sum(row.verified is True for row in merged.rows),
        wins="\n".join(who_wins(merged.cells)),
        cells="\n".join(each_cell(merged.cells)),
        frontiers="\n".join(frontiers(merged.cells)),
        runs="\n".join(run_lines(merged.reports)),
        median=CHARTS[False].name,
        tail=CHARTS[True].name,
        queued=QUEUED,
        loop=_under_way(merged),
    )
    found = [report["mps"] for report in merged.reports if "mps" in report]
    worlds = [w for mps in found for w in mps["worlds"] if w["percentage"] is None]
    if worlds:
        text += MPS.format(worlds="; ".join(_mps_world(world) for world in worlds))
    reasons = [mps["reason"] for mps in found if mps["reason"]]
    return text + "".join(f"- `mps` is not there: {reason}\n" for reason in reasons)


def _under_way(merged: Merged) -> str:
    """The shares of closed loops in which a critical network alone is served."""
    duties = [row.duty for row in merged.rows if row.cell.gap_us == CLOSED_LOOP_US]
    return f"{min(duties):.0%} to {max(duties):.0%}" if duties else "an unknown part"


def tables(cells: dict[Cell, list[Row]]) -> Iterator[str]:
    """A table per world and gap."""
    for place in dict.fromkeys((c.gpu, c.gap, c.world) for c in cells):
        shown = {
            cell: rows for cell, rows in cells.items() if (cell.gpu, cell.gap, cell.world) == place
        }
        gpu, gap, world = place
        files = dict.fromkeys(row.file for rows in shown.values() for row in rows)
        yield f"\n### {world}, {gap}\n\n{gpu}, from {', '.join(f'data/{f}' for f in files)}.\n"
        yield f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
        for cell, rows in shown.items():
            best, lowest = frontier(rows), floor(rows)
            for index, row in enumerate(rows):
                name = cell.pair if index == 0 else ""
                yield f"| {' | '.join([name, *_cells(row, lowest, row in best)])} |"


def _cells(row: Row, lowest: Row | None, best: bool) -> Sequence[str]:
    return (
        row.policy,
        _number(row.service50),
        _number(row.service99),
        _number(_over(row.service50, lowest.service50 if lowest else None)),
        _number(_over(row.service99, lowest.service99 if lowest else None)),
        _number(row.p50),
        _number(row.p99),
        _number(row.H),
        _number(row.of_rest),
        _number(row.yield99_us, 1),
        str(row.n),
        "-" if row.drift is None else f"{100 * row.drift:.0f} %",
        {True: "yes", False: "**NO**", None: "-"}[row.verified],
        "x" if best else "",
    )


def _over(value: float | None, lowest: float | None) -> float | None:
    return None if value is None or lowest is None else value / lowest


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _mps_world(world: dict[str, object]) -> str:
    seen = f"{world['critical_sms']} and {world['normal_sms']} SMs seen to run blocks"
    return f"{world['world']}: {seen}, {world['shared_sms']} of them by both"


def page(merged: Merged) -> str:
    """The whole page."""
    cells = merged.cells
    parts = [
        head(merged),
        *counts(cells),
        "\n## Targets\n",
        *targets(cells, merged.shares),
        "\n## All rows",
        *tables(cells),
        "\n## Commands\n",
        *command_lines(merged.reports),
    ]
    return "\n".join(parts)


def main() -> None:
    """Write the charts and print the page."""
    merged = load(map(Path, sys.argv[1:]))
    if not merged.rows:
        reasons = [json.dumps(report.get("mps")) for report in merged.reports]
        raise SystemExit(f"no rows in {len(reasons)} reports: {', '.join(reasons)}")
    source = "; ".join(dict.fromkeys(f"{r['gpu']}, {r['date']}" for r in merged.reports))
    for tail, path in CHARTS.items():
        path.write_bytes(overhead_against_rate(merged.cells, source, tail=tail))
    print(page(merged))


if __name__ == "__main__":
    main()
