"""Which device a benchmark runs on, as something that can be sent to another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING

from miriam import devices
from miriam.devices.contract import Device
from miriam.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from miriam.bench.metrics import MeasuredOn
    from miriam.devices.sim import GpuModel


@dataclass(frozen=True, slots=True)
class Machine:
    """A device by name; ``scaled``: multiples of a simulated one's parameters (see SCALES)."""

    name: str
    scaled: tuple[tuple[str, float], ...] = ()

    @property
    def simulated(self) -> bool:
        """Whether its times are simulated."""
        return self.name.startswith("sim:")

    def world(self, sms: int) -> Machine:
        """The same GPU limited to ``sms`` SMs; UsageError for one that is limited already."""
        kind, _, rest = self.name.partition(":")
        gpu, limited, _ = rest.partition(":")
        if limited:
            rule = f"a whole GPU where worlds are chosen besides, as {kind}:{gpu}"
            raise UsageError("device", rule, self.name)
        return replace(self, name=f"{kind}:{gpu}:{sms}")

    def measured_on(self) -> MeasuredOn | None:
        """What a report says about a GPU; None for a simulated device and for the host."""
        if not self.name.startswith("cuda:"):
            return None
        from miriam.bench.metrics import MeasuredOn
        from miriam.devices.cuda.about import about

        return MeasuredOn(**asdict(about(int(self.name.split(":")[1] or 0))))

    def open(self, *, compute: bool, workers: int | None = None) -> Device:
        """The device; a simulated one computes, if at all, on ``workers`` threads of the CPU.

        UnknownNameError or MissingCapabilityError as ``devices.get`` has them.
        """
        if not self.simulated:
            return devices.get(self.name, compute=compute)
        from miriam.devices.host import Host
        from miriam.devices.sim import SimDevice

        known = devices.get(self.name)
        assert isinstance(known, SimDevice)
        model = known.model
        for parameter, factor in self.scaled:
            model = _scale(model, parameter, factor)
        return SimDevice(model, Host(workers=workers) if compute else None)


def _bandwidth(model: GpuModel, factor: float) -> GpuModel:
    spec = replace(model.spec, dram_gbps=model.spec.dram_gbps * factor)
    l2 = model.l2_bytes_per_clock_per_sm * factor
    return replace(model, spec=spec, l2_bytes_per_clock_per_sm=l2)


def _issue(model: GpuModel, factor: float) -> GpuModel:
    return replace(model, issue_efficiency=model.issue_efficiency * factor)


def _launch(model: GpuModel, factor: float) -> GpuModel:
    costs = type(model.costs)(*(round(ns * factor) for ns in astuple(model.costs)))
    return replace(model, costs=costs)


SCALES: dict[str, Callable[[GpuModel, float], GpuModel]] = {
    "bandwidth": _bandwidth,
    "issue": _issue,
    "launch": _launch,
}
"""The simulator's parameters that the conclusions are tried against: DRAM and L2 bandwidth,
the rate at which an SM issues, and every cost of launching and coordinating."""


def _scale(model: GpuModel, parameter: str, factor: float) -> GpuModel:
    if parameter not in SCALES:
        raise UnknownNameError("scaled parameter", parameter, SCALES)
    return SCALES[parameter](model, factor)
