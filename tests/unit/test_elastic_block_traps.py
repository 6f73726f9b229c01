"""Kernels in which a careless split at the barriers would go wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from miriam import check
from miriam.elastic import elasticize

_HEAD = """\
struct Box { int v[3]; };
typedef int Row[3];
template <class T> __device__ void swap(T& a, T& b) { T t = a; a = b; b = t; }
struct Counted { int n; __device__ Counted(int* p) : n(0) { atomicAdd(p, 1); } };
"""

# Parameters and body; blocks of 64 threads.
TRAPS = {
    "a pointer to a variable outlives its region": (
        "int* d, int n",
        "__shared__ int s[64]; int v = n; int* p = &v; s[threadIdx.x]=threadIdx.x; "
        "__syncthreads(); *p += s[(threadIdx.x+1)%64]; __syncthreads(); "
        "d[blockIdx.x*64+threadIdx.x] = v + *p;",
    ),
    "an inner scope has the same name": (
        "int* d, int n",
        "__shared__ int s[64]; int x = n; { int x = threadIdx.x; s[threadIdx.x] = x; "
        "__syncthreads(); d[blockIdx.x*64+threadIdx.x] = s[63-threadIdx.x] + x; } "
        "__syncthreads(); d[blockIdx.x*64+threadIdx.x] += x;",
    ),
    "a pointer is moved": (
        "int* d, int n",
        "__shared__ int s[64]; int* q = d + blockIdx.x*64 + threadIdx.x; s[threadIdx.x] = "
        "*q; __syncthreads(); q[0] = s[63-threadIdx.x]; q = d + blockIdx.x*64; "
        "__syncthreads(); if (threadIdx.x == 3) *q += n;",
    ),
    "a loop of its own leaves its counter behind": (
        "int* d, int n",
        "__shared__ int s[64]; int i; for (i = 0; i < (int)threadIdx.x; ++i) "
        "s[threadIdx.x] = i; s[threadIdx.x] = i; __syncthreads(); "
        "d[blockIdx.x*64+threadIdx.x] = s[63-threadIdx.x] * i;",
    ),
    "the block reads what it has written": (
        "int* d, int n",
        "__shared__ int s[64]; s[threadIdx.x] = d[blockIdx.x*64+threadIdx.x]; "
        "__syncthreads(); int base = d[blockIdx.x*64]; __syncthreads(); "
        "d[blockIdx.x*64+threadIdx.x] = s[63-threadIdx.x] + base; __syncthreads(); base = "
        "d[blockIdx.x*64+1]; __syncthreads(); d[blockIdx.x*64+threadIdx.x] += base;",
    ),
    "two arguments are one array": (
        "const int* in, int* out",
        "__shared__ int s[64]; int first = in[blockIdx.x*64]; s[threadIdx.x] = first; "
        "__syncthreads(); out[blockIdx.x*64+threadIdx.x] = s[threadIdx.x] + threadIdx.x; "
        "__syncthreads(); int second = in[blockIdx.x*64+5]; __syncthreads(); "
        "out[blockIdx.x*64+threadIdx.x] += second;",
    ),
    "commas and a choice of targets": (
        "int* d, int n",
        "__shared__ int s[64]; int a = 1, b = 2; a += n, b = a * 2; s[threadIdx.x] = b; "
        "__syncthreads(); (n > 2 ? a : b) = threadIdx.x; __syncthreads(); "
        "d[blockIdx.x*64+threadIdx.x] = a + b + s[0];",
    ),
    "a helper exchanges two numbers of the block": (
        "int* d, int n",
        "__shared__ int s[2][64]; int cur = 0, nxt = 1; s[0][threadIdx.x] = threadIdx.x; "
        "for (int k = 0; k < n; ++k) { __syncthreads(); s[nxt][threadIdx.x] = "
        "s[cur][(threadIdx.x+1)%64] + 1; swap(cur, nxt); } __syncthreads(); "
        "d[blockIdx.x*64+threadIdx.x] = s[cur][threadIdx.x];",
    ),
    "an array of the block's values is changed by a thread": (
        "int* d, int n",
        "__shared__ int s[64]; int t[3] = {n, n + 1, n + 2}; s[threadIdx.x] = "
        "t[threadIdx.x % 3]; __syncthreads(); t[1] = s[5]; __syncthreads(); "
        "d[blockIdx.x*64+threadIdx.x] = t[threadIdx.x % 3] + s[1];",
    ),
    "a block without any thread left reads nothing": (
        "const int* in, int* d, int n",
        "__shared__ int s[64]; int i = blockIdx.x*64+threadIdx.x; if (i >= n) return; int "
        "w = in[blockIdx.x]; s[threadIdx.x] = w; __syncthreads(); d[i] = s[threadIdx.x] / "
        "w + i;",
    ),
    "a lambda changes what it refers to": (
        "int* d, int n",
        "__shared__ int s[64]; int c = 0; auto inc = [&]() { c += n; return c; }; "
        "s[threadIdx.x] = inc(); __syncthreads(); s[threadIdx.x] += inc(); "
        "__syncthreads(); d[blockIdx.x*64+threadIdx.x] = s[63-threadIdx.x] + c;",
    ),
    "loops over an array, by reference": (
        "int* d, int n",
        "__shared__ int s[64]; int t[4] = {1,2,3,(int)threadIdx.x}; for (auto& e : t) e "
        "+= n; s[threadIdx.x] = t[3]; __syncthreads(); for (int e : t) "
        "d[blockIdx.x*64+threadIdx.x] += e * s[e % 64];",
    ),
    "all leave a loop at once": (
        "int* d, int n",
        "__shared__ int s[64]; int v = threadIdx.x; for (int k = 0;; ++k) { "
        "s[threadIdx.x] = v; __syncthreads(); v += s[(threadIdx.x+k)%64]; "
        "__syncthreads(); if (k > 2) { if (n > 3) break; v *= 2; } if (k == 9) return; } "
        "d[blockIdx.x*64+threadIdx.x] = v;",
    ),
    "an array behind a type's name": (
        "int* d, int n",
        "__shared__ int s[64]; Row r; Box b; for (int i = 0; i < 3; ++i) { r[i] = i * "
        "threadIdx.x; b.v[i] = r[i] + n; } s[threadIdx.x] = r[2]; __syncthreads(); int* p "
        "= r; p[1] += s[63-threadIdx.x]; __syncthreads(); d[blockIdx.x*64+threadIdx.x] = "
        "r[1] + b.v[2] + *p;",
    ),
    "threads leave a loop one by one, the others change its end": (
        "int* d, int n",
        "__shared__ int s[64]; int m = n; for (int k = 0; k < m; ++k) { s[threadIdx.x] = "
        "k; if ((int)threadIdx.x == k) return; __syncthreads(); "
        "d[blockIdx.x*64+threadIdx.x] += s[63]; if (k == 2) m -= 1; __syncthreads(); } "
        "d[blockIdx.x*64+threadIdx.x] += m;",
    ),
    "continue goes to the condition": (
        "int* d, int n",
        "__shared__ int s[64]; int k = 0, v = threadIdx.x; do { ++k; s[threadIdx.x] = v; "
        "__syncthreads(); if (k == 2) continue; v += s[(threadIdx.x+k)%64]; "
        "__syncthreads(); } while (k < n); d[blockIdx.x*64+threadIdx.x] = v;",
    ),
}
# Reason and body.
REFUSED = (
    ("variable-kind", "n += threadIdx.x; int z(n); s[z] = 1; __syncthreads(); d[z] = n + s[1];"),
    ("variable-kind", "Counted g(d); s[0] = g.n; __syncthreads(); d[1] = g.n + s[0];"),
    (
        "variable-kind",
        "__align__(16) int f[4] = {n, (int)threadIdx.x}; s[f[1]] = 3; __syncthreads();"
        " d[f[1]] = s[1];",
    ),
    (
        "variable-kind",
        "{ __shared__ int q[64]; q[threadIdx.x] = n; } __syncthreads(); d[0] = s[1];",
    ),
    (
        "lambda-copy",
        "int v = threadIdx.x; auto f = [v](int x) { return x + v; }; v = n; s[f(0)] = f(1);"
        " __syncthreads(); d[v] = f(2) + s[1];",
    ),
    ("barrier-not-uniform", "if (threadIdx.x < n) { __syncthreads(); } d[0] = s[0];"),
    (
        "barrier-not-uniform",
        "for (int i = 0; i < 3; ++i) { if (s[i]) break; __syncthreads(); } d[0] = 1;",
    ),
    ("spin-wait", "volatile int* f = s; while (f[0] == 0) { } __syncthreads(); d[0] = s[0];"),
    ("active-mask", "s[threadIdx.x] = __activemask(); __syncthreads(); d[0] = s[0];"),
    ("named-barrier", "__barrier_sync(1); d[0] = s[0];"),
    ("unknown-call", "s[0] = mystery(n); __syncthreads(); d[0] = s[0];"),
)


def source(name: str) -> str:
    parameters, body = TRAPS[name]
    return f"{_HEAD}__global__ void k({parameters}) {{\n{body}\n}}\n"


@pytest.mark.parametrize("name", TRAPS)
def test_every_fold_is_equal(name: str, tmp_path: Path) -> None:
    parameters, _ = TRAPS[name]
    leaves = "any thread left" in name
    small = '{array = "int32", count = 2, fill = "random", min = 1, max = 9}'
    large = '{array = "int32", count = 200, fill = "random", min = 1, max = 50}'
    value = 70 if leaves else 5
    args = [
        (small if leaves and "in" in p.split("*")[1] else large)
        if "*" in p
        else f'{{scalar = "int32", value = {value}}}'
        for p in parameters.split(",")
    ]
    if "one array" in name:
        args[1] = "{same_as = 0}"
    launches = tmp_path / "launch.toml"
    launches.write_text(
        f"[kernel.k]\ngrid = [3, 1, 1]\nblock = [64, 1, 1]\nargs = [{', '.join(args)}]\n"
    )
    made = elasticize(source(name))
    (verdict,) = check.verify_elasticized(made, check.read_launches(launches))
    assert (verdict.verdict, verdict.reason) == ("equal", "")
    assert {"block/2", "block/3", "block/4"} <= {f.form for f in verdict.forms}


@pytest.mark.parametrize(("reason", "body"), REFUSED)
def test_what_can_not_be_split_is_refused(reason: str, body: str) -> None:
    text = f"{_HEAD}__global__ void k(int* d, int n) {{\n__shared__ int s[64];\n{body}\n}}\n"
    kernel = elasticize(text).kernel("k")
    block = kernel.block
    assert (block.ok, block.reason) == (False, reason), block.detail
    assert block.line > 0 and block.excerpt and not kernel.block_entries
