"""Side by side or one after the other, and again from its own report: the same bytes."""

import json
import pickle
import sys
from pathlib import Path

import pytest

from miriam.bench.replay import first_difference
from miriam.cli import main
from miriam.errors import UnknownNameError, UsageError

TINY = ["bench", "mdtb", "--device", "sim:xavier", "--workload", "D", "--policy", "gate,miriam"]


def run(patch: pytest.MonkeyPatch, *args: str) -> int:
    patch.setattr(sys, "argv", ["miriam", *args])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    args = ["--seconds", "0.003", "--jobs", "1", "--json", str(path)]
    assert run(monkeypatch, *TINY, *args) == 0
    return path


def test_two_processes_give_the_bytes_of_one(
    monkeypatch: pytest.MonkeyPatch, report: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    args = ["--seconds", "0.003", "--jobs", "2", "--json", str(other)]
    assert run(monkeypatch, *TINY, *args) == 0
    assert other.read_bytes() == report.read_bytes()


def test_a_report_replays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], report: Path
) -> None:
    assert run(monkeypatch, "bench", "--jobs", "1", "--replay", str(report)) == 0
    assert "the same, byte for byte" in capsys.readouterr().out


def test_the_first_figure_that_differs_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], report: Path
) -> None:
    data = json.loads(report.read_bytes())
    data["rows"][1]["stp"] = 9.5
    report.write_text(json.dumps(data))
    assert run(monkeypatch, "bench", "--jobs", "1", "--replay", str(report)) == 1
    assert "replay: rows[1].stp was 9.5 and is " in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{}", "no json", '{"options": {"benchmark": "mdtb"}}'])
def test_what_is_no_report_is_said(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    text: str,
) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    assert run(monkeypatch, "bench", "--replay", str(path)) == 2
    assert "--replay: a report of miriam bench, got" in capsys.readouterr().err


def test_the_seconds_and_all_options_are_recorded(report: Path) -> None:
    data = json.loads(report.read_bytes())
    assert data["seconds"] == 0.003
    assert data["options"]["benchmark"] == "mdtb"
    assert data["options"]["policies"] == ["gate", "miriam"]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, None),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1] was 2 and is 3"),
        ({"a": [1]}, {"a": [1, 2]}, "length of a was 1 and is 2"),
        ({"a": 1}, {"a": 1, "b": 2}, "b was None and is 2"),
    ],
)
def test_where_two_documents_differ(old: object, new: object, where: str | None) -> None:
    assert first_difference(old, new) == where


def test_errors_come_back_whole_from_another_process() -> None:
    for error in (UsageError("f", "a rule", 3, "do this"), UnknownNameError("n", "x", ["y"])):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.field) == (type(error), str(error), error.field)
