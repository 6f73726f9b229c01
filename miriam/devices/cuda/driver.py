"""Calls of the CUDA driver; what it refuses becomes an error with the driver's own text."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from miriam.errors import DeviceError, MissingCapabilityError, UsageError

MOST_CONNECTIONS, USUAL_CONNECTIONS = 32, 8
"""A GPU has no more hardware queues than the first, whatever is asked for, and the second if
nothing is (CUDA programming guide, "CUDA Environment Variables")."""


def connections(setting: str) -> int:
    """The hardware queues that CUDA_DEVICE_MAX_CONNECTIONS=``setting`` brings, or UsageError."""
    if not setting.isdecimal() or not int(setting):
        rule = f"a number from 1 to {MOST_CONNECTIONS}"
        raise UsageError("CUDA_DEVICE_MAX_CONNECTIONS", rule, setting, "unset it")
    return min(int(setting), MOST_CONNECTIONS)


def _runs() -> bool:
    """Whether CUDA has a context in this process, which read the environment when it was made."""
    try:
        status, *count = driver.cuDeviceGetCount()
        known = range(0 if int(status) else count[0])
        handles = [driver.cuDeviceGet(number)[1] for number in known]
    except RuntimeError:
        return False
    return any(driver.cuDevicePrimaryCtxGetState(handle)[2] for handle in handles)


# Loading a function later would wait for running kernels, and a gate may be what they wait for.
os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
# Streams beyond this number share hardware queues, 8 by default: a critical request then waits
# behind a gate that waits for it (measured, docs/results/device.md).
_ASKED = "CUDA_DEVICE_MAX_CONNECTIONS" in os.environ
CONNECTIONS = connections(
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", str(MOST_CONNECTIONS))
)

try:
    from cuda.bindings import driver
except ImportError as error:
    raise MissingCapabilityError(
        "device cuda", str(error), "install miriam-gpu[cuda,elastic]"
    ) from error

if not _ASKED and _runs():
    CONNECTIONS = USUAL_CONNECTIONS

__all__ = ["CONNECTIONS", "OLDEST_DRIVER", "ask", "driver", "driver_version", "event", "start"]

OLDEST_DRIVER = 13_000
"""CUDA 13.0: NVRTC 13 makes cubins that older drivers do not load."""


def ask(result: tuple[Any, ...]) -> Any:
    """The value of a driver call, a tuple if it has several; DeviceError with the driver's text."""
    status, *values = result
    if int(status):
        advice = _ADVICE.get(status.name, "")
        raise DeviceError(f"{status.name}: {_text(status)}{advice}")
    return values[0] if len(values) == 1 else tuple(values)


_ADVICE = {
    "CUDA_ERROR_LAUNCH_FAILED": "; this process can not use the GPU any more, start a new one. In "
    'a world of some SMs see docs/bench.md, "A fault in worlds of some SMs"'
}


def _text(status: Any) -> str:
    failed, text = driver.cuGetErrorString(status)
    return str(status) if int(failed) else text.decode()


def event(owner: ExitStack, flags: int = 0) -> Any:
    """A new event, which ``owner`` destroys."""
    made = ask(driver.cuEventCreate(flags))
    owner.callback(lambda: ask(driver.cuEventDestroy(made)))
    return made


def driver_version() -> int:
    """The CUDA version of the installed driver: 13000 for 13.0."""
    return int(ask(driver.cuDriverGetVersion()))


def start() -> None:
    """Initialise the driver; MissingCapabilityError without a GPU, or with too old a driver."""
    advice = "use --device sim:orin, or a machine with an NVIDIA GPU"
    try:
        ask(driver.cuInit(0))
    except (RuntimeError, DeviceError) as error:
        raise MissingCapabilityError("device cuda", f"no CUDA driver: {error}", advice) from error
    found = driver_version()
    if found < OLDEST_DRIVER:
        missing = f"the driver is for CUDA {_dotted(found)}, Miriam needs {_dotted(OLDEST_DRIVER)}"
        raise MissingCapabilityError("device cuda", missing, "update the NVIDIA driver")


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
