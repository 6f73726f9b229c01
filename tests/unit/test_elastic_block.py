"""Kernels on fewer threads: what becomes so, under which names, and that the bits are the same."""

from __future__ import annotations

import pytest

from miriam.elastic import elasticize
from miriam.errors import UnknownNameError, UsageError

PLAIN = "__global__ void k(int* a) { a[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.y; }\n"
WARPS = "__global__ void k(int* a) { a[threadIdx.x] = __shfl_xor_sync(~0u, a[threadIdx.x], 1); }\n"


def test_one_form_of_a_kernel_without_barriers_runs_on_any_number_of_threads() -> None:
    kernel = elasticize(PLAIN).kernel("k")
    assert kernel.block.ok and kernel.any_threads and not kernel.whole_warps
    assert kernel.entry("slice", fold=0) == "k__block_slice<0>"
    assert kernel.entry("slice", fold=7) == "k__block_slice<7>"
    assert kernel.entry("slice") == "k__slice"
    assert [kernel.physical_threads(100, n) for n in (1, 2, 3)] == [100, 50, 34]


def test_template_arguments_follow_the_fold() -> None:
    source = "namespace n { template <int N> __global__ void k(int* a) { a[threadIdx.x] = N; } }\n"
    assert elasticize(source).kernel("k").entry("yield", "n::k<4>", 2) == "n::k__block_yield<2, 4>"


def test_warps_stay_whole() -> None:
    kernel = elasticize(WARPS).kernel("k")
    assert kernel.whole_warps
    assert kernel.physical_threads(256, 2) == 128
    with pytest.raises(UsageError, match="whole warps of 256 threads"):
        kernel.physical_threads(256, 3)


def test_folds_below_one_and_refused_kernels_are_errors() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        elasticize(PLAIN).kernel("k").entry("slice", fold=-1)
    refused = "__global__ void k(int* a) { a[0] = __activemask(); }\n"
    kernel = elasticize(refused).kernel("k")
    assert (kernel.grid.ok, kernel.block.reason) == (True, "active-mask")
    with pytest.raises(UnknownNameError):
        kernel.entry("slice", fold=2)
