"""Memory of the GPU and page-locked memory of the host, given back together."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.patience import drain

_UNIT_BYTES = 256


@dataclass(eq=False)
class Memory:
    """Allocations of one owner; nothing is allocated once its gates may be shut."""

    _device: list[int] = field(default_factory=list)
    _host: list[int] = field(default_factory=list)

    def device(self, size_bytes: int) -> int:
        """The address of ``size_bytes`` of the GPU's memory, zeroed; DeviceError if it is full."""
        size_bytes = padded(max(size_bytes, 1))
        address = int(ask(driver.cuMemAlloc(size_bytes)))
        self._device.append(address)
        ask(driver.cuMemsetD8(address, 0, size_bytes))
        # On the legacy stream, for which ours do not wait.
        drain(driver.CUstream(0))
        return address

    def host(self, size_bytes: int) -> tuple[int, NDArray[np.uint8]]:
        """Page-locked memory of the host, zeroed: its address and a view of it."""
        address = int(ask(driver.cuMemHostAlloc(max(size_bytes, 1), 0)))
        self._host.append(address)
        view = np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))
        view[:] = 0
        return address, view

    def free(self) -> None:
        """Give everything back; nothing on the GPU may still use it."""
        for address in self._device:
            ask(driver.cuMemFree(address))
        for address in self._host:
            ask(driver.cuMemFreeHost(address))
        self._device.clear()
        self._host.clear()


def padded(size_bytes: int) -> int:
    """``size_bytes`` rounded up to what keeps arrays aligned as allocations are."""
    return -(-size_bytes // _UNIT_BYTES) * _UNIT_BYTES


def upload(address: int, array: NDArray[Any]) -> None:
    """Copy ``array`` to the GPU, and wait for it."""
    data = np.ascontiguousarray(array)
    ask(driver.cuMemcpyHtoD(address, data.ctypes.data, data.nbytes))
    # The call returns when the array can be written to again, not when the copy has arrived.
    drain(driver.CUstream(0))


def download(address: int, count: int, dtype: str) -> NDArray[Any]:
    """``count`` elements from the GPU."""
    data = np.empty(count, dtype)
    if count:
        ask(driver.cuMemcpyDtoH(data.ctypes.data, address, data.nbytes))
    return data
