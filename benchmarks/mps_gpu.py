"""Measures NVIDIA's Multi-Process Service with client priority, the baseline in two processes.

A critical process (CUDA_MPS_CLIENT_PRIORITY 0) and a normal one (1), each with plain kernels on
streams of one priority, under a daemon of this script's own. Each runs alone before, between and
after. Worlds are CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, which limits how many SMs a process uses and
not which; or, with ``--confine green``, a green context of the same SMs in both processes. Which
SMs each process saw its blocks on is in the report. Clocks, compute mode and MIG are left as they
are.

    python -m benchmarks.mps_gpu OUT.json --pair resnet50+squeezenet --gap-us 0,4000 --world 0,32

The report is that of ``miriam bench pairs``, policy ``mps`` (``mps:normal=50`` where the normal
process may use half of the world's threads), with ``mps`` beside the rows: the worlds, and a reason
where rows are missing.
"""

from __future__ import annotations

import json
import math
import shlex
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.mps_client import Ask
from benchmarks.mps_daemon import Daemon, daemon
from benchmarks.mps_process import ANSWER_S, Process, last_line
from miriam.bench import BenchResult, JobRecord, Machine, Point, RowFigures, TaskFigures, encode
from miriam.bench.benchmark import ENOUGH
from miriam.bench.rounds import ROUNDS, merged
from miriam.errors import DeviceError, MiriamError

DEVICE = "cuda:0"
PAIRS = "resnet50+squeezenet,squeezenet+alexnet,squeezenet+resnet50,alexnet+squeezenet"
_AHEAD_NS = 20_000_000
_COUNT_SMS = "from miriam.devices.cuda.world import gpu; print(gpu(0).sms)"


class Runner(Protocol):
    """A process that runs a network, or what stands for one."""

    def prepare(self, ask: Ask) -> None:
        """Open what a run needs."""

    def begin(self, begin_ns: int) -> None:
        """Run from ``begin_ns`` of the monotonic clock on."""

    def result(self) -> JobRecord:
        """What the run found."""


@dataclass(frozen=True, slots=True)
class Place:
    """A pair in a world; ``sms``: 0 for the whole GPU. ``share``: the normal process' percentage.

    ``percentage``: of the GPU's threads, that a process may use in this world; None for no limit.
    """

    pair: str
    sms: int
    share: float
    percentage: int | None

    @property
    def policy(self) -> str:
        """The policy's name in the report."""
        return "mps" if self.share == 100 else f"mps:normal={self.share:g}"

    @property
    def networks(self) -> tuple[str, str]:
        """The critical and the normal network."""
        critical, _, normal = self.pair.partition("+")
        return critical, normal

    @property
    def world(self) -> Machine:
        """The world that a cell of ``miriam bench pairs`` has."""
        return Machine(DEVICE).world(self.sms) if self.sms else Machine(DEVICE)

    def limit(self, critical: bool) -> dict[str, str]:
        """What limits a process, as environment variables."""
        share = 1.0 if critical else self.share / 100
        whole = 100 if self.percentage is None else self.percentage
        found = {"CUDA_MPS_CLIENT_PRIORITY": "0" if critical else "1"}
        if whole * share < 100:
            found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = f"{whole * share:g}"
        return found


@dataclass(slots=True)
class Found:
    """What has been measured: rows, worlds as they were seen, and why rows are missing."""

    rows: list[RowFigures] = field(default_factory=list)
    worlds: dict[tuple[object, ...], dict[str, Any]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


def together(runners: Sequence[Runner], asks: Sequence[Ask]) -> list[JobRecord]:
    """A run of all of them at the same time."""
    for runner, ask in zip(runners, asks, strict=True):
        runner.prepare(ask)
    begin_ns = time.monotonic_ns() + _AHEAD_NS
    for runner in runners:
        runner.begin(begin_ns)
    return [runner.result() for runner in runners]


def row(
    place: Place, runners: Sequence[Runner], gap_us: float, seconds: float, deep: int
) -> RowFigures:
    """Critical and normal in rounds: alone, then both; and alone once more in the end."""
    window_ns = round(seconds * 1e9 / ROUNDS)
    asks = [Ask(round(gap_us * 1_000), window_ns), Ask(0, window_ns)]
    alone: list[list[JobRecord]] = [[], []]
    both: list[list[JobRecord]] = []
    for turn in range(ROUNDS + 1):
        for task, ask in enumerate(asks):
            short = Ask(ask.gap_ns, window_ns, -(-ENOUGH // ROUNDS))
            alone[task] += together([runners[task]], [short])
        if turn < ROUNDS:
            both.append(together(runners, asks))
    solo = [merged(parts) for parts in alone]
    beside = [merged(parts) for parts in zip(*both, strict=True)]
    first, second = place.networks
    names = f"{first}*" if first == second else first, second
    critical, normal = map(_figures, names, beside, solo)
    return RowFigures(
        workload=f"{place.pair} {gap_us / 1_000:g} ms",
        policy=place.policy,
        in_flight=deep,
        critical=(critical,),
        normal=(normal,),
        # Each process' own estimate; a warp is in one of them.
        achieved_occupancy=min(1.0, sum(record.achieved_occupancy for record in beside)),
        verified=all(record.verified is True for record in beside),
        faults=tuple(fault for record in beside for fault in record.faults),
        point=Point(gap_us=gap_us, world=place.world.name),
        drift=solo[0].drift,
    )


def _figures(name: str, beside: JobRecord, solo: JobRecord) -> TaskFigures:
    (done,), (alone,) = beside.tasks, solo.tasks
    return TaskFigures(
        task=name,
        latency=done.latency,
        service=done.service,
        solo_latency=alone.latency,
        rate_hz=done.rate_hz,
        solo_rate_hz=alone.rate_hz,
        solo_service=alone.service,
    )


@contextmanager
def processes(
    place: Place, service: Daemon, options: Namespace, found: Found
) -> Iterator[Sequence[Process]]:
    """Both processes, up and clients of ``service``; what they see goes to ``found``."""
    device = place.world.name if options.confine == "green" else DEVICE
    with ExitStack() as stack:
        both = []
        for network, critical in zip(place.networks, (True, False), strict=True):
            deep = 1 if critical else options.in_flight
            environment = {**service.environment, **place.limit(critical)}
            both.append(Process(device, network, deep, options.seed, environment))
            stack.callback(both[-1].close)
        first, second = (process.hello() for process in both)
        clients = service.clients()
        if clients < len(both):
            raise DeviceError(f"{clients} of {len(both)} processes are clients of MPS")
        found.worlds[place.world.name, place.share] = {
            "world": place.world.name,
            "confined_by": options.confine,
            "percentage": place.percentage,
            "normal_share": place.share,
            "critical_sms": len(first.ids),
            "normal_sms": len(second.ids),
            "shared_sms": len(set(first.ids) & set(second.ids)),
            "critical_sms_told": first.sms,
            "normal_sms_told": second.sms,
        }
        yield both


def measure(service: Daemon, options: Namespace, found: Found) -> None:
    """All cells; a place that fails is named, and the next one comes, as long as there is time."""
    until = time.monotonic() + options.limit_s
    for place in _places(options, _sms(service)):
        try:
            if time.monotonic() > until:
                raise DeviceError(f"not run, {options.limit_s:g} s are over")
            with processes(place, service, options, found) as both:
                for gap_us in options.gap_us:
                    found.rows.append(row(place, both, gap_us, options.seconds, options.in_flight))
                    _show(found.rows[-1])
        except MiriamError as error:
            found.reasons.append(f"{place.policy} {place.pair} {place.world.name}: {error}")
            print(found.reasons[-1], flush=True)


def _places(options: Namespace, sms: int) -> Iterator[Place]:
    for world in options.world:
        limited = world and options.confine == "percentage"
        percentage = math.ceil(100 * world / sms) if limited else None
        for pair in options.pair:
            for share in options.normal_share:
                yield Place(pair, world, share, percentage)


def _sms(service: Daemon) -> int:
    """The GPU's SMs, as a client without a limit is told; DeviceError if none comes up."""
    done = subprocess.run(
        [sys.executable, "-c", _COUNT_SMS],
        env=service.environment,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
    )
    if done.returncode:
        raise DeviceError(f"no client of MPS came up{last_line(done.stderr)}")
    return int(done.stdout)


def _show(figures: RowFigures) -> None:
    critical, normal = figures.critical[0], figures.normal[0]
    over = [critical.overhead(percent) or math.nan for percent in (50, 99)]
    rate = normal.relative_rate or math.nan
    text = f"latency p50 {over[0]:.2f}, p99 {over[1]:.2f}, H {rate:.2f}"
    where = f"{figures.policy} {figures.workload} {figures.point.world}"
    print(f"{where}: {text}, verified {figures.verified}", flush=True)


def report(found: Found, options: Namespace) -> dict[str, Any]:
    """The report of ``miriam bench``, and what there is to say about MPS."""
    result = BenchResult(
        device=DEVICE,
        simulated=False,
        seed=options.seed,
        policies=tuple(dict.fromkeys(figures.policy for figures in found.rows)),
        rows=tuple(found.rows),
        title="MPS",
        measured_on=Machine(DEVICE).measured_on(),
    )
    data: dict[str, Any] = json.loads(encode(result))
    seen = {
        "arguments": options.arguments,
        "reason": "; ".join(found.reasons) or None,
        "worlds": [*found.worlds.values()],
    }
    return data | {"seconds": options.seconds, "mps": seen}


def options_from(arguments: Sequence[str]) -> Namespace:
    """What the command line asks for."""

    def numbers(text: str) -> list[float]:
        return [float(part) for part in text.split(",")]

    parser = ArgumentParser(prog="python -m benchmarks.mps_gpu")
    parser.add_argument("out", type=Path)
    parser.add_argument("--pair", type=lambda text: text.split(","), default=PAIRS)
    parser.add_argument("--gap-us", type=numbers, default="0,4000")
    parser.add_argument("--world", type=lambda t: [int(n) for n in t.split(",")], default="0,32,16")
    parser.add_argument("--normal-share", type=numbers, default="100")
    parser.add_argument("--confine", choices=("percentage", "green"), default="percentage")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=480.0)
    options = parser.parse_args(arguments)
    options.arguments = shlex.join(word for word in arguments if word != str(options.out))
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line per row, and leave the JSON whatever happened."""
    options, found = options_from(arguments if arguments is not None else sys.argv[1:]), Found()
    try:
        with daemon() as service:
            measure(service, options, found)
    except (MiriamError, OSError, subprocess.SubprocessError) as error:
        found.reasons.append(str(error))
        print(f"MPS: {error}", flush=True)
    finally:
        # The daemon is gone by now: asking for the GPU does not go through it.
        _write(found, options)


def _write(found: Found, options: Namespace) -> None:
    try:
        data = report(found, options)
    except MiriamError as error:
        raise SystemExit(str(error)) from error
    options.out.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    # A run that is told to end stops its daemon all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    main()
