"""Weights of a critical task have a part of L2 where they fit as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from miriam import devices, models
from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.l2 import SHARE
from miriam.devices.cuda.session import CudaSession
from miriam.errors import MissingCapabilityError
from tests.gpu.support import SECOND_NS, alone, as_bytes

WINDOW = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW


@pytest.fixture(scope="module", params=["cuda:0", "cuda:0:16"])
def device(request: pytest.FixtureRequest) -> CudaDevice:
    try:
        found = devices.get(request.param)
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    assert isinstance(found, CudaDevice)
    return found


def task(device: CudaDevice, name: str, *, critical: bool) -> Task:
    program, weights = models.load(name, device.gpu.arch), models.weights(name, 0)
    return Task(name, program, critical=critical, weights=weights)


def kept_bytes(session: CudaSession, task: int) -> int:
    (lane,) = session._stage.lanes[task]
    value: Any = ask(driver.cuStreamGetAttribute(lane.stream, WINDOW))
    return int(value.accessPolicyWindow.num_bytes)


@pytest.mark.parametrize("policy", ["gate", "partition", "vacate"])
@pytest.mark.parametrize(("critical", "fits"), [("squeezenet", True), ("alexnet", False)])
def test_critical_weights_that_fit_have_a_part_of_l2(
    device: CudaDevice, critical: str, fits: bool, policy: str
) -> None:
    tasks = [task(device, critical, critical=True), task(device, "squeezenet", critical=False)]
    picture = models.example_input(critical, 0)
    expected = alone(device, tasks[0], picture)
    session = device.open(tasks, get(policy))
    try:
        weights = sum(buffer.bytes for buffer in tasks[0].program.named("weight"))
        kept = kept_bytes(session, 0)
        assert kept >= weights if fits else kept == 0
        assert kept_bytes(session, 1) == 0
        session.submit(0, session.now_ns, picture)
        (done,) = session.advance(session.now_ns + SECOND_NS)
        assert as_bytes(done) == expected
    finally:
        session.close()


def test_tasks_have_it_in_turn_while_there_is_room(device: CudaDevice) -> None:
    first = task(device, "squeezenet", critical=True)
    weights = sum(buffer.bytes for buffer in first.program.named("weight"))
    l2 = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
    fit = int(SHARE * ask(driver.cuDeviceGetAttribute(l2, device.world.gpu.handle)) // weights)
    tasks = [replace(first, name=f"s{number}") for number in range(fit + 2)]
    session = device.open(tasks, get("multistream"))
    try:
        kept = [kept_bytes(session, number) > 0 for number in range(len(tasks))]
        assert kept == [True] * fit + [False] * 2
    finally:
        session.close()
