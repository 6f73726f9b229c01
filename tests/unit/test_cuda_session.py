"""A session on CUDA gives back all that it made, also where it can not be opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings")

from fake_cuda import FakeDriver, device_of, fake, h200

from miriam.coordinator import UNLIMITED, Grant, Mix, Plan, Task
from miriam.coordinator.policies import get
from miriam.devices.cuda import clock, tryout
from miriam.devices.cuda.clock import Clock
from miriam.devices.tryout import Length, Tried
from miriam.errors import DeviceError
from tests.kernels.programs import SIZE, two_steps

POLICIES = ["multistream", "gate", "vacate", "partition", "barrier", "miriam-host", "miriam"]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return fake(monkeypatch)


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


def test_nothing_is_left_where_the_steps_of_a_program_can_not_be_timed(driver: FakeDriver) -> None:
    """As the first session of a program does."""
    device_of().profile(two_steps())
    calls, failed = driver.calls, 0
    for number in range(1, calls, max(1, calls // 100)):
        device = device_of()
        driver.fail_at = driver.calls + number
        try:
            device.profile(two_steps())
        except DeviceError:
            failed += 1
        driver.fail_at = -1
        assert not driver.left, number
    assert failed


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are tried for 50 us."""
    short = Length(requests=1, shortest_ns=0, longest_ns=50_000, percentile=99)
    monkeypatch.setattr(tryout, "LENGTH", short)


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("policy", [*POLICIES, "miriam-measured"])
def test_in_a_small_world_only_partition_makes_contexts(driver: FakeDriver, policy: str) -> None:
    """They would overlap with that of the world."""
    device, worlds = device_of(32), driver.made["context"]
    device.open(tasks(), get(policy)).close()
    assert worlds == 1
    assert (driver.made["context"] > worlds) == (policy == "partition")


@pytest.mark.usefixtures("briefly")
def test_nothing_is_left_of_measuring_and_trying(driver: FakeDriver) -> None:
    """Whichever call of the driver fails."""
    device = device_of()
    work = tasks()
    device.open(work, get("gate")).close()
    before = dict(driver.left)

    def opened() -> int:
        """How many calls it took, where none of them fails."""
        device._shown, device._corunner._known = Tried(), {}
        first = driver.calls
        device.open(work, get("miriam-measured")).close()
        return driver.calls - first

    calls = opened()
    assert driver.left == before
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


def test_times_do_not_drift_from_the_hosts_clock(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU's clock runs twice as fast: over 20 ms it would be 20 ms off.

    A look at the host's clock takes 10 us here, however busy the machine is.
    """
    looks = count(0, 10_000)
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(looks))
    monkeypatch.setattr(clock, "_REBASE_NS", 0)
    driver.fast = 2.0
    here = Clock(h200().whole())
    mark = driver.cuEventCreate(0)[1]
    while here.now_ns < 20_000_000:
        here.keep_up()
        driver.cuEventRecord(mark, 0)
        assert abs(here.of(mark) - here.now_ns) <= 100_000


def test_rungs_of_a_ladder_count_where_the_host_coordinates_too(driver: FakeDriver) -> None:
    """One that names SMs has its kernels look at sets of SMs."""
    confined: list[Plan] = []

    def ladder(mix: Mix) -> Sequence[Plan]:
        plan = get("miriam-host").plan(mix)
        grant = Grant(UNLIMITED.blocks, sms=(96, 132))
        grants = {pair: tuple((grant,) * len(row) for row in t) for pair, t in plan.grants.items()}
        confined.append(replace(plan, grants=grants))
        return confined

    session = device_of().open(tasks(), get("miriam-host"), ladder=ladder)
    assert session._stage._controls.confined
    session.use(confined[0])
    assert session._stage._plan == confined[0]
    session.close()


def test_try_outs_run_on_inputs_that_are_copied_once() -> None:
    """As those are that nobody can change; what is in them hardly matters."""
    inputs = tryout._zeros(two_steps())
    assert list(inputs) == ["x"]
    assert not inputs["x"].any() and not inputs["x"].flags.writeable
