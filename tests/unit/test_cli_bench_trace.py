"""``miriam bench ... --trace``: the timeline of one row."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from miriam.cli import main

ROWS = {
    "mdtb": ["--workload", "A", "--seconds", "0.004"],
    "lgsvl": ["--workload", "given", "--seconds", "0.01"],
    "pairs": ["--pair", "alexnet+cifarnet", "--gap-us", "0", "--seconds", "0.004"],
    "alexnets": ["--seconds", "0.004"],
    "growth": ["--workload", "2", "--seconds", "0.004"],
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``miriam bench`` in this process; exit code, standard output, standard error."""

    def bench(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["miriam", "bench", *args])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return bench


@pytest.mark.parametrize("benchmark", ROWS)
def test_every_benchmark_that_runs_requests_can_be_traced(
    run: Run, tmp_path: Path, benchmark: str
) -> None:
    path = tmp_path / "trace.json"
    args = [benchmark, *ROWS[benchmark], "--policy", "miriam", "--device", "sim:xavier"]
    code, _, err = run(*args, "--jobs", "1", "--trace", str(path))
    assert (code, err) == (0, "")
    trace = json.loads(path.read_bytes())
    assert trace["otherData"]["device"] == "sim:xavier"
    assert trace["otherData"]["simulated"] is True
    tracks = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert tracks == {"SMs", "streams", "requests", "slow because"}
    # Both the critical and the normal task have kernels on some SM.
    on_sms = [e["args"]["task"] for e in trace["traceEvents"] if "elastic" in e.get("args", {})]
    assert len(set(on_sms)) >= 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_traced_run_has_the_figures_of_any_other(run: Run, tmp_path: Path) -> None:
    args = ["mdtb", *ROWS["mdtb"], "--policy", "miriam", "--json"]
    plain, watched = tmp_path / "plain.json", tmp_path / "watched.json"
    assert run(*args, str(plain))[0] == 0
    assert run(*args, str(watched), "--trace", str(tmp_path / "trace.json"))[0] == 0
    assert plain.read_bytes() == watched.read_bytes()


def test_a_trace_of_several_rows_is_refused_before_any_runs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    args = ["mdtb", "--workload", "A,D", "--policy", "miriam,gate", "--seconds", "1000"]
    code, out, err = run(*args, "--trace", str(path))
    assert (code, out) == (2, "")
    assert err == (
        "error: --trace: one workload under one policy, got 'A miriam, A gate, D miriam, D gate'; "
        "choose one of each to be traced\n"
    )
    assert not path.exists()


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--trace", "no/such/folder.json"], "--trace: a file in a folder that exists, got"),
        (["--trace", "-", "--json", "-"], "--trace: not standard output when --json is, got '-'"),
        (["--html", "-", "--plot", "-"], "--html: not standard output when --plot is, got '-'"),
        (
            ["--trace", "t.json", "--device", "cuda:0"],
            "--trace: on a simulated device, sim:<gpu>, got 'cuda:0'",
        ),
    ],
)
def test_a_wrong_target_exits_2_and_says_why(run: Run, args: list[str], error: str) -> None:
    code, out, err = run("mdtb", *args)
    assert (code, out) == (2, "")
    assert error in err


def test_a_trace_on_standard_output_leaves_it_to_the_trace(run: Run) -> None:
    code, out, err = run("mdtb", *ROWS["mdtb"], "--policy", "miriam", "--trace", "-")
    assert code == 0
    assert json.loads(out)["otherData"]["schema"] == "miriam.trace/1"
    assert "(simulated)" in err
