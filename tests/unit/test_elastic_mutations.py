"""A wrong emitter is caught by the first random kernels that its fault concerns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from miriam.elastic.cuda import forms
from tests.fuzz.runner import Tally, run

_SEEDS = (5, 11, 15)  # of the 200 that `make test` runs


def judged(folder: Path, change: Callable[[str], str] = lambda text: text) -> Tally:
    # A wrong form may wait forever.
    return run(_SEEDS, folder, change, seconds=4.0)


def wrong_forms(tally: Tally) -> set[str]:
    """The forms of the grid that differ; those of the block call the same wrappers' parts."""
    forms = {form for fault in tally.faults for form in fault.forms}
    return {form for form in forms if not form.startswith("block")}


def with_form(monkeypatch: pytest.MonkeyPatch, form: str, old: str, new: str) -> None:
    text = forms.FORMS[form]
    assert old in text
    monkeypatch.setattr(forms, "FORMS", {**forms.FORMS, form: text.replace(old, new)})


def test_without_a_mutation_nothing_is_found(tmp_path: Path) -> None:
    assert not judged(tmp_path).faults


def test_a_dropped_barrier_between_logical_blocks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(forms, "_BARRIER", "")
    found = wrong_forms(judged(tmp_path))
    assert found and all(f.startswith("persistent") for f in found)


def test_a_dropped_barrier_after_the_claim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_form(monkeypatch, "yield", "    __syncthreads();\n", "")
    assert wrong_forms(judged(tmp_path)) == {"yield"}


def test_a_shifted_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(forms, "_NUMBERS", {**forms._NUMBERS, "slice": "blockIdx.x + 1"})
    assert wrong_forms(judged(tmp_path)) == {"slice"}


def test_a_start_that_is_forgotten(tmp_path: Path) -> None:
    found = wrong_forms(judged(tmp_path, lambda text: text.replace("miriam.start + ", "")))
    assert {"slice", "persistent/1", "yield"} <= found


def test_a_claim_without_a_look_at_the_quota(tmp_path: Path) -> None:
    asked = "blockIdx.x >= quota"
    tally = judged(tmp_path, lambda text: text.replace(asked, "false"))
    assert wrong_forms(tally) == {"yield"}
    assert all("under a quota of 0" in fault.detail for fault in tally.faults)


def test_a_claim_before_the_look_at_the_quota(tmp_path: Path) -> None:
    """A block that leaves has then claimed: that logical block never runs."""
    claim = "  const unsigned next = atomicAdd(launch.counter, 1u);\n"

    def change(text: str) -> str:
        head = "miriam_claim(const MiriamLaunch& launch) {\n"
        return text.replace(claim, "").replace(head, head + claim)

    assert wrong_forms(judged(tmp_path, change)) == {"yield"}


def test_threads_that_are_done_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(forms, "_FINISH", "")
    found = wrong_forms(judged(tmp_path))
    assert found and "slice" not in found


def test_an_extent_of_the_grid_that_is_mixed_up(tmp_path: Path) -> None:
    right = "dim3(launch.grid_x, launch.grid_y, launch.grid_z)"
    wrong = "dim3(launch.grid_y, launch.grid_x, launch.grid_z)"
    assert "slice" in wrong_forms(judged(tmp_path, lambda text: text.replace(right, wrong)))
