"""Which parts of a GPU a session's tasks may have, seen without a GPU."""

from __future__ import annotations

from typing import Any, cast

import pytest

pytest.importorskip("cuda.bindings")

from miriam.devices.cuda.world import World, may_run_at_once


def world(first: int, stop: int, *, green: bool = True) -> World:
    nothing = cast(Any, None)
    return World(nothing, nothing, "green" if green else None, stop - first, (first, stop))


WHOLE = world(0, 132, green=False)


def test_parts_that_touch_run_at_once() -> None:
    left, right = world(0, 16), world(16, 32)
    assert may_run_at_once([left, right, left])


def test_one_world_for_all_tasks_is_no_overlap() -> None:
    assert may_run_at_once([world(0, 32)] * 3)
    assert may_run_at_once([])
    assert not may_run_at_once([world(0, 32), world(0, 32)])


def test_a_part_beside_the_whole_gpu_runs() -> None:
    """The primary context is no green one; 800 sessions on an H200 ran so."""
    assert may_run_at_once([world(0, 96), WHOLE])


@pytest.mark.parametrize(
    "others", [[(0, 24)], [(8, 16), (24, 32)], [(24, 40)]], ids=["left", "inside", "across"]
)
def test_green_contexts_with_sms_in_common_do_not(others: list[tuple[int, int]]) -> None:
    assert not may_run_at_once([world(0, 32), *(world(*sms) for sms in others)])
