"""A whole benchmark: every workload under every policy, beside each task alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from miriam.bench.arrivals import Arrivals, stream
from miriam.bench.metrics import BenchResult, RowFigures, Sample, TaskFigures, rate_hz
from miriam.bench.networks import Networks
from miriam.bench.run import Load, run_window
from miriam.bench.verify import Checker
from miriam.bench.workloads import Workload, WorkloadTask
from miriam.coordinator import Policy, Task, policies
from miriam.devices.contract import Arrays, Completion, Device
from miriam.errors import UsageError

_SECOND_NS = 1_000_000_000
_SoloKey = tuple[str, Arrivals, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How long each row runs in device time, the seed, and whether outputs are computed."""

    seconds: float
    seed: int
    compute: bool = False

    def __post_init__(self) -> None:
        # A NaN fails this comparison too.
        if not 1 <= self.seconds * _SECOND_NS < 2**62:
            raise UsageError("seconds", "a finite number of at least 1e-9", self.seconds)
        if self.seed < 0:
            raise UsageError("seed", "not negative", self.seed)

    @property
    def window_ns(self) -> int:
        """The window of a row."""
        return round(self.seconds * _SECOND_NS)


class Observer(Protocol):
    """Sees how far a benchmark is."""

    def row_started(self, workload: str, policy: str) -> None:
        """A workload begins under a policy."""

    def request_done(self, finish_ns: int) -> None:
        """A request completed ``finish_ns`` after its row began."""

    def row_finished(self, row: RowFigures) -> None:
        """A row is complete."""


class Benchmark:
    """Runs workloads on a device; what a task does alone is measured once and kept.

    ``device`` computes if it was made to; ``solo_device`` is the same GPU and gives times only,
    where that is possible: a device that is not simulated always computes.
    """

    def __init__(
        self,
        device: Device,
        solo_device: Device,
        networks: Networks,
        settings: Settings,
        observer: Observer,
    ) -> None:
        self._device, self._solo_device = device, solo_device
        self._networks, self._settings, self._observer = networks, settings, observer
        self._solo: dict[_SoloKey, Sequence[Completion]] = {}

    def run(self, workloads: Sequence[Workload], chosen: Sequence[Policy]) -> BenchResult:
        """Every workload under every policy, in this order.

        UsageError if a name occurs twice or nothing is asked for.
        """
        _require_distinct("workload", [workload.name for workload in workloads])
        _require_distinct("policy", [policy.name for policy in chosen])
        rows = [self._row(workload, policy) for workload in workloads for policy in chosen]
        return BenchResult(
            device=self._device.name,
            simulated=self._device.simulated,
            seed=self._settings.seed,
            policies=tuple(policy.name for policy in chosen),
            rows=tuple(rows),
        )

    def _row(self, workload: Workload, policy: Policy) -> RowFigures:
        self._observer.row_started(workload.name, policy.name)
        tasks = workload.critical + workload.normal
        computes = self._settings.compute or not self._device.simulated
        loads = [self._load(workload, task, computes) for task in tasks]
        checker = Checker(self._networks, [task.network for task in tasks])

        def watch(done: Completion, ordinal: int) -> None:
            checker.check(done, ordinal)
            self._observer.request_done(done.finish_ns)

        record = run_window(self._device, policy, loads, self._settings.window_ns, watch)
        figures = [
            self._figures(done, task.name, self._alone(workload, task))
            for task, done in zip(tasks, record.completions, strict=True)
        ]
        split = len(workload.critical)
        row = RowFigures(
            workload=workload.name,
            policy=policy.name,
            in_flight=max((task.in_flight for task in workload.normal), default=0),
            critical=tuple(figures[:split]),
            normal=tuple(figures[split:]),
            achieved_occupancy=record.usage.achieved_occupancy,
            verified=checker.verdict,
            faults=tuple(checker.faults),
        )
        self._observer.row_finished(row)
        return row

    def _load(self, workload: Workload, task: WorkloadTask, computes: bool) -> Load:
        rng = stream(self._settings.seed, workload.name, task.name)
        networks = self._networks

        def inputs(ordinal: int) -> Arrays | None:
            return networks.inputs(task.network, ordinal) if computes else None

        return Load(
            task=Task(
                name=task.name,
                program=networks.program(task.network),
                critical=task.critical,
                priority=task.priority,
                in_flight=task.in_flight,
                weights=networks.weights(task.network) if computes else {},
            ),
            arrivals=task.arrivals,
            times_ns=tuple(task.arrivals.known(self._settings.window_ns, rng)),
            inputs=inputs,
        )

    def _figures(
        self, done: Sequence[Completion], task: str, alone: Sequence[Completion]
    ) -> TaskFigures:
        return TaskFigures(
            task=task,
            latency=Sample.of(c.finish_ns - c.arrival_ns for c in done),
            service=Sample.of(c.finish_ns - c.start_ns for c in done),
            solo_latency=Sample.of(c.finish_ns - c.arrival_ns for c in alone),
            rate_hz=rate_hz(len(done), self._settings.window_ns),
            solo_rate_hz=rate_hz(len(alone), self._settings.window_ns),
        )

    def _alone(self, workload: Workload, task: WorkloadTask) -> Sequence[Completion]:
        load = self._load(workload, task, not self._solo_device.simulated)
        key = task.network, task.arrivals, task.in_flight, load.times_ns
        if key not in self._solo:
            plain, window_ns = policies.get("multistream"), self._settings.window_ns
            record = run_window(self._solo_device, plain, [load], window_ns)
            self._solo[key] = record.completions[0]
        return self._solo[key]


def _require_distinct(field: str, names: Sequence[str]) -> None:
    if not names or len(set(names)) != len(names):
        raise UsageError(field, "at least one name, each once", ",".join(names))
