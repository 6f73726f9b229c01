"""The driver, on a device with one server and fixed service times."""

import pytest
from bench_fakes import MS, FakeDevice, FakeSession, Silent, asked, bench

from miriam.bench import Closed, Uniform, Workload, WorkloadTask
from miriam.devices.contract import Usage
from miriam.errors import UsageError

PAIR = Workload(
    "W",
    (
        WorkloadTask("c", "c", Uniform(hz=100), critical=True),
        WorkloadTask("n", "n", Closed(2), in_flight=2),
    ),
)


def device() -> FakeDevice:
    return FakeDevice({"c": 2 * MS, "n": 3 * MS})


def test_a_row_says_what_completed_in_the_window() -> None:
    (row,) = bench(device(), [PAIR], asked("multistream")).rows
    # c at 0-2, n 2-5, 5-8, 8-11, c (arrived at 10) after n (arrived at 8): 14-16, n 16-19.
    (critical,), (normal,) = row.critical, row.normal
    assert critical.latency.values == (2 * MS, 6 * MS)
    assert critical.service.values == (2 * MS, 2 * MS)
    assert (critical.rate_hz, normal.rate_hz) == (100, 250)
    assert row.achieved_occupancy == 0.25
    assert row.in_flight == 2


def test_alone_means_the_same_arrivals_without_the_others() -> None:
    (row,) = bench(device(), [PAIR], asked("multistream")).rows
    (critical,), (normal,) = row.critical, row.normal
    assert critical.solo_latency.values == (2 * MS, 2 * MS)
    assert critical.solo_rate_hz == 100
    assert normal.solo_rate_hz == 300


def test_what_finishes_after_the_window_does_not_count() -> None:
    (row,) = bench(device(), [PAIR], asked("multistream", seconds=0.0049)).rows
    assert row.critical[0].latency.count == 1
    assert row.normal[0].latency.count == 0


def test_solo_runs_are_made_once_and_sessions_are_closed() -> None:
    fake = device()
    bench(fake, [PAIR], asked("multistream", "gate", "sequential"))
    # Three rows, two tasks alone, and the steps of each task alone.
    assert len(fake.sessions) == 3 + 2 + 2
    assert all(session.closed for session in fake.sessions)


def test_rows_come_in_the_order_asked_for() -> None:
    other = Workload("V", PAIR.tasks)
    observer = Silent()
    result = bench(device(), [PAIR, other], asked("sequential", "gate", seconds=0.01), observer)
    names = [f"{row.workload} {row.policy}" for row in result.rows]
    assert names == ["W sequential", "W gate", "V sequential", "V gate"] == observer.rows


def test_without_compute_nothing_is_verified() -> None:
    (row,) = bench(device(), [PAIR], asked("gate")).rows
    assert row.verified is None


def test_with_compute_every_request_meets_the_output_of_its_own_input() -> None:
    (row,) = bench(device(), [PAIR], asked("gate", seconds=0.1, compute=True)).rows
    assert row.verified is True
    assert row.faults == ()


def test_a_real_device_always_computes() -> None:
    real = FakeDevice({"c": 2 * MS, "n": 3 * MS}, name="cuda:0", simulated=False)
    result = bench(real, [PAIR], asked("gate"))
    assert (result.simulated, result.rows[0].verified) == (False, True)


def test_a_gate_that_did_not_hold_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = Usage(achieved_occupancy=0.25, busy_share=0.5, late_gates=2)
    monkeypatch.setattr(FakeSession, "usage", lambda self: usage)
    (row,) = bench(device(), [PAIR], asked("gate", compute=True)).rows
    assert row.verified is False
    assert row.faults == ("2 gates opened because their time was up, not their grant",)


def test_nothing_to_do_or_twice_the_same_is_an_error() -> None:
    with pytest.raises(UsageError, match="policy: at least one name, each once, got ''"):
        bench(device(), [PAIR], asked())
    with pytest.raises(UsageError, match="workload: at least one name, each once, got 'W,W'"):
        bench(device(), [PAIR, PAIR], asked("gate"))


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_seconds_are_above_0(seconds: float) -> None:
    with pytest.raises(UsageError, match="seconds: a finite number of at least 1e-9, got"):
        asked("gate", seconds=seconds)


def test_progress_beside_a_critical_request_is_not_known_without_steps() -> None:
    (row,) = bench(device(), [PAIR], asked("multistream")).rows
    assert row.critical[0].relative_rate_beside is None
    assert row.normal[0].relative_rate_beside == 0
