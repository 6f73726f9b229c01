"""Sets the simulated H200 beside the real one and writes docs/results/sim-vs-h200.md.

    python -m benchmarks.compare_sim docs/results/data/h200-multistream.json > \
        docs/results/sim-vs-h200.md
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from miriam import models
from miriam.coordinator import Task, policies
from miriam.devices.sim import SimDevice, preset
from miriam.kernels import Program

WINDOW_NS = 60_000_000
HEAD = """# The simulator against an H200

How far can a simulated figure be trusted? The same kernels of ours, alone and under multi-stream
with priority, on a real H200 and on `sim:h200`, whole and in worlds of 32, 16 and 8 SMs (green
contexts on the GPU). Three parameters of the model (issue efficiency, saturating warps, start of
a block), the node cost and the L2 bandwidth were chosen on the times *alone*; the co-run figures
are predictions.

- Measured on {gpu}, driver API {driver}, {date}: `python -m benchmarks.multistream_gpu OUT.json`;
  the figures are in `docs/results/data/h200-multistream.json`. Clocks were left as they were.
- Simulated: `python -m benchmarks.compare_sim docs/results/data/h200-multistream.json`.
"""
READING = """
## Reading it

- Ranking holds: where multi-stream hurts on the GPU it hurts in the simulator, and the worlds
  come in the same order.
- On the whole GPU (132 SMs) and wherever little is contended the simulator is too kind: blocks
  that fit side by side do not disturb each other in it.
- At 4 and 8 streams the host that feeds the real GPU is a Python process, which launches at most
  about 40,000 graphs a second; the simulated host is three times faster. Its H is against a
  higher rate alone and so reads lower.
- p99 is worse on the GPU: nothing in the simulator is random but the arrivals.
"""


class Simulated:
    """One world of the simulated GPU."""

    def __init__(self, sms: int) -> None:
        self._device = SimDevice(preset("h200").world(sms))
        self._programs: dict[str, Program] = {}

    def _program(self, name: str) -> Program:
        if name not in self._programs:
            self._programs[name] = models.load(name, "sm_90")
        return self._programs[name]

    def run(self, critical: str | None, normal: str | None, depth: int) -> tuple[list[float], int]:
        """Service times of the critical network, us, and how many normal requests completed."""
        tasks, window_ns = [], WINDOW_NS
        if critical is not None:
            tasks.append(Task("critical", self._program(critical), critical=True))
        if normal is not None:
            tasks.append(Task("normal", self._program(normal), in_flight=depth))
        session = self._device.open(tasks, policies.get("multistream"))
        for index, task in enumerate(tasks):
            for _ in range(task.in_flight):
                session.submit(index, 0)
        times, completed = [], 0
        while session.now_ns < window_ns:
            for done in session.advance(window_ns):
                if tasks[done.task].critical:
                    times.append((done.finish_ns - done.start_ns) / 1e3)
                else:
                    completed += 1
                session.submit(done.task, session.now_ns)
        return times, completed


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def solo_lines(world: dict[str, Any], simulated: Simulated) -> Iterator[tuple[str, float]]:
    """A table line per network, and the logarithm of simulated / measured."""
    for name, real_us in world["solo_us"].items():
        sim_us = quantile(simulated.run(name, None, 1)[0], 0.5)
        ratio = sim_us / real_us
        line = f"| {world['sms']} | {name} | {real_us:.0f} | {sim_us:.0f} | {ratio:.2f} |"
        yield line, math.log(ratio)


def pair_lines(world: dict[str, Any], simulated: Simulated) -> Iterator[tuple[str, float]]:
    """A table line per pair, and the logarithm of simulated / measured slowdown."""
    for pair in world["pairs"]:
        first, second, depth = pair["critical"], pair["normal"], pair["in_flight"]
        alone = simulated.run(first, None, 1)[0]
        base = simulated.run(None, second, depth)[1]
        beside, completed = simulated.run(first, second, depth)
        p50, p99 = (quantile(beside, q) / quantile(alone, q) for q in (0.5, 0.99))
        yield (
            f"| {world['sms']} | {first} | {second} x{depth} "
            f"| {pair['p50']:.2f} | {p50:.2f} | {pair['p99']:.2f} | {p99:.2f} "
            f"| {pair['H']:.2f} | {completed / base:.2f} |",
            math.log(p50 / pair["p50"]),
        )


def spread(logarithms: Sequence[float]) -> str:
    """The root mean square of the ratios, as a factor."""
    return f"{math.exp(math.sqrt(sum(x * x for x in logarithms) / len(logarithms))):.2f}"


def main() -> None:
    """Print the page."""
    measured = json.loads(Path(sys.argv[1]).read_text())
    worlds = [(world, Simulated(world["sms"])) for world in measured["worlds"]]
    solo = [line for world, simulated in worlds for line in solo_lines(world, simulated)]
    pairs = [line for world, simulated in worlds for line in pair_lines(world, simulated)]
    print(HEAD.format(**measured))
    print("## Alone\n\n| SMs | network | measured us | simulated us | ratio |")
    print("|---|---|---|---|---|")
    print("\n".join(text for text, _ in solo))
    print(f"\nTypical factor between the two (root mean square): {spread([x for _, x in solo])}.")
    print("\n## Multi-stream with priority, closed loop\n")
    print("Latency / latency alone, and H = the normal network's rate / its rate alone with the")
    print("same number of streams.\n")
    heads = ["SMs", "critical", "normal", "p50", "simulated", "p99", "simulated", "H", "simulated"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    print("\n".join(text for text, _ in pairs))
    print(f"\nTypical factor between the two p50: {spread([x for _, x in pairs])}.")
    print(READING, end="")


if __name__ == "__main__":
    main()
