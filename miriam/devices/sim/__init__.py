"""The simulated GPU: block-level, discrete-event, virtual time, deterministic."""

from miriam.devices.sim.device import SimDevice, open_device
from miriam.devices.sim.model import Costs, GpuModel
from miriam.devices.sim.presets import PRESETS, preset

__all__ = ["PRESETS", "Costs", "GpuModel", "SimDevice", "open_device", "preset"]
