"""``miriam simulate``: verdict, exit codes, JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from miriam.cli import main

DETECTOR = """
[[task]]
name = "detector"
model = "cifarnet"
critical = true
deadline_ms = {deadline}
arrivals = {{ kind = "uniform", hz = 200 }}
"""
EXAMPLES = Path(__file__).parents[2] / "examples"
NORMAL = '[[task]]\nmodel = "alexnet"\n'
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Simulate a mix given as text; exit code, standard output, standard error."""

    def simulate(text: str, *options: str, seconds: str = "0.02") -> tuple[int, str, str]:
        path = tmp_path / "mix.toml"
        path.write_text(text)
        argv = ["miriam", "simulate", str(path), "--seconds", seconds, *options]
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return code or 0, *capsys.readouterr()

    return simulate


def test_a_mix_that_fits_exits_0(run: Run) -> None:
    code, out, _ = run(DETECTOR.format(deadline=2) + NORMAL, "--assert")
    assert code == 0
    assert "miriam on sim:orin (simulated), 0.02 s, seed 1" in out
    assert "2 ms held (4)" in out
    assert "It fits: every deadline is held." in out


def test_a_mix_that_can_not_exits_1_with_assert_and_names_the_task(run: Run) -> None:
    text = DETECTOR.format(deadline=0.05) + NORMAL
    code, out, err = run(text, "--assert")
    assert code == 1
    assert err == "error: detector missed 4 of 4 deadlines of 0.05 ms\n"
    assert "0.05 ms MISSED 4 of 4" in out
    assert "First to break: detector, request 0, at 0.050 ms: late by" in out
    assert run(text)[0] == 0


def test_the_json_says_what_the_table_says(run: Run) -> None:
    options = ("--json", "-", "--policy", "multistream", "--add", "alexnet")
    code, out, err = run(DETECTOR.format(deadline=0.2) + NORMAL, *options)
    document = json.loads(out)
    assert code == 0
    assert (document["schema"], document["simulated"]) == ("miriam.simulate/1", True)
    assert (document["device"], document["policy"]) == ("sim:orin", "multistream")
    assert (document["late"], document["queue"], document["held"]) == ("count", None, False)
    detector, *normal = document["tasks"]
    assert [t["task"] for t in normal] == ["alexnet", "alexnet-2"]
    assert detector["missed"] <= detector["due"] == detector["requests"] == 4
    assert detector["solo_p99_us"] < detector["p50_us"] <= detector["p99_us"]
    overhead = detector["p99_us"] / detector["solo_p99_us"]
    assert detector["overhead_p99"] == pytest.approx(overhead, abs=1e-3)
    assert detector["H"] is None
    assert 0 < normal[0]["H"] < 1
    first = document["first_break"]
    assert (first["task"], first["what"]) == ("detector", "late")
    delay_us = first["late_us"] + 200 - detector["solo_p50_us"]
    assert sum(d["us"] for d in first["delays"]) == pytest.approx(delay_us, rel=0.05)
    assert {d["by"] for d in first["delays"]} <= {"alexnet", "alexnet-2", "itself"}
    assert "MISSED" in err


def test_the_same_seed_gives_the_same_bytes(run: Run) -> None:
    text = DETECTOR.format(deadline=2).replace("uniform", "poisson") + NORMAL
    outputs = [run(text, "--json", "-", "--seed", seed)[1] for seed in ("1", "1", "2")]
    assert outputs[0] == outputs[1] != outputs[2]


def test_late_requests_are_dropped_and_surplus_ones_refused(run: Run) -> None:
    text = DETECTOR.format(deadline=0.12).replace("200", "20000")
    _, out, _ = run('late = "drop"\nqueue = 2\n' + text, "--json", "-", seconds="0.005")
    document = json.loads(out)
    (task,) = document["tasks"]
    assert task["arrived"] == 100
    assert task["dropped"] > 0
    assert task["refused"] > 0
    assert task["missed"] >= task["dropped"] + task["refused"]
    assert task["requests"] + task["dropped"] + task["refused"] <= task["arrived"]
    assert task["max_us"] < 120 + task["solo_p99_us"] * 1.1


def test_weights_share_what_is_left(run: Run) -> None:
    text = '[[task]]\nmodel = "cifarnet"\nname = "a"\nweight = 3\n[[task]]\nmodel = "cifarnet"\n'
    _, out, _ = run(text, "--json", "-", "--policy", "multistream")
    a, b = json.loads(out)["tasks"]
    assert a["requests"] / b["requests"] == pytest.approx(3, rel=0.1)
    assert a["held"] is None


def test_arrivals_from_a_file_beside_the_mix(run: Run, tmp_path: Path) -> None:
    (tmp_path / "times.txt").write_text("0.001\n0.002 # late\n0.5\n")
    text = '[[task]]\nmodel = "gru"\narrivals = { kind = "trace", file = "times.txt" }\n'
    assert json.loads(run(text, "--json", "-")[1])["tasks"][0]["requests"] == 2
    (tmp_path / "times.txt").write_text("0.001\nsoon\n")
    code, _, err = run(text)
    assert code == 2
    assert f"arrivals file {tmp_path / 'times.txt'}:2: a time in seconds" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "sim:orinn"], "device sim: unknown name, got 'orinn'"),
        (["--device", "host"], "device: a simulated one, sim:<gpu>, got 'host'"),
        (["--policy", "miriad"], "policy: unknown name, got 'miriad'; did you mean 'miriam'?"),
        (["--add", "yolo"], "--add: unknown name, got 'yolo'"),
        (["--seconds", "0"], "seconds: a finite number"),
        (["--json", "/nowhere/x.json"], "--json: a file in a folder that exists"),
        (["--json", "-", "--trace", "-"], "--trace: not standard output when --json is"),
    ],
)
def test_bad_options_exit_2(run: Run, options: list[str], message: str) -> None:
    code, out, err = run(DETECTOR.format(deadline=2), *options)
    assert (code, out) == (2, "")
    assert message in err


def test_broken_toml_exits_2_with_line_and_column(run: Run, tmp_path: Path) -> None:
    code, _, err = run("[[task]]\nmodel = = 3\n")
    assert code == 2
    path = tmp_path / "mix.toml"
    assert err == f"error: {path}:2:9: valid TOML, got 'model = = 3'; Invalid value\n"


def test_the_example_fits_under_miriam_and_not_under_multistream(run: Run, tmp_path: Path) -> None:
    text = (EXAMPLES / "driving.toml").read_text()
    trace = tmp_path / "trace.json"
    code, out, _ = run(text, "--assert", "--trace", str(trace), seconds="0.04")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if " ms held " in line] == [
        "detector",
        "speech",
    ]
    assert json.loads(trace.read_bytes())["otherData"]["simulated"] is True
    code, _, err = run(text, "--assert", "--policy", "multistream", seconds="0.04")
    assert code == 1
    assert "detector missed" in err


@pytest.mark.slow
def test_eight_normal_tasks_for_ten_seconds_within_a_minute(run: Run) -> None:
    models = ("resnet50", "alexnet", "squeezenet", "cifarnet") * 2
    text = DETECTOR.format(deadline=5) + "".join(
        f'[[task]]\nmodel = "{model}"\narrivals = {{ kind = "poisson", hz = 20 }}\n'
        for model in models
    )
    began_s = time.process_time()
    code, out, _ = run(text, "--json", "-", "--assert", seconds="10")
    assert time.process_time() - began_s < 60
    assert code == 0
    assert len(json.loads(out)["tasks"]) == 9
