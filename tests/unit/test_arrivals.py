"""Arrivals: when requests come, and that chance is under control."""

from pathlib import Path

import numpy as np
import pytest

from miriam.bench import Closed, Poisson, Trace, Uniform
from miriam.bench.arrivals import stream
from miriam.errors import UsageError

SECOND_NS = 1_000_000_000


def rng() -> np.random.Generator:
    return stream(1, "A", "alexnet")


def test_uniform_starts_at_0_and_keeps_its_distance() -> None:
    assert Uniform(hz=10).known(SECOND_NS // 2, rng()) == [
        0,
        10**8,
        2 * 10**8,
        3 * 10**8,
        4 * 10**8,
    ]


def test_uniform_does_not_drift() -> None:
    times = Uniform(hz=3).known(1_000 * SECOND_NS, rng())
    assert len(times) == 3_000
    assert times[2_997] == 999 * SECOND_NS


def test_poisson_has_the_asked_rate_and_exponential_distances() -> None:
    times = np.array(Poisson(hz=100).known(100 * SECOND_NS, rng()))
    gaps = np.diff(times)
    assert len(times) == pytest.approx(10_000, rel=0.04)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)
    assert times.min() >= 0 and times.max() < 100 * SECOND_NS


def test_poisson_continues_the_same_sequence_in_a_longer_window() -> None:
    short, long = (Poisson(hz=50).known(n * SECOND_NS, rng()) for n in (1, 3))
    assert long[: len(short)] == short
    assert len(long) > len(short)


def test_the_same_seed_and_task_give_the_same_times_and_others_do_not() -> None:
    times = {
        key: tuple(Poisson(hz=50).known(SECOND_NS, stream(*key)))
        for key in ((1, "A", "x"), (2, "A", "x"), (1, "B", "x"), (1, "A", "y"))
    }
    assert len(set(times.values())) == 4
    assert tuple(Poisson(hz=50).known(SECOND_NS, stream(1, "A", "x"))) == times[1, "A", "x"]


def test_closed_keeps_its_number_in_flight() -> None:
    closed = Closed(in_flight=3)
    assert closed.known(SECOND_NS, rng()) == [0, 0, 0]
    assert closed.following(42) == 42


@pytest.mark.parametrize("arrivals", [Uniform(1), Poisson(1), Trace((0,))])
def test_open_arrivals_do_not_wait_for_completions(arrivals: Uniform | Poisson | Trace) -> None:
    assert arrivals.following(42) is None


def test_trace_gives_the_recorded_times_of_the_window() -> None:
    assert Trace((0, 5, 5, 90)).known(90, rng()) == [0, 5, 5]


def test_trace_is_read_from_a_file_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text("# camera\n0\n0.0125  # second frame\n\n1e-1\n")
    assert Trace.read(path) == Trace((0, 12_500_000, 100_000_000))


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_line_that_is_no_time_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(f"0\n{text}\n")
    with pytest.raises(UsageError, match=r"trace\.txt:2: a time in seconds, not negative, got"):
        Trace.read(path)


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"arrivals file: a readable text file, got '.*none"):
        Trace.read(tmp_path / "none")


@pytest.mark.parametrize("hz", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", [Uniform, Poisson])
def test_a_rate_is_above_0(kind: type[Uniform] | type[Poisson], hz: float) -> None:
    with pytest.raises(UsageError, match="arrivals hz: a finite number above 0, got"):
        kind(hz)


def test_a_trace_ascends() -> None:
    with pytest.raises(UsageError, match="ascending from 0, at least 7 here, got 6"):
        Trace((7, 6))


def test_something_is_in_flight() -> None:
    with pytest.raises(UsageError, match="arrivals in_flight: at least 1, got 0"):
        Closed(0)
