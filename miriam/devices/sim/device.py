"""The simulated GPU as a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from miriam.coordinator import Mix, Policy, Task
from miriam.coordinator.policies import get as get_policy
from miriam.devices.observe import Observer
from miriam.devices.sim.forms import Forms
from miriam.devices.sim.model import GpuModel
from miriam.devices.sim.presets import preset
from miriam.devices.sim.session import SimSession
from miriam.errors import UsageError
from miriam.kernels import GpuSpec, Program

if TYPE_CHECKING:
    from miriam.devices.host import Host

FOREVER_NS = 10**15


class SimDevice:
    """A GPU in virtual time; with ``host``, blocks are also executed, in the simulated order."""

    def __init__(self, model: GpuModel, host: Host | None = None) -> None:
        self.model = model
        self._host = host
        self._step_ns: dict[int, tuple[Program, tuple[int, ...]]] = {}

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
        mix = Mix(self.gpu, tuple(tasks), tuple(self._solo_ns(t.program) for t in tasks))
        total_bytes = sum(t.program.footprint_bytes for t in tasks)
        forms = [
            Forms(self.model, t.program, total_bytes - t.program.footprint_bytes) for t in tasks
        ]
        programs = None
        if self._host is not None:
            programs = [self._host.load(t.program, t.weights, elastic=True) for t in tasks]
        return SimSession(self.model, mix, policy, forms, programs, observers)

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
