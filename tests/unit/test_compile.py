"""Compiling CUDA C++ to cubins: resources, names, and what a wrong source says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from miriam.compile import compile_cubin, supported_archs
from miriam.errors import MissingCapabilityError, SourceError, UnknownNameError, UsageError

HEADER = "__device__ float twice(float x) { return 2 * x; }\n"
SOURCE = """\
#include "twice.cuh"
template <int N, class T> __global__ void sum(T* x) {
  __shared__ T tile[N];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = twice(tile[N - 1 - threadIdx.x]);
}
extern "C" __global__ void plain(float* x) { x[threadIdx.x] = 1.0f; }
extern "C" __global__ void dynamic(float* x) {
  extern __shared__ float buffer[];
  buffer[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = buffer[0];
}
extern "C" __global__ void contracts(float* x) { x[0] = x[0] * x[1] + x[2]; }
__device__ float weights[4];
"""
SPILLS = """\
extern "C" __global__ void spills(float* x) {
  float kept[300];
#pragma unroll
  for (int i = 0; i < 300; ++i) kept[i] = x[i * blockDim.x + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 300; ++i) x[i * blockDim.x + threadIdx.x] = kept[299 - i] * kept[i];
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRIAM_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "twice.cuh").write_text(HEADER)
    path = tmp_path / "kernels.cu"
    path.write_text(SOURCE)
    return path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "written.cu"
    path.write_text(text)
    return path


@pytest.mark.parametrize("arch", ["sm_75", "sm_87", "sm_90", "sm_110"])
def test_resources_are_read_back(source: Path, arch: str) -> None:
    compiled = compile_cubin(source, ["sum<300, float>", "plain", "dynamic"], arch)
    assert compiled.cubin[:4] == b"\x7fELF"
    assert compiled.lowered["plain"] == "plain"
    assert compiled.lowered["sum<300, float>"].startswith("_Z3sumILi300EfE")
    tiled, plain = compiled.resources["sum<300, float>"], compiled.resources["plain"]
    assert tiled.static_shared_bytes == 1200
    assert plain.static_shared_bytes == 0
    assert compiled.resources["dynamic"].static_shared_bytes == 0
    assert 0 < plain.registers <= tiled.registers < 64
    assert tiled.local_bytes == plain.local_bytes == 0


def test_spills_are_local_bytes(tmp_path: Path) -> None:
    found = compile_cubin(written(tmp_path, SPILLS), ["spills"], "sm_90").resources["spills"]
    assert found.registers == 255
    assert found.local_bytes > 0


def test_fmad_is_off_unless_asked_for(source: Path) -> None:
    apart = compile_cubin(source, ["contracts"], "sm_90")
    assert apart.cubin == compile_cubin(source, ["contracts"], "sm_90", fmad=False).cubin
    assert apart.cubin != compile_cubin(source, ["contracts"], "sm_90", fmad=True).cubin


def test_warnings_are_in_the_log(tmp_path: Path) -> None:
    path = written(tmp_path, 'extern "C" __global__ void k() { int unused; }')
    assert '"unused" was declared but never referenced' in compile_cubin(path, ["k"], "sm_75").log


def test_error_has_line_message_and_caret(tmp_path: Path) -> None:
    path = written(tmp_path, 'extern "C" __global__ void k(float* x) {\n  x[0] = nope;\n}\n')
    with pytest.raises(SourceError) as caught:
        compile_cubin(path, ["k"], "sm_90")
    error = caught.value
    assert (error.path, error.line) == (str(path), 2)
    first, excerpt, caret = str(error).splitlines()
    assert first == f'{path}:2: identifier "nope" is undefined'
    assert excerpt[caret.index("^")] == "n"


def test_error_in_an_include_names_the_include(source: Path) -> None:
    header = source.with_name("twice.cuh")
    header.write_text("\n" + HEADER.replace("2 * x", "y"))
    with pytest.raises(SourceError) as caught:
        compile_cubin(source, ["plain"], "sm_90")
    assert (caught.value.path, caught.value.line) == (str(header), 2)


def test_a_missing_header_says_what_to_do(tmp_path: Path) -> None:
    path = written(tmp_path, "#include <opencv.hpp>\n")
    with pytest.raises(SourceError, match=r"written.cu:1: .*opencv.hpp.*name its folder"):
        compile_cubin(path, ["k"], "sm_90")


def test_too_much_shared_memory_points_at_the_kernel(tmp_path: Path) -> None:
    path = written(tmp_path, SOURCE.replace('#include "twice.cuh"', HEADER))
    with pytest.raises(SourceError, match="too much shared data") as caught:
        compile_cubin(path, ["plain", "sum<20000, float>"], "sm_90")
    assert caught.value.line == 3


@pytest.mark.parametrize("name", ["nix<3>", "&weights", "weights"])
def test_a_name_that_is_no_kernel(source: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"kernel name in .*got '{name}'"):
        compile_cubin(source, ["plain", name], "sm_90")


def test_unknown_arch_lists_the_known() -> None:
    with pytest.raises(UnknownNameError) as caught:
        compile_cubin(Path(__file__), ["k"], "sm_72")
    assert caught.value.known == tuple(sorted(supported_archs()))
    assert "sm_87" in str(caught.value)


def test_unreadable_source(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"source: a readable file \(No such file"):
        compile_cubin(tmp_path / "none.cu", ["k"], "sm_90")


def test_no_names(source: Path) -> None:
    with pytest.raises(UsageError, match="kernel names: at least one"):
        compile_cubin(source, [], "sm_90")


@pytest.mark.parametrize(
    ("module", "text"),
    [("cuda.bindings", "cuda-bindings is not"), ("elftools.elf.elffile", "pyelftools is not")],
)
def test_missing_extra(
    source: Path, monkeypatch: pytest.MonkeyPatch, module: str, text: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingCapabilityError, match=rf"{text}.*pip install miriam-gpu\[cuda\]"):
        compile_cubin(source, ["plain"], "sm_90")


def test_missing_library(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.bindings import nvrtc

    def absent() -> None:
        raise RuntimeError("Failure finding nvrtc")

    monkeypatch.setattr(nvrtc, "nvrtcVersion", absent)
    with pytest.raises(MissingCapabilityError, match="libnvrtc was not found"):
        compile_cubin(source, ["plain"], "sm_90")
