"""Captured graphs as programs: bits of the capture, held by gates, refused without a way."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
import pytest

from miriam import devices, models
from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.devices.contract import Arrays, Completion
from miriam.devices.cuda import GpuArray, Recording
from miriam.devices.cuda.device import CudaDevice
from miriam.errors import MissingCapabilityError, UsageError
from tests.gpu.capturing import captured_launches, captured_model
from tests.gpu.support import SECOND_NS, AllElastic, Loop, alone, as_bytes, opened
from tests.kernels.programs import stirred, two_steps, two_steps_inputs, two_steps_weights

if TYPE_CHECKING:
    import torch


def recordings(device: CudaDevice, count: int = 1, branches: int = 1) -> list[Recording]:
    return [
        captured_launches(device, two_steps(), two_steps_weights(1), branches=branches)
        for _ in range(count)
    ]


@pytest.mark.parametrize("policy", ["gate", "multistream", "miriam", "sequential"])
@pytest.mark.parametrize("branches", [1, 2])
def test_captured_launches_give_the_bits_of_the_program_that_they_come_from(
    device: CudaDevice, policy: str, branches: int
) -> None:
    weights = two_steps_weights(1)
    own = Task("own", two_steps(), weights=weights)
    expected = [alone(device, own, two_steps_inputs(seed)) for seed in range(4)]
    program = device.captured("two", recordings(device, 2, branches))
    tasks = [
        Task("critical", stirred(blocks=264, rounds=300), critical=True),
        Task("normal", program, in_flight=2),
    ]

    def inputs(task: int, ordinal: int) -> Arrays:
        if not task:
            return {"y": np.zeros(64, np.float32)}
        names = ["x", "x1"][:branches]
        return {n: two_steps_inputs((ordinal + i) % 4)["x"] for i, n in enumerate(names)}

    with opened(device, tasks, get(policy)) as session:
        loop = Loop(session, tasks, inputs)
        loop.run(0.3, lambda task: 0 if task else 50_000)
    assert len(loop.outputs(0)) > 20
    outputs = loop.outputs(1)
    assert len(outputs) > 20
    for ordinal, got in outputs:
        assert got == b"".join(expected[(ordinal + i) % 4] for i in range(branches))


def test_gates_hold_a_captured_program(device: CudaDevice) -> None:
    program = device.captured("two", recordings(device))
    tasks = [
        Task("critical", stirred(blocks=8, rounds=100_000), critical=True),
        Task("normal", program),
    ]
    with opened(device, tasks, get("gate")) as session:
        session.submit(0, session.now_ns, {"y": np.zeros(64, np.float32)})
        session.submit(1, session.now_ns + 2_000_000, two_steps_inputs(0))
        done: list[Completion] = []
        while len(done) < 2:
            done += session.advance(session.now_ns + 10 * SECOND_NS)
    assert [d.task for d in done] == [0, 1]
    assert done[1].finish_ns > done[0].finish_ns


def test_a_captured_critical_task_shuts_the_gates_of_others(device: CudaDevice) -> None:
    long = stirred(blocks=8, rounds=100_000)
    program = device.captured("long", [captured_launches(device, long, {})])
    tasks = [
        Task("critical", program, critical=True),
        Task("normal", two_steps(), weights=two_steps_weights(1)),
    ]
    with opened(device, tasks, AllElastic()) as session:
        session.submit(0, session.now_ns, {"y": np.zeros(64, np.float32)})
        session.submit(1, session.now_ns + 2_000_000, two_steps_inputs(0))
        done: list[Completion] = []
        while len(done) < 2:
            done += session.advance(session.now_ns + 10 * SECOND_NS)
    assert [d.task for d in done] == [0, 1]


def test_the_steps_of_a_capture_take_as_long_as_those_of_the_program(device: CudaDevice) -> None:
    own = stirred(blocks=2_000, rounds=300, steps=4)
    program = device.captured("stirred", [captured_launches(device, own, {})])
    expected = [step.original_ns for step in device.profile(own)]
    found = [step.original_ns for step in device.profile(program)]
    assert found == pytest.approx(expected, rel=0.2)
    assert [s.kernel.blocks for s in program.steps] == [2_000] * 4
    assert all(s.rigid == "captured" for s in program.steps)


def test_what_can_not_be_captured_is_refused(device: CudaDevice) -> None:
    from miriam.devices.cuda.driver import ask, driver

    device.world.enter()
    graph, child = (ask(driver.cuGraphCreate(0)) for _ in range(2))
    ask(driver.cuGraphAddChildGraphNode(graph, None, 0, child))
    array = GpuArray(256, (4,))
    with pytest.raises(MissingCapabilityError, match="a node of kind GRAPH"):
        device.captured("child", [Recording(int(graph), {}, {"y": array})])
    with pytest.raises(UsageError, match="at least one step"):
        device.captured("empty", [Recording(int(child), {}, {"y": array})])
    with pytest.raises(UsageError, match="at least one recording"):
        device.captured("none", [])
    other = captured_launches(device, stirred(blocks=8, rounds=1), {})
    with pytest.raises(UsageError, match="the same kernels"):
        device.captured("two", [*recordings(device), other])


def test_recordings_serve_one_task_of_one_session(device: CudaDevice) -> None:
    program = device.captured("two", recordings(device))
    with pytest.raises(UsageError, match="task a in_flight: at most 1"):
        device.open([Task("a", program, in_flight=2)], get("gate"))
    with pytest.raises(UsageError, match="one task of one open session"):
        device.open([Task("a", program), Task("b", program)], get("gate"))
    with (
        opened(device, [Task("a", program)], get("gate")),
        pytest.raises(UsageError, match="one task of one open session"),
    ):
        device.open([Task("a", program)], get("gate"))
    with opened(device, [Task("a", program)], get("gate")) as session:
        session.submit(0, session.now_ns, two_steps_inputs(0))
        (done,) = session.advance(session.now_ns + 10 * SECOND_NS)
        assert as_bytes(done)


def test_a_world_of_some_sms_takes_only_what_was_captured_on_them(device: CudaDevice) -> None:
    from miriam.devices.cuda.capture import recording
    from miriam.devices.cuda.memory import Memory

    world = devices.get("cuda:0:32")
    assert isinstance(world, CudaDevice)
    outside = recordings(device)
    with pytest.raises(UsageError, match="keep to the 32 SMs"):
        world.captured("two", outside)

    world.world.enter()
    where, memory = world.controls.function("miriam_where"), Memory()
    seen, stream = memory.device(4 * 1_024), world.world.stream(0)
    with recording(stream) as graph:
        arguments = [ctypes.c_void_p(seen), ctypes.c_ulonglong(20_000)]
        where.launch(stream, (128, 1, 1), (512, 1, 1), arguments)
    program = world.captured(
        "where", [Recording(graph.handle, {}, {"sms": GpuArray(seen, (1_024,), "int32")})]
    )
    with opened(world, [Task("where", program)], get("gate")) as session:
        session.submit(0, session.now_ns, {})
        (done,) = session.advance(session.now_ns + 10 * SECOND_NS)
    assert done.outputs is not None
    assert set(np.flatnonzero(done.outputs["sms"])) == set(world.world.ids(where))
    device.world.enter()


def network() -> torch.nn.Module:
    """Residual blocks in half precision, channels last inside, on dense single-precision arrays."""
    from torch import Tensor, nn

    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            layers = [nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2)]
            self.first, self.second = layers
            self.norm = nn.BatchNorm2d(width)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(x + self.norm(self.second(torch.relu(self.first(x)))))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
            self.blocks = nn.Sequential(*(Block(64) for _ in range(6)))
            self.head = nn.Linear(64, 100)

        def forward(self, x: Tensor) -> Tensor:
            x = x.half().to(memory_format=torch.channels_last)
            x = nn.functional.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
            y: Tensor = self.head(self.blocks(x).mean((2, 3)))
            return y.float()

    import torch

    torch.manual_seed(7)
    net: nn.Module = Net().cuda().eval().half()
    for weight in net.parameters():
        if weight.dim() == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    return net


SHAPE = (1, 3, 224, 224)
ALEXNET = "alexnet"


@pytest.fixture(scope="module")
def with_torch(device: CudaDevice) -> None:
    """PyTorch that sees the same GPU, and keeps graphs."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    if not hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph"):
        pytest.skip("PyTorch before 2.8 does not give its graphs away")


@pytest.mark.usefixtures("with_torch")
@pytest.mark.parametrize("policy", ["gate", "multistream", "miriam"])
@pytest.mark.parametrize("critical", [True, False], ids=["critical", "normal"])
def test_a_pytorch_model_beside_a_network_of_our_own(
    device: CudaDevice, policy: str, critical: bool
) -> None:
    """Bits of the capture's own replay, whatever runs beside it."""
    import torch

    in_flight = 1 if critical else 2
    model = captured_model(network(), SHAPE, in_flight)
    pictures = [np.random.default_rng(k).standard_normal(SHAPE, np.float32) for k in range(3)]
    expected = [model.replay(picture) for picture in pictures]
    assert len(set(expected)) == 3
    program = device.captured("torch", model.recordings)
    assert len(program.steps) > 20
    own = Task(
        "own",
        models.load(ALEXNET, device.gpu.arch),
        critical=not critical,
        weights=models.weights(ALEXNET, 0),
    )
    image = models.example_input(ALEXNET, 0)
    wanted = alone(device, own, image)
    tasks = [own, Task("torch", program, critical=critical, in_flight=in_flight)]

    def inputs(task: int, ordinal: int) -> Arrays:
        return {"x": pictures[ordinal % 3]} if task else image

    sparse = 1 if critical else 0
    with opened(device, tasks, get(policy)) as session:
        loop = Loop(session, tasks, inputs)
        loop.run(0.5, lambda task: 2_000_000 if task == sparse else 0)
    assert len(loop.outputs(0)) > 20 and len(loop.outputs(1)) > 20
    assert all(output == wanted for _, output in loop.outputs(0))
    assert all(output == expected[k % 3] for k, output in loop.outputs(1))
    torch.cuda.synchronize()


@pytest.mark.usefixtures("with_torch")
def test_a_pytorch_model_in_a_world_of_some_sms() -> None:
    """Captured on a stream of the world, within its context."""
    import torch

    world = devices.get("cuda:0:32")
    assert isinstance(world, CudaDevice)
    world.world.enter()
    stream = torch.cuda.ExternalStream(int(world.world.stream(0)))  # type: ignore[no-untyped-call]
    model = captured_model(network(), SHAPE, 1, stream)
    picture = np.random.default_rng(1).standard_normal(SHAPE, np.float32)
    expected = model.replay(picture)
    program = world.captured("torch", model.recordings)
    with opened(world, [Task("torch", program)], get("gate")) as session:
        session.submit(0, session.now_ns, {"x": picture})
        (done,) = session.advance(session.now_ns + 10 * SECOND_NS)
    assert as_bytes(done) == expected
