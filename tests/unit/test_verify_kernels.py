"""Verify: equal means equal, and whatever must not be called so is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import miriam
from miriam import check
from miriam.check.forms import FORMS
from miriam.elastic import Elasticized
from miriam.elastic.cuda import forms
from miriam.errors import SourceError, UnknownNameError, UsageError

KERNELS = Path(__file__).parent.parent / "kernels"
SOURCE, LAUNCHES = KERNELS / "verify.cu", KERNELS / "verify.toml"


@pytest.fixture(scope="module")
def verdicts() -> dict[str, miriam.KernelVerdict]:
    found = miriam.verify(SOURCE, LAUNCHES, seconds=3.0)
    return {v.name: v for v in found}


@pytest.mark.parametrize(
    "name",
    ["blur<4>", "add", "count_blocks", "scale", "sum_into_variable", "half", "zero_most", "same"],
)
def test_right_kernels_are_equal_in_every_form(
    verdicts: dict[str, miriam.KernelVerdict], name: str
) -> None:
    verdict = verdicts[name]
    assert (verdict.verdict, verdict.reason) == ("equal", "")
    grid_forms = [f.form for f in verdict.forms if not f.form.startswith("block")]
    assert grid_forms == list(FORMS)
    assert all(f.equal and not f.detail for f in verdict.forms)


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("nothing", "vacuous", "the original changes no byte of its arrays"),
        ("tickets", "nondeterministic", "blocks backwards: argument 1, element 0: 0 became 8"),
        ("beyond", "error", "original: a block wrote out of the bounds of argument 0"),
        ("far_beyond", "error", "invalid or misaligned memory access"),
        ("odd", "refused", "verify.cu:71: inline-assembly: %ctaid in inline assembly"),
        ("endless", "error", "no end after 3 s: a form hangs or is too slow"),
    ],
)
def test_other_verdicts_say_why(
    verdicts: dict[str, miriam.KernelVerdict], name: str, verdict: str, reason: str
) -> None:
    assert verdicts[name].verdict == verdict
    assert reason in verdicts[name].reason


def mutated(change: Callable[[str], str]) -> Elasticized:
    """The elastic kernels with ``change`` made to their text, as a wrong emitter would."""
    made = miriam.elasticize(SOURCE)
    source = change(made.source)
    assert source != made.source
    return replace(made, source=source)


def verdict_of(made: Elasticized, name: str) -> miriam.KernelVerdict:
    (launch,) = [x for x in check.read_launches(LAUNCHES) if x.name == name]
    (verdict,) = check.verify_elasticized(made, [launch], seconds=30.0)
    return verdict


def wrong_forms(verdict: miriam.KernelVerdict) -> list[str]:
    """The forms of the grid that differ."""
    return [f.form for f in verdict.forms if not f.equal and not f.form.startswith("block")]


def test_a_dropped_barrier_between_logical_blocks_is_caught() -> None:
    made = mutated(lambda text: text.replace(", n);\n    __syncthreads();", ", n);"))
    verdict = verdict_of(made, "blur<4>")
    assert verdict.verdict == "different"
    assert "persistent/1" in wrong_forms(verdict)
    assert "argument 1, element" in verdict.reason


def test_a_dropped_barrier_in_a_body_is_caught() -> None:
    made = mutated(lambda text: text.replace("  __syncthreads();\n  float sum", "  float sum"))
    verdict = verdict_of(made, "blur<4>")
    assert verdict.verdict == "different"
    assert wrong_forms(verdict) == list(FORMS)


def test_a_shifted_index_is_caught() -> None:
    made = mutated(lambda text: text.replace("miriam.start + blockIdx.x", "blockIdx.x"))
    verdict = verdict_of(made, "add")
    assert verdict.verdict == "different"
    assert wrong_forms(verdict) == ["slice"]
    assert verdict.reason.startswith("slice: argument 0, element ")


def test_a_claim_that_does_not_ask_the_quota_is_caught() -> None:
    made = mutated(lambda text: text.replace("blockIdx.x >= quota", "false"))
    verdict = verdict_of(made, "count_blocks")
    assert wrong_forms(verdict) == ["yield"]
    assert "claimed under a quota of 0" in verdict.reason


def test_a_claim_that_is_not_atomic_is_caught() -> None:
    made = mutated(
        lambda text: text.replace(
            "const unsigned next = atomicAdd(launch.counter, 1u);",
            "const unsigned next = blockIdx.x; atomicAdd(launch.counter, 1u);",
        )
    )
    assert verdict_of(made, "count_blocks").verdict == "different"


IDEMPOTENT = ("blur<4>", "same")


@pytest.mark.parametrize("name", IDEMPOTENT)
def test_a_block_that_runs_twice_shows_even_where_it_leaves_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    once = "{call}{end}"
    twice = forms.FORMS["persistent"].replace(once, f"{{{{{once}}}}}\n    {{{{{once}}}}}")
    monkeypatch.setattr(forms, "FORMS", {**forms.FORMS, "persistent": twice})
    verdict = verdict_of(miriam.elasticize(SOURCE), name)
    assert wrong_forms(verdict) == ["persistent/1", "persistent/3", "persistent/many"]
    assert verdict.reason == "persistent/1: logical block 0 ran 2 times"


@pytest.mark.parametrize("name", IDEMPOTENT)
def test_a_counter_that_is_not_clamped_shows_even_where_blocks_leave_the_same(name: str) -> None:
    """The first block that claims too late runs the number after the last.

    Blocks race: where the quota is cleared right after the last claim, nobody claims too late.
    """

    def change(text: str) -> str:
        text = text.replace("return launch.count;", "return 0xffffffffu;")
        text = text.replace("return next < launch.count ? next : launch.count;", "return next;")
        return text.replace("if (miriam_at >= miriam.count)", "if (miriam_at > miriam.count)")

    verdicts = (verdict_of(mutated(change), name) for _ in range(8))
    verdict = next(verdict for verdict in verdicts if wrong_forms(verdict))
    assert wrong_forms(verdict) == ["yield"]
    assert re.search(r"yield: logical block \d+ ran( 2 times|, of)", verdict.reason)


def test_a_block_that_is_left_out_shows_even_where_it_writes_what_was_there() -> None:
    made = mutated(
        lambda text: text.replace("miriam_at < miriam.count", "miriam_at + 1 < miriam.count")
    )
    verdict = verdict_of(made, "zero_most")
    assert set(wrong_forms(verdict)) == {"persistent/1", "persistent/3", "persistent/many"}
    assert "became nan" in verdict.reason


def test_a_variable_that_a_form_leaves_different_shows() -> None:
    made = mutated(lambda text: text.replace("atomicAdd(&total,", "atomicAdd(&total, 1 +"))
    verdict = verdict_of(made, "sum_into_variable")
    assert verdict.reason == "slice: a __device__ variable"


def test_a_kernel_that_hangs_is_blamed_wherever_it_stands(tmp_path: Path) -> None:
    source = tmp_path / "four.cu"
    good = "__global__ void {}(int* x) {{ x[threadIdx.x] = 3; }}\n"
    hangs = "__global__ void hangs(int* x) { while (x[0] < 1000) x[0] = 1; }\n"
    source.write_text(good.format("one") + hangs + good.format("two") + good.format("three"))
    names = ("one", "hangs", "two", "three")
    text = "".join(f"[kernel.{n}]\n{HEAD}args = [{ARRAY}]\n" for n in names)
    found = miriam.verify(source, launch_file(tmp_path, text), seconds=6.0)
    assert [(v.name, v.verdict) for v in found] == [
        ("one", "equal"),
        ("hangs", "error"),
        ("two", "equal"),
        ("three", "equal"),
    ]


@pytest.mark.parametrize("answer", ['{"name": "ad", "verdict": "equal"}', "{", r"\0377"])
def test_a_process_whose_memory_was_overwritten_is_not_believed(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    child.write_text(f"#!/bin/sh\nprintf '%b\\n' '{answer}'\n")
    child.chmod(0o755)
    made = miriam.elasticize(SOURCE)
    monkeypatch.setattr("sys.executable", str(child))
    verdict = verdict_of(made, "add")
    assert (verdict.name, verdict.verdict) == ("add", "error")
    assert "answered nonsense" in verdict.reason


def launch_file(folder: Path, text: str) -> Path:
    path = folder / "launch.toml"
    path.write_text(text)
    return path


HEAD = "grid = [1, 1, 1]\nblock = [8, 1, 1]\n"
ARRAY = '{array = "int32", count = 8, fill = "random"}'


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (ARRAY, ".args: as many as the kernel has parameters, 2, got 1"),
        (f"{ARRAY}, {ARRAY}", ".args[1]: an integer of 4 bytes, got 'an array'"),
        (f"{ARRAY}, {{scalar = 'int64', value = 1}}", ".args[1]: an integer of 4 bytes, got"),
        (f"{ARRAY}, {{scalar = 'float32', value = 1}}", ".args[1]: an integer of 4 bytes, got"),
        (f"{{scalar = 'uint64', value = 1}}, {ARRAY}", ".args[0]: a pointer of 8 bytes, got"),
    ],
)
def test_arguments_that_do_not_fit_the_kernel_are_named(
    tmp_path: Path, args: str, message: str
) -> None:
    path = launch_file(tmp_path, f"[kernel.nothing]\n{HEAD}args = [{args}]")
    with pytest.raises(UsageError) as caught:
        miriam.verify(SOURCE, path)
    assert str(caught.value).startswith(f"{path}: kernel.nothing{message}")


def test_a_kernel_that_is_not_in_the_file_is_named(tmp_path: Path) -> None:
    path = launch_file(tmp_path, f"[kernel.ad]\n{HEAD}args = []")
    with pytest.raises(UnknownNameError, match=r"kernel\.ad: unknown name, got 'ad'; did you mean"):
        miriam.verify(SOURCE, path)


def test_a_template_without_its_arguments_is_named(tmp_path: Path) -> None:
    path = launch_file(tmp_path, f"[kernel.blur]\n{HEAD}args = []")
    with pytest.raises(UsageError, match=r"kernel\.blur: a name expression of a kernel"):
        miriam.verify(SOURCE, path)


def test_one_kernel_that_gpp_refuses_does_not_take_the_others_along(tmp_path: Path) -> None:
    source = tmp_path / "two.cu"
    source.write_text(
        "__global__ void good(int* x) { x[threadIdx.x] = 3; }\n"
        "__global__ void bad(int* x) { x[threadIdx.x] = __nv_unheard_of(3); }\n"
    )
    text = f"[kernel.bad]\n{HEAD}args = [{ARRAY}]\n[kernel.good]\n{HEAD}args = [{ARRAY}]\n"
    bad, good = miriam.verify(source, launch_file(tmp_path, text))
    assert (good.name, good.verdict) == ("good", "equal")
    assert (bad.name, bad.verdict) == ("bad", "error")
    assert bad.reason.startswith(f"{source}:2: error: '__nv_unheard_of' was not declared")


def test_what_is_no_cuda_is_a_source_error(tmp_path: Path) -> None:
    source = tmp_path / "no.cu"
    source.write_text("int main() { return 0; }\n")
    with pytest.raises(SourceError, match="no __global__ function"):
        miriam.verify(source, LAUNCHES)


def test_syntax_that_is_not_understood_is_an_error_not_a_refusal(tmp_path: Path) -> None:
    source = tmp_path / "broken.cu"
    source.write_text("__global__ void k(int* x) { x[0] = (1 + ; }\n")
    launches = launch_file(tmp_path, f"[kernel.k]\n{HEAD}args = [{ARRAY}]")
    (verdict,) = miriam.verify(source, launches)
    assert (verdict.verdict, verdict.reason) == (
        "error",
        f"{source}:1: parse-error: syntax not understood",
    )


def test_the_same_seed_gives_the_same_verdicts() -> None:
    launches = check.read_launches(LAUNCHES)[:2]
    made = miriam.elasticize(SOURCE)
    one, two = (check.verify_elasticized(made, launches, seed=5) for _ in range(2))
    assert one == two
