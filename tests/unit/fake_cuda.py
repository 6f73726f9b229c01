"""A CUDA driver without a GPU: it counts what is made and given back, and fails where it is told.

Kernels do nothing and take 1 ns. Calls return as many values as they really do.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.driver import driver
from miriam.devices.cuda.world import Gpu

OK, FULL = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY

MADE = {
    "cuMemAlloc": "memory",
    "cuMemHostAlloc": "host memory",
    "cuStreamCreateWithPriority": "stream",
    "cuGreenCtxStreamCreate": "stream",
    "cuEventCreate": "event",
    "cuStreamEndCapture": "graph",
    "cuGraphInstantiate": "executable",
    "cuGreenCtxCreate": "context",
}
GIVEN_BACK = {
    "cuMemFree": "memory",
    "cuMemFreeHost": "host memory",
    "cuStreamDestroy": "stream",
    "cuEventDestroy": "event",
    "cuGraphDestroy": "graph",
    "cuGraphExecDestroy": "executable",
    "cuGreenCtxDestroy": "context",
}
FAILING = {
    *MADE,
    "cuCtxFromGreenCtx",
    "cuGraphLaunch",
    "cuGraphUpload",
    "cuLaunchKernel",
    "cuMemcpyHtoD",
    "cuMemsetD8",
    "cuStreamWaitEvent",
}
"""What fails on a GPU that is full; where it is lost, nothing can be given back any more."""
VALUES: dict[str, tuple[Any, ...]] = {
    "cuCtxGetStreamPriorityRange": (0, -5),
    "cuCtxGetCurrent": (1,),
    "cuCtxFromGreenCtx": (2,),
    "cuDevResourceGenerateDesc": (3,),
    "cuDeviceGetAttribute": (0,),
    "cuFuncGetAttribute": (48 * 1024,),
    "cuGetErrorString": (b"out of memory",),
    "cuModuleLoadData": (4,),
    "cuModuleGetFunction": (5,),
    "cuGraphAddBatchMemOpNode": (6,),
    "cuStreamGetCaptureInfo": (0, 0, 7, [], None, 0),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (2,),
}


class FakeDriver:
    """``alive``: how many of each kind there are. ``made``: how many there ever were.

    ``fail_at``: from which call on the first that can fail does, by number. ``fast``: by how much
    the GPU's clock runs faster than the host's.
    """

    def __init__(self) -> None:
        self.alive: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self.calls, self.fail_at = 0, -1
        self.fast = 1.0
        self._recorded_ns: dict[int, int] = {}
        self._launched_ns = self._asked = 0
        self._next, self._pages = 1 << 20, dict[int, Any]()

    def __getattr__(self, name: str) -> Any:
        real = getattr(driver, name)
        if not (name.startswith("cu") and name[2].isupper()):
            return real
        return self._call(name)

    def _call(self, name: str) -> Callable[..., tuple[Any, ...]]:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls += 1
            if 0 < self.fail_at <= self.calls and name in FAILING:
                self.fail_at = -1
                return (FULL,)
            if name in GIVEN_BACK:
                self.alive[GIVEN_BACK[name]] -= 1
                return (OK,)
            if name == "cuMemHostAlloc":
                self.alive["host memory"] += 1
                page = ctypes.create_string_buffer(arguments[0])
                self._pages[ctypes.addressof(page)] = page
                return OK, ctypes.addressof(page)
            if name == "cuEventElapsedTime":
                took_ns = self._time_ns(arguments[1]) - self._time_ns(arguments[0])
                return OK, self.fast * took_ns / 1e6
            if name == "cuEventRecord":
                self._recorded_ns[arguments[0]] = time.perf_counter_ns()
            if name == "cuGraphLaunch":
                self._launched_ns, self._asked = time.perf_counter_ns(), 0
            if name in MADE:
                self.alive[MADE[name]] += 1
                self.made[MADE[name]] += 1
                self._next += 1 << 30
                return OK, self._next
            return OK, *VALUES.get(name, ())

        return call

    def _time_ns(self, event: int) -> int:
        """When it was recorded; in a graph at the last launch, and one after the other."""
        if event in self._recorded_ns:
            return self._recorded_ns[event]
        self._asked += 1
        return self._launched_ns + self._asked

    @property
    def left(self) -> dict[str, int]:
        """What is alive."""
        return {kind: number for kind, number in self.alive.items() if number}


def fake(patch: pytest.MonkeyPatch) -> FakeDriver:
    """Put one in place of the driver, everywhere."""
    made = FakeDriver()
    for name, module in list(sys.modules.items()):
        if name.startswith("miriam.devices.cuda.") and hasattr(module, "driver"):
            patch.setattr(module, "driver", made)
    return made


def h200() -> Gpu:
    """An H200, whose SMs have their numbers in the order of its groups."""

    class Group:
        class sm:
            smCount = 8

    gpu = Gpu(0, 0, 1, "H200", "sm_90", 132, 4_800.0, [Group() for _ in range(16)])
    for sms in (*range(8, 129, 8), 132):
        gpu.known_ids[0, sms] = tuple(range(sms))
    return gpu


def device_of(sms: int | None = None) -> CudaDevice:
    """The fake H200, or a world of so many of its SMs."""
    gpu = h200()
    return CudaDevice(gpu, gpu.whole() if sms is None else gpu.world(0, sms), counting=False)
