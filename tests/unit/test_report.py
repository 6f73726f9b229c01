"""The JSON document: its schema, its determinism, and how it reaches a file."""

import json
from pathlib import Path

import msgspec
import pytest
from bench_fakes import MS, FakeDevice, asked, bench, sample_result

from miriam.bench import Report, encode
from miriam.bench.output import require_target, write
from miriam.bench.studies import mdtb
from miriam.errors import UsageError

SERVICE_NS = {
    "alexnet": 2 * MS, "cifarnet": MS, "squeezenet": MS, "gru": MS, "lstm": MS, "resnet50": 9 * MS
}  # fmt: skip


def document(policies: tuple[str, ...] = ("sequential", "gate")) -> bytes:
    options = asked(*policies, seconds=0.5)
    workloads = [mdtb.workload(name, options) for name in mdtb.WORKLOADS]
    return encode(bench(FakeDevice(SERVICE_NS), workloads, options))


def test_the_document_has_the_schemas_fields_in_order() -> None:
    data = json.loads(document())
    assert list(data) == [
        "schema", "device", "simulated", "seed", "policies", "rows", "seconds", "options",
    ]  # fmt: skip
    assert data["schema"] == "miriam.bench/1"
    assert data["simulated"] is True
    assert data["policies"] == ["sequential", "gate"]
    row = data["rows"][0]
    assert list(row) == [
        "workload", "policy", "in_flight", "critical", "normal", "throughput_rps",
        "throughput_vs_sequential", "stp", "antt", "achieved_occupancy", "verified",
    ]  # fmt: skip
    assert list(row["critical"]) == [
        "task", "requests", "p50_us", "p90_us", "p95_us", "p99_us", "max_us", "service_p50_us",
        "service_p99_us", "solo_p50_us", "solo_p99_us", "solo_service_p50_us",
        "solo_service_p99_us", "latency_vs_sequential",
    ]  # fmt: skip
    assert list(row["normal"][0]) == ["task", "requests", "rate_hz", "solo_rate_hz", "H", "h"]
    assert [(r["workload"], r["policy"]) for r in data["rows"]] == [
        (workload, policy) for workload in "ABCD" for policy in ("sequential", "gate")
    ]


def test_figures_are_in_us_and_hz() -> None:
    row = json.loads(encode(sample_result()))["rows"][1]
    assert row["critical"] == {
        "task": "critical0",
        "requests": 2,
        "p50_us": 2000.0,
        "p90_us": 3000.0,
        "p95_us": 3000.0,
        "p99_us": 3000.0,
        "max_us": 3000.0,
        "service_p50_us": 1000.0,
        "service_p99_us": 1500.0,
        "solo_p50_us": 2000.0,
        "solo_p99_us": 2000.0,
        "solo_service_p50_us": 500.0,
        "solo_service_p99_us": 500.0,
        "latency_vs_sequential": 0.25,
    }
    assert row["normal"] == [
        {
            "task": "normal",
            "requests": 1,
            "rate_hz": 60.0,
            "solo_rate_hz": 80.0,
            "H": 0.75,
            "h": None,
        }
    ]
    assert (row["throughput_rps"], row["throughput_vs_sequential"]) == (110.0, 1.571)
    assert (row["stp"], row["achieved_occupancy"], row["verified"]) == (1.25, 0.432, None)


def test_what_was_not_run_is_null() -> None:
    row = json.loads(document(("gate",)))["rows"][0]
    assert row["throughput_vs_sequential"] is None
    assert row["critical"]["latency_vs_sequential"] is None
    assert row["verified"] is None


def test_criticals_are_listed_where_there_are_several() -> None:
    row = json.loads(encode(sample_result(criticals=2)))["rows"][0]
    assert [task["task"] for task in row["criticals"]] == ["critical0", "critical1"]
    assert row["critical"] == row["criticals"][0]


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert document() == document()
    assert document().endswith(b"}\n")


def test_the_document_decodes_into_the_reports_type() -> None:
    data = document()
    assert msgspec.json.decode(data, type=Report).rows[0].workload == "A"


def test_a_file_is_written_whole_over_an_old_one(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    write("--json", str(target), b"new")
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_target_that_can_not_be_a_file_is_refused_beforehand(tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "no" / "out.json"):
        with pytest.raises(UsageError, match="--json: a file in a folder that exists, got"):
            require_target("--json", str(target))
    require_target("--json", "-")
    require_target("--json", str(tmp_path / "out.json"))


def test_a_write_that_fails_gives_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"can be written, got .*; No such file or directory"):
        write("--json", str(tmp_path / "no" / "out.json"), b"")
