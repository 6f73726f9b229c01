"""Writes docs/results/elastic-h200.md from what benchmarks/elastic_gpu.py measured.

    python -m benchmarks.elastic_page docs/results/data/h200-elastic-{original,1,none}.json > \
        docs/results/elastic-h200.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

HEAD = """# Elastic kernels on an H200

The generator's output for the kernels of our networks, on {gpu} (driver API {driver}, {date}, all
compiled with `-fmad=false`). `python -m benchmarks.elastic_gpu OUT.json [BOUND]` measures, the
figures are in `docs/results/data/h200-elastic-*.json`, and `python -m benchmarks.elastic_page`
writes this page. Clocks were left as they were.
"""
BITS = """\
## Bits

Every step of every network: two slices, persistent blocks (1, 7, a full GPU), and the yield form
stopped at random moments by a word that another stream writes and resumed until done. After each,
all buffers of the network are compared with those that the original kernel leaves, byte for byte;
in-place steps are among them. The runs with the three bounds below count together.
"""
COST = """
## Cost of the elastic form

Original's time / yield form's time, both alone, words open, as many physical blocks as fill the
world; for all steps of a network together, and the least of the steps of 50 us and more. Gates and
resume nodes are not in it. The columns are what the forms were compiled for: no bound, as many
resident blocks as the original has (`MIRIAM_RESIDENT_BLOCKS`, docs/elasticize.md), or one.
"""
COST_READING = """
- The launch bound decides. Left to itself the compiler spends fewer registers on a body inside a
  loop than on the original, prefetches less, and the form loses up to a fifth where few blocks
  share an SM. A bound of one gives the registers back, and on 132 and 32 SMs the form is then about
  as fast as the original; in small worlds it can hold fewer blocks and lose there.
- Which bound is best depends on the step and the world: a thing to measure for each step.
- A claim loop costs 1.4 to 2.2 us a step ([device.md](device.md)). For short steps that is the
  whole difference, and the reason why a short step should run its original behind a gate.
"""
YIELD = """
## How fast a step yields

From the end of the write of the word to the end of a launch that fills the world, for steps of at
least 50 us and two waves, compiled for the original's resident blocks. A yield costs what is left
of the running blocks, so it is as fast as they are short.

| SMs | blocks of | steps | p50 us, median and worst step | p99 us, worst step |
|---|---|---|---|---|
"""
BANDS = ((0, 10), (10, 20), (20, 50), (50, 1_000))


def bits(reports: Sequence[dict[str, Any]]) -> Iterable[str]:
    """A line per network."""
    yield "| network | steps | stops | different |\n|---|---|---|---|"
    for name, first in reports[0]["bits"].items():
        found = [report["bits"][name] for report in reports]
        different = ", ".join(d for f in found for d in f["different"]) or "none"
        yield f"| {name} | {first['steps']} | {sum(f['stopped'] for f in found)} | {different} |"


def ratios(report: dict[str, Any], place: tuple[int, str]) -> tuple[float, list[float]]:
    """Of a network in a world: all steps together, and each step of 50 us and more."""
    rows = [r for r in report["cost"] if (r["sms"], r["network"]) == place]
    whole = sum(r["original_us"] for r in rows) / sum(r["yield_us"] for r in rows)
    return whole, [r["original_us"] / r["yield_us"] for r in rows if r["original_us"] >= 50]


def cost(reports: Sequence[dict[str, Any]]) -> Iterable[str]:
    """A line per world and network."""
    by_bound = {report["bound"]: report for report in reports}
    bounds = [b for b in ("none", "original", "1") if b in by_bound]
    yield f"| SMs | network | {' | '.join(f'bound {b}: all | least' for b in bounds)} |"
    yield f"|{'---|' * (2 + 2 * len(bounds))}"
    for place in dict.fromkeys((r["sms"], r["network"]) for r in reports[0]["cost"]):
        cells = []
        for bound in bounds:
            whole, long = ratios(by_bound[bound], place)
            cells.append(f"{whole:.3f} | {min(long):.3f}" if long else f"{whole:.3f} | -")
        yield f"| {place[0]} | {place[1]} | {' | '.join(cells)} |"


def yields(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    """A line per world and length of a block."""
    for sms in sorted({r["sms"] for r in rows}, reverse=True):
        for low, high in BANDS:
            found = [r for r in rows if r["sms"] == sms and low <= r["block_us"] < high]
            if found:
                p50 = sorted(r["p50_us"] for r in found)
                worst = max(r["p99_us"] for r in found)
                span = f"{low} to {high} us" if high < 1_000 else f"{low} us and more"
                yield (
                    f"| {sms} | {span} | {len(found)} | {p50[len(p50) // 2]}, {p50[-1]} | {worst} |"
                )


def main() -> None:
    """Print the page."""
    reports = [json.loads(Path(path).read_text()) for path in sys.argv[1:]]
    original = next(report for report in reports if report["bound"] == "original")
    print(HEAD.format(**original))
    for note in original.get("notes", ()):
        print("\n".join(wrap(note, 100)) + "\n")
    print(BITS)
    print("\n".join(bits(reports)))
    print(COST)
    print("\n".join(cost(reports)))
    print(COST_READING + YIELD, end="")
    print("\n".join(yields(original["yields"])))


if __name__ == "__main__":
    main()
