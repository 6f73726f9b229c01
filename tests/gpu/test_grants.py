"""What normal work may hold beside critical work: sets of SMs, plans that change, several tasks."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from miriam import elasticize, models
from miriam.compile import compile_source
from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.coordinator.policies.miriam import Miriam
from miriam.devices.contract import Arrays
from miriam.devices.cuda.code import Function, Module
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.memory import Memory, download, upload
from miriam.devices.cuda.patience import drain
from miriam.devices.cuda.words import sm_set
from miriam.elastic.launch import Control, launch_bytes
from miriam.kernels import Dim3
from tests.gpu.support import Loop, alone, opened
from tests.kernels.programs import stirred


def inputs(task: int, ordinal: int) -> Arrays:
    return {"y": np.zeros(64, np.float32)}


LOCATED = """
static __device__ unsigned here() { return 4711u; }
__global__ void located(unsigned* sms, int rounds) {
  unsigned sum = 0;
  for (int round = 0; round < rounds; round++) sum += (sum >> 1) + round;
  if (threadIdx.x == 0) sms[blockIdx.x] = sum == 1 ? 0 : here();
}
"""
"""Inline assembly is refused in a kernel, so that the number of the SM comes in afterwards."""

BLOCKS, ROUNDS = 4_000, 2_000


def located(device: CudaDevice) -> Function:
    made = elasticize(LOCATED, arch=device.gpu.arch)
    entry = made.kernel("located").entry("yield")
    ask_sm = 'unsigned sm; asm volatile("mov.u32 %0, %%smid;" : "=r"(sm)); return sm;'
    source = made.source.replace("return 4711u;", ask_sm)
    return Module(compile_source(source, "located.cu", [entry], device.gpu.arch)).function(entry)


def test_blocks_run_on_the_sms_of_their_set_only(device: CudaDevice) -> None:
    """Slots that become free are filled again by blocks that find themselves outside the set."""
    device.world.enter()
    form, memory, stream = located(device), Memory(), device.world.stream(0)
    allowed = device.world.ids_of(0, 8, device.controls.function("miriam_where"))
    words, counter, sms = memory.device(32), memory.device(4), memory.device(4 * BLOCKS)
    upload(words, sm_set(allowed))
    launch = launch_bytes(Dim3(BLOCKS), 0, BLOCKS, Control(counter, sms=words))
    given = (ctypes.c_char * len(launch)).from_buffer_copy(launch)
    claimed = 0
    while claimed < BLOCKS:
        arguments = [given, ctypes.c_void_p(sms), ctypes.c_int(ROUNDS)]
        form.launch(stream, (8 * device.gpu.sms, 1, 1), (64, 1, 1), arguments)
        drain(stream)
        claimed = int(download(counter, 1, "uint32")[0])
    found = set(download(sms, BLOCKS, "uint32").tolist())
    assert found <= set(allowed)
    assert len(found) > 1
    memory.free()


def test_a_plan_can_change_while_requests_run(device: CudaDevice) -> None:
    """On the lowest rung nothing runs beside the critical task, on the highest everything does."""
    policy = Miriam()
    tasks = [
        Task("critical", stirred(blocks=8, rounds=20_000), critical=True),
        Task("normal", stirred(blocks=200, rounds=200, steps=3), in_flight=2),
    ]
    completed = []
    session = device.open(tasks, policy, ladder=policy.rungs)
    try:
        loop = Loop(session, tasks, inputs)
        for rung in (session.ladder[0], session.ladder[-1], session.ladder[0]):
            session.use(rung)
            before = len(loop.outputs(1))
            run = loop.go_on if loop.done else loop.run
            run(0.3)
            completed.append(len(loop.outputs(1)) - before)
    finally:
        session.close()
    assert completed[1] > 2 * completed[0]
    assert completed[1] > 2 * completed[2]
    for _, done in loop.done:
        assert done.runs is not None and all((runs == 1).all() for runs in done.runs)


@pytest.mark.parametrize(
    "policy",
    ["gate", "tally", "miriam", "miriam-measured", "vacate", "barrier", "orion", "miriam-host"],
)
def test_two_critical_and_two_normal_tasks(device: CudaDevice, policy: str) -> None:
    networks = ("squeezenet", "gru", "alexnet", "cifarnet")
    tasks = [
        Task(
            name,
            models.load(name, device.gpu.arch),
            critical=place < 2,
            priority=place % 2,
            in_flight=1 + place % 2,
            weights=models.weights(name, 0),
        )
        for place, name in enumerate(networks)
    ]
    given = {name: models.example_input(name, 0) for name in networks}
    expected = [alone(device, task, given[task.name]) for task in tasks]
    pause = random.Random(4)
    with opened(device, tasks, get(policy)) as session:
        loop = Loop(session, tasks, lambda task, ordinal: given[networks[task]])
        loop.run(0.4, lambda task: pause.randrange(2_000_000) if task < 2 else 0)
    for task in range(4):
        outputs = loop.outputs(task)
        assert outputs
        assert all(output == expected[task] for _, output in outputs)
