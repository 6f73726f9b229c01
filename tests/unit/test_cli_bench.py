"""``miriam bench mdtb``: its output, its errors and its exit codes."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from miriam.cli import main
from miriam.devices.host import HostRequest

SHORT = ["--device", "sim:xavier", "--workload", "D", "--seconds", "0.004"]
# In this process, where the tests can lay a hand on the host.
COMPUTED = ["--workload", "D", "--policy", "miriam", "--jobs", "1", "--compute", "--seconds"]


class Command:
    """Runs ``miriam bench mdtb`` in this process."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.patch, self.capture = patch, capture

    def __call__(self, *args: str) -> tuple[int, str, str]:
        """The exit code, standard output and standard error."""
        self.patch.setattr(sys, "argv", ["miriam", "bench", "mdtb", *args])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = self.capture.readouterr()
        return code, out, err


@pytest.fixture
def mdtb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def test_a_run_prints_a_table_and_writes_the_report_and_a_chart(
    mdtb: Command, tmp_path: Path
) -> None:
    report, picture = tmp_path / "out.json", tmp_path / "out.png"
    code, out, err = mdtb(*SHORT, "--json", str(report), "--plot", str(picture))
    assert (code, err) == (0, "")
    assert "MDTB on sim:xavier (simulated), seed 1" in out
    data = json.loads(report.read_bytes())
    assert data["policies"] == ["miriam", "gate", "multistream", "sequential"]
    assert [row["workload"] for row in data["rows"]] == ["D"] * 4
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_bytes(mdtb: Command, tmp_path: Path) -> None:
    paths = [tmp_path / "1.json", tmp_path / "2.json"]
    for path in paths:
        assert mdtb(*SHORT, "--policy", "miriam,gate", "--json", str(path))[0] == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_json_on_standard_output_leaves_it_to_the_report(mdtb: Command) -> None:
    code, out, err = mdtb(*SHORT, "--policy", "gate", "--json", "-")
    assert code == 0
    assert json.loads(out)["schema"] == "miriam.bench/1"
    assert "(simulated)" in err


def test_in_flight_is_recorded_and_changes_the_run(mdtb: Command) -> None:
    args = ["--workload", "A", "--policy", "gate", "--seconds", "0.001", "--json", "-"]
    rows = [json.loads(mdtb(*args, "--in-flight", n)[1])["rows"][0] for n in ("1", "3")]
    assert [row["in_flight"] for row in rows] == [1, 3]
    assert rows[0]["normal"][0]["solo_rate_hz"] < rows[1]["normal"][0]["solo_rate_hz"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--device", "sim:gtx"], "known: h200, orin, rtx2060, thor, xavier"),
        (["--device", "tpu"], "device: unknown name, got 'tpu'; known: cuda, host, sim"),
        (["--policy", "mirian"], "did you mean 'miriam'? known: barrier, gate, "),
        (["--workload", "A,E"], "workload: unknown name, got 'E'; known: A, B, C, D"),
        (["--workload", "A,A"], "workload: at least one name, each once, got 'A,A'"),
        (["--policy", "miriam,"], "policy: unknown name, got ''; known: barrier, gate"),
        (["--seconds", "nan"], "seconds: a finite number of at least 1e-9, got nan"),
        (["--in-flight", "0"], "in_flight: at least 1, got 0"),
        (["--seed", "-1"], "seed: not negative, got -1"),
        (["--json", "no/such/folder.json"], "--json: a file in a folder that exists, got"),
        (["--plot", "no/such/folder.png"], "--plot: a file in a folder that exists, got"),
    ],
)
def test_a_wrong_value_exits_2_and_says_why(mdtb: Command, args: list[str], error: str) -> None:
    code, out, err = mdtb(*args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert error in err


def test_cuda_exits_3_and_says_what_is_missing(mdtb: Command) -> None:
    code, out, err = mdtb("--device", "cuda:0")
    assert (code, out) == (3, "")
    assert err.startswith("error: ")
    assert "cuda" in err


def test_a_chart_without_matplotlib_exits_3_before_the_run(
    mdtb: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = mdtb(*SHORT, "--plot", str(tmp_path / "out.png"))
    assert (code, out) == (3, "")
    assert "pip install 'miriam-gpu[plot]'" in err


def test_computed_requests_are_verified(mdtb: Command, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    code, out, err = mdtb(*COMPUTED, "0.002", "--json", str(path))
    (row,) = json.loads(path.read_bytes())["rows"]
    assert (code, row["verified"]) == (0, True)
    assert row["critical"]["requests"] + row["normal"][0]["requests"] > 1
    assert "[1/1] D miriam" in err and ", verified" in err
    assert "yes" in out


@pytest.mark.parametrize(("times", "what"), [(0, "ran 0 times"), (2, "ran 2 times")])
def test_a_block_dropped_or_run_twice_exits_1(
    mdtb: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, times: int, what: str
) -> None:
    run = HostRequest.run
    struck: list[int] = []

    def faulty(self: HostRequest, step: int, blocks: range | None = None) -> None:
        # Solo runs ask for all blocks; the fault strikes one shard of one co-run request.
        if blocks is None or struck:
            return run(self, step, blocks)
        struck.append(blocks[0])
        run(self, step, list(blocks)[1:] + [blocks[0]] * times)
        return None

    monkeypatch.setattr(HostRequest, "run", faulty)
    path = tmp_path / "out.json"
    code, _, err = mdtb(*COMPUTED, "0.0001", "--json", str(path))
    assert code == 1
    assert json.loads(path.read_bytes())["rows"][0]["verified"] is False
    assert "workload D policy miriam task 0 (lstm) request 0: step 0" in err
    assert f"block {struck[0]} {what} instead of once" in err


def test_a_wrong_bit_in_an_output_exits_1(
    mdtb: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outputs = HostRequest.outputs
    seen = []

    def faulty(self: HostRequest) -> dict[str, np.ndarray]:
        right = outputs(self)
        seen.append(right)
        if len(seen) == 1:
            for array in right.values():
                array.view(np.uint8).reshape(-1)[-4] ^= 1
        return right

    monkeypatch.setattr(HostRequest, "outputs", faulty)
    code, _, err = mdtb(*COMPUTED, "0.0001")
    assert code == 1
    assert "elements concerned: 1 of" in err
