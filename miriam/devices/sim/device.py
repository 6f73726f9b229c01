"""The simulated GPU as a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from miriam.coordinator import Mix, Plan, Policy, Task
from miriam.coordinator.corun import Candidate, Measuring
from miriam.coordinator.policies import get as get_policy
from miriam.devices import tryout
from miriam.devices.observe import Observer
from miriam.devices.sim.corun import FOREVER_NS, CoRunner
from miriam.devices.sim.forms import Forms
from miriam.devices.sim.model import GpuModel
from miriam.devices.sim.presets import preset
from miriam.devices.sim.session import SimSession
from miriam.errors import UsageError
from miriam.kernels import GpuSpec, Program

if TYPE_CHECKING:
    from miriam.devices.host import Host

TRIED_REQUESTS = 10
"""A plan is tried until so many requests of each critical task have ended; simulated ones differ
only in what they meet."""

TRIED_PERCENTILE = 95
"""Of so few the 99th would be the slowest."""

TRIED_TIMES = 16
"""But at least for so many times as long as a normal request takes alone: that many are done if
nothing holds them."""

TRIED_TIMES_MOST = 128
"""And at most for so many times as long as any request takes alone."""


class SimDevice:
    """A GPU in virtual time; with ``host``, blocks are also executed, in the simulated order."""

    def __init__(self, model: GpuModel, host: Host | None = None) -> None:
        self.model = model
        self._host = host
        self._step_ns: dict[int, tuple[Program, tuple[int, ...]]] = {}
        self._corunner = CoRunner(model)
        self._shown = tryout.Tried()

    @property
    def name(self) -> str:
        """``sim:`` and the GPU's name."""
        return f"sim:{self.model.spec.name}"

    @property
    def simulated(self) -> bool:
        """Always: its times are simulated."""
        return True

    @property
    def gpu(self) -> GpuSpec:
        """The GPU that policies plan for."""
        return self.model.spec

    def open(
        self,
        tasks: Sequence[Task],
        policy: Policy,
        observers: Sequence[Observer] = (),
        *,
        timed: bool = False,
    ) -> SimSession:
        """Open a session for ``tasks`` under ``policy``; yields are not timed here."""
        programs = None
        if self._host is not None:
            programs = [self._host.load(t.program, t.weights, elastic=True) for t in tasks]
        mix, forms = self.mix(tasks, policy), self._forms(tasks)
        return SimSession(self.model, mix, policy, forms, programs, observers)

    def mix(self, tasks: Sequence[Task], policy: Policy) -> Mix:
        """What ``policy`` plans for: ``tasks``, and all that it wants to have measured of them."""
        mix = Mix(self.gpu, tuple(tasks), tuple(self._solo_ns(t.program) for t in tasks))
        if not isinstance(policy, Measuring):
            return mix
        pairs = [(c, n) for c in mix.critical for n in mix.normal]
        coruns = {p: self._corunner.measure(mix, *p, policy.trials(mix, *p)) for p in pairs}
        mix = replace(mix, coruns=coruns)
        return replace(mix, candidates=self._tried(mix, policy.candidates(mix)))

    def _forms(self, tasks: Sequence[Task]) -> list[Forms]:
        total_bytes = sum(t.program.footprint_bytes for t in tasks)
        return [
            Forms(self.model, t.program, total_bytes - t.program.footprint_bytes) for t in tasks
        ]

    def _tried(self, mix: Mix, plans: Sequence[Plan]) -> tuple[Candidate, ...]:
        """What ``plans`` show; tried once for the same tasks."""
        forms = self._forms(mix.tasks)

        def opened(policy: Policy, observers: Sequence[Observer]) -> SimSession:
            return SimSession(self.model, mix, policy, forms, None, observers)

        def trying() -> tuple[Candidate, ...]:
            inputs = [None] * len(mix.tasks)
            length = _length(mix)
            return tryout.tried(
                mix, plans, opened, length, inputs, warm_up_ns=length.longest_ns, by_step=True
            )

        return self._shown.of(mix.tasks, plans, trying)

    def _solo_ns(self, program: Program) -> tuple[int, ...]:
        """Each step's time alone, from one request on the idle GPU."""
        known = self._step_ns.get(id(program))
        if known is None:
            times = _StepTimes(len(program.steps))
            mix = Mix(self.gpu, (Task("solo", program),), ((0,) * len(program.steps),))
            forms = [Forms(self.model, program)]
            session = SimSession(self.model, mix, get_policy("multistream"), forms, None, (times,))
            session.submit(0, 0)
            session.advance(FOREVER_NS)
            known = self._step_ns[id(program)] = (program, tuple(times.step_ns))
        return known[1]


def _length(mix: Mix) -> tryout.Length:
    """How long plans are tried."""
    alone_ns = [sum(steps) for steps in mix.step_ns]
    most_ns = TRIED_TIMES_MOST * max(alone_ns, default=0)
    least_ns = TRIED_TIMES * max((alone_ns[n] for n in mix.normal), default=0)
    return tryout.Length(TRIED_REQUESTS, least_ns, most_ns, TRIED_PERCENTILE)


class _StepTimes(Observer):
    """Observer that keeps how long each step took."""

    def __init__(self, steps: int) -> None:
        self.step_ns = [0] * steps

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        self.step_ns[step] = ended_ns - began_ns


def open_device(rest: str, compute: bool) -> SimDevice:
    """``orin``, or ``h200:32`` for a world of 32 SMs; UnknownNameError lists the presets."""
    name, _, sms = rest.partition(":")
    model = preset(name)
    if sms:
        if not sms.isdecimal():
            raise UsageError(f"device sim:{rest}", "a number of SMs after the GPU's name", sms)
        model = model.world(int(sms))
    if not compute:
        return SimDevice(model)
    from miriam.devices.host import Host

    return SimDevice(model, Host())
