"""How many contended kernel launches per second the simulator runs on one core.

A critical and a normal network in closed loops under multi-stream with priority, so that blocks
of several kernels share the SMs nearly all the time. A launch is a step that ended.

    python -m benchmarks.sim_speed
"""

from __future__ import annotations

import time
from datetime import date

from miriam import __version__, models
from miriam.bench.overheads import host
from miriam.coordinator import Task, policies
from miriam.devices.observe import Observer
from miriam.devices.sim import SimDevice, preset

GOAL_HZ = 10_000
WINDOW_NS = 40_000_000
TRIES = 3
CASES = (
    ("rtx2060", "alexnet", "cifarnet", 2),
    ("rtx2060", "alexnet", "cifarnet", 4),
    ("xavier", "alexnet", "cifarnet", 2),
    ("orin", "alexnet", "cifarnet", 2),
    ("orin", "lstm", "squeezenet", 4),
    ("h200", "alexnet", "cifarnet", 2),
)


class _Count(Observer):
    def __init__(self) -> None:
        self.steps = 0

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        self.steps += 1


def speed(gpu: str, critical: str, normal: str, in_flight: int) -> tuple[int, float]:
    """Launches, and CPU seconds of the best try."""
    device = SimDevice(preset(gpu))
    arch = device.gpu.arch
    tasks = [
        Task("critical", models.load(critical, arch), critical=True),
        Task("normal", models.load(normal, arch), in_flight=in_flight),
    ]
    best = float("inf")
    for _ in range(TRIES):
        count = _Count()
        session = device.open(tasks, policies.get("multistream"), (count,))
        for task, requests in ((0, 1), (1, in_flight)):
            for _ in range(requests):
                session.submit(task, 0)
        began = time.process_time()
        while session.now_ns < WINDOW_NS:
            for done in session.advance(WINDOW_NS):
                session.submit(done.task, session.now_ns)
        best = min(best, time.process_time() - began)
    return count.steps, best


def main() -> None:
    """Print one line per case; the first is what the goal is for."""
    print(f"On {host()}, Miriam {__version__},")
    print(f"{date.today().isoformat()}. Goal: {GOAL_HZ:,} contended launches per second.\n")
    print("| GPU | critical + normal | in flight | launches | launches per second |")
    print("|---|---|---|---|---|")
    for gpu, critical, normal, in_flight in CASES:
        launches, seconds = speed(gpu, critical, normal, in_flight)
        row = (f"sim:{gpu}", f"{critical} + {normal}", str(in_flight), f"{launches:,}")
        print(f"| {' | '.join(row)} | {launches / seconds:,.0f} |")


if __name__ == "__main__":
    main()
