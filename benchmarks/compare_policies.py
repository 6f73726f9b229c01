"""Puts the simulator's answer beside a GPU's, policy by policy.

    python -m benchmarks.compare_policies GPU.json... SIM.json... > PAGE.md

All are reports of ``miriam bench pairs``; every measured cell has to be in a simulated one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.pairs_page import note_lines

HEAD = """\
# The simulator beside the GPU, policy by policy

The same pairs, gaps and policies on {gpu} (measured, {date}) and on its simulated counterpart.
*slow-down*: the critical network's service, from its first kernel on, over that alone, p50; *H*:
the normal network's rate over its rate alone. Made by `python -m benchmarks.compare_policies` from
{files}; simulated reports again by their own options (`miriam bench --replay`).{notes}

How to read it: on the whole GPU these networks leave most SMs idle, and the simulator finds less
contention there than the GPU has, in caches and queues that are not in the model. So a simulated
slow-down near 1.00 on a large, empty GPU means "not modelled", not "none". The normal network's
rate agrees better, but for `miriam-host`: the simulated host sees everything at once, a real one in
Python does not. `miriam-measured` measures and tries where it runs, so that it may choose other
plans in the simulator than on the GPU. A closed loop on the GPU has the host in it, which leaves
normal work some time even where all of it is held. `vacate` confines the critical network in the
simulator, and on the GPU only where it is not a world of some SMs.
"""

Report = dict[str, Any]
Pair = tuple[Report, Report]


def main(*files: str) -> None:
    """Print the page."""
    reports = [{"file": Path(name).name, **json.loads(Path(name).read_text())} for name in files]
    measured = [report for report in reports if not report["simulated"]]
    simulated = {
        (_sms(row), row["workload"], row["policy"]): row
        for report in reports
        if report["simulated"]
        for row in report["rows"]
    }
    if not measured:
        raise SystemExit("reports: at least one that was measured on a GPU")
    rows = [(row, _same(simulated, row)) for report in measured for row in report["rows"]]
    named = ", ".join(f"`data/{report['file']}`" for report in reports)
    notes = "".join(f"\n{line}" for line in note_lines(reports))
    gpu, date = measured[0]["gpu"], measured[0]["date"]
    print(HEAD.format(gpu=gpu, date=date, files=named, notes=notes), end="")
    for sms in sorted({_sms(row) for row, _ in rows}):
        _world(sms, [pair for pair in rows if _sms(pair[0]) == sms])


def _world(sms: int, rows: Sequence[Pair]) -> None:
    """Print what is known of a world, 0 for all SMs."""
    print(f"\n## {f'{sms} SMs' if sms else 'All SMs'}\n")
    print("| policy | slow-down, GPU | simulated | H, GPU | simulated |\n|---|---|---|---|---|")
    for policy in dict.fromkeys(row["policy"] for row, _ in rows):
        pairs = [pair for pair in rows if pair[0]["policy"] == policy]
        slow = [median(_slow(pair[i]) for pair in pairs) for i in (0, 1)]
        share = [median(_rate(pair[i]) for pair in pairs) for i in (0, 1)]
        print(f"| {policy} | {slow[0]:.2f} | {slow[1]:.2f} | {share[0]:.2f} | {share[1]:.2f} |")
    off = exp(fmean(abs(log(_slow(a) / _slow(b))) for a, b in rows))
    apart = fmean(abs(_rate(a) - _rate(b)) for a, b in rows)
    print(
        "\nMedians over pairs and gaps. Over all rows the slow-downs differ by a typical factor of"
    )
    print(f"{off:.2f}, H by {apart:.2f} on average.")
    print("\n| pair, gap | policy | slow-down, GPU | simulated | H, GPU | simulated |")
    print("|---|---|---|---|---|---|")
    for a, b in rows:
        figures = f"{_slow(a):.2f} | {_slow(b):.2f} | {_rate(a):.2f} | {_rate(b):.2f}"
        print(f"| {a['workload']} | {a['policy']} | {figures} |")


def _same(simulated: Mapping[tuple[int, str, str], Report], row: Report) -> Report:
    """The simulated row of the same world, workload and policy."""
    key = _sms(row), row["workload"], row["policy"]
    if key not in simulated:
        raise SystemExit(
            f"{row['world']} {row['workload']} {row['policy']}: not in any simulated report"
        )
    return simulated[key]


def _sms(row: Report) -> int:
    """Of ``sim:h200:32`` or ``cuda:0:32`` 32, of a whole GPU 0."""
    _, _, sms = row["world"].split(":", 1)[1].partition(":")
    return int(sms or 0)


def _slow(row: dict[str, Any]) -> float:
    critical = row["critical"]
    return float(critical["service_p50_us"] / critical["solo_service_p50_us"])


def _rate(row: dict[str, Any]) -> float:
    return float(row["normal"][0]["H"])


if __name__ == "__main__":
    main(*sys.argv[1:])
