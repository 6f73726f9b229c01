"""The host gives what the CUDA execution model says: barriers, warps, atomics, shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from miriam.devices.host import Host
from miriam.kernels import Argument, Buffer, Dim3, Pointer, Scalar
from tests.kernels.programs import FOLDER, ONE, single

SOURCE = FOLDER / "features.cu"
Array = NDArray[np.generic]


def run(
    name: str,
    arrays: Mapping[str, Array],
    outputs: Mapping[str, tuple[tuple[int, ...], str]],
    *,
    grid: Dim3 = ONE,
    block: Dim3 = ONE,
    args: Sequence[Argument] | None = None,
    shared: int = 0,
    seed: int = 0,
    workers: int | None = None,
) -> dict[str, Array]:
    """The buffers of the kernel ``name`` after one launch; outputs have a shape and a dtype."""
    buffers = [Buffer(n, a.shape, "input", str(a.dtype)) for n, a in arrays.items()]
    buffers += [Buffer(n, shape, "output", dtype) for n, (shape, dtype) in outputs.items()]
    program = single(
        SOURCE, name, buffers, grid=grid, block=block, args=args, dynamic_shared_bytes=shared
    )
    request = Host(seed=seed, workers=workers).load(program, {}).request()
    request.write(arrays)
    request.run(0)
    return {b.name: request.read(b.name) for b in buffers}


def test_warp_collectives() -> None:
    v = np.arange(64, dtype=np.int32) * 7 % 64
    out = run("shuffles", {"in": v}, {"out": ((8, 64), "int32")}, block=Dim3(64))["out"]
    lane, warp = np.arange(64) % 32, np.arange(64) // 32
    at = v.reshape(2, 32)
    assert (out[0] == at[warp, 5]).all()
    assert (out[1] == at[warp, np.where(lane < 3, lane, lane - 3)]).all()
    assert (out[2] == at[warp, np.where(lane % 16 > 11, lane, lane + 4)]).all()
    assert (out[3] == at[warp, lane ^ 1]).all()
    ballots = [sum(1 << i for i in range(32) if at[w, i] % 3 == 0) for w in (0, 1)]
    assert (out[4].astype(np.uint32) == np.array(ballots, np.uint32)[warp]).all()
    assert (out[5] == np.array([int(40 in at[w]) + 2 for w in (0, 1)])[warp]).all()
    assert (out[6][lane < 8] == at[warp, 7][lane < 8]).all()
    assert (out[7][lane % 2 == 1].astype(np.uint32) == 0xAAAAAAAA).all()


def test_a_shuffle_moves_doubles() -> None:
    v = np.random.default_rng(3).standard_normal(96)
    grid = Dim3(3)
    out = run("warp_reduce", {"in": v}, {"out": ((3,), "float64")}, grid=grid, block=Dim3(32))
    assert np.allclose(out["out"].astype(np.float64), v.reshape(3, 32).sum(axis=1))


@pytest.mark.parametrize("threads", [32, 200, 1024])
def test_dynamic_shared_memory(threads: int) -> None:
    v = np.arange(threads, dtype=np.float32)
    out = run(
        "dynamic_reverse",
        {"in": v},
        {"out": ((threads,), "float32")},
        block=Dim3(threads),
        shared=4 * threads,
    )
    assert (out["out"] == v[::-1]).all()


def test_atomics_over_racing_blocks() -> None:
    v = np.random.default_rng(1).integers(0, 8, 64 * 128).astype(np.int32)
    out = run(
        "histogram",
        {
            "in": v,
            "counts": np.zeros(9, np.int32),
            "total": np.zeros(1, np.float32),
            "largest": np.zeros(1, np.int32),
            "tickets": np.zeros(1, np.float64),
        },
        {},
        grid=Dim3(64),
        block=Dim3(128),
    )
    assert out["counts"][:8].tolist() == np.bincount(v, minlength=8).tolist()
    assert out["counts"][8] == 2 * v.size
    assert out["total"][0] == 0.5 * v.size
    assert out["largest"][0] == v.size - 1
    assert out["tickets"].view(np.int64)[0] == v.size


@pytest.mark.parametrize("name", ["repeat<3, true>", "repeat<2, false>"])
def test_templates_and_quoted_headers(name: str) -> None:
    v = np.arange(16, dtype=np.float32)
    n = 3 if "3" in name else 2
    out = run(name, {"in": v}, {"out": ((16, n), "float32")}, block=Dim3(16))["out"]
    factor = 2.0 if "true" in name else 1.0
    assert (out == np.repeat(v * np.float32(factor), n).reshape(16, n)).all()


def test_threads_that_returned_are_not_waited_for() -> None:
    v = np.arange(64, dtype=np.float32)
    args = (Pointer("in"), Pointer("out"), Scalar(50))
    out = run("early_return", {"in": v}, {"out": ((64,), "float32")}, block=Dim3(64), args=args)
    assert (out["out"][:50] == v[:50][::-1]).all()
    assert np.isnan(out["out"][50:].astype(np.float32)).all()  # nothing wrote there


def test_a_warp_can_exit_while_another_one_waits() -> None:
    out = run("warps_part", {}, {"out": ((32,), "int32")}, block=Dim3(64))["out"]
    assert (out == np.arange(32, 64).sum() + np.arange(32)).all()


def test_barriers_that_count() -> None:
    v = np.arange(-1, 49, dtype=np.int32)
    out = run("votes", {"in": v}, {"out": ((2, 50), "int32")}, block=Dim3(50))["out"]
    assert (out[0] == (v > 2).sum()).all()
    assert (out[1] == 0).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_barrier_in_a_loop(seed: int) -> None:
    v = np.random.default_rng(seed).integers(-9, 9, 100).astype(np.int32)
    out = run("prefix_sum", {"in": v}, {"out": ((100,), "int32")}, block=Dim3(100), seed=seed)
    assert (out["out"] == np.cumsum(v, dtype=np.int32)).all()


def test_three_dimensional_indices() -> None:
    grid, block = Dim3(3, 2, 2), Dim3(4, 3, 2)
    out = run("indices", {}, {"out": ((12, 24), "int32")}, grid=grid, block=block)["out"]
    assert (out == np.arange(12)[:, None] * 1000 + np.arange(24)).all()


def test_shared_memory_is_poisoned_before_each_block() -> None:
    out = run("uninitialised", {}, {"out": ((8, 2), "int32")}, grid=Dim3(8), shared=64)["out"]
    assert (out.view(np.uint32) == 0xA5A5A5A5).all()


def test_shared_memory_can_be_declared_in_many_ways() -> None:
    out = run("declarations<int>", {}, {"out": ((5,), "int32")}, block=Dim3(2))["out"]
    assert out.tolist() == [10, 6, 7, 8, 1]


def test_blocks_on_different_workers_run_at_the_same_time() -> None:
    zero = np.zeros(1, np.int32)
    out = run("rendezvous", {"in": zero}, {}, grid=Dim3(2), block=Dim3(64), workers=2)
    assert out["in"].tolist() == [2]


def test_a_missing_barrier_shows_and_the_seed_says_how() -> None:
    outs = [
        run("missing_barrier", {}, {"out": ((64,), "int32")}, block=Dim3(64), seed=seed)["out"]
        for seed in (0, 1, 0)
    ]
    expected = (np.arange(64) + 1) % 64
    assert all((out != expected).any() for out in outs)
    assert (outs[0] != outs[1]).any()
    assert (outs[0] == outs[2]).all()


def test_numbers_are_those_of_the_author() -> None:
    x, y, z, w = v = np.array([1.1, 3.3, -2.7, 5.5], np.float32)
    out = run("numbers", {"in": v}, {"out": ((7,), "float32")})["out"].astype(np.float32)
    exact = np.float64(x) * np.float64(y) + np.float64(z)
    assert out[0] == np.float32(exact)
    assert out[1] == np.float32(1) / np.sqrt(w)
    assert out[2] == x / y
    assert out[3] == -z
    assert out[4] == y + np.float32(3 + 8 + 31)
    assert np.isclose(out[5], np.exp(x) + np.tanh(y) + w + np.float32(0.5))
    assert out[6] == np.float32(x * y) + z  # two roundings: nothing contracts on its own
