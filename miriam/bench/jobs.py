"""Jobs: the independent runs that a benchmark is made of, and what each one finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from miriam.bench.arrivals import stream
from miriam.bench.deep import Deep, DeepLook
from miriam.bench.machine import Machine
from miriam.bench.metrics import Sample, rate_hz
from miriam.bench.networks import Networks
from miriam.bench.progress import Beside, step_times
from miriam.bench.pytorch import TorchModels
from miriam.bench.solo import OnDevice
from miriam.bench.trace import Tracer
from miriam.bench.verify import Checker
from miriam.bench.workloads import WorkloadTask
from miriam.coordinator import Task, policies
from miriam.devices.contract import Arrays, Completion, Device, Usage
from miriam.devices.observe import Observer
from miriam.kernels import Program
from miriam.runtime import Driver, Offer, Record, Request, Served


@dataclass(frozen=True, slots=True)
class Job:
    """Tasks on a machine under a policy for a window of device time.

    ``workload`` names the random streams. ``solo``: what a task does alone, of which nothing is
    checked. ``enough``: it ends earlier when so many requests have completed. ``deep``: a closer
    look at the first critical task (see `Deep`), where the device is simulated. ``traced``: with
    its timeline. ``timed``: for its yields only (`Device.open`).
    """

    machine: Machine
    workload: str
    tasks: tuple[WorkloadTask, ...]
    policy: str
    window_ns: int
    seed: int
    compute: bool = False
    solo: bool = False
    enough: int | None = None
    deep: bool = False
    traced: bool = False
    timed: bool = False


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What a task did: latencies and services in ns, and requests per second.

    ``beside_hz``: its progress, in requests per second, while a critical request was running.
    """

    latency: Sample
    service: Sample
    rate_hz: float
    beside_hz: float | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What a job found; tasks in the job's order. ``trace``: for ui.perfetto.dev, if asked for.

    ``yields``, ``untimed``: as in `Usage`. ``drift``: the largest median latency of its first task
    / the smallest - 1 over the parts of a run in rounds.
    """

    tasks: tuple[TaskRecord, ...]
    achieved_occupancy: float
    verified: bool | None = None
    faults: tuple[str, ...] = ()
    deep: Deep | None = None
    trace: bytes | None = None
    drift: float | None = None
    yields: Sample = field(default_factory=lambda: Sample(()))
    untimed: bool = False


@dataclass(slots=True)
class Workshop:
    """Runs jobs in this process; devices and networks are made once and kept.

    ``open_device`` opens a machine, computing or not; ``supply`` gives the networks for an
    architecture, and ``seed`` is that of captured ones.
    """

    open_device: Callable[[Machine, bool], Device]
    supply: Callable[[str], Networks]
    seed: int = 0
    _devices: dict[tuple[Machine, bool], Device] = field(default_factory=dict)
    _networks: dict[str, Networks] = field(default_factory=dict)
    _solo: dict[tuple[Machine, bool], OnDevice] = field(default_factory=dict)
    _step_ns: dict[tuple[Machine, str], tuple[int, ...]] = field(default_factory=dict)

    def run(self, job: Job, passed: Callable[[float], None] = lambda share: None) -> JobRecord:
        """Run ``job``; ``passed`` hears which share of its window has passed."""
        device = self.device(job.machine, job.compute)
        networks, programs = self._programs(job, device)
        computes = job.compute or not device.simulated
        offers = [
            _offer(job, task, program, networks, computes)
            for task, program in zip(job.tasks, programs, strict=True)
        ]
        tasks = [offer.task for offer in offers]
        checker = Checker(networks, [task.network for task in job.tasks])
        watch: list[Observer] = []
        beside = self._beside(job, device)
        if beside is not None:
            watch.append(beside)
        # Only a simulated device says which blocks ran where.
        look = DeepLook(tasks, device.gpu) if job.deep and device.simulated else None
        if look is not None:
            watch.append(look)
        tracer = Tracer(device, tasks) if job.traced else None
        if tracer is not None:
            watch += tracer.observers

        def completed(task: int, request: Request, done: Completion) -> None:
            if not job.solo:
                checker.check(done, request.ordinal)
            passed(done.finish_ns / job.window_ns)

        policy = policies.get(job.policy)
        with closing(device.open(tasks, policy, watch, timed=job.timed)) as session:
            driver = Driver(session, offers, watch=completed)
            record = driver.run(job.window_ns, job.enough)
        late = _late(record.usage)
        return JobRecord(
            tasks=_tasks(record, beside),
            achieved_occupancy=record.usage.achieved_occupancy,
            yields=Sample.of(record.usage.yields_ns),
            untimed=record.usage.untimed,
            verified=checker.verdict if not late else False,
            faults=(*checker.faults, *late),
            deep=look.result() if look else None,
            trace=tracer.encode() if tracer else None,
        )

    def device(self, machine: Machine, compute: bool = False) -> Device:
        """The device of ``machine``."""
        key = machine, compute
        if key not in self._devices:
            self._devices[key] = self.open_device(machine, compute)
        return self._devices[key]

    def _networks_for(self, device: Device) -> Networks:
        arch = device.gpu.arch
        if arch not in self._networks:
            self._networks[arch] = self.supply(arch)
        return self._networks[arch]

    def _programs(self, job: Job, device: Device) -> tuple[Networks, list[Program]]:
        """The networks, ready for ``job`` on ``device``, and the program of each task."""
        networks = self._networks_for(device)
        if device.simulated:
            return networks, [networks.program(task.network) for task in job.tasks]
        key = job.machine, job.compute
        if key not in self._solo:
            self._solo[key] = OnDevice(networks, device, TorchModels(device, self.seed))
        found = self._solo[key]
        programs = found.programs(job.tasks)
        if not job.solo:
            for task in job.tasks:
                found.prepare(task.network)
        return found, programs

    def _beside(self, job: Job, device: Device) -> Beside | None:
        if not device.simulated or not any(task.critical for task in job.tasks) or job.solo:
            return None
        steps = [self.steps(job.machine, task.network) for task in job.tasks]
        return Beside([task.critical for task in job.tasks], steps)

    def program(self, machine: Machine, network: str) -> Program:
        """The program of ``network`` for ``machine``."""
        return self._networks_for(self.device(machine)).program(network)

    def steps(self, machine: Machine, network: str) -> tuple[int, ...]:
        """The time alone of each step of ``network``, ns."""
        key = machine, network
        if key not in self._step_ns:
            program = self.program(machine, network)
            self._step_ns[key] = step_times(self.device(machine), program)
        return self._step_ns[key]


def _offer(
    job: Job, task: WorkloadTask, program: Program, networks: Networks, computes: bool
) -> Offer:
    rng = stream(job.seed, job.workload, task.name)

    def inputs(ordinal: int) -> Arrays | None:
        return networks.inputs(task.network, ordinal) if computes else None

    return Offer(
        task=Task(
            name=task.name,
            program=program,
            critical=task.critical,
            priority=task.priority,
            in_flight=task.in_flight,
            weights=networks.weights(task.network) if computes else {},
        ),
        arrivals=task.arrivals,
        times_ns=tuple(task.arrivals.known(job.window_ns, rng)),
        inputs=inputs,
    )


def _late(usage: Usage) -> tuple[str, ...]:
    """A fault where gates did not hold what the policy told them to hold."""
    if not usage.late_gates:
        return ()
    return (f"{usage.late_gates} gates opened because their time was up, not their grant",)


def _tasks(record: Record, beside: Beside | None) -> tuple[TaskRecord, ...]:
    served = record.served
    rates = beside.rates_hz(served) if beside else [None] * len(served)
    return tuple(
        _task(done, record.window_ns, rate) for done, rate in zip(served, rates, strict=True)
    )


def _task(done: Sequence[Served], window_ns: int, beside_hz: float | None) -> TaskRecord:
    return TaskRecord(
        latency=Sample.of(request.latency_ns for request in done),
        service=Sample.of(request.service_ns for request in done),
        rate_hz=rate_hz(len(done), window_ns),
        beside_hz=beside_hz,
    )
