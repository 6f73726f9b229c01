"""The devices that keep the contract; a new one is one line here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from miriam import devices
from miriam.devices.contract import Device
from miriam.errors import MissingCapabilityError

DEVICES: dict[str, Callable[[], Device]] = {
    "host": lambda: devices.get("host"),
    "sim": lambda: devices.get("sim:orin", compute=True),
    "cuda": lambda: devices.get("cuda:0", compute=True),
}
MARKS = {"cuda": [pytest.mark.gpu]}


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, ())) for name in DEVICES])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device in turn; all of them compute. One that this machine lacks is skipped."""
    try:
        return DEVICES[request.param]()
    except MissingCapabilityError as error:
        if request.param != "cuda":
            raise
        pytest.skip(str(error))
