"""``miriam elasticize``, ``verify`` and ``coverage``: JSON, exit codes, files, messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from miriam.check import survey
from miriam.cli import main
from miriam.compile import FormSet, compile_forms
from miriam.errors import MissingCapabilityError

TWO = """\
#include "shape.h"
__global__ void fine(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= kScale;
}

__global__ void odd(int* x) {
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x[0]));
}
"""
LAUNCH = """\
[kernel.fine]
grid = [3, 1, 1]
block = [32, 1, 1]
args = [{array = "float32", count = 90, fill = "random"}, {scalar = "int32", value = 90}]
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line; exit code, standard output, standard error."""

    def command(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["miriam", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return code or 0, *capsys.readouterr()

    return command


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "two.cu"
    path.write_text(TWO)
    (tmp_path / "shape.h").write_text("constexpr float kScale = 3.0f;\n")
    return path


def test_the_report_has_verdicts_and_resources(run: Run, source: Path) -> None:
    code, out, _ = run("elasticize", source, "--arch", "sm_87,sm_90", "--json", "-")
    report = json.loads(out)
    assert (code, report["schema"]) == (0, "miriam.elasticize/1")
    fine, odd = report["kernels"]
    assert (fine["name"], fine["line"]) == ("fine", 2)
    assert fine["grid"]["ok"] and fine["yield"]["ok"] and fine["grid"]["reason"] is None
    assert (fine["block"]["ok"], fine["block"]["reason"]) == (True, None)
    assert set(fine["block"]["resources"]) == set(fine["block"]["fmad"]) == {"sm_87", "sm_90"}
    for arch, folds in fine["block"]["resources"].items():
        assert set(folds) == {"1", "2", "4"}
        assert folds["1"] == fine["resources"][arch]["yield"]
        assert folds["2"]["registers"] > 0 and folds["4"]["spill_bytes"] == 0
    assert set(fine["resources"]) == {"sm_87", "sm_90"}
    for forms in fine["resources"].values():
        assert {"original", "slice", "persistent", "yield"} == set(forms)
        assert set(forms["persistent"]) == {"registers", "shared_bytes", "spill_bytes"}
        assert forms["original"]["registers"] > 0
    assert (odd["grid"]["ok"], odd["grid"]["reason"]) == (False, "inline-assembly")
    assert (odd["grid"]["line"], odd["resources"]) == (8, None)


def test_the_table_shows_a_refusal_with_its_place_and_a_caret(run: Run, source: Path) -> None:
    code, out, _ = run("elasticize", source)
    assert code == 0
    assert f"{source}:8:3: odd refused: inline-assembly: %ctaid in inline assembly\n" in out
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if "asm volatile" in line)
    assert lines[at + 1].index("^") == lines[at].index("asm")


def test_a_refused_block_axis_is_told_beside_an_elastic_grid(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "mask.cu"
    source.write_text("__global__ void mask(int* x) { x[threadIdx.x] = __activemask(); }\n")
    code, out, _ = run("elasticize", source, "--json", tmp_path / "report.json")
    assert code == 0
    assert f"{source}:1:49: mask block refused: active-mask: " in out
    (mask,) = json.loads((tmp_path / "report.json").read_text())["kernels"]
    assert mask["grid"]["ok"] and (mask["block"]["ok"], mask["block"]["resources"]) == (False, None)
    assert run("elasticize", source, "--assert")[0] == 0


def test_a_refusal_is_1_only_with_assert(run: Run, source: Path) -> None:
    code, _, err = run("elasticize", source, "--assert")
    assert (code, err) == (1, "error: refused: odd\n")
    assert run("elasticize", source, "--assert", "--kernel", "fine")[0] == 0


def test_syntax_that_is_not_understood_is_1(run: Run, source: Path) -> None:
    source.write_text("__global__ void k(int* x) { x[0] = (1 + ; }\n")
    code, out, err = run("elasticize", source)
    assert (code, err) == (1, "error: syntax not understood in k\n")
    assert f"{source}:1:34: k refused: parse-error" in out


def test_the_output_is_the_elastic_source(run: Run, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "elastic.cu"
    assert run("elasticize", source, "-o", out)[0] == 0
    text = out.read_text()
    assert "fine__yield" in text and "struct MiriamLaunch" in text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elastic.cu", "shape.h", "two.cu"]


def test_a_source_error_leaves_an_old_output_alone(run: Run, tmp_path: Path) -> None:
    broken, out = tmp_path / "broken.cu", tmp_path / "out.cu"
    broken.write_text("#if 1\n__global__ void k(int* x) { x[0] = 1; }\n")
    out.write_text("old")
    code, _, err = run("elasticize", broken, "-o", out)
    assert code == 1
    assert err.startswith(f"error: {broken}:1:")
    assert out.read_text() == "old"


@pytest.mark.parametrize("option", ["-o", "--json"])
def test_the_source_is_never_overwritten(run: Run, source: Path, option: str) -> None:
    code, _, said = run("elasticize", source, option, source.parent / "." / source.name)
    assert (code, source.read_text()) == (2, TWO)
    assert f"{option}: another file than what is read" in said


def test_nothing_elastic_means_nothing_written(run: Run, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.cu"
    code, _, err = run("elasticize", source, "--kernel", "odd", "-o", out)
    assert (code, err) == (1, f"error: -o {out}: nothing to write, no kernel became elastic\n")
    assert not out.exists()


def test_a_text_that_depends_on_the_architecture_needs_one(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "archs.cu"
    source.write_text(
        "__global__ void k(int* x) {\n#if __CUDA_ARCH__ >= 900\n  x[0] = 1;\n#else\n  x[0] = 2;\n"
        "#endif\n}\n"
    )
    code, _, err = run("elasticize", source, "--arch", "sm_87,sm_90", "-o", tmp_path / "out.cu")
    assert code == 2
    assert err.startswith("error: -o: one --arch, because the text depends on it, got")
    code, out, _ = run("elasticize", source, "--arch", "sm_90", "-o", "-")
    assert (code, "x[0] = 1;" in out, "x[0] = 2;" in out) == (0, True, False)


def test_macros_and_include_folders(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "deep.h").write_text("#define SIZE (N + 1)\n")
    source = tmp_path / "k.cu"
    source.write_text('#include "deep.h"\n__global__ void k(int* x) { x[SIZE] = FLAG; }\n')
    code, out, _ = run("elasticize", source, "-I", folder, "-D", "N=41", "-D", "FLAG", "-o", "-")
    assert (code, "x[(41 + 1)] = 1;" in out) == (0, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", "fin"], "error: kernel: unknown name, got 'fin'; did you mean 'fine'?"),
        (["--arch", "sm_1"], "error: --arch: unknown name, got 'sm_1'"),
        (["-D", "1x=2"], "error: -D: NAME or NAME=VALUE, got '1x=2'"),
        (["-o", "-", "--json", "-"], "error: -o: not standard output when --json is, got '-'"),
        (["-o", "/no/such/folder/x.cu"], "error: -o: a file in a folder that exists"),
    ],
)
def test_usage_errors_are_2(run: Run, source: Path, options: list[str], message: str) -> None:
    code, _, err = run("elasticize", source, *options)
    assert code == 2
    assert err.startswith(message)


def test_a_file_that_is_not_there_is_2(run: Run, tmp_path: Path) -> None:
    for command in (["elasticize"], ["coverage"]):
        code, _, err = run(*command, tmp_path / "none.cu")
        assert code == 2
        assert "none.cu" in err


def test_without_the_compiler_resources_are_null_and_a_note_says_so(
    run: Run, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> tuple[str, ...]:
        raise MissingCapabilityError("compile", "NVRTC is absent", "pip install miriam-gpu[cuda]")

    monkeypatch.setattr(survey, "supported_archs", absent)
    code, out, _ = run("elasticize", source, "--json", "-")
    fine = json.loads(out)["kernels"][0]
    assert (code, fine["resources"]) == (0, None)
    assert fine["notes"] == ["no resources: compile: NVRTC is absent; pip install miriam-gpu[cuda]"]


def test_coverage_counts_each_kernel_once(run: Run, source: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.cuh").write_text("__global__ void h(int* x) { x[blockIdx.x] = 1; }\n")
    for name in ("a.cu", "b.cu"):
        (tmp_path / name).write_text('#include "shared.cuh"\n')
    (tmp_path / "host.cu").write_text("int main() { return 0; }\n")
    (tmp_path / "broken.cu").write_bytes(b"#if 1\n\xff\xfe __global__\n")
    code, out, err = run("coverage", tmp_path, "--json", "-")
    report = json.loads(out)
    assert (code, report["schema"]) == (0, "miriam.coverage/1")
    assert (report["files"], report["kernels"]) == (6, 3)
    assert (report["grid_ok"], report["block_ok"], report["yield_ok"]) == (2, 2, 2)
    assert report["reasons"] == {"inline-assembly": 1}
    assert report["compiled"] is None
    assert [e["path"] for e in report["errors"]] == [str(tmp_path / "broken.cu")]
    assert "inline-assembly: 1" in err


def test_coverage_compiles_for_the_architectures_that_are_named(run: Run, source: Path) -> None:
    code, out, _ = run("coverage", source.parent, "--arch", "sm_90", "--json", "-")
    compiled = json.loads(out)["compiled"]
    assert (code, set(compiled)) == (0, {"sm_90"})
    assert (compiled["sm_90"]["compiled"], compiled["sm_90"]["not_compiled"]) == (1, 0)
    assert compiled["sm_90"]["spills"] == 0


def test_coverage_compiles_a_kernel_in_a_header_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared.cuh").write_text(
        "__global__ void h(int* x) { x[blockIdx.x] = 1; }\n"
        "template <int N> __global__ void t(int* x) { x[blockIdx.x] = N; }\n"
    )
    include = '#include "shared.cuh"\n'
    (tmp_path / "a.cu").write_text(include)
    (tmp_path / "b.cu").write_text(include + "void run(int* x) { t<3><<<1, 1>>>(x); }\n")
    (tmp_path / "c.cu").write_text(include)
    compiled: list[tuple[str, int]] = []

    def spy(sets: Sequence[FormSet], arch: str) -> object:
        compiled.extend((s.original.kernel, len(s.forms)) for s in sets)
        return compile_forms(sets, arch)

    monkeypatch.setattr(survey, "compile_forms", spy)
    code, out, _ = run("coverage", tmp_path, "--arch", "sm_90", "--json", "-")
    grid, with_folds = 3, 5
    once = [(name, forms) for name in ("h", "t<3>") for forms in (grid, with_folds)]
    assert (code, sorted(compiled)) == (0, once)
    assert json.loads(out)["compiled"]["sm_90"]["compiled"] == 2


def test_coverage_fails_on_refusals_only_with_assert(run: Run, source: Path) -> None:
    code, _, err = run("coverage", source.parent, "--assert")
    assert (code, err) == (1, "error: 1 kernels refused, 0 files with errors\n")


def test_verify_writes_its_verdicts(run: Run, source: Path, tmp_path: Path) -> None:
    launches = tmp_path / "launch.toml"
    launches.write_text(LAUNCH)
    code, out, err = run("verify", source, launches, "--json", "-")
    report = json.loads(out)
    assert (code, report["schema"]) == (0, "miriam.verify/1")
    (kernel,) = report["kernels"]
    assert (kernel["name"], kernel["verdict"]) == ("fine", "equal")
    assert all(f["equal"] for f in kernel["forms"])
    assert [(f["form"], f["equal"]) for f in kernel["forms"]][:5] == [
        ("slice", True),
        ("persistent/1", True),
        ("persistent/3", True),
        ("persistent/many", True),
        ("yield", True),
    ]
    assert "fine" in err


def test_verify_never_overwrites_what_it_reads(run: Run, source: Path, tmp_path: Path) -> None:
    launches = tmp_path / "launch.toml"
    launches.write_text(LAUNCH)
    for target in (source, launches):
        assert run("verify", source, launches, "--json", target)[0] == 2
    assert (source.read_text(), launches.read_text()) == (TWO, LAUNCH)


def test_verify_exits_1_for_what_is_not_equal(run: Run, source: Path, tmp_path: Path) -> None:
    launches = tmp_path / "launch.toml"
    launches.write_text(LAUNCH.replace("value = 90", "value = 0"))
    code, out, err = run("verify", source, launches)
    assert (code, err) == (1, "error: fine is vacuous\n")
    assert "fine: the original changes no byte of its arrays" in out


def test_verify_takes_a_refusal_unless_told_otherwise(
    run: Run, source: Path, tmp_path: Path
) -> None:
    launches = tmp_path / "launch.toml"
    launches.write_text(
        '[kernel.odd]\ngrid = [1, 1, 1]\nblock = [1, 1, 1]\nargs = [{array = "int32", count = 1}]\n'
    )
    assert run("verify", source, launches)[0] == 0
    code, _, err = run("verify", source, launches, "--assert")
    assert (code, err) == (1, "error: odd is refused\n")


def test_verify_without_gpp_is_3(
    run: Run, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = tmp_path / "launch.toml"
    launches.write_text(LAUNCH)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = run("verify", source, launches)
    assert code == 3
    assert "there is no g++ on the PATH" in err
