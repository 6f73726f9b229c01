"""Critical weights that stay in the L2 cache while normal work streams through it.

CUDA C++ programming guide, "L2 set-aside cache for persisting accesses". What is set aside and not
used stays free for all. What it brings: docs/architecture.md, "Plans by measurement".
"""

from __future__ import annotations

from typing import Any

from miriam.devices.cuda.driver import ask, driver

SHARE = 0.25
"""Of the L2 cache, for critical weights at most."""

_ATTRIBUTE = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
_REFUSED = (
    driver.CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT,
    driver.CUresult.CUDA_ERROR_NOT_SUPPORTED,
)
"""As to an MPS client, where the server's settings count (the same section)."""


class SetAside:
    """The part of L2 that one session's critical weights have."""

    def __init__(self, device: Any) -> None:
        """``device``: the CUdevice; on one that can set nothing aside there is no window."""
        self._device = device
        self._room = min(
            round(SHARE * self._attribute("L2_CACHE_SIZE")),
            self._attribute("MAX_PERSISTING_L2_CACHE_SIZE"),
        )
        self._kept = 0

    def window(self, address: int, size_bytes: int) -> Any | None:
        """What makes streams keep what they read there; None if it has no room as a whole."""
        most = self._attribute("MAX_ACCESS_POLICY_WINDOW_SIZE")
        if not 0 < size_bytes <= min(self._room - self._kept, most):
            return None
        if not _set_aside(self._kept + size_bytes):
            return None
        self._kept += size_bytes
        value = driver.CUstreamAttrValue()
        window = value.accessPolicyWindow
        window.base_ptr, window.num_bytes, window.hitRatio = address, size_bytes, 1.0
        window.hitProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
        window.missProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_NORMAL
        value.accessPolicyWindow = window
        return value

    def give_back(self) -> None:
        """What was kept is like everything else in L2 again; what is set aside stays so, free."""
        if self._kept:
            ask(driver.cuCtxResetPersistingL2Cache())
            self._kept = 0

    def _attribute(self, name: str) -> int:
        attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(ask(driver.cuDeviceGetAttribute(attribute, self._device)))


def _set_aside(size_bytes: int) -> bool:
    """Have so much of L2 set aside in the current context, or more; whether that is possible."""
    limit = driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
    known = driver.cuCtxGetLimit(limit)
    if known[0] in _REFUSED:
        return False
    if ask(known) >= size_bytes:
        return True
    made = driver.cuCtxSetLimit(limit, size_bytes)
    if made[0] in _REFUSED:
        return False
    ask(made)
    return True


def look_through(window: Any | None, stream: Any) -> None:
    """Let kernels that are submitted to ``stream`` or recorded there from now on use ``window``.

    Nothing to do for None.
    """
    if window is not None:
        ask(driver.cuStreamSetAttribute(stream, _ATTRIBUTE, window))
