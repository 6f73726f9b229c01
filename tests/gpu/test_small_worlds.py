"""On few SMs gates are waits in memory: what is held holds no place, and nothing hangs on it."""

from __future__ import annotations

import time
from contextlib import closing
from statistics import median

import numpy as np
import pytest

from miriam import devices, models
from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.devices.contract import Arrays, Completion
from miriam.devices.cuda.buffers import Buffers
from miriam.devices.cuda.device import CudaDevice
from miriam.errors import MissingCapabilityError
from tests.gpu.support import SECOND_NS, AllElastic, Inputs, Loop, alone, opened
from tests.kernels.programs import stirred

HELD = 6
"""Normal requests in flight; on 16 SMs two are enough for waits in memory."""


@pytest.fixture(scope="module")
def small() -> CudaDevice:
    """A world of 16 SMs, with the runs of blocks counted."""
    try:
        device = devices.get("cuda:0:16", compute=True)
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    assert isinstance(device, CudaDevice)
    return device


@pytest.fixture(scope="module")
def measured() -> CudaDevice:
    """A world of 32 SMs as benchmarks use it: nothing is counted."""
    try:
        device = devices.get("cuda:0:32")
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    assert isinstance(device, CudaDevice)
    return device


def inputs(task: int, ordinal: int) -> Arrays:
    return {"y": np.zeros(64, np.float32)}


def tasks(rounds: int = 100, in_flight: int = 2) -> list[Task]:
    return [
        Task("critical", stirred(blocks=8, rounds=20_000), critical=True),
        Task("normal", stirred(blocks=4_000, rounds=rounds, steps=3), in_flight=in_flight),
    ]


@pytest.mark.parametrize("rounds", [100, 4_000], ids=["short", "long"])
@pytest.mark.parametrize("policy", ["gate", "tally", "vacate", "miriam", "miriam-measured"])
def test_each_block_runs_once(small: CudaDevice, policy: str, rounds: int) -> None:
    pair = tasks(rounds)
    with opened(small, pair, get(policy)) as session:
        loop = Loop(session, pair, inputs)
        loop.run(0.4)
        assert session.usage().late_gates == 0
    counted = [done for _, done in loop.done if done.task == 1]
    assert counted
    for done in counted:
        assert done.runs is not None and all((runs == 1).all() for runs in done.runs)


@pytest.mark.parametrize("policy", ["gate", "tally", "miriam-measured:budget=0"])
def test_close_while_all_is_held(small: CudaDevice, policy: str) -> None:
    long = [
        Task("critical", stirred(blocks=8, rounds=100_000), critical=True),
        Task("normal", stirred(blocks=4_000, rounds=100, steps=3), in_flight=HELD),
    ]
    with opened(small, long, get(policy)) as session:
        loop = Loop(session, long, inputs)
        loop.submit(0)
        for _ in range(HELD):
            loop.submit(1)
        session.advance(session.now_ns + 2_000_000)
        began = time.perf_counter()
        session.close()
        assert time.perf_counter() - began < 5.0


def close_in_flight(
    device: CudaDevice, pair: list[Task], policy: str, given: Inputs, times: int
) -> None:
    """Open a session, load it, and close it with requests in flight; again and again."""
    for number in range(times):
        with opened(device, pair, get(policy)) as session:
            Loop(session, pair, given).run(0.002 + 0.0005 * (number % 8))
            # As a benchmark does it: what the GPU wrote down is read while requests run.
            assert session.usage().late_gates == 0
            began = time.perf_counter()
            session.close()
            assert time.perf_counter() - began < 5.0


CLOSED = ["multistream-equal", "vacate", "gate", "miriam-measured"]


@pytest.mark.parametrize("policy", CLOSED)
def test_sessions_are_closed_with_requests_in_flight(measured: CudaDevice, policy: str) -> None:
    close_in_flight(measured, tasks(rounds=1_000), policy, inputs, times=38)


@pytest.mark.parametrize("policy", CLOSED)
def test_sessions_of_networks_are_closed_with_requests_in_flight(
    measured: CudaDevice, policy: str
) -> None:
    """Of 2,128 such closings none failed on an H200."""
    names = ("squeezenet", "alexnet")
    pictures = [models.example_input(name, 0) for name in names]
    critical, normal = (
        Task(
            name,
            models.load(name, measured.gpu.arch),
            critical=name == names[0],
            in_flight=1 if name == names[0] else 2,
            weights=models.weights(name, 0),
        )
        for name in names
    )
    before = alone(measured, critical, pictures[0])
    close_in_flight(measured, [critical, normal], policy, lambda task, _: pictures[task], times=12)
    assert alone(measured, critical, pictures[0]) == before


def test_a_request_that_fails_to_start_leaves_nothing_shut(
    small: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = tasks()

    def fail(buffers: Buffers, given: Arrays, stream: object) -> None:
        raise OSError("no input")

    with opened(small, pair, get("gate")) as session:
        loop = Loop(session, pair, inputs)
        loop.submit(0)
        with monkeypatch.context() as patch:
            patch.setattr(Buffers, "copy_in", fail)
            with pytest.raises(OSError, match="no input"):
                session.advance(session.now_ns + SECOND_NS)
        for task in (1, 0):
            loop.submit(task)
            (done,) = session.advance(session.now_ns + 5 * SECOND_NS)
            assert done.task == task


def test_nothing_normal_ends_while_one_of_two_critical_requests_runs(small: CudaDevice) -> None:
    """A gate waits for one row after the other, and the first may be shut again by then."""
    pair = [
        Task("critical", stirred(blocks=8, rounds=100_000), critical=True, in_flight=2),
        Task("normal", stirred(blocks=64, rounds=100, steps=3), in_flight=HELD),
    ]
    with opened(small, pair, get("gate")) as session:
        loop = Loop(session, pair, inputs)
        loop.submit(0)
        (first,) = session.advance(session.now_ns + SECOND_NS)
        half_ns = (first.finish_ns - first.start_ns) // 2
        loop.submit(0)
        loop.submit(0, after_ns=half_ns)
        loop.submit(1, after_ns=half_ns // 2)
        loop.go_on(0.1)
    assert len(loop.done) > 10
    assert all(done.task == 0 for _, done in loop.done)


def test_nothing_normal_ends_before_the_critical_request(small: CudaDevice) -> None:
    pair = tasks()
    with opened(small, pair, AllElastic()) as session:
        loop = Loop(session, pair, inputs)
        loop.submit(0)
        loop.submit(1, after_ns=300_000)
        done: list[Completion] = []
        while len(done) < 2:
            done += session.advance(session.now_ns + 10 * SECOND_NS)
    (critical,) = (d.finish_ns for d in done if d.task == 0)
    (normal,) = (d.finish_ns for d in done if d.task == 1)
    assert normal > critical


def test_held_lanes_do_not_slow_a_critical_network(small: CudaDevice) -> None:
    """Eight gates that are kernels cost ResNet-50 29 % on 32 SMs (docs/results/gates.md)."""
    program = models.load("resnet50", small.gpu.arch)
    weights = models.weights("resnet50", 0)
    picture = models.example_input("resnet50", 0)
    critical = Task("critical", program, critical=True, weights=weights)
    normal = Task("normal", stirred(blocks=64, rounds=100, steps=3), in_flight=HELD)

    def service_ns(held: int) -> float:
        found = []
        with closing(small.open([critical, normal], get("gate"))) as session:
            for ordinal in range(12):
                session.submit(0, session.now_ns, picture)
                for _ in range(held):
                    session.submit(1, session.now_ns + 300_000, inputs(1, 0))
                left = 1 + held
                while left:
                    for done in session.advance(session.now_ns + 10 * SECOND_NS):
                        left -= 1
                        if done.task == 0 and ordinal > 1:
                            found.append(done.finish_ns - done.start_ns)
        return median(found)

    assert service_ns(HELD) < 1.03 * service_ns(0)


def test_yields_are_known_where_they_are_timed(small: CudaDevice) -> None:
    pair = tasks()
    for timed in (False, True):
        with closing(small.open(pair, get("gate"), timed=timed)) as session:
            Loop(session, pair, inputs).run(0.2)
            usage = session.usage()
        assert usage.untimed is not timed
        assert bool(usage.yields_ns) is timed
