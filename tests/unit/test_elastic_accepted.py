"""Kernels as people write them become elastic: what looks like a hazard and is none."""

from __future__ import annotations

import pytest

from miriam.elastic import elasticize

ACCEPTED = {
    "returns without a barrier": "if (threadIdx.x > 5) return; a[blockIdx.x] = 1;",
    "the whole block returns before a barrier": (
        "if (blockIdx.x >= n) return; __shared__ int s[32]; s[threadIdx.x] = a[threadIdx.x];"
        " __syncthreads(); a[blockIdx.x] = s[0];"
    ),
    "a barrier in a uniform loop after a divergent one": (
        "__shared__ int s[64]; for (int i = threadIdx.x; i < n; i += 64) s[i % 64] = a[i];"
        " for (int i = 0; i < n; ++i) { __syncthreads(); s[threadIdx.x] += i; }"
        " a[threadIdx.x] = s[0];"
    ),
    "a warp per row": (
        "int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; if (row >= n) return;"
        " a[row] = __shfl_xor_sync(0xffffffffu, a[threadIdx.x], 1);"
    ),
    "the first warp reduces": (
        "__shared__ int s[32]; s[threadIdx.x % 32] = a[threadIdx.x]; __syncthreads();"
        " if (threadIdx.x < 32) a[0] = __shfl_down_sync(0xffffffffu, s[threadIdx.x], 1);"
    ),
    "a mask of those that are there": (
        "unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x < n);"
        " if (threadIdx.x < n) a[threadIdx.x] = __shfl_sync(mask, a[threadIdx.x], 0);"
    ),
    "compare and swap until it works": (
        "int old = a[0], seen; do { seen = old; old = atomicCAS(&a[0], seen, seen + 1); }"
        " while (seen != old);"
    ),
    "a list is followed": "int i = a[threadIdx.x]; while (i >= 0) i = a[i]; a[0] = i;",
    "a search": "int i = 0; while (a[i] != n && i < n) ++i; a[threadIdx.x] = i;",
    "tickets are drawn": "int i; while ((i = atomicAdd(&a[0], 1)) < n) a[i] = i;",
    "sorted until nothing changes": (
        "bool go = true; while (go) { go = false; for (int i = 1; i < n; ++i)"
        " if (a[i - 1] > a[i]) { int t = a[i]; a[i] = a[i - 1]; a[i - 1] = t; go = true; } }"
    ),
    "the last block sums up": (
        "__shared__ bool last; a[blockIdx.x] = 1; __threadfence(); if (threadIdx.x == 0)"
        " last = atomicAdd(&a[n], 1) == gridDim.x - 1; __syncthreads(); if (last) a[0] = 2;"
    ),
    "pragmas before bodies without braces": (
        "for (int i = 0; i < n; ++i)\n#pragma unroll\n  for (int j = 0; j < 4; ++j) a[j] += i;\n"
        "if (n > 1)\n#pragma unroll 2\n#pragma nounroll\n  for (int j = 0; j < 4; ++j) a[j] -= 1;\n"
        "else\n#pragma unroll\n  for (int j = 0; j < 4; ++j) a[j] = 0;"
    ),
    "goto": "if (n > 3) goto end; a[blockIdx.x] = 1; end: a[0] = 2;",
    "lambdas": (
        "auto at = [&](int i) { return i + blockIdx.x; }; auto by = [n](int i) { return i * n; };"
        " a[at(by(1))] = 1;"
    ),
    "other assembly": 'int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane)); a[lane] = 1;',
}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED)
def test_it_becomes_elastic(body: str) -> None:
    kernel = elasticize(f"__global__ void k(int* a, int n) {{\n{body}\n}}\n").kernel("k")
    assert kernel.grid.ok, (kernel.grid.reason, kernel.grid.detail)
    assert kernel.yields.ok


def barrier_of(body: str) -> str:
    source = f"__global__ void k(int* a, int n) {{\n__shared__ int s[64];\n{body}\n}}\n"
    text = elasticize(source).kernel("k").source
    return text[text.index("// One logical block of k") :]


@pytest.mark.parametrize(
    "body",
    [
        "if (threadIdx.x >= n) return; s[0] = 1; __syncthreads(); a[threadIdx.x] = s[0];",
        "if (threadIdx.x < 5) { s[0] = 1; __syncthreads(); a[0] = s[0]; }",
        "for (int i = 0; i < a[threadIdx.x]; ++i) { __syncthreads(); s[i] = 1; } a[0] = s[1];",
        "int i = 0; while (true) { __syncthreads(); if (a[threadIdx.x] < i++) break; s[i] = 1; }",
        "if (n > 3 && s[0] > 1) { __syncthreads(); a[0] = s[0]; }",
        "int v = 0; int* p = &v; *p = threadIdx.x; if (v < 3) { __syncthreads(); a[v] = s[0]; }",
        "int v = 0; int& r = v; r = threadIdx.x; if (v < 3) { __syncthreads(); a[v] = s[0]; }",
        "int v = __ldcg(&a[n]); a[n] = 2; if (v < 3) { __syncthreads(); a[v] = s[0]; }",
        "int v = atomicAdd(a, 1); if (v > 3) return; __syncthreads(); a[v] = s[0];",
    ],
)
def test_barriers_that_not_all_threads_reach_count_who_is_done(body: str) -> None:
    text = barrier_of(body)
    assert "miriam_finish(" in text
    assert "__syncthreads()" not in text[: text.index("__global__")]


@pytest.mark.parametrize(
    "body",
    [
        "s[threadIdx.x] = 1; __syncthreads(); a[threadIdx.x] = s[0];",
        "for (int i = 0; i < n; ++i) { if (i == n - 2) break; __syncthreads(); s[i] = 1; }",
        "if (n > 3) { __syncthreads(); a[0] = s[0]; } else return;",
        "__syncthreads(); if (threadIdx.x > 3) return; a[0] = s[0];",
        "int i = threadIdx.x; if (i < 4) { int n = i; a[n] = n; } if (n > 1) __syncthreads();",
    ],
)
def test_barriers_that_all_threads_reach_stay(body: str) -> None:
    assert "miriam_finish(" not in barrier_of(body)


def test_a_helper_called_under_a_divergent_condition_still_gives_all_callers_the_same() -> None:
    source = (
        "__device__ int row(int x) { if (x > 2) return blockIdx.x; return x; }\n"
        "__global__ void k(int* a, int n) {\n"
        "  __shared__ int s[32]; s[threadIdx.x] = n;\n"
        "  if (threadIdx.x > 3) a[row(7)] = 1;\n"
        "  if (row(n) > 2) __syncthreads();\n"
        "  a[blockIdx.x] = s[0];\n}\n"
    )
    assert "miriam_meet();" not in elasticize(source).kernel("k").source.partition("__body")[2]


def test_a_barrier_in_a_helper_called_under_a_divergent_condition_counts() -> None:
    source = (
        "__device__ void inner() { __syncthreads(); }\n"
        "__device__ void outer(int x) { if (x > 2) inner(); }\n"
        "__global__ void k(int* a, int n) {\n"
        "  if (threadIdx.x > 3) return;\n"
        "  outer(n);\n"
        "  a[blockIdx.x] = 1;\n}\n"
    )
    assert "miriam_finish" in elasticize(source).kernel("k").source.partition("__body")[2]


def test_helpers_with_barriers_count_too() -> None:
    made = elasticize(
        "__device__ void meet(int* s) { __syncthreads(); s[threadIdx.x] = 1; }\n"
        "__global__ void k(int* a) {\n  __shared__ int s[64];\n"
        "  if (threadIdx.x % 3 == 1) return;\n  meet(s);\n  a[threadIdx.x] = s[0];\n}\n"
        "__global__ void all(int* a) {\n  __shared__ int s[64];\n  meet(s);\n  a[0] = s[0];\n}\n"
    )
    assert made.kernel("k").grid.ok
    assert "meet(blockIdx, gridDim, s);" in made.kernel("k").source
    assert "meet(s);" in made.kernel("all").source
