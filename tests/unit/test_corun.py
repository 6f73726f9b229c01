"""Segments and units are all steps, in order; what a device makes of what it measured."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miriam.coordinator import UNLIMITED, Grant
from miriam.coordinator.corun import (
    MOST_SEGMENTS,
    SEGMENT_NS,
    Trial,
    is_long,
    segments,
    units,
)
from miriam.coordinator.gates import YIELD_TARGET_NS
from miriam.coordinator.task import Steps
from miriam.devices.cuda import corun
from miriam.devices.cuda.corun import rates
from tests.kernels.programs import stirred

SHORT = st.integers(0, 2 * YIELD_TARGET_NS)
STEP_NS = st.lists(SHORT | st.integers(0, 4 * SEGMENT_NS), min_size=1, max_size=60)


def covered(ranges: Sequence[Steps]) -> list[int]:
    return [step for first, stop in ranges for step in range(first, stop)]


@given(STEP_NS)
def test_segments_are_all_steps_in_order_and_none_is_short(step_ns: list[int]) -> None:
    found = segments(step_ns)
    assert covered(found) == list(range(len(step_ns)))
    lengths_ns = [sum(step_ns[slice(*segment)]) for segment in found]
    assert len(found) == 1 or min(lengths_ns) >= SEGMENT_NS
    assert 1 <= len(found) <= MOST_SEGMENTS


@given(STEP_NS)
def test_units_are_all_steps_in_order_and_only_a_single_step_is_long(step_ns: list[int]) -> None:
    found = units(step_ns)
    assert covered(found) == list(range(len(step_ns)))
    for unit in found:
        within_target = sum(step_ns[slice(*unit)]) <= YIELD_TARGET_NS
        assert within_target or is_long(step_ns, unit)


def test_what_is_left_over_joins_the_last_segment() -> None:
    assert segments([30_000, 30_000, 60_000, 10_000]) == ((0, 2), (2, 4))


def test_a_long_request_has_longer_segments() -> None:
    assert segments([100_000] * 32) == tuple((i, i + 2) for i in range(0, 32, 2))


def test_short_steps_share_a_unit_and_a_long_one_has_its_own() -> None:
    step_ns = [5_000, 15_000, 5_000, 40_000, 5_000]
    assert units(step_ns) == ((0, 2), (2, 3), (3, 4), (4, 5))
    assert [is_long(step_ns, unit) for unit in units(step_ns)] == [False, False, True, False]


def test_a_program_of_one_step_is_one_segment_and_one_unit() -> None:
    assert segments([7]) == units([7]) == ((0, 1),)


def test_a_first_step_without_time_begins_a_unit() -> None:
    assert units([0, 40_000]) == ((0, 1), (1, 2))
    assert units([0, 0]) == ((0, 2),)


def test_progress_that_shows_in_steps_is_looked_at_over_its_neighbours() -> None:
    """Blocks of 100 us are claimed at 0, 100, ... us; a segment of 50 us sees one of two."""
    taken_ns = np.full(8, 50_000.0)
    claimed_ns = np.array([0.0, 1, 1, 2, 2, 3, 3, 4, 4]) * 100_000
    assert set(rates(claimed_ns, taken_ns, 0)) == {0.0, 2.0}
    assert rates(claimed_ns, taken_ns, 200_000) == pytest.approx(1.0, rel=0.4)
    assert rates(claimed_ns, taken_ns, 10**9) == pytest.approx(1.0)


def test_progress_of_short_blocks_is_each_segments_own() -> None:
    found = rates(np.array([0.0, 60_000, 60_000]), np.array([60_000.0, 50_000]), 20_000)
    assert found == pytest.approx([1.0, 0.0])


class Bench:
    """Stands for the GPU: a slowdown that counts the runs so far."""

    runs = 0

    def __init__(self, *given: Any) -> None:
        *_, self.ranges, self.units = given

    def run(self, unit: Steps, grant: Grant) -> dict[Steps, tuple[float, float]]:
        assert unit in self.units
        Bench.runs += 1
        return dict.fromkeys(self.ranges, (float(Bench.runs), 1.0))

    def close(self) -> None:
        pass


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> corun.CoRunner:
    """One that knows nothing yet."""
    monkeypatch.setattr(corun, "_Bench", Bench)
    monkeypatch.setattr(Bench, "runs", 0)
    nothing: Any = SimpleNamespace()
    return corun.CoRunner(nothing, nothing, nothing)


def test_what_is_known_of_equal_steps_is_not_measured_again(runner: corun.CoRunner) -> None:
    halves, whole = [(0, 2), (2, 4)], [(0, 4)]

    def shown(rounds: int, segments: Sequence[Steps], units: Sequence[Steps]) -> list[float]:
        programs = stirred(8, 100, steps=4), stirred(8, rounds, steps=3)
        trials = [Trial(s, u, UNLIMITED) for u in units for s in segments]
        found = runner.measure(programs, ([], []), trials)
        assert [each.trial for each in found] == trials
        return [each.slowdown for each in found]

    assert shown(7, halves, [(0, 1), (1, 3)]) == [1, 1, 2, 2]
    assert shown(7, halves, [(1, 2), (0, 2)]) == [1, 1, 2, 2]
    assert shown(8, halves, [(0, 1)]) == [3, 3]
    assert shown(7, whole, [(0, 1)]) == [4]
    assert shown(7, whole, []) == []


def test_what_is_known_beside_one_critical_task_is_not_taken_for_another_one(
    runner: corun.CoRunner,
) -> None:
    normal, trials = stirred(8, 7, steps=3), [Trial((0, 4), (0, 1), UNLIMITED)]
    found = [
        runner.measure((stirred(8, rounds, steps=4), normal), ([], []), trials)
        for rounds in (100, 200, 100)
    ]
    assert [shown.slowdown for (shown,) in found] == [1, 2, 1]
