"""``--trace``: the observers of a run whose timeline and delays are wanted."""

from __future__ import annotations

from collections.abc import Sequence

from miriam.bench.explain import Delays
from miriam.bench.timeline import Timeline
from miriam.coordinator import Task
from miriam.devices.contract import Device
from miriam.devices.observe import Observer


class Tracer:
    """Records one session of ``tasks`` on a simulated ``device``."""

    def __init__(self, device: Device, tasks: Sequence[Task]) -> None:
        self._device = device
        self._timeline = Timeline(tasks, device.gpu.sms)
        self._delays = Delays(device, tasks)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """What the session has to be opened with."""
        return self._timeline, self._delays

    def encode(self) -> bytes:
        """The trace so far, for ui.perfetto.dev: JSON in the Chrome trace format."""
        return self._timeline.encode(self._device.name, self._delays.explained)
