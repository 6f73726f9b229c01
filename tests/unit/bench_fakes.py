"""A device for the benchmark's tests: one server, first come first served, fixed times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from miriam.bench import (
    BenchResult,
    Cell,
    InProcess,
    Job,
    JobRecord,
    Machine,
    Options,
    RowFigures,
    Sample,
    TaskFigures,
    Workload,
    Workshop,
    run_cells,
)
from miriam.bench.execute import Unobserved
from miriam.coordinator import Policy, Task
from miriam.devices.contract import Arrays, Completion, Usage
from miriam.devices.observe import Observer
from miriam.kernels import (
    Buffer,
    Cost,
    Dim3,
    GpuSpec,
    KernelSpec,
    Program,
    Resources,
    Step,
    Variant,
)

US = 1_000
MS = 1_000_000
BLOCKS = 6


def tiny_program(name: str) -> Program:
    """One step of six blocks that writes ``y``."""
    kernel = KernelSpec("k", "k.cu", Dim3(BLOCKS), Dim3(32), (Variant(32, Resources(16, 0)),))
    step = Step("first", "first", kernel, (), Cost(1, 1, 1), "y")
    buffers = (Buffer("x", (4,), "input"), Buffer("y", (4,), "output"))
    return Program(name, "sm_87", (step,), buffers)


PICTURES = [{"x": np.full(4, value, np.float32)} for value in range(2)]


class FakeNetworks:
    """Every name is a network; request k's input is four times k % 2, the output the double."""

    def program(self, network: str) -> Program:
        return tiny_program(network)

    def weights(self, network: str) -> Arrays:
        return {}

    def inputs(self, network: str, ordinal: int) -> Arrays:
        return PICTURES[ordinal % 2]

    def expected(self, network: str, ordinal: int) -> Arrays:
        return {"y": self.inputs(network, ordinal)["x"] * 2}


@dataclass
class FakeSession:
    """``service_ns`` per request of a task; ``sequential`` takes ``slow`` times as long."""

    service_ns: Sequence[int]
    now_ns: int = 0
    free_ns: int = 0
    queue: list[tuple[int, int, int, Arrays | None]] = field(default_factory=list)
    submitted: int = 0
    closed: bool = False

    def submit(self, task: int, arrival_ns: int, inputs: Arrays | None = None) -> int:
        assert arrival_ns >= self.now_ns
        # Numbers that are no ordinals: the driver may not take them for such.
        number = 100 + self.submitted
        self.submitted += 1
        self.queue.append((arrival_ns, number, task, inputs))
        self.queue.sort(key=lambda entry: entry[:2])
        return number

    def withdraw(self, task: int, request: int) -> bool:
        for place, (arrival, number, of, _) in enumerate(self.queue):
            if (of, number) == (task, request):
                if place == 0 and max(arrival, self.free_ns) <= self.now_ns:
                    return False
                del self.queue[place]
                return True
        return False

    def advance(self, until_ns: int) -> Sequence[Completion]:
        if not self.queue:
            self.now_ns = until_ns
            return ()
        arrival, number, task, inputs = self.queue[0]
        start = max(arrival, self.free_ns)
        finish = start + self.service_ns[task]
        if finish > until_ns:
            self.now_ns = until_ns
            return ()
        del self.queue[0]
        self.now_ns = self.free_ns = finish
        outputs = None if inputs is None else {"y": inputs["x"] * 2}
        runs = None if inputs is None else (np.ones(BLOCKS, np.int32),)
        return (Completion(task, number, arrival, start, finish, outputs, runs),)

    def usage(self) -> Usage:
        return Usage(achieved_occupancy=0.25, busy_share=0.5)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeDevice:
    """Opens fake sessions and keeps them."""

    service_ns: dict[str, int]
    name: str = "sim:fake"
    simulated: bool = True
    gpu: GpuSpec = field(default_factory=lambda: GpuSpec("fake", "sm_87", 4))
    sessions: list[FakeSession] = field(default_factory=list)

    def open(
        self,
        tasks: Sequence[Task],
        policy: Policy,
        observers: Sequence[Observer] = (),
        *,
        timed: bool = False,
    ) -> FakeSession:
        slow = 2 if policy.name == "gate" else 1
        session = FakeSession([slow * self.service_ns[task.program.name] for task in tasks])
        self.sessions.append(session)
        return session


class Silent(Unobserved):
    """Observes nothing but keeps the names of the rows."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def finished(self, job: Job, record: JobRecord) -> None:
        if not job.solo:
            self.rows.append(f"{job.workload} {job.policy}")


def asked(*policies: str, seconds: float = 0.02, compute: bool = False) -> Options:
    """What a test asks for on the device of the fakes."""
    return Options(
        benchmark="mdtb",
        device="sim:fake",
        policies=policies,
        seconds=seconds,
        seed=1,
        compute=compute,
    )


def bench(
    device: FakeDevice,
    workloads: Sequence[Workload],
    options: Options,
    observer: Silent | None = None,
) -> BenchResult:
    """Run a benchmark on ``device``."""
    workshop = Workshop(lambda machine, compute: device, lambda arch: FakeNetworks())
    cells = [Cell(Machine(device.name), workload) for workload in workloads]
    return run_cells(options, "MDTB", cells, InProcess(workshop, observer or Silent()))


def task_figures(
    name: str, latency: Sequence[int], solo: Sequence[int], rate: float, solo_rate: float
) -> TaskFigures:
    """Figures of a task of which each service takes half of its latency, alone a quarter."""
    return TaskFigures(
        task=name,
        latency=Sample.of(latency),
        service=Sample.of(value // 2 for value in latency),
        solo_latency=Sample.of(solo),
        rate_hz=rate,
        solo_rate_hz=solo_rate,
        solo_service=Sample.of(value // 4 for value in solo),
    )


def sample_result(criticals: int = 1) -> BenchResult:
    """Two workloads under two policies with figures that are easy to check by hand."""
    rows = []
    for workload, base in (("A", 2 * MS), ("B", 8 * MS)):
        for policy, factor, rate in (("sequential", 4, 20.0), ("miriam", 1, 60.0)):
            critical = tuple(
                task_figures(f"critical{i}", [factor * base, factor * base + MS], [base], 50, 100)
                for i in range(criticals)
            )
            normal = (task_figures("normal", [4 * MS], [2 * MS], rate, 80),)
            rows.append(RowFigures(workload, policy, 2, critical, normal, 0.4321))
    return BenchResult("sim:fake", True, 1, ("sequential", "miriam"), tuple(rows))
