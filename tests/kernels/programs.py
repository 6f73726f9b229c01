"""Programs made by hand from the kernels in this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miriam.kernels import (
    Argument,
    Buffer,
    Cost,
    Dim3,
    KernelSpec,
    Pointer,
    Program,
    Resources,
    Scalar,
    Step,
    Variant,
)

FOLDER = Path(__file__).parent
SIZE = 1_000
BLOCKS = 16
THREADS = 64
ONE = Dim3(1)


def step(
    source: Path,
    name: str,
    grid: Dim3,
    block: Dim3,
    args: Sequence[Argument],
    output: str,
    dynamic_shared_bytes: int = 0,
) -> Step:
    """A step whose cost and resources do not matter."""
    variants = (Variant(block.size, Resources(32, 4_096)),)
    kernel = KernelSpec(name, str(source), grid, block, variants, dynamic_shared_bytes)
    return Step(name, name, kernel, tuple(args), Cost(1.0e3, 1.0e3, 1.0e3), output)


def single(
    source: Path,
    name: str,
    buffers: Sequence[Buffer],
    *,
    grid: Dim3 = ONE,
    block: Dim3 = ONE,
    args: Sequence[Argument] | None = None,
    dynamic_shared_bytes: int = 0,
) -> Program:
    """A program of one step, whose arguments are its buffers in order unless ``args`` says."""
    given = [Pointer(b.name) for b in buffers] if args is None else args
    made = step(source, name, grid, block, given, buffers[-1].name, dynamic_shared_bytes)
    return Program("single", "sm_90", (made,), tuple(buffers))


def two_steps(name: str = "two-steps") -> Program:
    """sums[b] = sum over block b of (x * scale + 1); the first step works on x in place."""
    source = FOLDER / "two_steps.cu"
    grid, block = Dim3(BLOCKS), Dim3(THREADS)
    first = (Pointer("x"), Pointer("scale"), Scalar(SIZE))
    second = (Pointer("x"), Pointer("sums"), Scalar(SIZE))
    return Program(
        name,
        "sm_90",
        (
            step(source, "scale_in_place", grid, block, first, "x"),
            step(source, "block_sums", grid, block, second, "sums"),
        ),
        (
            Buffer("x", (SIZE,), "input"),
            Buffer("scale", (SIZE,), "weight"),
            Buffer("sums", (BLOCKS,), "output"),
        ),
    )


def two_steps_weights(seed: int = 0) -> dict[str, NDArray[np.generic]]:
    """Weights for ``two_steps``."""
    return {"scale": np.random.default_rng(seed).standard_normal(SIZE, dtype=np.float32)}


def two_steps_inputs(seed: int) -> dict[str, NDArray[np.generic]]:
    """Inputs for ``two_steps``."""
    return {"x": np.random.default_rng(1_000 + seed).standard_normal(SIZE, dtype=np.float32)}


def two_steps_sums(
    weights: Mapping[str, NDArray[np.generic]], inputs: Mapping[str, NDArray[np.generic]]
) -> NDArray[np.float64]:
    """What ``two_steps`` should give, in double precision."""
    x = np.zeros(BLOCKS * THREADS)
    scale: NDArray[np.float64] = np.asarray(weights["scale"], np.float64)
    x[:SIZE] = np.asarray(inputs["x"], np.float64) * scale + 1.0
    sums: NDArray[np.float64] = x.reshape(BLOCKS, THREADS).sum(axis=1)
    return sums


def stirred(blocks: int, rounds: int, steps: int = 1) -> Program:
    """x is stirred in place ``steps`` times: a block that runs twice, or not at all, shows."""
    source, grid = FOLDER / "in_place.cu", Dim3(blocks)
    made = step(source, "stir", grid, Dim3(64), (Pointer("x"), Scalar(rounds)), "x")
    buffers = (Buffer("y", (64,), "input"), Buffer("x", (64 * blocks,), "output"))
    return Program(f"stirred-{steps}", "sm_90", (made,) * steps, buffers)


def register_filler(blocks: int, rounds: int) -> Program:
    """One block of it takes all registers of an SM of 65,536."""
    source = FOLDER / "in_place.cu"
    args = (Pointer("x"), Scalar(rounds))
    made = step(source, "fill_registers", Dim3(blocks), Dim3(1_024), args, "x")
    buffers = (Buffer("y", (64,), "input"), Buffer("x", (1_024 * blocks,), "output"))
    return Program("register-filler", "sm_90", (made,), buffers)
