"""A program that runs ``miriam bench`` and reads its report with nothing but ``json``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

Report = dict[str, Any]

POLICIES = ["sequential", "multistream", "gate", "miriam"]
COMMAND = (
    "bench mdtb --device sim:xavier --workload B,D "
    "--policy sequential,multistream,gate,miriam --seconds 0.02 --seed 1 --json"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("bench") / "report.json"
    program = "from miriam.cli import main; main()"
    subprocess.run(
        [sys.executable, "-c", program, *COMMAND.split(), str(path)],
        check=True,
        capture_output=True,
    )
    data: Report = json.loads(Path(path).read_text())
    return data


def test_there_is_a_row_for_each_workload_and_policy(report: Report) -> None:
    assert (report["device"], report["simulated"], report["seed"]) == ("sim:xavier", True, 1)
    assert report["policies"] == POLICIES
    names = [(row["workload"], row["policy"]) for row in report["rows"]]
    assert names == [(workload, policy) for workload in "BD" for policy in POLICIES]


def test_percentiles_ascend_and_service_is_part_of_latency(report: Report) -> None:
    for row in report["rows"]:
        critical = row["critical"]
        values = [critical[f"{name}_us"] for name in ("p50", "p90", "p95", "p99", "max")]
        assert values == sorted(values)
        assert 0 < critical["service_p50_us"] <= critical["p50_us"]


def test_rates_agree_with_each_other(report: Report) -> None:
    for row in report["rows"]:
        (normal,) = row["normal"]
        assert normal["H"] == pytest.approx(normal["rate_hz"] / normal["solo_rate_hz"], abs=1e-3)
        requests = row["critical"]["requests"] + normal["requests"]
        assert row["throughput_rps"] == pytest.approx(requests / 0.02)


def test_sequential_is_the_measure_of_itself(report: Report) -> None:
    for row in report["rows"]:
        if row["policy"] == "sequential":
            assert row["throughput_vs_sequential"] == 1
            assert row["critical"]["latency_vs_sequential"] == 1


def test_what_a_task_does_alone_is_the_same_under_every_policy(report: Report) -> None:
    for workload in "BD":
        rows = [row for row in report["rows"] if row["workload"] == workload]
        alone = {(r["critical"]["solo_p50_us"], r["normal"][0]["solo_rate_hz"]) for r in rows}
        assert len(alone) == 1
