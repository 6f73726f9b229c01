"""Segments and units: every step is in one of them, in order, and none is too short or too long."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from miriam.coordinator.corun import MOST_SEGMENTS, SEGMENT_NS, is_long, segments, units
from miriam.coordinator.gates import YIELD_TARGET_NS
from miriam.coordinator.task import Steps

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
