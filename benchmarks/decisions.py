"""What the coordinator's decisions cost on this host: making a plan, and admitting requests.

The paper reports under 0.35 ms of shard selection per network. Here the selection for all pairs
of steps happens once, when tasks come and go; while requests run there is only `admit`, and on
the GPU a table look-up.

    python -m benchmarks.decisions
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import date

from benchmarks.sim_speed import cpu
from miriam import __version__, devices, models
from miriam.bench.progress import step_times
from miriam.coordinator import Mix, Policy, Snapshot, Task, Waiting, policies

PAIRS = (
    ("alexnet", "cifarnet"),
    ("squeezenet", "alexnet"),
    ("gru", "resnet50"),
    ("lstm", "squeezenet"),
    ("resnet50", "resnet50"),
)
DEVICE = "sim:orin"
TRIES = 5
ADMITS = 1_000


def best_s(action: Callable[[], object], repeat: int = 1) -> float:
    """Seconds of one ``action``, the best of several tries."""
    times = []
    for _ in range(TRIES):
        began = time.perf_counter()
        for _ in range(repeat):
            action()
        times.append((time.perf_counter() - began) / repeat)
    return min(times)


def mix_of(critical: str, normal: str) -> Mix:
    """The pair on DEVICE."""
    device = devices.get(DEVICE)
    programs = [models.load(name, device.gpu.arch) for name in (critical, normal)]
    tasks = (Task("c", programs[0], critical=True), Task("n", programs[1], in_flight=4))
    return Mix(device.gpu, tasks, tuple(step_times(device, program) for program in programs))


def measure(policy: Policy, mix: Mix) -> tuple[float, float]:
    """Seconds of a plan and of one admission with eight requests waiting."""
    waiting = tuple(Waiting(index % 2, index) for index in range(8))
    snapshot = Snapshot(waiting, (1, 1), 1)
    plan_s = best_s(lambda: policy.plan(mix))
    return plan_s, best_s(lambda: policy.admit(mix, snapshot), ADMITS)


def main() -> None:
    """Print one line per pair and policy."""
    print(f"Measured on one core of {cpu()}, Python {platform.python_version()}, Miriam")
    print(f"{__version__}, {date.today().isoformat()}; plans for {DEVICE}.\n")
    print(
        "| critical + normal | step pairs | launches per request | policy | plan, ms | admit, us |"
    )
    print("|---|---|---|---|---|---|")
    for critical, normal in PAIRS:
        mix = mix_of(critical, normal)
        steps = [len(task.program.steps) for task in mix.tasks]
        for name in ("miriam", "gate", "barrier"):
            plan_s, admit_s = measure(policies.get(name), mix)
            row = (f"{critical} + {normal}", f"{steps[0] * steps[1]}", f"{steps[0]} + {steps[1]}")
            print(f"| {' | '.join(row)} | {name} | {plan_s * 1e3:.2f} | {admit_s * 1e6:.1f} |")


if __name__ == "__main__":
    main()
