"""What coordination costs by itself: decisions on the host, launches on the GPU.

The paper reports under 0.35 ms of shard selection per network, and a launch delay of critical
kernels under 15 us in over 80 % of cases. Here the selection for all pairs of steps happens once,
when tasks come and go: a plan. While requests run there is only ``admit``, and on the GPU a table
look-up. What gates and elastic forms cost is what a network takes longer alone.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from miriam.bench.arrivals import Closed
from miriam.bench.jobs import Workshop
from miriam.bench.metrics import Sample
from miriam.bench.options import Options
from miriam.coordinator import Mix, Policy, Snapshot, Task, Waiting, policies
from miriam.coordinator.corun import Measuring
from miriam.devices.contract import Device
from miriam.devices.observe import LaunchInfo, Observer
from miriam.errors import UsageError
from miriam.runtime import Driver, Offer

if TYPE_CHECKING:
    from miriam.devices.sim import SimDevice

NAME = "overheads"
TITLE = "Overheads"
PAIRS = (
    "alexnet+cifarnet",
    "squeezenet+alexnet",
    "gru+resnet50",
    "lstm+squeezenet",
    "resnet50+resnet50",
)
POLICIES = ("miriam", "gate", "barrier")
PROMPT_NS = 15_000
"""The launch delay that the paper quotes."""
_TRIES = 5
_REQUESTS = 20
_SUBMIT_NS = 20_000
_ADMITS = 1_000
_FOREVER_NS = 10**15


@dataclass(frozen=True, slots=True)
class Overhead:
    """One pair under one policy.

    ``plan_ms``, ``admit_us``: on this host, the best of several tries; what a policy wants to have
    measured before is not in it. ``delays``: from the launch of each critical kernel to its first
    block, both tasks in closed loops. ``critical_us`` and ``normal_us``: a request of each on the
    idle GPU, under the policy and (``plain``) as plain kernels. ``steps``: kernel launches of each.
    """

    critical: str
    normal: str
    policy: str
    steps: tuple[int, int]
    plan_ms: float
    admit_us: float
    delays: Sample
    critical_us: float
    critical_plain_us: float
    normal_us: float
    normal_plain_us: float

    @property
    def prompt(self) -> float:
        """Share of the critical kernels that start within PROMPT_NS of their launch."""
        return sum(delay < PROMPT_NS for delay in self.delays.values) / self.delays.count


@dataclass(frozen=True, slots=True)
class OverheadsReport:
    """Every pair under every policy; ``host`` made the decisions."""

    device: str
    host: str
    rows: tuple[Overhead, ...]
    options: Options
    title: str = TITLE
    simulated: bool = True


def measure(options: Options, workshop: Workshop) -> OverheadsReport:
    """The overheads of the pairs and policies that ``options`` name, on a simulated device."""
    from miriam.devices.sim import SimDevice

    device = workshop.device(options.machine)
    if not isinstance(device, SimDevice):
        raise UsageError("device", "a simulated one, sim:<gpu>", device.name)
    rows = [
        _overhead(device, _tasks(options, workshop, pair), policies.get(name))
        for pair in options.workloads
        for name in options.policies
    ]
    return OverheadsReport(device.name, host(), tuple(rows), options)


def host() -> str:
    """The processor and the Python that decisions are made with."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or "an unnamed processor"
    return f"one core of {cpu}, Python {platform.python_version()}"


def _tasks(options: Options, workshop: Workshop, pair: str) -> tuple[Task, Task]:
    networks = [options.network(name) for name in options.pair(pair)]
    critical, normal = (workshop.program(options.machine, name) for name in networks)
    return (
        Task(networks[0], critical, critical=True),
        Task(networks[1], normal, in_flight=options.in_flight),
    )


def _overhead(device: SimDevice, tasks: tuple[Task, Task], policy: Policy) -> Overhead:
    waiting = tuple(Waiting(index % 2, index) for index in range(8))
    snapshot = Snapshot(waiting, (1, 1), 1)
    plain = policies.get("multistream")
    critical, normal = tasks
    mix = device.mix(tasks, policy)
    return Overhead(
        critical=critical.name,
        normal=normal.name,
        policy=policy.name,
        steps=(len(critical.program.steps), len(normal.program.steps)),
        plan_ms=1e3 * _best_s(lambda: _decide(mix, policy)),
        admit_us=1e6 * _best_s(lambda: policy.admit(mix, snapshot), _ADMITS),
        delays=_delays(device, mix, policy),
        critical_us=_request_us(device, tasks, policy, 0),
        critical_plain_us=_request_us(device, tasks, plain, 0),
        normal_us=_request_us(device, tasks, policy, 1),
        normal_plain_us=_request_us(device, tasks, plain, 1),
    )


def _decide(mix: Mix, policy: Policy) -> None:
    """All that the host computes for a plan, of what has been measured."""
    if isinstance(policy, Measuring):
        policy.candidates(mix)
    policy.plan(mix)


def _best_s(action: Callable[[], object], repeat: int = 1) -> float:
    """Seconds of one ``action``, the best of several tries."""
    times = []
    for _ in range(_TRIES):
        began = time.perf_counter()
        for _ in range(repeat):
            action()
        times.append((time.perf_counter() - began) / repeat)
    return min(times)


def _request_us(device: Device, tasks: Sequence[Task], policy: Policy, chosen: int) -> float:
    """Latency of one request of ``chosen`` while no other task asks for anything."""
    with closing(device.open(tasks, policy)) as session:
        session.submit(chosen, 0)
        while True:
            for done in session.advance(_FOREVER_NS):
                return (done.finish_ns - done.arrival_ns) / 1_000


class _Delays(Observer):
    """Keeps when the critical launches came, and when their first blocks began."""

    def __init__(self) -> None:
        self._launched: dict[int, int] = {}
        self._began: dict[int, float] = {}

    def launched(self, launch: LaunchInfo, now_ns: int) -> None:
        if launch.task == 0:
            self._launched[launch.number] = now_ns

    def ran(
        self,
        launch: int,
        sms: Sequence[int],
        blocks: Sequence[tuple[int, int]],
        began_ns: float,
        ended_ns: float,
    ) -> None:
        if launch in self._launched:
            self._began[launch] = min(began_ns, self._began.get(launch, began_ns))

    def sample(self) -> Sample:
        return Sample.of(round(began - self._launched[n]) for n, began in self._began.items())


def _delays(device: Device, mix: Mix, policy: Policy) -> Sample:
    """Of the critical task, which comes first in ``mix``, for the time of a few requests."""
    watch = _Delays()
    offers = [Offer(task, Closed(task.in_flight), (0,) * task.in_flight) for task in mix.tasks]
    with closing(device.open(mix.tasks, policy, (watch,))) as session:
        Driver(session, offers).run(_REQUESTS * (sum(mix.step_ns[0]) + _SUBMIT_NS))
    return watch.sample()
