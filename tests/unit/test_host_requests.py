"""Any blocks in any order: the same bits, each one counted; what does not fit is refused."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from miriam.devices.host import Host, HostRequest
from miriam.errors import UnknownNameError, UsageError
from miriam.kernels import Buffer, Dim3, Pointer, Program, Scalar
from tests.kernels.programs import (
    BLOCKS,
    FOLDER,
    single,
    two_steps,
    two_steps_inputs,
    two_steps_weights,
)

M, N, K = 130, 100, 50
GRID = Dim3(2, 3)


def gemm_program() -> Program:
    buffers = [Buffer("a", (M, K), "input"), Buffer("b", (K, N), "weight")]
    buffers += [Buffer("c", (M, N), "output")]
    args = (Pointer("a"), Pointer("b"), Pointer("c"), Scalar(M), Scalar(N), Scalar(K))
    source = FOLDER / "gemm.cu"
    return single(source, "gemm", buffers, grid=GRID, block=Dim3(256), args=args)


def gemm(host: Host) -> tuple[HostRequest, NDArray[np.float32]]:
    """A gemm that has its inputs, and what it should give."""
    random = np.random.default_rng(7)
    a = random.standard_normal((M, K), dtype=np.float32)
    b = random.standard_normal((K, N), dtype=np.float32)
    request = host.load(gemm_program(), {"b": b}).request()
    request.write({"a": a})
    return request, a @ b


def two(host: Host | None = None) -> HostRequest:
    request = (host or Host()).load(two_steps(), two_steps_weights()).request()
    request.write(two_steps_inputs(0))
    return request


def test_a_tiled_gemm_with_barriers_agrees_with_numpy() -> None:
    request, expected = gemm(Host())
    request.run_all()
    assert np.allclose(request.read("c").astype(np.float32), expected, atol=1e-4)


@pytest.mark.parametrize(("workers", "seed"), [(1, 0), (1, 1), (2, 0), (5, 9)])
def test_workers_and_seeds_do_not_change_the_bits(workers: int, seed: int) -> None:
    request, _ = gemm(Host(workers=workers, seed=seed))
    request.run_all()
    alone, _ = gemm(Host(workers=1))
    for block in range(GRID.size):
        alone.run(0, [block])
    assert request.read("c").tobytes() == alone.read("c").tobytes()


@given(order=st.permutations(range(BLOCKS)), cuts=st.lists(st.integers(0, BLOCKS), max_size=4))
def test_any_order_and_any_cut_give_the_same_bits(order: Sequence[int], cuts: list[int]) -> None:
    whole, pieces = two(), two()
    whole.run_all()
    ends = [0, *sorted(cuts), BLOCKS]
    for step in (0, 1):
        for first, last in pairwise(ends):
            pieces.run(step, order[first:last])
    for name in ("x", "sums"):
        assert pieces.read(name).tobytes() == whole.read(name).tobytes()
    assert all((counts == 1).all() for counts in pieces.runs())


def test_each_run_of_a_block_is_counted() -> None:
    request = two()
    request.run(0, range(4))
    request.run(0, [3, 3, 5])
    assert request.runs()[0].tolist() == [1, 1, 1, 3, 0, 1] + [0] * 10
    assert request.runs()[1].tolist() == [0] * 16
    request.run(0, [])
    assert request.runs()[0].sum() == 7


def test_requests_have_buffers_of_their_own_and_reads_are_copies() -> None:
    program = Host().load(two_steps(), two_steps_weights())
    first, second = program.request(), program.request()
    first.write(two_steps_inputs(0))
    second.write(two_steps_inputs(1))
    first.run_all()
    assert second.read("x").tobytes() == two_steps_inputs(1)["x"].tobytes()
    assert second.runs()[0].sum() == 0
    before = first.outputs()["sums"]
    before[:] = 0
    assert first.outputs()["sums"].any()
    assert first.read("scale").tobytes() == two_steps_weights()["scale"].tobytes()


def test_launches_of_several_threads_overlap() -> None:
    program = Host(workers=2).load(two_steps(), two_steps_weights())

    def solo(seed: int) -> bytes:
        request = program.request()
        request.write(two_steps_inputs(seed))
        request.run_all()
        return request.outputs()["sums"].tobytes()

    alone = [solo(seed) for seed in range(40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(solo, range(40))) == alone


def test_buffers_hold_nan_until_they_are_written() -> None:
    request = Host().load(two_steps(), two_steps_weights()).request()
    assert np.isnan(request.read("x").astype(np.float32)).all()
    request.run_all()
    assert np.isnan(request.outputs()["sums"].astype(np.float32)).all()


def test_a_request_outlives_its_program() -> None:
    request = two(Host())
    request.run_all()
    assert np.isfinite(request.outputs()["sums"].astype(np.float32)).all()


@pytest.mark.parametrize(
    ("step", "blocks", "message"),
    [
        (2, None, "step: an index below 2, got 2"),
        (-1, None, "step: an index below 2, got -1"),
        (0, [0, 16], r"step scale_in_place blocks: indices below 16, got \(0, 16\)"),
        (1, [-1], r"step block_sums blocks: indices below 16, got \(-1, -1\)"),
    ],
)
def test_steps_and_blocks_have_to_exist(step: int, blocks: list[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        two().run(step, blocks)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "program two-steps weight scale: an array for each one, got None"),
        ({"scael": np.zeros(1)}, "unknown name, got 'scael'; did you mean 'scale'"),
        (
            {"scale": np.zeros(7, np.float32)},
            r"weight scale: shape \(1000,\), got \(7,\)",
        ),
        (
            {"scale": np.zeros(1000)},
            "weight scale: dtype float32, got 'float64'; convert it first",
        ),
        ({"scale": [0.0] * 1000}, "weight scale: a numpy array, got 'list'"),
    ],
)
def test_weights_have_to_fit(weights: dict[str, NDArray[np.generic]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Host().load(two_steps(), weights)


def test_inputs_have_to_fit() -> None:
    with pytest.raises(UsageError, match=r"input x: shape \(1000,\), got \(10, 100\)"):
        two().write({"x": two_steps_inputs(0)["x"].reshape(10, 100)})


def test_an_unknown_buffer_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="known: scale, sums, x"):
        two().read("y")


def test_arguments_have_to_fit_the_parameters() -> None:
    buffers = [Buffer("a", (4,), "output")]
    args = (Pointer("a"), Scalar(1.0, "float32"))
    wrong = single(FOLDER / "gemm.cu", "gemm", buffers, args=args)
    with pytest.raises(UsageError, match=r"the parameters of gemm, p8 p8 p8 i4 i4 i4.*got 'p8 f4'"):
        Host().load(wrong, {})


def test_workers_are_at_least_one() -> None:
    with pytest.raises(UsageError, match="host workers: at least 1, got 0"):
        Host(workers=0)
