"""The host device: CUDA C++ compiled with g++ against a shim, its blocks run on the CPU."""

from miriam.devices.host.device import HostDevice
from miriam.devices.host.host import Host, HostProgram, HostRequest
from miriam.devices.host.kernel import HostKernel, Schedule
from miriam.devices.host.runtime import Memory
from miriam.errors import UsageError

__all__ = [
    "Host",
    "HostDevice",
    "HostKernel",
    "HostProgram",
    "HostRequest",
    "Memory",
    "Schedule",
    "open_device",
]


def open_device(rest: str, compute: bool) -> HostDevice:
    """The CPU; it always computes, whatever ``compute`` says. UsageError for any ``rest``."""
    if rest:
        raise UsageError("device", "host, and nothing behind it", f"host:{rest}")
    return HostDevice(Host())
