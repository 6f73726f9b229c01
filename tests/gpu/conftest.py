"""Tests on a real GPU: marked ``gpu``, and skipped with the reason where there is none."""

from __future__ import annotations

import pytest

from miriam import devices
from miriam.devices.contract import Device
from miriam.errors import MissingCapabilityError


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a GPU."""
    for item in items:
        if "tests/gpu/" in item.nodeid:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def device() -> Device:
    """The first GPU, with the runs of blocks counted."""
    try:
        return devices.get("cuda:0", compute=True)
    except MissingCapabilityError as error:
        pytest.skip(str(error))
