"""Graphs that tests capture as a user would: from own launches, and from PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from miriam.devices.contract import Arrays
from miriam.devices.cuda import GpuArray, Recording
from miriam.devices.cuda.buffers import Buffers, Weights
from miriam.devices.cuda.capture import Fork, recording
from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.memory import Memory
from miriam.kernels import Program

if TYPE_CHECKING:
    import torch


def captured_launches(
    device: CudaDevice, program: Program, weights: Arrays, *, branches: int = 1
) -> Recording:
    """The steps of ``program`` in a graph; on several branches, each on arrays of its own.

    The memory is that of the test's process until it ends. The inputs and outputs of the second
    branch are called ``x1`` where the first one's are ``x``.
    """
    device.world.enter()
    device.kernels.load([program])
    memory, functions = Memory(), device.functions(program)
    shared = Weights(program, weights, memory).addresses
    sets = [Buffers(program, shared, memory) for _ in range(branches)]
    streams = [device.world.stream(0) for _ in range(branches)]
    with ExitStack() as marks, recording(streams[0]) as graph:
        forks = [Fork(streams[0], side, marks) for side in streams[1:]]
        for fork in forks:
            fork.catch_up()
        for index, step in enumerate(program.steps):
            for stream, buffers in zip(streams, sets, strict=True):
                functions[index].submit(stream, step, buffers.arguments(step))
        for fork in forks:
            fork.join()
    places = {
        role: {
            f"{b.name}{branch or ''}": GpuArray(buffers.address(b.name), b.shape, b.dtype)
            for branch, buffers in enumerate(sets)
            for b in program.named(role)
        }
        for role in ("input", "output")
    }
    return Recording(graph.handle, places["input"], places["output"], keep=[graph, memory])


@dataclass(frozen=True)
class TorchModel:
    """A model, its recordings, and what a replay of the last one gives for an input."""

    recordings: Sequence[Recording]
    replay: Callable[[NDArray[np.float32]], bytes]


def captured_model(
    model: torch.nn.Module,
    shape: Sequence[int],
    count: int,
    stream: torch.cuda.ExternalStream | None = None,
) -> TorchModel:
    """``count`` captures of ``model`` on an input of ``shape``, made on ``stream``."""
    import torch

    side = stream or torch.cuda.Stream()  # type: ignore[no-untyped-call]
    captures = []
    with torch.no_grad():
        for _ in range(count):
            x = torch.zeros(*shape, device="cuda")
            torch.cuda.synchronize()
            with torch.cuda.stream(side):
                for _ in range(3):
                    model(x)
            graph = torch.cuda.CUDAGraph(keep_graph=True)
            with torch.cuda.graph(graph, stream=side, capture_error_mode="relaxed"):
                y = model(x)
            captures.append(Recording(graph, {"x": x}, {"y": y}, keep=[model]))
    torch.cuda.synchronize()

    def replay(picture: NDArray[np.float32]) -> bytes:
        with torch.no_grad(), torch.cuda.stream(side):
            x.copy_(torch.from_numpy(picture))
            graph.replay()
        torch.cuda.synchronize()
        return bytes(y.cpu().numpy().tobytes())

    return TorchModel(captures, replay)
