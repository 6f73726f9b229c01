"""A session on CUDA gives back all that it made, also where it can not be opened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings")

from fake_cuda import FakeDriver, fake, h200

from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.devices.cuda import tryout
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.tryout import Length, Tried
from miriam.errors import DeviceError
from tests.kernels.programs import SIZE, two_steps

POLICIES = ["multistream", "gate", "vacate", "partition", "barrier", "miriam-host", "miriam"]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return fake(monkeypatch)


def device_of(sms: int | None = None) -> CudaDevice:
    gpu = h200()
    return CudaDevice(gpu, gpu.whole() if sms is None else gpu.world(0, sms), counting=False)


def tasks() -> list[Task]:
    program = two_steps()
    weights: dict[str, Any] = {b.name: np.zeros(b.shape, b.dtype) for b in program.named("weight")}
    return [
        Task("critical", program, critical=True, weights=weights),
        Task("normal", program, in_flight=2, weights=weights),
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_left_of_a_session(driver: FakeDriver, policy: str) -> None:
    device = device_of()
    work = tasks()
    device.open(work, get(policy)).close()
    before = dict(driver.left)
    session = device.open(work, get(policy))
    assert driver.left != before
    for task in range(len(work)):
        session.submit(task, 0, {"x": np.ones(SIZE, np.float32)})
    done = [completion.task for _ in range(2) for completion in session.advance(10**9)]
    assert sorted(done) == [0, 1]
    session.close()
    session.close()
    assert driver.left == before


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_left_where_a_session_can_not_be_opened(driver: FakeDriver, policy: str) -> None:
    """Whichever call of the driver fails."""
    device = device_of()
    work = tasks()
    device.open(work, get(policy)).close()
    before, begin = dict(driver.left), driver.calls
    session = device.open(work, get(policy))
    calls = driver.calls - begin
    session.close()
    failed = 0
    for number in range(1, calls + 1):
        driver.fail_at = driver.calls + number
        try:
            session = device.open(work, get(policy))
        except DeviceError as error:
            failed += 1
            assert "OUT_OF_MEMORY" in str(error)
        else:
            session.close()
        driver.fail_at = -1
        assert driver.left == before, number
    assert failed


@pytest.mark.parametrize("policy", [*POLICIES, "miriam-measured"])
def test_in_a_small_world_only_partition_makes_contexts(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """They would overlap with that of the world."""
    short = Length(requests=1, shortest_ns=0, longest_ns=50_000, percentile=99)
    monkeypatch.setattr(tryout, "LENGTH", short)
    device, worlds = device_of(32), driver.made["context"]
    device.open(tasks(), get(policy)).close()
    assert worlds == 1
    assert (driver.made["context"] > worlds) == (policy == "partition")


def test_nothing_is_left_of_measuring_and_trying(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever call of the driver fails."""
    short = Length(requests=1, shortest_ns=0, longest_ns=50_000, percentile=99)
    monkeypatch.setattr(tryout, "LENGTH", short)
    device = device_of()
    work = tasks()
    device.open(work, get("gate")).close()
    before, begin = dict(driver.left), driver.calls

    def opened() -> int:
        """How many calls it took, where none of them fails."""
        device._shown, device._corunner._known = Tried(), {}
        first = driver.calls
        device.open(work, get("miriam-measured")).close()
        return driver.calls - first

    calls = opened()
    assert driver.left == before and driver.calls > begin
    failed = 0
    for number in range(1, calls, max(1, calls // 150)):
        driver.fail_at = driver.calls + number
        try:
            opened()
        except DeviceError:
            failed += 1
        driver.fail_at = -1
        assert driver.left == before, number
    assert failed
