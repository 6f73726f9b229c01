"""PyTorch models as networks of the benchmark: their names, and who gets which program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from bench_fakes import MS, FakeDevice, FakeNetworks, FakeSession, Silent, tiny_program

from miriam.bench import InProcess, Options, Workshop, pytorch, studies
from miriam.bench.pytorch import TorchModel, TorchModels
from miriam.bench.rounds import InRounds
from miriam.bench.studies import pairs
from miriam.coordinator import Policy, Task
from miriam.devices.observe import Observer
from miriam.errors import MissingCapabilityError, UnknownNameError, UsageError
from miriam.kernels import Program

PAIR = "torch:resnet18+torch:vgg16@4"
ASKED = Options(
    benchmark="pairs",
    device="cuda:0:32",
    policies=("gate", "multistream"),
    seconds=0.2,
    seed=1,
    workloads=(PAIR,),
    in_flight=2,
    gaps_us=(0.0, 4_000.0),
    worlds=(0,),
)


class FakeRecorder:
    """Recordings are numbers."""

    def __init__(self, device: FakeGpu, seed: int) -> None:
        pass

    def record(self, model: TorchModel, count: int) -> list[int]:
        return list(range(count))


@dataclass
class FakeGpu(FakeDevice):
    """Captured programs serve one task of one open session, within their recordings."""

    name: str = "cuda:0:32"
    simulated: bool = False
    recorded: dict[int, tuple[Program, int]] = field(default_factory=dict)

    def captured(self, name: str, recordings: Sequence[int]) -> Program:
        made = tiny_program(name)
        self.recorded[id(made)] = made, len(recordings)
        return made

    def open(
        self,
        tasks: Sequence[Task],
        policy: Policy,
        observers: Sequence[Observer] = (),
        *,
        timed: bool = False,
    ) -> FakeSession:
        assert all(session.closed for session in self.sessions)
        assert len({id(task.program) for task in tasks}) == len(tasks)
        for task in tasks:
            assert task.in_flight <= self.recorded.get(id(task.program), (None, 99))[1]
        return super().open(tasks, policy, observers, timed=timed)


@pytest.fixture
def with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch that is there and captures numbers."""
    monkeypatch.setattr(pytorch, "find_spec", lambda name: name)
    monkeypatch.setattr(pytorch, "Recorder", FakeRecorder)


def refused(options: Options) -> None:
    executor = InProcess(Workshop(lambda m, c: FakeGpu({}), lambda arch: FakeNetworks()), Silent())
    studies.run(options, executor)


def test_a_name_says_model_and_batch() -> None:
    assert TorchModel.parse("torch:squeezenet") == TorchModel("squeezenet", 1)
    assert TorchModel.parse("torch:resnet50@8") == TorchModel("resnet50", 8)
    assert ASKED.pair(PAIR) == ("torch:resnet18", "torch:vgg16@4")


@pytest.mark.parametrize("batch", ["", "0", "-1", "two", "1.5"])
def test_a_batch_is_a_number_of_pictures(batch: str) -> None:
    with pytest.raises(UsageError, match=f"torch:vgg16@{batch}: a batch of at least 1 after @"):
        TorchModel.parse(f"torch:vgg16@{batch}")


@pytest.mark.usefixtures("with_torch")
def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'resnet50'\? known: al"):
        refused(replace(ASKED, workloads=("torch:resnet51+alexnet",)))


@pytest.mark.parametrize("device", ["sim:orin", "host"])
def test_other_devices_have_no_captures(device: str) -> None:
    with pytest.raises(MissingCapabilityError, match=f"{device} can not run kernels that PyTorch"):
        refused(replace(ASKED, device=device, workloads=("alexnet+torch:vgg16",)))


def test_without_torchvision_there_are_no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytorch, "find_spec", lambda name: name == "torch" or None)
    with pytest.raises(MissingCapabilityError, match=r"no torchvision here; install PyTorch"):
        refused(ASKED)


@pytest.mark.usefixtures("with_torch")
def test_captured_kernels_have_no_other_geometry() -> None:
    with pytest.raises(UsageError, match="torch:resnet18 geometry: ours"):
        refused(replace(ASKED, geometry="tango"))


@pytest.mark.usefixtures("with_torch")
def test_each_task_has_a_program_of_its_own_with_enough_recordings() -> None:
    device = FakeGpu({})
    models = TorchModels(device, 1)
    one = models.program("torch:alexnet", in_flight=1)
    assert models.program("torch:alexnet") is one
    other = models.program("torch:alexnet", copy=1)
    assert other is not one
    more = models.program("torch:alexnet", in_flight=3)
    assert device.recorded[id(more)] == (more, 3)
    assert models.program("torch:alexnet", in_flight=2) is more
    assert models.program("torch:alexnet", copy=1) is other


def test_inputs_are_drawn_from_the_seed_and_come_again() -> None:
    models = TorchModels(FakeGpu({}), 1)
    first, second = (models.inputs("torch:vgg16@4", ordinal) for ordinal in (0, 1))
    assert first["x"].shape == (4, 224, 224, 3) and first["x"].dtype == np.uint8
    assert (first["x"] != second["x"]).any()
    assert models.inputs("torch:vgg16@4", 4) is first
    again = TorchModels(FakeGpu({}), 1).inputs("torch:vgg16@4", 0)
    assert (again["x"] == first["x"]).all()
    other = TorchModels(FakeGpu({}), 2).inputs("torch:vgg16@4", 0)
    assert (other["x"] != first["x"]).any()


@pytest.mark.usefixtures("with_torch")
@pytest.mark.parametrize("pair", [PAIR, "torch:vgg16@4+torch:vgg16@4", "torch:resnet18+alexnet"])
def test_a_pair_of_models_in_rounds(pair: str) -> None:
    critical, _, normal = pair.partition("+")
    device = FakeGpu({critical: 2 * MS, normal: 3 * MS})
    workshop = Workshop(lambda machine, compute: device, lambda arch: FakeNetworks(), 1)
    executor = InRounds(workshop, Silent())
    result = studies.run(replace(ASKED, workloads=(pair,)), executor)
    assert [row.verified for row in result.rows] == [True] * 4
    assert [row.point.gap_us for row in result.rows] == [0, 0, 4_000, 4_000]
    assert {row.point.world for row in result.rows} == {"cuda:0:32"}
    assert all(len(row.normal) == 1 and row.in_flight == 2 for row in result.rows)


def test_our_own_networks_keep_their_names() -> None:
    options = replace(ASKED, workloads=("alexnet+squeezenet",), geometry="tango")
    executor = InProcess(Workshop(lambda m, c: FakeGpu({}), lambda arch: FakeNetworks()), Silent())
    (cell, _) = pairs.cells(options, executor)
    assert [task.network for task in cell.workload.ordered] == ["alexnet-tango", "squeezenet-tango"]


def test_torchvision_has_the_models() -> None:
    models = pytest.importorskip("torchvision.models")
    assert all(hasattr(models, name) for name in pytorch.MODELS.values())
