"""PyTorch models as networks of the benchmark, captured on the device that runs them.

``torch:vgg16@4`` is torchvision's VGG-16 on batches of four, in half precision and channels last,
with random weights from the seed. A program belongs to the SMs that it was captured on and serves
one task at a time, so programs are made per device, and again where two tasks need the same one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

import numpy as np

from miriam.bench.options import Options
from miriam.bench.zoo import DISTINCT_INPUTS
from miriam.devices.contract import Arrays, Device
from miriam.errors import MissingCapabilityError, UnknownNameError, UsageError
from miriam.kernels import Program

if TYPE_CHECKING:
    import torch

    from miriam.devices.cuda import Recording
    from miriam.devices.cuda.device import CudaDevice

PREFIX = "torch:"
MODELS = {
    "alexnet": "alexnet",
    "resnet18": "resnet18",
    "resnet50": "resnet50",
    "squeezenet": "squeezenet1_1",
    "vgg16": "vgg16",
}
"""The models by the name that a user gives, as torchvision calls them."""

PICTURE = (224, 224, 3)
"""Rows, columns and colours of an input, a byte each."""

WARM_UPS = 3
_INSTALL = "install PyTorch for CUDA 13, 2.8 or later, and torchvision"


@dataclass(frozen=True, slots=True)
class TorchModel:
    """A model of ``MODELS`` on ``batch`` pictures at a time."""

    name: str
    batch: int = 1

    @classmethod
    def parse(cls, network: str) -> TorchModel:
        """``torch:resnet50@8``; UsageError for a batch that is none, UnknownNameError for a model.

        Without ``@`` the batch is 1.
        """
        name, at, batch = network.removeprefix(PREFIX).partition("@")
        if name not in MODELS:
            raise UnknownNameError("PyTorch model", name, MODELS)
        if at and not (batch.isdecimal() and int(batch)):
            raise UsageError(f"network {network}", "a batch of at least 1 after @", batch)
        return cls(name, int(batch or 1))


def is_captured(network: str) -> bool:
    """Whether ``network`` names a PyTorch model."""
    return network.startswith(PREFIX)


def require(network: str, options: Options) -> None:
    """Refuse, before anything runs, a PyTorch model that ``options`` can not be run with.

    MissingCapabilityError for a device without captures, or without PyTorch; UsageError for
    another launch geometry than the model's own; else as ``TorchModel.parse`` has it.
    """
    TorchModel.parse(network)
    if options.geometry != "ours":
        raise UsageError(
            f"network {network} geometry",
            "ours: its kernels are not ours to launch",
            options.geometry,
        )
    _check(network, options.device)


def _check(network: str, device: str) -> None:
    if device.partition(":")[0] != "cuda":
        raise MissingCapabilityError(
            f"network {network}",
            f"{device} can not run kernels that PyTorch chose",
            "use --device cuda:0, or a network of our own",
        )
    absent = [name for name in ("torch", "torchvision") if find_spec(name) is None]
    if absent:
        missing = f"no {' and no '.join(absent)} here"
        raise MissingCapabilityError(f"network {network}", missing, _INSTALL)


class TorchModels:
    """The programs of PyTorch models on ``device``, and their inputs, drawn from ``seed``."""

    def __init__(self, device: Device, seed: int) -> None:
        self._device, self._seed = device, seed
        self._recorder: Recorder | None = None
        self._programs: dict[tuple[str, int], tuple[int, Program]] = {}
        self._inputs: dict[tuple[str, int], Arrays] = {}

    def program(self, network: str, in_flight: int = 1, copy: int = 0) -> Program:
        """A program for ``in_flight`` requests or more; each ``copy`` for a task of its own.

        MissingCapabilityError as ``require`` has it, and where PyTorch has no GPU.
        """
        recorded, program = self._programs.get((network, copy), (0, None))
        if program is None or recorded < in_flight:
            program = self._captured(network, in_flight)
            self._programs[network, copy] = in_flight, program
        return program

    def inputs(self, network: str, ordinal: int) -> Arrays:
        """Pictures of noise; request ``ordinal`` + ``DISTINCT_INPUTS`` has the same."""
        key = network, ordinal % DISTINCT_INPUTS
        if key not in self._inputs:
            shape = (TorchModel.parse(network).batch, *PICTURE)
            noise = np.random.default_rng([self._seed, key[1]])
            self._inputs[key] = {"x": noise.integers(0, 256, shape, np.uint8)}
        return self._inputs[key]

    def _captured(self, network: str, count: int) -> Program:
        model = TorchModel.parse(network)
        _check(network, self._device.name)
        device = cast("CudaDevice", self._device)
        if self._recorder is None:
            self._recorder = Recorder(device, self._seed)
        return device.captured(network, self._recorder.record(model, count))


class Recorder:
    """Captures models on the SMs of ``device``, all of them in one thread of its own.

    cuDNN measures which of its algorithms is fastest, and PyTorch keeps the choice per thread: so
    it is made on these SMs, whatever other worlds the process has, and is the same for every
    recording of a model. Only deterministic algorithms are let in: outputs are compared bit for
    bit. A recording has its cuBLAS workspace in its own memory; PyTorch's belongs to the stream,
    and requests that run side by side would share it.
    """

    def __init__(self, device: CudaDevice, seed: int) -> None:
        self._device, self._seed = device, seed
        self._models: dict[str, torch.nn.Module] = {}
        self._thread = ThreadPoolExecutor(1, "miriam-recorder")
        self._stream, self._scale = self._thread.submit(self._begin).result()

    def record(self, model: TorchModel, count: int) -> list[Recording]:
        """``count`` captures of ``model`` that share its weights."""
        return self._thread.submit(self._record, model, count).result()

    def _begin(self) -> tuple[torch.cuda.ExternalStream, torch.Tensor]:
        import torch

        if not torch.cuda.is_available():
            raise MissingCapabilityError("PyTorch", "it has no GPU", _INSTALL)
        if not hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph"):
            missing = f"{torch.__version__} does not give its graphs away"
            raise MissingCapabilityError("PyTorch", missing, _INSTALL)
        torch.cuda.set_device(int(self._device.name.split(":")[1]))
        # Bytes to 0..4, what the random weights are made for.
        scale = torch.tensor(1 / 64, dtype=torch.float16, device="cuda")
        # The last word on this thread's context, after whatever PyTorch starts with.
        self._device.world.enter()
        own = int(self._device.world.stream(0))
        return torch.cuda.ExternalStream(own), scale  # type: ignore[no-untyped-call]

    def _record(self, model: TorchModel, count: int) -> list[Recording]:
        import torch

        chosen = torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=True)
        with torch.no_grad(), chosen, torch.cuda.stream(self._stream):
            made = [self._capture(self._model(model.name), model.batch) for _ in range(count)]
        torch.cuda.synchronize()
        return made

    def _model(self, name: str) -> torch.nn.Module:
        import torch

        if name not in self._models:
            make = getattr(import_module("torchvision.models"), MODELS[name])
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self._seed)
                made: torch.nn.Module = make(weights=None)
            made = made.eval().to(device="cuda", dtype=torch.float16)
            self._models[name] = made.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return self._models[name]

    def _capture(self, model: torch.nn.Module, batch: int) -> Recording:
        import torch

        from miriam.devices.cuda import Recording

        pictures = torch.zeros(batch, *PICTURE, dtype=torch.uint8, device="cuda")

        def run() -> torch.Tensor:
            scores: torch.Tensor = model(pictures.permute(0, 3, 1, 2) * self._scale)
            return scores.contiguous()

        for _ in range(WARM_UPS):
            run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        torch._C._cuda_clearCublasWorkspaces()
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="relaxed"):
            scores = run()
        torch._C._cuda_clearCublasWorkspaces()
        return Recording(graph, {"x": pictures}, {"y": scores}, keep=[model, self._scale])
