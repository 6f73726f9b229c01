"""Block forms against their originals on the CPU, and that wrong ones are caught."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import miriam
from miriam import check
from miriam.elastic import IndexFunction
from tests.fuzz.runner import changed

KERNELS = Path(__file__).parents[1] / "kernels"
SOURCE, LAUNCHES = KERNELS / "block.cu", KERNELS / "block.toml"
NAMES = [launch.name for launch in check.read_launches(LAUNCHES)]


def verdicts(
    change: Callable[[str], str] = lambda text: text,
    kernels: tuple[str, ...] = (),
    index: IndexFunction = "computed",
) -> dict[str, miriam.KernelVerdict]:
    asked = [x for x in check.read_launches(LAUNCHES) if not kernels or x.name in kernels]
    made = changed(miriam.elasticize(SOURCE, index=index), change)
    return {v.name: v for v in check.verify_elasticized(made, asked, seconds=20.0)}


@pytest.fixture(scope="module")
def unchanged() -> dict[str, miriam.KernelVerdict]:
    return verdicts()


@pytest.mark.parametrize("name", NAMES)
def test_every_fold_is_equal(unchanged: dict[str, miriam.KernelVerdict], name: str) -> None:
    verdict = unchanged[name]
    assert (verdict.verdict, verdict.reason) == ("equal", "")
    folds = [f.form for f in verdict.forms if f.form.startswith("block")]
    warps = ["block/2", "block/4"]
    assert folds == (warps if name == "sums" else ["block/2", "block/3", "block/4"])


def test_the_other_index_function_gives_the_same() -> None:
    found = verdicts(kernels=("declarations", "helpers"), index="table")
    assert {v.verdict for v in found.values()} == {"equal"}


def wrong(verdict: miriam.KernelVerdict) -> set[str]:
    return {f.form for f in verdict.forms if not f.equal}


def only_blocks(verdict: miriam.KernelVerdict) -> bool:
    found = wrong(verdict)
    return bool(found) and all(form.startswith("block") for form in found)


def test_who_has_returned_is_forgotten() -> None:
    found = verdicts(lambda t: t.replace("miriam_living.end(miriam_n)", "void()"), ("leaving",))
    assert only_blocks(found["leaving"])


def test_a_variable_that_logical_threads_share() -> None:
    found = verdicts(
        lambda t: t.replace(
            "auto& sum = miriam_all_sum[miriam_n]", "auto& sum = miriam_all_sum[0]"
        ),
        ("loops",),
    )
    assert only_blocks(found["loops"])


def test_a_region_that_ends_one_statement_late() -> None:
    late = re.compile(r"( *__syncthreads\(\);\n)( *miriam_each\(.*?\}\);\n)", re.DOTALL)
    found = verdicts(lambda t: late.sub(r"\2\1", t), ("loops",))
    assert only_blocks(found["loops"])


@pytest.mark.parametrize("number", range(2))
def test_a_dropped_barrier(number: int) -> None:
    def drop(text: str) -> str:
        head, body, rest = text.partition("void loops__threads")
        if not body:  # another kernel's text
            return text
        parts = rest.split("__syncthreads();")
        parts[number : number + 2] = [parts[number] + parts[number + 1]]
        return head + body + "__syncthreads();".join(parts)

    assert only_blocks(verdicts(drop, ("loops",))["loops"])


def test_folds_that_do_not_fit_the_launch_are_stopped() -> None:
    found = verdicts(lambda t: t.replace("blockDim.x != physical", "blockDim.x == physical"))
    assert "block/2" in str(found["loops"].reason)
