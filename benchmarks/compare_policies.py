"""Puts the simulator's answer beside a GPU's, policy by policy.

    python -m benchmarks.compare_policies GPU.json SIM.json > docs/results/sim-vs-h200-policies.md

Both are reports of ``miriam bench pairs`` on the same pairs, gaps and policies.
"""

from __future__ import annotations

import json
import sys
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

HEAD = """\
# The simulator beside the GPU, policy by policy

The same pairs, gaps and policies on {gpu} (measured, {date}) and on {sim} (simulated). *slow-down*:
the critical network's service, from its first kernel on, over that alone, p50; *H*: the normal
network's rate over its rate alone. Made by `python -m benchmarks.compare_policies` from
`data/{gpu_file}` and `data/{sim_file}`; the simulated report again by its own options
(`miriam bench --replay`).

How to read it: on the whole GPU these networks leave most SMs idle, and the simulator finds next to
no contention there, whatever the policy; the GPU does, in caches and queues that the model has not.
So a simulated slow-down near 1.00 on a large, empty GPU means "not modelled", not "none". The
normal network's rate agrees better, but for `miriam-host`: the simulated host sees everything at
once, a real one in Python does not.

| policy | slow-down, GPU | simulated | H, GPU | simulated |
|---|---|---|---|---|
"""


def main(gpu_file: str, sim_file: str) -> None:
    """Print the page."""
    gpu, sim = (json.loads(Path(name).read_text()) for name in (gpu_file, sim_file))
    rows = [(row, _same(sim, row)) for row in gpu["rows"]]
    named = {"gpu_file": Path(gpu_file).name, "sim_file": Path(sim_file).name}
    print(HEAD.format(gpu=gpu["gpu"], date=gpu["date"], sim=sim["device"], **named), end="")
    for policy in gpu["policies"]:
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


def _same(sim: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """The simulated row of the same workload and policy."""
    key = row["workload"], row["policy"]
    found: dict[str, Any] = next(r for r in sim["rows"] if (r["workload"], r["policy"]) == key)
    return found


def _slow(row: dict[str, Any]) -> float:
    critical = row["critical"]
    return float(critical["service_p50_us"] / critical["solo_service_p50_us"])


def _rate(row: dict[str, Any]) -> float:
    return float(row["normal"][0]["H"])


if __name__ == "__main__":
    main(*sys.argv[1:])
