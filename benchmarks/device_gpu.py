"""Measures the CUDA device on a GPU: costs, elastic steps against their originals, yields.

In worlds of all, 32, 16 and 8 SMs:

- *costs*: what ``miriam doctor`` measures there, and its other findings;
- *steps*: each step of the six networks from 20 us up, alone with everything open: its original,
  behind a gate, its yield form, and what a session records of it (yield form, gate, rest; or a
  WHILE node), as graphs of several in a row whose runs take turns;
- *yields*: from the submission of a control write to the last block gone, on the same steps;
- *calls*: the driver calls of the host's thread per request of a session, under `miriam`.

    python -m benchmarks.device_gpu OUT.json       needs a GPU, miriam-gpu[cuda,elastic]

It ends by itself: what does not fit into ``LIMIT_S`` is left out, and named.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from miriam import __version__, models
from miriam.coordinator import Task
from miriam.coordinator.policies import get as get_policy
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.doctor.costs import waves, yields
from miriam.devices.cuda.doctor.examine import examine
from miriam.devices.cuda.doctor.machine import machine_findings
from miriam.devices.cuda.doctor.report import quantile
from miriam.devices.cuda.doctor.subject import Mode, Subject
from miriam.devices.cuda.doctor.writes import Writer
from miriam.devices.cuda.driver import driver
from miriam.devices.cuda.graphs import WHILE_FROM_NS
from miriam.devices.cuda.world import Gpu, gpu
from miriam.errors import MiriamError

LIMIT_S = 165.0
WORLDS = (None, 32, 16, 8)
NETWORKS = models.NAMES[:6]
FROM_NS = 20_000
MODES: tuple[Mode, ...] = ("original", "gate", "claim", "chosen")
RUNS, YIELDS = 9, 60
REQUESTS = 20


def steps(subject: Subject, sms: int) -> Iterator[dict[str, Any]]:
    """A row per step that is long enough and elastic; equal kernels once."""
    seen = set()
    writer = Writer(subject)
    chance = random.Random(1)
    for index, (step, profile) in enumerate(
        zip(subject.program.steps, subject.profiles, strict=True)
    ):
        kernel, original_ns = step.kernel, profile.original_ns
        if original_ns < FROM_NS or kernel.threads not in profile.forms or kernel in seen:
            continue
        seen.add(kernel)
        repeats = max(4, min(20, 1_000_000 // original_ns))
        times = subject.times_us(index, MODES, repeats, RUNS)
        row: dict[str, Any] = {
            "sms": sms,
            "network": subject.program.name,
            "step": step.name,
            "blocks": kernel.blocks,
            "waves": waves(subject, index),
            "bound": profile.forms[kernel.threads].bound,
            "resumed_by": "WHILE" if original_ns >= WHILE_FROM_NS else "rest",
            **{f"{mode}_us": round(median(taken), 2) for mode, taken in times.items()},
        }
        if row["waves"] > 1:
            row |= stopping(subject, writer, index, original_ns, chance)
        yield row
    writer.close()


def stopping(
    subject: Subject, writer: Writer, index: int, original_ns: int, chance: random.Random
) -> dict[str, Any]:
    """How fast the step yields when asked at random moments; nothing if it was hardly caught."""
    starts_s = [chance.random() * 0.6e-9 * original_ns for _ in range(YIELDS)]
    found = [y for y in yields(subject, writer, index, "host copy", starts_s) if y.stopped]
    if len(found) < YIELDS // 3:
        return {}
    gone_us = [y.gone_us for y in found]
    return {
        "block_us": round(original_ns * 1e-3 / waves(subject, index), 1),
        "yield_p50_us": round(quantile(gone_us, 0.5), 1),
        "yield_p99_us": round(quantile(gone_us, 0.99), 1),
        "yields": len(found),
    }


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts the calls of the CUDA driver by name."""
    calls: Counter[str] = Counter()
    originals = {n: f for n, f in vars(driver).items() if n.startswith("cu") and callable(f)}

    def counting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted_call(*args: Any) -> Any:
            calls[name] += 1
            return call(*args)

        return counted_call

    for name, call in originals.items():
        setattr(driver, name, counting(name, call))
    try:
        yield calls
    finally:
        for name, call in originals.items():
            setattr(driver, name, call)


def host_calls(found: Gpu) -> dict[str, Any]:
    """Driver calls per request of squeezenet (critical) beside alexnet, and what they are."""
    device = CudaDevice(found, found.whole(), counting=False)
    tasks = [
        Task(n, models.load(n, found.arch), critical=c, weights=models.weights(n))
        for n, c in (("squeezenet", True), ("alexnet", False))
    ]
    inputs = [models.example_input(task.name) for task in tasks]
    opened = device.open(tasks, get_policy("miriam"))
    done = 0
    with counted() as calls:
        for _ in range(REQUESTS):
            for task in range(2):
                opened.submit(task, opened.now_ns, inputs[task])
            until_ns = opened.now_ns + 2_000_000_000
            ended = 0
            while ended < 2 and opened.now_ns < until_ns:
                ended += len(opened.advance(until_ns))
            done += ended
    opened.close()
    polls = calls.pop("cuEventQuery", 0)
    per_request = {name: round(number / max(done, 1), 2) for name, number in calls.items()}
    return {"requests": done, "calls_per_request": per_request, "polls": polls}


class Report:
    """What has been measured, written after each part: a run that is cut short leaves it."""

    def __init__(self, path: Path, found: Gpu) -> None:
        self._path, self._began = path, time.perf_counter()
        self.data: dict[str, Any] = {
            "schema": "miriam.device/1",
            "miriam": __version__,
            "gpu": found.name,
            "date": date.today().isoformat(),
            "python": sys.version.split()[0],
            "machine": msgspec.to_builtins(machine_findings()),
            "while_from_us": WHILE_FROM_NS / 1e3,
            "worlds": [],
            "steps": [],
            "calls": None,
            "left_out": [],
            "errors": [],
        }

    def part(self, name: str, measure: Callable[[], None]) -> None:
        """Measure one part, unless the time is up; an error is noted and the next part comes."""
        at_s = time.perf_counter() - self._began
        if at_s > LIMIT_S:
            self.data["left_out"].append(name)
        else:
            try:
                measure()
            except MiriamError as error:
                self.data["errors"].append(f"{name}: {error}")
        taken_s = time.perf_counter() - self._began - at_s
        print(f"{name}: {taken_s:.1f} s, {self.data['errors'][-1:]}", flush=True)
        self.data["seconds"] = round(time.perf_counter() - self._began, 1)
        self._path.write_text(json.dumps(self.data, indent=1) + "\n")


def main() -> None:
    """Measure, print a line per step, and leave the JSON."""
    found = gpu(0)
    report = Report(Path(sys.argv[1]), found)
    programs = {name: models.load(name, found.arch) for name in NETWORKS}

    def doctor(sms: int | None) -> None:
        seen = examine(0, sms, lockstep=sms in (None, 8))
        report.data["worlds"].append(msgspec.to_builtins(seen))
        for cost in seen.costs:
            print(f"{seen.sms:4} {cost.what}: {cost.p50_us} {cost.p99_us}", flush=True)
        for finding in seen.findings:
            print(f"{seen.sms:4} {finding.what}: {finding.state}, {finding.value}", flush=True)
        for level in seen.levels:
            print(f"{seen.sms:4} level {level.level}: {level.offered}, {level.why}", flush=True)
        for row in seen.lockstep:
            print(row, flush=True)

    def network(device: CudaDevice, name: str) -> None:
        subject = Subject(device, programs[name])
        for row in steps(subject, device.world.sms):
            report.data["steps"].append(row)
            ratio = row["original_us"] / row["chosen_us"]
            print(f"{ratio:.3f} {row}", flush=True)
        subject.close()

    def calls() -> None:
        report.data["calls"] = host_calls(found)
        print(report.data["calls"], flush=True)

    compiling = CudaDevice(found, found.whole(), counting=False)
    report.part("compiling", lambda: compiling.kernels.load(programs.values()))
    report.part("costs, all SMs", lambda: doctor(None))
    report.part("calls", calls)
    for sms in WORLDS:
        world = found.whole() if sms is None else found.world(0, sms)
        if sms is not None:
            report.part(f"costs, {sms} SMs", lambda sms=sms: doctor(sms))  # type: ignore[misc]
        device = CudaDevice(found, world, counting=False)
        for name in NETWORKS:
            report.part(
                f"steps of {name}, {world.sms} SMs",
                lambda device=device, name=name: network(device, name),  # type: ignore[misc]
            )


if __name__ == "__main__":
    main()
