"""The MPS baseline without a GPU: its daemon is always stopped, its rows are those of the bench."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from bench_fakes import MS, US, FakeDevice, FakeNetworks, tiny_program

from benchmarks import mps_gpu
from benchmarks.mps_client import Ask, Client
from benchmarks.mps_daemon import PROGRAM, daemon
from benchmarks.mps_gpu import Found, Place, row
from benchmarks.mps_process import Process
from benchmarks.pairs_page import page
from benchmarks.pairs_rows import load
from miriam.bench import JobRecord, Machine, Sample
from miriam.bench.jobs import TaskRecord
from miriam.bench.metrics import MeasuredOn
from miriam.bench.rounds import ROUNDS
from miriam.coordinator import Task
from miriam.errors import DeviceError, MissingCapabilityError

CONTROL = """#!/bin/sh
if [ "$1" = -d ]; then
    echo "$CUDA_MPS_PIPE_DIRECTORY" >> {seen}
    {start}
else
    read command
    echo "$command" >> {seen}
fi
"""


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What the daemon's program is asked, a line each; first where its pipe is."""
    yield _installed(tmp_path, monkeypatch, "exit 0")


def _installed(folder: Path, monkeypatch: pytest.MonkeyPatch, start: str) -> Path:
    program, seen = folder / PROGRAM, folder / "seen"
    program.write_text(CONTROL.format(seen=seen, start=start))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return seen


@dataclass
class FakeRunner:
    """A process of which each request takes ``alone_us``, or ``beside_us`` in company."""

    alone_us: int
    beside_us: int
    crowd: list[FakeRunner] = field(default_factory=list)
    asked: list[Ask] = field(default_factory=list)
    begun_ns: int = 0
    right: bool = True

    def prepare(self, ask: Ask) -> None:
        self.asked.append(ask)
        self.begun_ns = 0

    def begin(self, begin_ns: int) -> None:
        self.begun_ns = begin_ns

    def result(self) -> JobRecord:
        company = all(other.begun_ns == self.begun_ns for other in self.crowd)
        took = self.beside_us if company else self.alone_us
        times = Sample.of([took * US] * 10)
        return JobRecord((TaskRecord(times, times, 1e6 / took),), 0.3, verified=self.right)


def runners(*, right: bool = True) -> list[FakeRunner]:
    both = [FakeRunner(100, 130), FakeRunner(200, 250, right=right)]
    for runner in both:
        runner.crowd = both
    return both


def test_the_daemon_has_a_folder_of_its_own_and_is_stopped_after_an_error(seen: Path) -> None:
    with pytest.raises(ZeroDivisionError), daemon() as service:
        service.ask("get_server_list")
        raise ZeroDivisionError
    pipe, *commands = seen.read_text().split("\n")
    assert commands == ["get_server_list", "quit", ""]
    assert not Path(pipe).exists()


def test_a_daemon_that_does_not_start_is_stopped_too_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = 'echo "no permission" >&2; echo "log says" > "$CUDA_MPS_LOG_DIRECTORY/control.log"'
    seen = _installed(tmp_path, monkeypatch, f"{start}; exit 1")
    with pytest.raises(DeviceError, match=r"-d ended with 1: no permission; log says"), daemon():
        pass
    assert seen.read_text().split("\n")[1:] == ["quit", ""]


def test_the_daemon_chooses_the_gpus_and_its_clients_count_them_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    start = f'echo "$CUDA_VISIBLE_DEVICES" > {tmp_path}/chosen'
    _installed(tmp_path, monkeypatch, start)
    with daemon() as service:
        assert (tmp_path / "chosen").read_text() == "1\n"
        assert "CUDA_VISIBLE_DEVICES" not in service.environment


def test_without_mps_the_report_has_no_rows_and_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingCapabilityError, match="is not installed"), daemon():
        pass
    monkeypatch.setattr(Machine, "measured_on", lambda machine: measured_on())
    mps_gpu.main([str(tmp_path / "out.json")])
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["rows"] == []
    assert f"{PROGRAM} is not installed" in data["mps"]["reason"]
    assert (data["schema"], data["simulated"], data["gpu"]) == ("miriam.bench/1", False, "G")


def test_a_row_is_measured_in_rounds_alone_before_and_after() -> None:
    both = runners()
    found = row(Place("c+n", 32, 100, 25), both, 4_000.0, 0.4, 4)
    for runner, gap_ns in zip(both, (4 * MS, 0), strict=True):
        assert len(runner.asked) == 2 * ROUNDS + 1
        assert {ask.gap_ns for ask in runner.asked} == {gap_ns}
        assert {ask.window_ns for ask in runner.asked} == {100 * MS}
    critical, normal = found.critical[0], found.normal[0]
    assert critical.overhead(50) == 1.3
    assert critical.solo_service.percentile(99) == 100 * US
    assert normal.relative_rate == 0.8
    assert (found.policy, found.point.world, found.drift) == ("mps", "cuda:0:32", 0)


def test_a_row_with_a_wrong_output_is_not_verified() -> None:
    found = row(Place("c+c", 0, 50, None), runners(right=False), 0.0, 0.4, 4)
    assert found.verified is False
    assert (found.policy, found.point.world) == ("mps:normal=50", "cuda:0")
    assert [task.task for task in found.tasks] == ["c*", "c"]


@pytest.mark.parametrize(
    ("place", "critical", "normal"),
    [
        (Place("c+n", 0, 100, None), None, None),
        (Place("c+n", 0, 50, None), None, "50"),
        (Place("c+n", 32, 50, 25), "25", "12.5"),
    ],
)
def test_worlds_and_shares_are_percentages(
    place: Place, critical: str | None, normal: str | None
) -> None:
    limits = [place.limit(critical=True), place.limit(critical=False)]
    assert [limit["CUDA_MPS_CLIENT_PRIORITY"] for limit in limits] == ["0", "1"]
    found = [limit.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") for limit in limits]
    assert found == [critical, normal]


def test_the_page_of_pairs_takes_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Machine, "measured_on", lambda machine: measured_on())
    found = Found([row(Place("c+n", 32, 100, 25), runners(), 0.0, 0.4, 4)])
    path = tmp_path / "mps.json"
    options = mps_gpu.options_from([str(path)])
    path.write_text(json.dumps(mps_gpu.report(found, options)))
    (mine,) = load([path]).rows
    assert (mine.policy, mine.cell.world, mine.cell.pair) == ("mps", "32 SMs", "c + n")
    assert (mine.service50, mine.H) == (1.3, 0.8)
    assert "| c + n | mps | 1.30 | 1.30 |" in page(load([path]))


def test_a_process_that_ends_says_why() -> None:
    process = Process("sim:none", "alexnet", 1, 1, os.environ)
    try:
        with pytest.raises(DeviceError, match=r"process of alexnet ended: .*UnknownNameError"):
            process.hello()
    finally:
        process.close()


def test_a_client_runs_what_it_is_asked_and_checks_it() -> None:
    device = FakeDevice({"n": 2 * MS})
    task = Task("n", tiny_program("n"), in_flight=2)
    ask = msgspec.json.encode(Ask(0, 100 * MS)).decode()
    enough = msgspec.json.encode(Ask(MS, 100 * MS, 5)).decode()
    said = io.StringIO()
    Client(device, FakeNetworks(), task).serve(iter([ask, "0", enough, "0"]), said)
    ready, first, _, second = said.getvalue().splitlines()
    assert ready == '"ready"'
    record = msgspec.json.decode(first, type=JobRecord)
    assert (record.tasks[0].rate_hz, record.verified) == (500, True)
    assert record.tasks[0].service.percentile(50) == 2 * MS
    assert msgspec.json.decode(second, type=JobRecord).tasks[0].latency.count == 5
    assert [session.closed for session in device.sessions] == [True, True]


def measured_on() -> MeasuredOn:
    driver: dict[str, str | int] = {"name": "580.1", "cuda": 13_000}
    clocks = {"clocks.sm": "1000", "clocks.max.sm": "2000"}
    return MeasuredOn("G", driver, {"miriam-gpu": "0.1.0"}, "2026-11-30", clocks)
