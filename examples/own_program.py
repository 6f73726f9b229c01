"""A CUDA program of one's own as a normal task beside a critical network.

    python examples/own_program.py                      # the simulator, with real outputs
    python examples/own_program.py --device host        # this machine's CPU
    python examples/own_program.py --device cuda:0      # a GPU

docs/bring-your-own.md explains it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miriam import devices, models
from miriam.coordinator import Task
from miriam.coordinator.policies import get
from miriam.devices.contract import Completion
from miriam.kernels import Buffer, Cost, Dim3, Pointer, Program, Scalar, Step
from miriam.models.own import compile_step

SOURCE = Path(__file__).with_suffix(".cu")
WIDTH, HEIGHT, LEAST = 320, 240, 0.05
REQUESTS = 4


def filter_program(arch: str) -> Program:
    """Two smoothing steps and one that keeps edges, on blocks of 32 x 8 pixels."""
    grid, block = Dim3(WIDTH // 32, HEIGHT // 8), Dim3(32, 8)
    size = Scalar(WIDTH), Scalar(HEIGHT)
    pixels = block.size
    smoothing = Cost(flop=10 * pixels, l2_bytes=40 * pixels, dram_bytes=8 * pixels)
    keeping = Cost(flop=6 * pixels, l2_bytes=16 * pixels, dram_bytes=8 * pixels)

    def step(kernel: str, source: str, target: str, cost: Cost, *more: Scalar) -> Step:
        args = (Pointer(source), Pointer(target), *size, *more)
        return compile_step(
            SOURCE, kernel, arch, grid=grid, block=block, args=args, output=target, cost=cost
        )

    return Program(
        "filter",
        arch,
        (
            step("smooth", "picture", "first", smoothing),
            step("smooth", "first", "second", smoothing),
            step("edges", "second", "kept", keeping, Scalar(LEAST, "float32")),
        ),
        (
            Buffer("picture", (HEIGHT, WIDTH), "input"),
            Buffer("first", (HEIGHT, WIDTH), "scratch"),
            Buffer("second", (HEIGHT, WIDTH), "scratch"),
            Buffer("kept", (HEIGHT, WIDTH), "output"),
        ),
    )


def expected(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """What the program should give, by numpy."""
    for _ in range(2):
        wide = np.pad(picture, 1, mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3))
        picture = windows.mean((2, 3), dtype=np.float32)
    right = np.abs(np.diff(picture, axis=1, append=picture[:, -1:]))
    below = np.abs(np.diff(picture, axis=0, append=picture[-1:]))
    change = right + below
    return np.where(change < LEAST, np.float32(0), change)


def main() -> None:
    """Run both tasks, and compare the filter's outputs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="sim:orin")
    parser.add_argument("--policy", default="miriam")
    given = parser.parse_args()
    device = devices.get(given.device, compute=True)
    program = filter_program(device.gpu.arch)
    for step in program.steps:
        print(f"{step.name}: {step.rigid or 'elastic'}")
    network = models.load("cifarnet", device.gpu.arch)
    tasks = [
        Task("network", network, critical=True, weights=models.weights("cifarnet", 0)),
        Task("filter", program, in_flight=2),
    ]
    rng = np.random.default_rng(1)
    pictures = [rng.random((HEIGHT, WIDTH), dtype=np.float32) for _ in range(REQUESTS)]
    session = device.open(tasks, get(given.policy))
    for picture in pictures:
        session.submit(0, session.now_ns, models.example_input("cifarnet", 0))
        session.submit(1, session.now_ns, {"picture": picture})
    done: list[Completion] = []
    while len(done) < 2 * REQUESTS:
        done += session.advance(session.now_ns + 1_000_000_000)
    session.close()
    simulated = ", simulated" if device.simulated else ""
    for each in sorted(done, key=lambda d: (d.task, d.request)):
        latency_us = (each.finish_ns - each.arrival_ns) / 1e3
        print(f"{tasks[each.task].name} {each.request}: {latency_us:.0f} us{simulated}")
        if each.task == 1:
            assert each.outputs is not None
            np.testing.assert_allclose(
                each.outputs["kept"], expected(pictures[each.request]), atol=1e-5
            )
    print(f"{device.name}: the filter's outputs are numpy's")


if __name__ == "__main__":
    main()
