"""The host device: CUDA C++ compiled with g++ against a shim, its blocks run on the CPU."""

from miriam.devices.host.host import Host, HostProgram, HostRequest

__all__ = ["Host", "HostProgram", "HostRequest"]
