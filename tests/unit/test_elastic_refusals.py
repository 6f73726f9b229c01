"""Every rule of the generator refuses the smallest kernel that breaks it, and says where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_elastic_block_traps import REFUSED as BLOCK_REFUSED

from miriam.elastic import Verdict, elasticize
from miriam.elastic.cuda.rules import RULES

# reason, the line that it points to, source
REFUSED = (
    ("parse-error", 2, "__global__ void k(int* a) {\n  a[0] = = 3;\n}\n"),
    ("too-large", 1, "__global__ void k(int* a) {\n" + "a[0] += a[1] * 3;\n" * 25_000 + "}\n"),
    ("nesting-too-deep", None, "__global__ void k(int* a) {\n" + "if (a[0])\n" * 3_000 + ";\n}\n"),
    ("reserved-name", 2, "__global__ void k(int* a) {\n  int miriam_x = 1; a[0] = miriam_x;\n}\n"),
    ("reserved-name", 2, "__device__ void k__body() {}\n__global__ void k(int* a) { a[0] = 1; }\n"),
    (
        "parameter-forwarding",
        1,
        "template <int N, class> __global__ void k(int* a) { a[blockIdx.x] = N; }\n",
    ),
    (
        "parameter-forwarding",
        1,
        "template <int N> __global__ void k(int* a) { a[0] = N; }\n"
        "template <> __global__ void k<3>(int* a) { a[0] = 4; }\n",
    ),
    (
        "shadowed-index",
        2,
        "__global__ void k(int* a) {\n  int blockIdx = 3; a[0] = blockIdx;\n}\n",
    ),
    (
        "grid-wide",
        2,
        "__global__ void k(int* a) {\n  cooperative_groups::this_grid().sync(); a[0] = 1;\n}\n",
    ),
    ("grid-wide", 1, "__cluster_dims__(2, 1, 1) __global__ void k(int* a) {\n  a[0] = 1;\n}\n"),
    (
        "hidden-index",
        3,
        "namespace cg = cooperative_groups;\n__global__ void k(int* a) {\n"
        "  a[cg::this_thread_block().group_index().x] = 1;\n}\n",
    ),
    (
        "dynamic-parallelism",
        3,
        "__global__ void j(int* a) { a[0] = 1; }\n"
        "__global__ void k(int* a) {\n  j<<<1, 1>>>(a);\n}\n",
    ),
    ("inline-assembly", 2, '__global__ void k(int* a) {\n  asm volatile("bar.sync 1;");\n}\n'),
    (
        "inline-assembly",
        2,
        '__global__ void k(unsigned* a) {\n  asm("mov.u32 %0, %%ctaid.x;" : "=r"(a[0]));\n}\n',
    ),
    ("inline-assembly", 2, '__global__ void k(int* a) {\n  if (a[0]) asm("exit;");\n}\n'),
    (
        "async-barrier",
        2,
        "__global__ void k(int* a) {\n"
        "  __shared__ cuda::barrier<cuda::thread_scope_block> b; a[0] = 1;\n}\n",
    ),
    (
        "index-in-method",
        1,
        "struct At { __device__ int get() const { return blockIdx.x; } };\n"
        "__global__ void k(int* a) { At at; a[at.get()] = 1; }\n",
    ),
    (
        "index-in-method",
        2,
        "namespace n { __device__ int at(int i) { return blockIdx.x + i; } }\n"
        "using n::at;\n__global__ void k(int* a) { a[at(2)] = 1; }\n",
    ),
    (
        "index-in-method",
        2,
        "__global__ void k(int* a) {\n"
        "  struct At { __device__ int get() { return blockIdx.x; } } at;\n  a[at.get()] = 1;\n}\n",
    ),
    (
        "index-in-functor",
        3,
        "template <class F> __global__ void k(F f) { f(); }\n"
        "void run(int* a) {\n  k<<<1, 1>>>([=] __device__ () { a[blockIdx.x] = 1; });\n}\n",
    ),
    (
        "index-in-default",
        1,
        "__device__ int f(int i = blockIdx.x) { return i; }\n"
        "__global__ void k(int* a) { a[f()] = 1; }\n",
    ),
    (
        "function-as-value",
        4,
        "__device__ int f() { return blockIdx.x; }\n"
        "template <class F> __device__ int call(F g) { return g(); }\n"
        "__global__ void k(int* a) {\n  a[call(f)] = 1;\n}\n",
    ),
    (
        "function-as-value",
        2,
        "__device__ int f() { return blockIdx.x; }\n"
        "template <int (*F)()> __global__ void k(int* a) { a[F()] = 1; }\n"
        "void run(int* a) { k<f><<<1, 1>>>(a); }\n",
    ),
    ("function-pointer", 2, "__global__ void k(int* a, int (*f)(int)) {\n  a[0] = f(1);\n}\n"),
    (
        "function-pointer",
        4,
        "typedef int (*Op)(int);\n__device__ Op table[2];\n"
        "__global__ void k(int* a, int i) {\n  a[0] = table[i](1);\n}\n",
    ),
    (
        "undefined-helper",
        1,
        "__device__ int f(int i);\n__global__ void k(int* a) { a[f(1)] = 1; }\n",
    ),
    ("static-variable", 2, "__global__ void k(int* a) {\n  static int n = 0; a[0] = ++n;\n}\n"),
    (
        "missing-include",
        1,
        '#include "mine.cuh"\n__global__ void k(int* a) { a[MY_INDEX] = 1; }\n',
    ),
    (
        "spin-wait",
        2,
        "__global__ void k(int* flag) {\n  while (flag[blockIdx.x] == 0) {}\n  flag[0] = 2;\n}\n",
    ),
    (
        "spin-wait",
        2,
        "__global__ void k(int* lock, int* a) {\n"
        "  while (atomicCAS(lock, 0, 1) != 0) {}\n  a[0] += 1; atomicExch(lock, 0);\n}\n",
    ),
    (
        "spin-wait",
        4,
        "__device__ volatile int arrived;\n"
        "__device__ void wait_all(int goal) {\n  atomicAdd((int*)&arrived, 1);\n"
        "  while (arrived < goal) {}\n}\n"
        "__global__ void k(int* a) { a[blockIdx.x] = 1; wait_all(gridDim.x); }\n",
    ),
    (
        "spin-wait",
        3,
        "__global__ void k(int* a, int* flags) {\n  int seen = 0;\n"
        "  while (true) { seen = atomicAdd(&flags[blockIdx.x], 0); if (seen != 0) break; }\n"
        "  a[0] = seen;\n}\n",
    ),
    (
        "barrier-not-uniform",
        2,
        "__global__ void k(int* a) {\n"
        "  if (threadIdx.x < 5) a[0] = __syncthreads_or(a[threadIdx.x]);\n}\n",
    ),
    (
        "collective-not-uniform",
        3,
        "__global__ void k(int* a, int n) {\n  if (threadIdx.x >= n) return;\n"
        "  a[threadIdx.x] = __shfl_xor_sync(0xffffffffu, a[threadIdx.x], 1);\n}\n",
    ),
    (
        "collective-not-uniform",
        2,
        "__global__ void k(int* a) {\n  for (int i = threadIdx.x; i < 7; ++i) __syncwarp();\n}\n",
    ),
    (
        "unknown-call",
        2,
        "__global__ void k(int* a, int n) {\n  if (threadIdx.x < n) a[0] = vendor::sum(a);\n}\n",
    ),
)


def verdict(source: str) -> Verdict:
    return elasticize(source, kernels=["k"]).kernel("k").grid


@pytest.mark.parametrize(("reason", "line", "source"), REFUSED, ids=[r for r, *_ in REFUSED])
def test_a_kernel_that_breaks_a_rule_is_refused(reason: str, line: int | None, source: str) -> None:
    found = verdict(source)
    assert not found.ok
    assert found.reason == reason
    assert line is None or found.line == line
    assert found.detail
    assert found.excerpt.endswith("^")


def test_every_rule_has_a_kernel_here_and_a_docstring() -> None:
    assert all(rule.__doc__ for rule in RULES)
    assert len({reason for reason, *_ in REFUSED}) >= len(RULES)


def test_every_reason_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "transforms" / "refusals.md"
    grid, block = page.read_text().split("Only the block forms are refused")
    assert _reasons(grid) == {reason for reason, *_ in REFUSED}
    assert _reasons(block) >= {reason for reason, *_ in BLOCK_REFUSED}


def _reasons(table: str) -> set[str]:
    rows = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    return {reason for row in rows for reason in re.findall(r"`([a-z-]+)`", row)}


def test_a_refused_kernel_does_not_refuse_its_neighbours() -> None:
    made = elasticize(
        "__global__ void bad(int* f) { while (*f == 0) {} }\n"
        "__global__ void good(int* a) { a[blockIdx.x] = 1; }\n"
    )
    assert not made.kernel("bad").grid.ok
    assert made.kernel("bad").source == ""
    assert made.kernel("good").yields.ok
    assert "good__yield" in made.source
    assert "bad" not in made.source
