"""Nothing hangs and nothing is lost, whatever is cancelled, closed, killed or overloaded."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time

import numpy as np
import pytest

from miriam import models
from miriam.coordinator import Policy, Task
from miriam.coordinator.policies import get
from miriam.devices.contract import Arrays, Completion
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.graphs import WAITS_BYTES, Gate
from miriam.devices.cuda.memory import Memory
from tests.gpu.support import SECOND_NS, AllElastic, Loop, opened
from tests.kernels.programs import stirred

LONG_CRITICAL = stirred(blocks=8, rounds=100_000)
NORMAL = stirred(blocks=4_000, rounds=100, steps=3)


def inputs(task: int, ordinal: int) -> Arrays:
    return {"y": np.zeros(64, np.float32)}


def tasks(in_flight: int = 1) -> list[Task]:
    return [
        Task("critical", LONG_CRITICAL, critical=True, in_flight=in_flight),
        Task("normal", NORMAL, in_flight=2),
    ]


@pytest.mark.parametrize("policy", ["gate", "tally", "miriam", "miriam-host"])
def test_close_while_gates_are_shut(device: CudaDevice, policy: str) -> None:
    with opened(device, tasks(), get(policy)) as session:
        loop = Loop(session, tasks(), inputs)
        for _ in range(3):
            loop.submit(0)
        for _ in range(4):
            loop.submit(1)
        session.advance(session.now_ns + 5_000_000)
        began = time.perf_counter()
        session.close()
        assert time.perf_counter() - began < 5.0
        assert list(session.advance(session.now_ns + 1_000_000)) == []


def test_a_normal_request_waits_until_both_critical_ones_have_ended(device: CudaDevice) -> None:
    pair = tasks(in_flight=2)
    with opened(device, pair, AllElastic()) as session:
        loop = Loop(session, pair, inputs)
        loop.submit(0)
        loop.submit(0, after_ns=3_000_000)
        loop.submit(1, after_ns=1_000_000)
        done: list[Completion] = []
        while len(done) < 3:
            done += session.advance(session.now_ns + 10 * SECOND_NS)
    critical = [d.finish_ns for d in done if d.task == 0]
    (normal,) = (d.finish_ns for d in done if d.task == 1)
    assert normal > max(critical)


@pytest.mark.parametrize("policy", [get("gate"), AllElastic()], ids=lambda policy: policy.name)
def test_a_request_that_comes_while_gates_are_shut_is_no_yield(
    device: CudaDevice, policy: Policy
) -> None:
    with opened(device, tasks(), policy) as session:
        loop = Loop(session, tasks(), inputs)
        loop.submit(0)
        loop.submit(1, after_ns=1_000_000)
        done: list[Completion] = []
        while len(done) < 2:
            done += session.advance(session.now_ns + 10 * SECOND_NS)
        assert session.usage().yields_ns == ()
        loop.run(0.2)
        assert session.usage().yields_ns


def test_requests_that_wait_can_be_withdrawn_while_gates_are_shut(device: CudaDevice) -> None:
    with opened(device, tasks(), get("gate")) as session:
        loop = Loop(session, tasks(), inputs)
        loop.submit(0)
        numbers = [loop.submit(1) for _ in range(5)]
        session.advance(session.now_ns + 1_000_000)
        assert [session.withdraw(1, number) for number in numbers] == [False] * 2 + [True] * 3
        done: list[Completion] = []
        while len(done) < 3:
            done += session.advance(session.now_ns + 10 * SECOND_NS)
        assert sorted((d.task, d.request) for d in done) == [(0, 0), (1, 0), (1, 1)]


def test_a_gate_opens_when_its_time_is_up_and_says_so(device: CudaDevice) -> None:
    device.world.enter()
    memory, stream = Memory(), device.world.stream(0)
    words, waits = memory.device(64), memory.device(WAITS_BYTES)
    gate = Gate(
        quota=words,
        forms=1,
        abort=words + 32,
        late=words + 36,
        limit_ns=20_000_000,
        waits=waits,
    )
    began = time.perf_counter()
    device.controls.function("miriam_gate").launch(stream, (1, 1, 1), (1, 1, 1), [gate])
    ask(driver.cuStreamSynchronize(stream))
    assert 0.015 < time.perf_counter() - began < 2.0
    late = ctypes.c_uint()
    ask(driver.cuMemcpyDtoH(ctypes.addressof(late), words + 36, 4))
    assert late.value == 1
    memory.free()


_CHILD = """
import sys
from miriam import devices
from miriam.coordinator.policies import get
from tests.gpu.support import Loop
from tests.gpu.test_no_hang import inputs, tasks
pair = tasks()
session = devices.get("cuda:0").open(pair, get("gate"))
print("open", flush=True)
Loop(session, pair, inputs).run(60.0)
"""


def test_a_process_killed_while_gates_are_shut_leaves_the_gpu_usable(device: CudaDevice) -> None:
    command = [sys.executable, "-c", _CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        time.sleep(0.2)
        child.kill()
    with opened(device, tasks(), get("gate")) as session:
        Loop(session, tasks(), inputs).run(0.1)
        assert session.now_ns > 0


def test_an_overloaded_normal_task_does_not_delay_the_critical_one_for_ever(
    device: CudaDevice,
) -> None:
    weights = models.weights("squeezenet", 0)
    program = models.load("squeezenet", device.gpu.arch)
    picture = models.example_input("squeezenet", 0)
    pair = [
        Task("critical", program, critical=True, weights=weights),
        Task("normal", NORMAL, in_flight=8),
    ]

    def given(task: int, ordinal: int) -> Arrays:
        return inputs(task, ordinal) if task else picture

    with opened(device, pair, get("miriam")) as session:
        loop = Loop(session, pair, given)
        for _ in range(200):
            loop.submit(1)
        loop.run(0.5)
    assert len(loop.outputs(0)) > 50
