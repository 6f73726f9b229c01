"""Each logical block runs once, whatever stops it, and the bits are the original's."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from miriam import models
from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.devices.contract import Arrays, Device
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.host import Host
from tests.gpu.stopping import Stopper
from tests.gpu.support import AllElastic, Loop, alone, opened
from tests.kernels.programs import register_filler, stirred

YIELDS = 10_000


def test_ten_thousand_yields_at_random_moments(device: CudaDevice) -> None:
    """A kernel that works in place, on few blocks that claim again and again."""
    stopper = Stopper(device, stirred(blocks=2_000, rounds=60), width=264)
    chance, stops, launches = random.Random(1), 0, 0
    while stops < YIELDS:
        stopper.prepare()
        while not stopper.finished():
            stopper.launch()
            launches += 1
            wait_us = chance.random() * 80
            until = time.perf_counter() + wait_us * 1e-6
            while time.perf_counter() < until:
                pass
            stopper.stop()
            stops += not stopper.finished()
        stopper.check()
    assert launches >= stops


def test_blocks_leave_while_the_register_file_is_full(device: CudaDevice) -> None:
    """The write that asks them to needs no place on an SM, and they need no other block's end."""
    program = register_filler(blocks=20_000, rounds=400)
    stopper = Stopper(device, program, width=device.gpu.sms)
    stopper.prepare()
    for _ in range(10):
        stopper.launch()
        time.sleep(200e-6)
        assert stopper.stop() < 5e-3
        assert not stopper.finished()
    while not stopper.finished():
        stopper.launch()
        stopper.wait()
    stopper.check()


def inputs(task: int, ordinal: int) -> Arrays:
    """The same for all: the programs of this file read no input."""
    return {"y": np.zeros(64, np.float32)}


@pytest.mark.parametrize("rounds", [200, 6_000], ids=["chain", "while"])
def test_steps_that_a_busy_critical_task_stops_again_and_again(
    device: CudaDevice, rounds: int
) -> None:
    """Short steps are resumed once, long ones by a WHILE node."""
    tasks = [
        Task("critical", stirred(blocks=8, rounds=200, steps=4), critical=True),
        Task("normal", stirred(blocks=2_000, rounds=rounds, steps=3), in_flight=2),
    ]
    pause = random.Random(2)
    with opened(device, tasks, AllElastic()) as session:
        loop = Loop(session, tasks, inputs)
        loop.run(1.0, lambda task: pause.randrange(150_000) if task == 0 else 0)
    counted = [done for _, done in loop.done if done.task == 1]
    assert len(counted) >= 20
    for done in counted:
        assert done.runs is not None and all((runs == 1).all() for runs in done.runs)
    # x is no input, and a request adds to what the one before it on its lane has left there.
    added = np.array([done.outputs["x"] for done in counted if done.outputs])
    assert (added % (3 * rounds) == 0).all()


def network_inputs(network: str) -> list[Arrays]:
    return [models.example_input(network, seed) for seed in range(2)]


@pytest.mark.parametrize("network", models.NAMES)
def test_a_network_with_every_step_elastic_equals_the_original(
    device: CudaDevice, network: str
) -> None:
    program = models.load(network, device.gpu.arch)
    given = network_inputs(network)
    weights = models.weights(network, 0)
    tasks = [
        Task("critical", stirred(blocks=264, rounds=500), critical=True),
        Task("normal", program, weights=weights, in_flight=2),
    ]
    expected = [alone(device, tasks[1], arrays) for arrays in given]
    pause = random.Random(3)

    def chosen(task: int, ordinal: int) -> Arrays:
        return given[ordinal % 2] if task else inputs(task, ordinal)

    with opened(device, tasks, AllElastic()) as session:
        loop = Loop(session, tasks, chosen)
        loop.run(0.5, lambda task: 50_000 + pause.randrange(1_000_000) if task == 0 else 0)
    outputs = loop.outputs(1)
    assert outputs and loop.outputs(0)
    assert all(output == expected[ordinal % 2] for ordinal, output in outputs)
    for _, done in loop.done:
        assert done.runs is not None and all((runs == 1).all() for runs in done.runs)


@pytest.mark.parametrize("network", models.NAMES)
def test_a_network_on_the_gpu_agrees_with_the_host(device: Device, network: str) -> None:
    program, weights = models.load(network, device.gpu.arch), models.weights(network, 0)
    given = models.example_input(network, 0)
    with opened(device, [Task("alone", program, weights=weights)], get("multistream")) as session:
        session.submit(0, session.now_ns, given)
        (done,) = session.advance(session.now_ns + 10**10)
    request = Host().load(program, weights).request()
    request.write(given)
    request.run_all()
    assert done.outputs is not None
    for name, host in request.outputs().items():
        got, expected = (np.asarray(a, np.float64) for a in (done.outputs[name], host))
        error = np.abs(got - expected).max() / np.abs(expected).max()
        assert error <= 1e-4, f"{name}: {error:.2e}"
