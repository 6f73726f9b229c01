"""Writes docs/results/mdtb-h200.md: the paper's workloads measured on a GPU, beside its numbers.

    miriam bench mdtb --device cuda:0 --json docs/results/data/h200-mdtb.json
    python -m benchmarks.mdtb_page docs/results/data/h200-{mdtb,lgsvl,growth}*.json \
        > docs/results/mdtb-h200.md

Takes reports of ``miriam bench mdtb``, ``lgsvl`` and ``growth``, in any world. The paper's numbers
are those of miriam/bench/paper.toml.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.pairs_page import command_lines, run_lines
from miriam.bench.paper import DATA, Claim, Data

Report = dict[str, Any]
TITLES = {
    "mdtb": "MDTB",
    "lgsvl": "LGSVL driving trace",
    "growth": "Growth: one critical network beside more and more normal ones",
    "alexnets": "Two AlexNets",
}
HEAD = """# The paper's workloads, measured

MDTB, the driving trace and growth with our CUDA networks on a GPU; {count} rows, {verified} of them
with every output equal, bit for bit, to that of the same network alone. The paper's figures (arXiv
2307.04339, section 8) were measured on an RTX 2060 (30 SMs) and a Jetson AGX Xavier (8 SMs).
`python -m benchmarks.mdtb_page` writes this page from the reports below.

{runs}

**What differs.** The GPU: a world of k SMs here keeps the caches and the memory bandwidth of the
whole GPU, which edge GPUs do not have. The kernels: the paper does not say whether its networks
run the Tango suite's kernels unchanged; ours are tiled ones. The coordinator: the paper's runs on
the host, that of `miriam` on the GPU. `sequential`, which the paper divides by, is our own driver's
round robin. So this page shows what the same workloads do here, and not whether the paper's numbers
are right.

Latency is the critical network's median from its first kernel on, over Sequential's, as the paper
has it (of the first one where two are critical); those of fewer than {least} requests are not put
beside the paper's. Throughput is requests per second of all networks over Sequential's, which the
smaller network rules where they are unlike, and the arrivals where they have rates. *alone* is over
the same network alone. STP is the sum of rates over rates alone. Occupancy is from the residency of
blocks (each step's time alone and the warps that its blocks keep resident then), not from the
hardware's counters. *drift*: largest median latency alone / smallest - 1 over the rounds; of a few
requests, each of which wakes an idle GPU and a Python loop, it is large, and the latency's p99
means little. Services are times of the GPU.
"""
CLAIMS = """
## Beside the paper's numbers

| figure | paper, RTX 2060 | paper, Xavier | {worlds} |
|---|---|---|{rule}"""
COLUMNS = (
    "workload",
    "policy",
    "service vs sequential",
    "service p50, alone",
    "service p99, alone",
    "latency p50, alone",
    "latency p99, alone",
    "n",
    "H",
    "req/s vs sequential",
    "STP",
    "occupancy",
    "drift",
    "verified",
)
LEAST_REQUESTS = 30
"""A latency of fewer is an anecdote, and not put beside the paper's."""

_FIGURES = {"latency": "latency_vs_sequential", "throughput": "throughput_vs_sequential"}


def load(paths: Sequence[Path]) -> list[Report]:
    """The reports; SystemExit for one that is not of these benchmarks on a GPU."""
    found = []
    for path in paths:
        report = json.loads(path.read_text())
        kind = report.get("options", {}).get("benchmark")
        if report["simulated"] or kind not in TITLES:
            kinds = ", ".join(TITLES)
            raise SystemExit(f"{path}: a report of {kinds} on a GPU is wanted")
        if any("solo_service_p99_us" not in row["critical"] for row in report["rows"]):
            raise SystemExit(f"{path}: no solo_service_p99_us; run it again with this version")
        found.append({**report, "file": path.name})
    return found


def claims(reports: Sequence[Report]) -> Iterator[str]:
    """A line per number of the paper, a column per world."""
    data = msgspec.convert(tomllib.loads(DATA.read_text(encoding="utf-8")), Data)
    known = [claim for claim in data.claim if claim.figure in _FIGURES]
    worlds = _worlds(reports)
    yield CLAIMS.format(worlds=" | ".join(worlds.values()), rule="---|" * len(worlds))
    for text in dict.fromkeys(claim.text for claim in known):
        same = [claim for claim in known if claim.text == text]
        paper = {claim.gpu: claim.paper for claim in same}
        cells = [text, *(paper.get(gpu, "-") for gpu in ("rtx2060", "xavier"))]
        cells += [_measured(reports, world, same[0]) for world in worlds]
        yield f"| {' | '.join(cells)} |"


def _measured(reports: Sequence[Report], world: str, claim: Claim) -> str:
    for report in reports:
        for row in report["rows"]:
            place = row["world"], row["workload"], row["policy"]
            if place == (world, claim.workload, claim.policy):
                critical = row["critical"]
                if claim.figure == "latency" and critical["requests"] < LEAST_REQUESTS:
                    return f"n = {critical['requests']}"
                found = critical if claim.figure == "latency" else row
                return _number(found[_FIGURES[claim.figure]], "x")
    return "-"


def _worlds(reports: Sequence[Report]) -> dict[str, str]:
    """The worlds by name, and what people call them: the largest first."""
    names = {row["world"] for report in reports for row in report["rows"]}
    sms = {name: int(([*name.split(":"), "0"])[2] or 0) for name in names}
    order = sorted(names, key=lambda name: -(sms[name] or 1_000_000))
    return {name: f"{sms[name]} SMs" if sms[name] else "all SMs" for name in order}


def tables(reports: Sequence[Report]) -> Iterator[str]:
    """All rows, a table per benchmark and world."""
    for kind, title in TITLES.items():
        same = [report for report in reports if report["options"]["benchmark"] == kind]
        for world, name in _worlds(same).items():
            yield f"\n## {title}, {name}\n"
            yield f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
            for row in (row for report in same for row in report["rows"]):
                if row["world"] == world:
                    yield f"| {' | '.join(_cells(row))} |"


def _cells(row: dict[str, Any]) -> Sequence[str]:
    critical = row["critical"]
    ratios = (
        _over(critical[f"{part}{percentile}_us"], critical[f"solo_{part}{percentile}_us"])
        for part in ("service_", "")
        for percentile in ("p50", "p99")
    )
    rates = ", ".join(_number(task["H"]) for task in row["normal"])
    drift = row.get("drift")
    return (
        _workload(row),
        row["policy"],
        _number(critical["latency_vs_sequential"], "x"),
        *ratios,
        str(critical["requests"]),
        rates,
        _number(row["throughput_vs_sequential"], "x"),
        _number(row["stp"]),
        f"{100 * row['achieved_occupancy']:.0f} %",
        "-" if drift is None else f"{100 * drift:.0f} %",
        {True: "yes", False: "**NO**", None: "-"}[row["verified"]],
    )


def _workload(row: dict[str, Any]) -> str:
    tasks = row.get("criticals", [row["critical"]]), row["normal"]
    names = [", ".join(task["task"] for task in part) for part in tasks]
    rates = row.get("rates_hz")
    asked = f", {' and '.join(f'{hz:g}' for hz in rates)} Hz" if rates else ""
    return f"{row['workload']}: {names[0]} + {names[1]}{asked}"


def _over(value: float | None, alone: float | None) -> str:
    return "-" if value is None or not alone else _number(value / alone)


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.2f}{unit}"


def page(reports: Sequence[Report]) -> str:
    """The whole page."""
    rows = [row for report in reports for row in report["rows"]]
    head = HEAD.format(
        count=len(rows),
        least=LEAST_REQUESTS,
        verified=sum(row["verified"] is True for row in rows),
        runs="\n".join([*run_lines(reports), "\nMade by:\n", *command_lines(reports)]),
    )
    return "\n".join([head.rstrip(), *claims(reports), *tables(reports)])


def main() -> None:
    """Print the page."""
    print(page(load([Path(path) for path in sys.argv[1:]])))


if __name__ == "__main__":
    main()
