"""Threads that leave before a barrier, for a reason that does not look like a thread's own."""

from __future__ import annotations

import pytest

from miriam.elastic import elasticize

_READS = "struct Me { int i; __device__ Me(int b = 0) : i(threadIdx.x + b) {} };"
_METHODS = (
    "struct Me { int i; __device__ void set(int v) { i = v; }"
    " __device__ int get(int v) const { return i + v; } };"
)
OWN = {
    "a constructor": (_READS, "Me me; if (me.i >= n) return;"),
    "a constructor with arguments": (_READS, "Me me{3}; if (me.i >= n) return;"),
    "a temporary": (_READS, "if (Me(3).i >= n) return;"),
    "a copy": (_READS, "auto me = Me{3}; if (me.i >= n) return;"),
    "a member": (f"{_READS} struct Out {{ Me in; }};", "Out o; if (o.in.i >= n) return;"),
    "a default member": ("struct Me { int i = threadIdx.x; };", "Me me; if (me.i >= n) return;"),
    "a conversion": (
        "struct Me { __device__ operator int() { return threadIdx.x; } };",
        "Me me; if (me >= n) return;",
    ),
    "an operator": (
        "struct Me { __device__ int operator[](int i) { return threadIdx.x + i; } };",
        "Me me; if (me[1] >= n) return;",
    ),
    "a free operator": (
        "struct Me { int i; };\n__device__ int operator+(Me m, int i) { return threadIdx.x + i; }",
        "Me me; if (me + 1 >= n) return;",
    ),
    "a helper in a method": (
        "__device__ int who() { return threadIdx.x; }\n"
        "struct Me { int i; __device__ void set() { i = who(); } };",
        "Me me; me.set(); if (me.i >= n) return;",
    ),
    "a value given to a method": (_METHODS, "Me me; me.set(threadIdx.x); if (me.i >= n) return;"),
    "an element by reference": (
        "",
        "int x[2]; for (int& e : x) e = threadIdx.x; if (x[0]) return;",
    ),
    "one of two": ("", "int i = n, j; (n > 2 ? i : j) = threadIdx.x; if (i > n) return;"),
    "the clock": ("", "if (clock() % 2) return;"),
    "active lanes": ("", "if (__activemask() % 2) return;"),
}


def body_of(declared: str, statements: str) -> str:
    source = (
        f"{declared}\n__global__ void k(int* a, int n) {{\n  __shared__ int s[32];\n"
        f"  {statements}\n  __syncthreads();\n  a[0] = s[0];\n}}\n"
    )
    kernel = elasticize(source).kernel("k")
    assert kernel.grid.ok, kernel.grid
    return kernel.source.partition("k__body")[2]


@pytest.mark.parametrize(("declared", "statements"), OWN.values(), ids=OWN)
def test_what_a_thread_has_of_its_own_makes_barriers_count(declared: str, statements: str) -> None:
    assert "miriam_meet();" in body_of(declared, statements)


@pytest.mark.parametrize(
    ("declared", "statements"),
    [
        (_METHODS, "Me me; me.set(n); if (me.i >= n) return;"),
        (_METHODS, "Me me{n}; a[1] = me.get(threadIdx.x); if (me.i >= n) return;"),
    ],
)
def test_what_all_threads_give_a_method_stays_the_same(declared: str, statements: str) -> None:
    assert "miriam_meet();" not in body_of(declared, statements)


def test_a_cast_to_a_template_parameter_is_a_cast() -> None:
    statements = "const T y = (T)(n + 1), z = T(n); if (y > z) return;"
    source = (
        f"template <typename T> __global__ void k(int* a, int n) {{\n  {statements}\n"
        "  __syncthreads();\n  a[0] = 1;\n}\n"
    )
    assert "miriam_meet();" not in elasticize(source).kernel("k").source.partition("k__body")[2]
