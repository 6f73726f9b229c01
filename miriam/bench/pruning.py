"""How far the rules of section 2 shrink the design space, and whether the best is kept (Fig. 10).

Per network: the schedules of its elastic kernels beside each kernel of a critical network, and
the share that each rule removes. For the longest kernels of both, every schedule of the plan is
also run in the simulator: the best one that the critical kernel hardly feels should be kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf, log10
from typing import Literal

import msgspec
import numpy as np

from miriam.bench.arrivals import Closed
from miriam.bench.jobs import Workshop
from miriam.bench.machine import Machine
from miriam.bench.metrics import Sample
from miriam.bench.options import Options
from miriam.bench.progress import cumulative
from miriam.coordinator import (
    ORDERED,
    Grant,
    Level,
    Mix,
    Plan,
    Snapshot,
    StepPlan,
    Task,
    TaskPlan,
    Waiting,
    admit_in_flight,
    policies,
)
from miriam.devices.contract import Device
from miriam.devices.observe import LaunchInfo, Observer
from miriam.kernels import Program, Step
from miriam.runtime import Driver, Offer
from miriam.shrink import Candidate, Critical, Overheads, Pruning, Space, full_space

NAME = "shrink"
TITLE = "Design-space shrinking"
PAIRS = ("alexnet+cifarnet", "squeezenet+alexnet", "gru+resnet50", "lstm+squeezenet")
ALLOWED = 1.1
"""A schedule counts as harmless up to this multiple of the critical kernel's time alone."""
_LONGEST = 3
_REQUESTS = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule that was run: how far it stretches the critical kernel's time, and how many
    blocks of the normal kernel run per us meanwhile."""

    blocks: int
    threads: int
    stretch: float
    blocks_per_us: float


@dataclass(frozen=True, slots=True)
class Tried:
    """A kernel beside another: what the best harmless schedule brings, of all, of those that the
    rules keep, and what the policy `miriam` grants (None where there is none).

    ``lost``: the share of the best one's blocks that the best kept one does not bring.
    """

    critical: str
    normal: str
    candidates: int
    kept: int
    best: Choice | None
    best_kept: Choice | None
    granted: Choice | None
    lost: float


@dataclass(frozen=True, slots=True)
class PairReport:
    """A network's kernels beside a critical network's.

    ``full_space_log10``: of the number of schedules of all kernels together (any grid, any block
    size), which no float holds for ResNet-50. ``candidates`` of the slicing plan, and the share
    that each rule alone and all together remove.
    """

    critical: str
    normal: str
    full_space_log10: float
    candidates: int
    removed: dict[str, float]
    removed_jointly: float
    tried: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class ShrinkReport:
    """The whole document."""

    schema: Literal["miriam.shrink/1"]
    device: str
    simulated: bool
    seed: int
    allowed: float
    pairs: tuple[PairReport, ...]
    options: Options

    @property
    def title(self) -> str:
        """What was run."""
        return TITLE


@dataclass(frozen=True, slots=True)
class _Timed:
    """A step of a program, and its time alone."""

    program: Program
    step: Step
    alone_ns: int


def explore(options: Options, workshop: Workshop) -> ShrinkReport:
    """Prune and try the pairs asked for, each ``critical+normal``."""
    machine = options.machine
    return ShrinkReport(
        schema="miriam.shrink/1",
        device=options.device,
        simulated=machine.simulated,
        seed=options.seed,
        allowed=ALLOWED,
        pairs=tuple(_pair(options, workshop, machine, pair) for pair in options.workloads),
        options=options,
    )


def encode(report: ShrinkReport) -> bytes:
    """The document as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def _pair(options: Options, workshop: Workshop, machine: Machine, pair: str) -> PairReport:
    names = options.pair(pair)
    device = workshop.device(machine)
    critical, normal = (_timed(workshop, machine, options.network(name)) for name in names)
    prunings = [_space(device, c, n).prune() for c in critical for n in normal]
    total = sum(p.total for p in prunings)
    return PairReport(
        critical=names[0],
        normal=names[1],
        full_space_log10=log10(full_space(n.step.kernel for n in normal)),
        candidates=total,
        removed={
            rule: _weighted([(p.total, dict(p.shares)[rule]) for p in prunings])
            for rule, _ in prunings[0].shares
        },
        removed_jointly=_weighted([(p.total, p.joint) for p in prunings]),
        tried=tuple(
            _try(device, c, n, _space(device, c, n).prune())
            for c in _longest(critical)
            for n in _longest(normal)
        ),
    )


def _timed(workshop: Workshop, machine: Machine, network: str) -> list[_Timed]:
    program = workshop.program(machine, network)
    times = workshop.steps(machine, network)
    return [
        _Timed(program, step, ns)
        for step, ns in zip(program.steps, times, strict=True)
        if step.rigid is None
    ]


def _longest(steps: Sequence[_Timed]) -> list[_Timed]:
    return sorted(steps, key=lambda timed: -timed.alone_ns)[:_LONGEST]


def _space(device: Device, critical: _Timed, normal: _Timed) -> Space:
    kernel = critical.step.kernel
    running = Critical(kernel.blocks, kernel.threads)
    # The paper's fragments are launches of their own.
    overheads = Overheads.of_solo(normal.alone_ns)
    return Space(device.gpu, running, normal.step.kernel, overheads)


def _weighted(shares: Sequence[tuple[int, float]]) -> float:
    return round(sum(n * share for n, share in shares) / sum(n for n, _ in shares), 4)


def _try(device: Device, critical: _Timed, normal: _Timed, pruning: Pruning) -> Tried:
    bench = _Bench(device, critical, normal)
    tried = {c: bench.run(c) for c in _space(device, critical, normal).candidates()}
    best = _best(tried.values())
    best_kept = _best(tried[c] for c in pruning.kept)
    granted = bench.granted()
    return Tried(
        critical=critical.step.name,
        normal=normal.step.name,
        candidates=pruning.total,
        kept=len(pruning.kept),
        best=best,
        best_kept=best_kept,
        granted=bench.run(granted) if granted else None,
        lost=_lost(best, best_kept),
    )


def _best(choices: Iterable[Choice]) -> Choice | None:
    harmless = [c for c in choices if c.stretch <= ALLOWED]
    return max(harmless, key=lambda c: c.blocks_per_us, default=None)


def _lost(best: Choice | None, kept: Choice | None) -> float:
    if best is None or not best.blocks_per_us:
        return 0.0
    return round(1 - (kept.blocks_per_us if kept else 0.0) / best.blocks_per_us, 4)


class _Bench:
    """Two kernels in closed loops, side by side under one grant."""

    def __init__(self, device: Device, critical: _Timed, normal: _Timed) -> None:
        self._device = device
        self._tasks = [
            Task(name, replace(timed.program, name=name, steps=(timed.step,)), critical=urgent)
            for name, timed, urgent in (("c", critical, True), ("n", normal, False))
        ]
        self._step_ns = ((critical.alone_ns,), (normal.alone_ns,))
        self._window_ns = _REQUESTS * (critical.alone_ns + normal.alone_ns)
        self._alone_ns = self._run(Grant(0))[0]

    def run(self, candidate: Candidate) -> Choice:
        """What ``candidate`` costs and brings."""
        grant = Grant(candidate.blocks, candidate.threads, ahead=True)
        took_ns, blocks_per_ns = self._run(grant)
        stretch = round(took_ns / self._alone_ns, 4)
        return Choice(candidate.blocks, candidate.threads, stretch, round(blocks_per_ns * 1e3, 4))

    def granted(self) -> Candidate | None:
        """What the policy `miriam` grants, None for nothing."""
        mix = Mix(self._device.gpu, tuple(self._tasks), self._step_ns)
        grant = policies.get("miriam").plan(mix).grants[0, 1][0][0]
        return Candidate(grant.blocks, grant.threads) if grant.blocks else None

    def _run(self, grant: Grant) -> tuple[float, float]:
        """Median time of the critical kernel, ns, and the normal one's blocks per ns beside it."""
        counter = _Blocks()
        offers = [Offer(task, Closed(), (0,)) for task in self._tasks]
        with closing(self._device.open(self._tasks, _Fixed(grant), (counter,))) as session:
            record = Driver(session, offers).run(self._window_ns)
        spans = [(r.start_ns, r.end_ns) for r in record.served[0]]
        times = Sample.of(end - start for start, end in spans)
        return float(times.percentile(50) or inf), counter.rate(spans)


class _Blocks(Observer):
    """Counts the normal kernel's blocks."""

    def __init__(self) -> None:
        self._normal: set[int] = set()
        self._ran: list[tuple[float, float, int]] = []

    def launched(self, launch: LaunchInfo, now_ns: int) -> None:
        if launch.task:
            self._normal.add(launch.number)

    def ran(
        self,
        launch: int,
        sms: Sequence[int],
        blocks: Sequence[tuple[int, int]],
        began_ns: float,
        ended_ns: float,
    ) -> None:
        if launch in self._normal:
            self._ran.append((began_ns, ended_ns, sum(count for _, count in blocks)))

    def rate(self, spans: Sequence[tuple[int, int]]) -> float:
        """Blocks per ns within ``spans``; a block counts evenly over its time."""
        edges, shares, total_ns = cumulative(spans)
        if not self._ran or not total_ns:
            return 0.0
        began, ended, count = np.array(self._ran, np.float64).T
        within = np.interp(ended, edges, shares) - np.interp(began, edges, shares)
        return float((count * within / np.maximum(ended - began, 1e-9)).sum()) / total_ns


@dataclass(frozen=True, slots=True)
class _Fixed:
    """One grant beside the critical kernel, whatever it is."""

    grant: Grant
    name: str = "fixed"

    def plan(self, mix: Mix) -> Plan:
        tasks = (
            TaskPlan(0, (ORDERED,)),
            TaskPlan(1, (StepPlan(Level.GRANT, Level.YIELD),)),
        )
        return Plan(tasks, {(0, 1): ((self.grant,),)})

    def admit(self, mix: Mix, snapshot: Snapshot) -> Sequence[Waiting]:
        return admit_in_flight(mix, snapshot)
