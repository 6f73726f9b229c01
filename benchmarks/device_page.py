"""Writes docs/results/device.md from what benchmarks/device_gpu.py measured.

python -m benchmarks.device_page docs/results/data/h200-device.json > docs/results/device.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

Rows = Sequence[dict[str, Any]]

HEAD = """# The CUDA device on a GPU

Measured on {gpu} (driver for CUDA {driver}, Miriam {miriam}, Python {python}, {date}) in
{seconds} s by `python -m benchmarks.device_gpu OUT.json`; the figures are in
`docs/results/data/h200-device.json`, and `python -m benchmarks.device_page` writes this page.
Clocks were left as they were. A world is a green context of so many SMs, or the whole GPU. All
times are in us.
"""
TARGETS = """
## Targets

| What | Target | World | Measured | |
|---|---|---|---|---|"""
COSTS = """
## Costs

p50, p99 in each world. "Over the original" is a chain of 40 short steps in a graph, its time per
step less that of the originals. Control writes and yields are submitted while persistent blocks of
1,024 threads and 62 registers fill the register file of every SM; both count from the submission of
the graph that writes.
"""
STEPS = """
## Elastic steps alone

Original's time / time of what a session records for the step (yield form, gate, rest; from
{while_from_us:g} us on a WHILE node), everything open, per step from 20 us up. "Claim" is the yield
form without gate and rest.

| SMs | network | steps | claim: least | 20 to 50 us: median, least | from 50 us: median, least |
|---|---|---|---|---|---|"""
MISSES = """
Steps from 50 us that miss 0.97, and where their time goes:

| SMs | network | step | original | yield form | + gate, rest | ratio | resumed by |
|---|---|---|---|---|---|---|---|"""
YIELDS = """
## How fast real steps yield

A copy from page-locked memory shuts the step at random moments of its first 60 %. A yield costs the
write, and what is left of the running blocks.

| SMs | blocks of | steps | p50: median step, worst | p99: worst step |
|---|---|---|---|---|"""
LOCKSTEP = """
## Does a critical graph wait for normal ones?

A critical graph of 20 small kernels beside normal graphs that leave it room on every SM: single
warps (`rigid`), or a grid of which one block may go on (`quota`). The time from its first to its
last kernel over that alone, and from submission to its first kernel.

| SMs | CUDA_DEVICE_MAX_CONNECTIONS | beside | streams: ratio (start us) |
|---|---|---|---|"""
BANDS = ((0, 10), (10, 20), (20, 50), (50, 100_000))
TARGET_RATIO = 0.97
SUBMITTING = ("cuLaunch", "cuMemcpy", "cuMemset", "cuStreamW", "cuStreamB", "cuEventRecord")
"""Calls that give the GPU work, the launch of a graph apart."""


def ratio(row: dict[str, Any], mode: str = "chosen") -> float:
    """The original's time over that of ``mode``."""
    found: float = row["original_us"] / row[f"{mode}_us"]
    return found


def middle(values: Iterable[float]) -> float:
    """The median, the upper one of two."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def targets(report: dict[str, Any]) -> Iterable[str]:
    """A line per target and world."""
    for world in report["worlds"]:
        for cost in world["costs"]:
            if cost["target_us"] is not None:
                value = cost[f"{cost['against']}_us"]
                verdict = "met" if value <= cost["target_us"] else "**missed**"
                what = f"{cost['what']} ({cost['against']})"
                where = f"{cost['target_us']:g} | {world['sms']}"
                yield f"| {what} | {where} | {value:.2f} | {verdict} |"
    for world in report["worlds"]:
        fast = [
            r for r in report["steps"] if r["sms"] == world["sms"] and r.get("block_us", 99) <= 10
        ]
        if fast:
            worst = max(r["yield_p99_us"] for r in fast)
            verdict = "met" if worst <= 20 else "**missed**"
            what = f"yield p99, worst of {len(fast)} real steps with blocks <= 10 us"
            yield f"| {what} | 20 | {world['sms']} | {worst} | {verdict} |"
        long = [
            ratio(r) for r in report["steps"] if r["sms"] == world["sms"] and r["original_us"] >= 50
        ]
        if long:
            reached = sum(r >= TARGET_RATIO for r in long)
            what = "elastic step alone from 50 us, gate and resume included"
            text = (
                f"{reached} of {len(long)} steps; median {middle(long):.3f}, least {min(long):.3f}"
            )
            verdict = "met" if reached == len(long) else "**missed**"
            yield f"| {what} | >= {TARGET_RATIO} | {world['sms']} | {text} | {verdict} |"
    calls = report["calls"]
    if calls:
        text = ", ".join(f"{n} {c:g}" for n, c in sorted(calls["calls_per_request"].items()))
        extra = sorted(n for n in calls["calls_per_request"] if n.startswith(SUBMITTING))
        verdict = "**missed**" if extra else "met"
        other = ", ".join(extra) or "nothing but the graph"
        yield f"| host cost per decision | 0 | all | submits {other} | {verdict} |"
        verdict = "met" if calls["calls_per_request"].get("cuGraphLaunch") == 1 else "**missed**"
        yield f"| driver calls per request | one launch | all | {text} | {verdict} |"


def costs(worlds: Rows) -> Iterable[str]:
    """A line per cost, a column per world; blocks of a step differ a little between worlds."""
    heads = " | ".join(f"{world['sms']} SMs" for world in worlds)
    yield f"| Cost | {heads} |"
    yield f"|---|{'---|' * len(worlds)}"
    for index, cost in enumerate(worlds[0]["costs"]):
        cells = (w["costs"][index] for w in worlds if index < len(w["costs"]))
        row = " | ".join(f"{c['p50_us']:.2f}, {c['p99_us']:.2f}" for c in cells)
        yield f"| {cost['what']} | {row} |"


def steps(rows: Rows) -> Iterable[str]:
    """A line per world and network."""
    for sms, network in dict.fromkeys((r["sms"], r["network"]) for r in rows):
        found = [r for r in rows if (r["sms"], r["network"]) == (sms, network)]
        short = [ratio(r) for r in found if r["original_us"] < 50]
        long = [ratio(r) for r in found if r["original_us"] >= 50]
        cells = (f"{middle(part):.3f}, {min(part):.3f}" if part else "-" for part in (short, long))
        claim = min(ratio(r, "claim") for r in found)
        yield f"| {sms} | {network} | {len(found)} | {claim:.3f} | {' | '.join(cells)} |"


def misses(rows: Rows) -> Iterable[str]:
    """A line per step that misses its target, the worst first."""
    missing = [r for r in rows if r["original_us"] >= 50 and ratio(r) < TARGET_RATIO]
    for r in sorted(missing, key=ratio):
        where = f"| {r['sms']} | {r['network']} | {r['step']} | {r['original_us']:.1f}"
        rest = r["chosen_us"] - r["claim_us"]
        times = f"{r['claim_us'] - r['original_us']:+.1f} | {rest:+.1f} | {ratio(r):.3f}"
        yield f"{where} | {times} | {r['resumed_by']} |"


def yields(rows: Rows) -> Iterable[str]:
    """A line per world and length of a block."""
    for sms in dict.fromkeys(r["sms"] for r in rows):
        for low, high in BANDS:
            found = [r for r in rows if r["sms"] == sms and low <= r.get("block_us", -1) < high]
            if found:
                p50 = [r["yield_p50_us"] for r in found]
                p99 = max(r["yield_p99_us"] for r in found)
                span = f"{low} to {high} us" if high < 1_000 else f"{low} us and more"
                yield f"| {sms} | {span} | {len(found)} | {middle(p50)}, {max(p50)} | {p99} |"


def lockstep(worlds: Rows) -> Iterable[str]:
    """A line per world, setting and kind."""
    rows = [r for w in worlds for r in w["lockstep"]]
    for key in dict.fromkeys((r["sms"], r["connections"], r["kind"]) for r in rows):
        found = [r for r in rows if (r["sms"], r["connections"], r["kind"]) == key]
        cells = ", ".join(
            f"{r['streams']}: {r['p50_us'] / r['alone_us']:.2f} ({r['start_us']:.0f})"
            for r in found
        )
        yield f"| {key[0]} | {key[1] or 'not set'} | {key[2]} | {cells} |"


def main() -> None:
    """Print the page."""
    report = json.loads(Path(sys.argv[1]).read_text())
    worlds, rows = report["worlds"], report["steps"]
    print(HEAD.format(**report, driver=worlds[0]["driver"]), end="")
    for note in report.get("notes", ()):
        print("\n" + "\n".join(wrap(note, 100)))
    print("\n".join([TARGETS, *targets(report), COSTS, *costs(worlds)]))
    print("\n".join([STEPS.format(**report), *steps(rows), MISSES, *misses(rows)]))
    print("\n".join([YIELDS, *yields(rows), LOCKSTEP, *lockstep(worlds)]))
    for head in ("left_out", "errors"):
        if report[head]:
            print(f"\nNot measured ({head}): {'; '.join(report[head])}")


if __name__ == "__main__":
    main()
