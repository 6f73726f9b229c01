"""What a source may use: text without a file, headers of CUDA and C, macros, own folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from miriam.compile import compile_cubin, compile_source, diagnostics
from miriam.errors import SourceError, UsageError

FILL = 'extern "C" __global__ void fill(float* x) { x[0] = VALUE; }\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRIAM_CACHE_DIR", str(tmp_path / "cache"))


def body(text: str, *headers: str) -> str:
    includes = "".join(f"#include <{header}>\n" for header in headers)
    return f'{includes}extern "C" __global__ void fill(float* x) {{\n{text}\n}}\n'


def test_text_compiles_as_the_file_that_it_stands_for(tmp_path: Path) -> None:
    (tmp_path / "value.cuh").write_text("#define VALUE 3\n")
    path = tmp_path / "kernel.cu"
    path.write_text('#include "value.cuh"\n' + FILL)
    from_text = compile_source(path.read_text(), str(path), ["fill"], "sm_90")
    assert from_text == compile_cubin(path, ["fill"], "sm_90")


def test_an_error_in_text_names_the_file_that_it_stands_for() -> None:
    with pytest.raises(SourceError) as caught:
        compile_source(FILL, "folder/kernel.cu", ["fill"], "sm_90")
    assert (caught.value.path, caught.value.line) == ("folder/kernel.cu", 1)


def test_macros_and_folders(tmp_path: Path) -> None:
    (tmp_path / "value.cuh").write_text("#define VALUE LEFT + RIGHT\n")
    made = compile_source(
        "#include <value.cuh>\n" + FILL,
        "kernel.cu",
        ["fill"],
        "sm_90",
        include_dirs=[tmp_path],
        defines=["LEFT=2", "RIGHT"],
    )
    same = compile_source(FILL, "kernel.cu", ["fill"], "sm_90", defines=["VALUE=3"])
    assert made.cubin == same.cubin


def test_bytes_that_are_no_utf8_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cu"
    path.write_bytes(b'// caf\xe9\n__constant__ char c[] = "\xe9";\n' + FILL.encode())
    assert b"\xe9\0" in compile_cubin(path, ["fill"], "sm_90", defines=["VALUE=c[0]"]).cubin


@pytest.mark.parametrize("define", ["", "3X", "X Y", "-DX"])
def test_a_define_is_a_macro(define: str) -> None:
    with pytest.raises(UsageError, match="define: NAME or NAME=VALUE"):
        compile_source(FILL, "kernel.cu", ["fill"], "sm_90", defines=[define])


def test_an_include_folder_exists(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="include directory: an existing folder"):
        compile_source(FILL, "k.cu", ["fill"], "sm_90", include_dirs=[tmp_path / "none"])


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (("stdint.h",), "uint64_t n = UINT32_MAX; int8_t m = INT8_MIN; x[n] = m;"),
        (("cstdint", "cstddef"), "std::uint16_t n = 1; std::size_t m = n; x[m] = n;"),
        (("math.h",), "x[0] = sqrtf(x[1]) + INFINITY + M_PI + NAN; x[1] = isnan(x[0]);"),
        (("cmath",), "x[0] = std::sqrt(x[1]) + std::fmax(x[1], x[2]) + std::abs(x[3]);"),
        (("limits.h", "float.h"), "x[0] = INT_MAX + FLT_MAX + DBL_EPSILON + CHAR_BIT;"),
        (("climits", "cfloat"), "x[0] = UINT_MAX - FLT_EPSILON;"),
        (("stdio.h", "cassert"), 'assert(x[0] > 0); printf("%f", x[0]);'),
        (("cstdlib", "cstring"), "uint n = abs(-1); memset(x, 0, n);"),
        (("cuda.h", "cuda_runtime.h", "device_launch_parameters.h"), "x[threadIdx.x] = 1;"),
        (("cuda_fp16.h", "cuda_bf16.h", "stdint.h"), "__half2 h = __float2half2_rn(x[0]);"),
        (("type_traits", "utility"), "x[0] = std::is_same<float, int>::value;"),
        (("limits",), "x[0] = std::numeric_limits<float>::max();"),
        (("algorithm",), "x[0] = std::max(x[1], std::min(x[2], x[3])); std::swap(x[1], x[2]);"),
        (("iostream", "sys/time.h", "nvtx3/nvToolsExt.h"), "x[0] = 1;"),  # the host's, empty here
        (("cublas_v2.h",), "x[0] = __nv_bfloat16(1); x[1] = __half(2);"),  # brings in types
        (("cublasLt.h",), "x[0] = cuCrealf(make_cuFloatComplex(1, 2));"),
        (("mma.h",), "using namespace nvcuda;"),
        ((), "x[0] = INFINITY + std::exp(x[0]); uint n = 1;"),  # nvcc shows these unasked
    ],
)
def test_headers(headers: tuple[str, ...], text: str) -> None:
    assert compile_source(body(text, *headers), "kernel.cu", ["fill"], "sm_87").cubin


def test_cooperative_groups_beside_the_headers_of_c() -> None:
    text = body(
        "auto block = cooperative_groups::this_thread_block(); block.sync();\n"
        "x[block.thread_rank()] = INFINITY + std::uint64_t(1);",
        *("cstdint", "cmath", "climits", "cooperative_groups.h", "cooperative_groups/reduce.h"),
    )
    made = compile_source(text, "kernel.cu", ["fill"], "sm_90")
    assert made.log == ""


def test_infinity_is_a_constant_expression() -> None:
    text = "constexpr float kMost = -INFINITY;\n" + FILL
    assert compile_source(text, "kernel.cu", ["fill"], "sm_75", defines=["VALUE=kMost"]).cubin


def test_without_cudas_headers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "cuda_folders", lambda: ())
    with pytest.raises(SourceError, match=r"headers are not installed: pip install miriam-gpu\[cu"):
        compile_source("#include <none.h>\n", "kernel.cu", ["fill"], "sm_90")


def test_a_header_of_the_users_comes_before_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "time.h").write_text("#define VALUE 1\n")
    text = "#include <time.h>\n" + FILL
    assert compile_source(text, "kernel.cu", ["fill"], "sm_90", include_dirs=[tmp_path]).cubin
