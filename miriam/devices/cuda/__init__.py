"""A CUDA GPU as a device: streams, graphs, green contexts and words in its memory.

Everything that decides while requests run lies on the GPU (docs/architecture.md, "Where the
coordinator lives"); the host launches a graph per request and collects what is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from miriam.devices.cuda.recording import GpuArray, HasGraph, OnGpu, Recording
from miriam.errors import UsageError

if TYPE_CHECKING:
    from miriam.devices.cuda.device import CudaDevice

__all__ = ["GpuArray", "HasGraph", "OnGpu", "Recording", "open_device"]


def open_device(rest: str, compute: bool) -> CudaDevice:
    """``0``, or ``0:32`` for a world of 32 SMs; ``compute``: count each block's runs.

    MissingCapabilityError without the ``cuda`` extra, a GPU, or a driver for CUDA 13.
    """
    ordinal, _, sms = rest.partition(":")
    for number in (ordinal or "0", sms or "1"):
        if not number.isdecimal():
            raise UsageError(f"device cuda:{rest}", "cuda:<GPU> or cuda:<GPU>:<SMs>", rest)
    from miriam.devices.cuda.device import CudaDevice
    from miriam.devices.cuda.world import gpu

    found = gpu(int(ordinal or 0))
    world = found.world(0, int(sms)) if sms else found.whole()
    return CudaDevice(found, world, counting=compute)
