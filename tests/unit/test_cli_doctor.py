"""``miriam doctor``: what it says without a GPU, and how findings and costs read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from miriam.cli import app
from miriam.devices.cuda.doctor.machine import machine_findings
from miriam.devices.cuda.doctor.report import (
    Cost,
    DoctorReport,
    Finding,
    GpuReport,
    LevelReport,
    LockstepRow,
    WorldReport,
    cost,
    encode,
    quantile,
)
from miriam.devices.cuda.doctor.table import show, spans
from miriam.errors import MissingCapabilityError, UsageError


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver, if there is one, shows no GPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_it_says_what_is_there_and_ends_with_3(tmp_path: Path) -> None:
    target = tmp_path / "doctor.json"
    done = CliRunner().invoke(app, ["doctor", "--json", str(target)])
    assert isinstance(done.exception, MissingCapabilityError)
    assert done.exception.exit_code == 3
    for what in ("extra cuda", "NVRTC", "g++", "cache", "MPS", "CUDA_LAUNCH_BLOCKING"):
        assert what in done.stdout
    report = msgspec.json.decode(target.read_bytes(), type=DoctorReport)
    assert (report.schema, report.device, report.gpu) == ("miriam.doctor/1", "cuda:0", None)
    assert report.error == str(done.exception)
    assert "sim:orin" in report.error or "cuda:" in report.error


@pytest.mark.usefixtures("no_gpu")
def test_json_on_standard_output_stands_there_alone() -> None:
    done = CliRunner().invoke(app, ["doctor", "--device", "cuda:0:32", "--json", "-"])
    assert json.loads(done.stdout)["device"] == "cuda:0:32"


@pytest.mark.parametrize("device", ["sim:orin", "cuda:x", "cuda:0:8:1", "cuda:-1"])
def test_another_device_is_a_usage_error(device: str) -> None:
    done = CliRunner().invoke(app, ["doctor", "--device", device])
    assert isinstance(done.exception, UsageError)
    assert device in str(done.exception)


def found(environment: dict[str, str], what: str) -> Finding:
    return next(f for f in machine_findings(environment) if f.what == what)


@pytest.mark.parametrize(
    ("variable", "value", "what"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", "CUDA_LAUNCH_BLOCKING"),
        ("CUDA_DEVICE_MAX_CONNECTIONS", "1", "CUDA_DEVICE_MAX_CONNECTIONS"),
        ("CUDA_INJECTION64_PATH", "libToolsInjection64.so", "profiler or sanitizer"),
        ("LD_PRELOAD", "/opt/libsanitizer-collection.so", "profiler or sanitizer"),
    ],
)
def test_a_setting_that_is_in_the_way_is_a_trap_with_advice(
    variable: str, value: str, what: str
) -> None:
    assert found({}, what).state == "ok"
    trap = found({variable: value}, what)
    assert trap.state == "trap"
    assert trap.why
    assert trap.advice


def test_a_running_mps_daemon_is_noted(tmp_path: Path) -> None:
    (tmp_path / "control").touch()
    assert found({"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}, "MPS").state == "note"
    assert found({"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "none")}, "MPS").state == "ok"


def test_quantiles_are_samples_by_nearest_rank() -> None:
    values = [float(v) for v in range(200, 0, -1)]
    assert [quantile(values, share) for share in (0.5, 0.99, 1.0)] == [100, 198, 200]
    assert quantile([7.0], 0.99) == 7


def test_a_cost_meets_its_target_by_the_figure_that_it_is_for() -> None:
    samples = [1.0] * 98 + [30.0] * 2
    assert cost("gate", samples, 1.0).met
    assert not cost("yield", samples, 20.0, "p99").met
    assert cost("launch", samples).met is None


def row(connections: int, streams: int, p50_us: float, waited: int = 0) -> LockstepRow:
    return LockstepRow(
        connections=connections,
        sms=8,
        kind="quota",
        streams=streams,
        alone_us=100.0,
        p50_us=p50_us,
        p99_us=p50_us,
        start_us=9.0,
        waited=waited,
        samples=10,
    )


def test_lockstep_names_the_setting_that_ends_it() -> None:
    from miriam.devices.cuda.doctor.traps import lockstep_finding

    rows = [row(8, 1, 101.0), row(8, 8, 420.0), row(32, 8, 120.0)]
    assert lockstep_finding(rows, 32).state == "ok"
    trap = lockstep_finding(rows, 8)
    assert trap.state == "trap"
    assert "x4.20 beside 8 streams" in trap.value
    assert "CUDA_DEVICE_MAX_CONNECTIONS=32" in trap.advice
    # Its own time may be short when all that it waited for came before its first kernel.
    assert lockstep_finding([row(8, 1, 101.0, waited=9)], 8).state == "trap"


def test_the_table_shows_everything_and_what_to_do() -> None:
    gpu = GpuReport(
        name="GPU",
        arch="sm_90",
        driver="13.0",
        sms=8,
        levels=(LevelReport(0, True, "streams of priority -5 to 0"), LevelReport(1, False, "no")),
        worlds=(WorldReport(16, 16, 2, (0, 1, 2, 3, 8)),),
        costs=(Cost("gate", 1.5, 2.0, 200, 1.0),),
        findings=(Finding("lockstep", "trap", "x4.2", "it waits", "set this [32]"),),
        lockstep=(row(8, 8, 420.0),),
    )
    machine = (Finding("g++", "missing", "not on PATH", "verify needs it", "install g++"),)
    report = DoctorReport(
        miriam="0", device="cuda:0:8", date="2026-01-01", machine=machine, gpu=gpu
    )
    assert msgspec.json.decode(encode(report), type=DoctorReport) == report
    shown = io.StringIO()
    show(report, Console(file=shown, width=200))
    for text in ("0-3, 8", "p50 <= 1: missed", "420", "set this [32]", "install g++", "level 1"):
        assert text in shown.getvalue()


def test_spans_of_numbers() -> None:
    assert spans(()) == ""
    assert spans((3,)) == "3"
    assert spans((0, 1, 2, 5, 7, 8)) == "0-2, 5, 7-8"
