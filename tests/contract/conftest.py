"""The devices that keep the contract; a new one is one line here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from miriam import devices
from miriam.devices.contract import Device

DEVICES: dict[str, Callable[[], Device]] = {
    "host": lambda: devices.get("host"),
    "sim": lambda: devices.get("sim:orin", compute=True),
}


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Device:
    """Each device in turn; all of them compute."""
    return DEVICES[request.param]()
