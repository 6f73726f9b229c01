"""What users feed the generator: files, includes, macros, architectures, and nonsense."""

from __future__ import annotations

import codecs
from importlib import import_module
from pathlib import Path

import pytest

import miriam
from miriam.errors import SourceError, UnknownNameError, UsageError

KERNEL = "__global__ void k(int* a) { a[blockIdx.x] = 1; }\n"


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("__global__ void k(int* a) {\n  if (a[0] { a[1] = 2;\n", 2, "not CUDA C++"),
        ("def f(x):\n    return x + 1\nclass A: pass\n", None, "not CUDA C++"),
        ("int main(void) { return 0; }\n", 1, "no __global__ function"),
        ("\n", 1, "no __global__ function"),
        ("\n#error not here\n" + KERNEL, 2, "#error not here"),
        ("#if 1\n" + KERNEL, 1, "Unterminated #if 1\n    #if 1\n    "),
        ("#if (\n" + KERNEL + "#endif\n", 1, "kernel.cu:1:1: this condition is not understood"),
        (KERNEL + "\0", 2, "not text"),
    ],
)
def test_nonsense_is_an_error_with_a_position(source: str, line: int | None, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        miriam.elasticize(source)
    assert line is None or caught.value.line == line


def test_an_error_shows_column_and_caret() -> None:
    with pytest.raises(SourceError) as caught:
        miriam.elasticize("__global__ void k(int* a) {\n  if (a[0] { a[1] = 2;\n")
    first, excerpt, caret = str(caught.value).split("\n")
    assert first.startswith(f"kernel.cu:2:{caught.value.column}: ")
    assert excerpt[caret.index("^")] == excerpt[3 + caught.value.column]


def test_of_a_long_line_the_part_with_the_fault_is_shown() -> None:
    kernel = KERNEL.replace("1; }", "1" + " + 1" * 500 + "; int b = ; }")
    with pytest.raises(SourceError) as caught:
        miriam.elasticize(kernel.replace("__global__ void k(int* a)", "void f(int* a)"))
    _, excerpt, caret = str(caught.value).split("\n")
    assert len(excerpt) <= 204
    assert excerpt[: caret.index("^")].endswith(" + 1; int b ")


def test_a_mark_of_byte_order_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "marked.cu"
    path.write_bytes(codecs.BOM_UTF8 + b'#include "index.cuh"\n' + KERNEL.encode())
    (tmp_path / "index.cuh").write_bytes(codecs.BOM_UTF8 + b"#define N 3\n")
    made = miriam.elasticize(path)
    assert made.kernel("k").grid.ok
    assert "\ufeff" not in made.source + made.original


def test_a_macro_that_explodes_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("miriam.elastic.cuda.preprocess")
    monkeypatch.setattr(module, "_SECONDS", 1)
    bomb = "#define A0 x+x\n" + "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, 40))
    with pytest.raises(SourceError, match="does a macro explode"):
        miriam.elasticize(bomb + "__global__ void k(int* a) { a[0] = A39; }\n")


def test_a_file_that_includes_itself_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "self.cu"
    path.write_text('#include "self.cu"\n' + KERNEL)
    with pytest.raises(SourceError, match="too deeply"):
        miriam.elasticize(path)


def test_what_is_not_utf_8_may_stand_in_comments_only(tmp_path: Path) -> None:
    path = tmp_path / "latin.cu"
    path.write_bytes(KERNEL.encode() + b"// caf\xe9\n")
    assert miriam.elasticize(path).kernel("k").grid.ok
    path.write_bytes(KERNEL.encode() + b"int caf\xe9;\n")
    with pytest.raises(SourceError, match="UTF-8") as caught:
        miriam.elasticize(path)
    assert caught.value.line == 2


def test_unreadable_files_and_unknown_kernels_are_usage_errors(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.cu"):
        with pytest.raises(UsageError, match="readable file"):
            miriam.elasticize(path)
    with pytest.raises(UsageError, match="a file whose name is UTF-8"):
        miriam.elasticize(tmp_path / "caf\udce9.cu")
    with pytest.raises(UsageError, match="include directory: an existing folder"):
        miriam.elasticize(KERNEL, include_dirs=[tmp_path / "none"])
    with pytest.raises(UnknownNameError, match="known: k"):
        miriam.elasticize(KERNEL, kernels=["kk"])
    with pytest.raises(UsageError, match="sm_87"):
        miriam.elasticize(KERNEL, arch="compute_87")


def test_one_broken_kernel_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "two.cu"
    path.write_text("__global__ void j(int* a { a[0] = 1; }\n" + KERNEL)
    made = miriam.elasticize(path)
    assert [(k.name, k.grid.reason) for k in made.kernels] == [("j", "parse-error"), ("k", "")]


def test_includes_macros_and_conditions_are_resolved_for_the_architecture(tmp_path: Path) -> None:
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "index.cuh").write_text(
        "#pragma once\n#if __CUDA_ARCH__ >= 900\n#define STEP 9\n"
        "#else\n#define STEP FIRST\n#endif\n"
        "__device__ int at() { return blockIdx.x * STEP; }\n"
    )
    path = tmp_path / "k.cu"
    path.write_text('#include "index.cuh"\n__global__ void k(int* a) { a[at()] = 1; }\n')
    old = miriam.elasticize(path, arch="sm_75", include_dirs=[folder], defines={"FIRST": "7"})
    new = miriam.elasticize(path, arch="sm_90", include_dirs=[folder])
    assert "blockIdx.x * 7" in old.source
    assert "blockIdx.x * 9" in new.source
    assert f'#line 7 "{folder / "index.cuh"}"' in new.source


def test_positions_are_those_of_the_users_file(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(
        "#define WAIT(f) \\\n  while (*f == 0) {}\n// a comment\n\n"
        "__global__ void k(int* f) {\n  // waits\n  WAIT(f);\n}\n"
    )
    kernel = miriam.elasticize(path).kernel("k")
    assert (kernel.path, kernel.line) == (str(path), 5)
    assert (kernel.grid.reason, kernel.grid.line) == ("spin-wait", 7)
    assert "WAIT(f);" in kernel.grid.excerpt
