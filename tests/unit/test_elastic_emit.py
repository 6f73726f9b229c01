"""The emitted text: golden files, names, what it carries along, and that it compiles."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from miriam.compile import compile_cubin
from miriam.devices.host.build import Builder
from miriam.elastic import ElasticKernel, elasticize
from miriam.elastic.cuda.emit import BLOCK_HEADER, HEADER
from miriam.errors import UnknownNameError

GOLDEN = Path(__file__).parents[1] / "golden" / "elastic"
NETWORKS = Path(__file__).parents[2] / "miriam" / "models" / "cuda"
NAMES = {
    "conv": ("conv2d<3, 1, 64, 64, 8, true>", "conv2d<1, 2, 32, 32, 4, false>"),
    "dense": ("dense<1>", "dense<2>"),
    "pointwise": ("relu_in_place", "local_response_norm<5>", "softmax_in_place"),
    "pool": ("max_pool<3, 2>", "average_pool<3, 2>", "global_average_pool"),
    "recurrent": ("gru_cell", "lstm_cell"),
}
GOLDEN_NAMES = {
    "saxpy": ("saxpy",),
    "helpers": ("grid::fill<float, 2>",),
    "barriers": ("reverse", "rows"),
}


def entries(kernel: ElasticKernel, name: str) -> list[str]:
    return [kernel.entry(form, name) for form in kernel.entries]


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_the_emitted_text_is_the_golden_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    text = elasticize(Path(f"{name}.in.cu")).source
    # The headers are the same in all: only what follows them is kept.
    got = text.replace(HEADER.read_text(), '#include "miriam_elastic.h"\n')
    got = got.replace(BLOCK_HEADER.read_text(), '#include "miriam_block.h"\n')
    golden = GOLDEN / f"{name}.out.cu"

    assert got == golden.read_text()


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_golden_files_compile(name: str, arch: str, tmp_path: Path) -> None:
    made = elasticize(GOLDEN / f"{name}.in.cu", arch=arch)
    path = tmp_path / "out.cu"
    path.write_text(made.source)
    wanted = [e for n in GOLDEN_NAMES[name] for e in entries(made.kernel(n), n)]
    assert set(compile_cubin(path, wanted, arch).resources) == set(wanted)


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_golden_files_compile_after_their_original(name: str, tmp_path: Path) -> None:
    original = GOLDEN / f"{name}.in.cu"
    made = elasticize(original)
    path = tmp_path / "both.cu"
    path.write_text(f"{original.read_text()}\n#define MIRIAM_HAVE_ORIGINALS\n{made.source}")
    names = GOLDEN_NAMES[name]
    wanted = [*names, *(e for n in names for e in entries(made.kernel(n), n))]
    assert compile_cubin(path, wanted, "sm_87").resources


@pytest.mark.parametrize("name", NAMES)
def test_the_networks_become_elastic_for_gpu_and_host(name: str, tmp_path: Path) -> None:
    made = elasticize(NETWORKS / f"{name}.cu")
    assert all(k.grid.ok and k.yields.ok for k in made.kernels)
    path = tmp_path / "out.cu"
    path.write_text(made.source)
    wanted = [e for n in NAMES[name] for e in entries(made.kernel(n), n)]
    growth = []
    for arch in ("sm_75", "sm_90"):
        original = compile_cubin(NETWORKS / f"{name}.cu", NAMES[name], arch).resources
        elastic = compile_cubin(path, wanted, arch).resources
        for each in NAMES[name]:
            for entry in entries(made.kernel(each), each):
                assert elastic[entry].local_bytes <= original[each].local_bytes
                growth.append(elastic[entry].registers - original[each].registers)
    assert median(growth) <= 4
    assert max(growth) <= 16
    Builder(tmp_path / "cache").kernels(path, wanted[:3])


def test_each_kernel_carries_only_what_it_reaches() -> None:
    made = elasticize(
        "#include <cstdio>\nstruct A { int a; };\nstruct B { int b; };\n"
        "__device__ int f(A x) { return x.a; }\n__constant__ int table[3];\nint host = 3;\n"
        "__global__ void j(int* p) { A x{1}; p[0] = f(x); }\n"
        "__global__ void k(int* p, B x) { p[0] = x.b + table[1]; }\n"
        'int main() { printf("%d", host); return 0; }\n'
    )
    j, k = made.kernel("j").source, made.kernel("k").source
    assert ("struct A" in j, "struct B" in j, "f(A x)" in j, "table[3]" in j) == (1, 0, 1, 0)
    assert ("struct A" in k, "struct B" in k, "f(A x)" in k, "table[3]" in k) == (0, 1, 0, 1)
    headers = (HEADER.read_text(), BLOCK_HEADER.read_text())
    assert "host" not in made.source.replace(headers[0], "").replace(headers[1], "")
    assert "#include <cstdio>" not in made.source


def test_template_arguments_given_in_the_file_come_along() -> None:
    made = elasticize(
        "struct Add { __device__ int operator()(int a) const { return a + 1; } };\n"
        "struct Other { int a; };\n"
        "template <class F> __global__ void k(int* p, F f) { p[blockIdx.x] = f(p[0]); }\n"
        "template <class F> void launch(int* p, F f) { k<F><<<1, 1>>>(p, f); }\n"
        "void run(int* p) { launch<Add>(p, Add()); }\n"
    )
    assert "struct Add" in made.source
    assert "struct Other" not in made.source


def test_names_of_entries_and_instances() -> None:
    made = elasticize(
        "namespace n { template <int N> __global__ void k(int* p) { p[blockIdx.x] = N; } }\n"
    )
    kernel = made.kernel("k<4>")
    assert (kernel.name, kernel.template) == ("n::k", ("N",))
    assert kernel.entries == {
        "slice": "n::k__slice",
        "persistent": "n::k__persistent",
        "yield": "n::k__yield",
    }
    assert kernel.entry("yield", "n::k<4>") == "n::k__yield<4>"
    with pytest.raises(UnknownNameError, match="persistent, slice, yield"):
        kernel.entry("block")
    with pytest.raises(UnknownNameError, match="known: n::k"):
        made.kernel("j")


def test_a_barrier_stands_between_blocks_only_where_it_is_needed() -> None:
    made = elasticize(
        "__global__ void plain(int* p) { p[blockIdx.x] = 1; }\n"
        "__global__ void shared(int* p) { __shared__ int s; s = 1; p[blockIdx.x] = s; }\n"
        "__global__ void warp(int* p) { p[0] = __shfl_xor_sync(~0u, p[1], 1); }\n"
    )
    loops = {k.name: k.source.partition("__persistent(")[2] for k in made.kernels}
    found = {n: "__syncthreads" in t.partition("__yield(")[0] for n, t in loops.items()}
    assert found == {"plain": False, "shared": True, "warp": True}
    assert [k.has_shared for k in made.kernels] == [False, True, False]
