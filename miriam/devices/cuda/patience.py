"""Waits of the host for the GPU, none of which lasts for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from miriam.devices.cuda.driver import ask, driver
from miriam.errors import DeviceError

LIMIT_S = 30.0


def wait_for(event: Any, limit_s: float = LIMIT_S) -> None:
    """Until ``event`` has happened; DeviceError after ``limit_s``."""
    _wait(lambda: driver.cuEventQuery(event), limit_s)


def drain(stream: Any, limit_s: float = LIMIT_S) -> None:
    """Until ``stream`` is empty; DeviceError after ``limit_s``."""
    _wait(lambda: driver.cuStreamQuery(stream), limit_s)


def _wait(query: Callable[[], tuple[Any, ...]], limit_s: float) -> None:
    until = time.perf_counter() + limit_s
    while True:
        result = query()
        if result[0] != driver.CUresult.CUDA_ERROR_NOT_READY:
            ask(result)
            return
        if time.perf_counter() > until:
            raise DeviceError(f"the GPU did not answer within {limit_s:g} s")
