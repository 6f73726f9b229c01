"""Which parts of a GPU a session's tasks may have, seen without a GPU."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("cuda.bindings")

from miriam.coordinator.plan import Plan, TaskPlan
from miriam.coordinator.split import split
from miriam.devices.cuda.driver import driver
from miriam.devices.cuda.stage import Stage
from miriam.devices.cuda.tryout import to_try
from miriam.devices.cuda.world import Gpu, World
from miriam.errors import DeviceError, MissingCapabilityError, UsageError


def h200(groups: int = 16) -> Gpu:
    """A GPU of 132 SMs in so many groups of 8."""
    group = SimpleNamespace(sm=SimpleNamespace(smCount=8))
    return Gpu(0, None, None, "H200", "sm_90", 132, 4_800.0, [cast(Any, group)] * groups)


def world(first: int, stop: int, *, green: bool = True) -> World:
    return World(h200(), None, "green" if green else None, stop - first, (first, stop))


WHOLE = world(0, 132, green=False)


SMALL = world(0, 32)


def test_parts_that_touch_run_at_once() -> None:
    assert SMALL.may_run_at_once([(0, 16), (16, 32), (0, 16)])


def test_one_world_for_all_tasks_is_no_overlap() -> None:
    assert SMALL.may_run_at_once([None, (0, 32), None])
    assert SMALL.may_run_at_once([])


def test_a_part_beside_the_whole_gpu_runs() -> None:
    """The primary context is no green one: `vacate` on a whole H200 never met the fault."""
    assert WHOLE.may_run_at_once([(0, 96), None, (0, 132)])
    assert not WHOLE.may_run_at_once([(0, 96), (64, 128), None])


@pytest.mark.parametrize(
    "others", [[(0, 24)], [(8, 16), (24, 32)], [(0, 24), (16, 32)]], ids=["left", "two", "across"]
)
def test_green_contexts_with_sms_in_common_do_not(others: list[tuple[int, int]]) -> None:
    assert not SMALL.may_run_at_once([None, *others])


def test_sms_of_a_small_world_are_told_apart_without_contexts_of_parts() -> None:
    """A part's context would overlap with the world's own."""
    gpu = h200()
    gpu.known_ids[32, 64] = tuple(range(1, 65, 2))
    small = World(gpu, None, "green", 32, (32, 64))
    where = cast(Any, None)
    assert small.ids_of(0, 24, where) + small.ids_of(24, 32, where) == gpu.known_ids[32, 64]
    assert len(small.ids_of(24, 32, where)) == 8


def test_sms_that_were_not_all_found_are_not_told_apart() -> None:
    gpu = h200()
    gpu.known_ids[0, 32] = tuple(range(31))
    with pytest.raises(DeviceError, match="blocks were seen on 31 of 32 SMs"):
        World(gpu, None, "green", 32, (0, 32)).ids_of(0, 8, cast(Any, None))


def test_plans_that_confine_tasks_are_tried_on_the_whole_gpu_only() -> None:
    shared = Plan((TaskPlan(0, ()), TaskPlan(1, ())))
    split_up = Plan((TaskPlan(0, (), (0, 16)), TaskPlan(1, (), (16, 32))))
    assert to_try([shared, split_up], WHOLE) == [shared, split_up]
    assert to_try([shared, split_up], world(0, 32)) == [shared]


class Part:
    """Some SMs of a world, until it is closed."""

    green = "green"

    def __init__(self, first: int, stop: int) -> None:
        self.range, self.closed = (first, stop), False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


class Divided(World):
    """A world of 32 SMs; ``given``: the parts that it gave, ``most`` at most, to ``owned``."""

    def __init__(self, most: int = 4) -> None:
        super().__init__(h200(), None, "green", 32, (0, 32))
        self.most, self.owned = most, ExitStack()
        self.given: list[Part] = []

    def part(self, first: int, stop: int) -> Any:
        if len(self.given) == self.most:
            raise DeviceError("no more of them")
        self.given.append(Part(first, stop))
        return self.given[-1]


def placed(world: Divided, *ranges: tuple[int, int] | None) -> list[Any]:
    """The worlds that a session gives to tasks whose plans ask for ``ranges``."""
    stage = Stage.__new__(Stage)
    stage._owned = world.owned
    tasks = [SimpleNamespace(sms=sms) for sms in ranges]
    stage._device = cast(Any, SimpleNamespace(world=world))
    stage._plan = cast(Any, SimpleNamespace(tasks=tasks))
    return list(stage._placed())


def test_tasks_that_ask_for_the_same_sms_share_a_part() -> None:
    world = Divided()
    left, again, right = placed(world, (0, 16), (0, 16), (16, 32))
    assert left is again and left is not right
    assert len(world.given) == 2 and not any(part.closed for part in world.given)


def test_tasks_whose_parts_overlap_share_the_sessions_world() -> None:
    world = Divided()
    assert placed(world, (0, 24), None) == [world, world]
    assert world.given == []


def test_parts_are_given_back_where_another_one_can_not_be_had() -> None:
    world = Divided(most=1)
    with pytest.raises(DeviceError, match="no more"):
        placed(world, (0, 16), (16, 32))
    world.owned.close()
    assert [part.closed for part in world.given] == [True]


@pytest.mark.parametrize("asked", [(0, 20), (24, 40), (8, 8)])
def test_parts_that_are_none_are_refused_also_where_they_would_overlap(
    asked: tuple[int, int],
) -> None:
    with pytest.raises(UsageError, match=f"SMs {asked[0]} to {asked[1]} of"):
        placed(Divided(), asked, None)
    with pytest.raises(UsageError, match=f"SMs {asked[0]} to {asked[1]} of"):
        SMALL.ids_of(*asked, cast(Any, None))


def test_a_gpu_without_green_contexts_is_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that policies refuse to split it instead of failing in the driver."""
    refused = driver.CUresult.CUDA_ERROR_NOT_SUPPORTED
    calls = SimpleNamespace(
        CUresult=driver.CUresult,
        CUdevResourceType=driver.CUdevResourceType,
        cuDeviceGetDevResource=lambda device, kind: (refused, None),
    )
    monkeypatch.setattr("miriam.devices.cuda.world.driver", calls)
    gpu = Gpu(0, None, None, "old", "sm_75", sms=30, dram_gbps=1.0)
    spec = gpu.spec(gpu.whole())
    assert (spec.sm_group, spec.sm_groups) == (30, 1)
    with pytest.raises(UsageError, match="GPU old groups of 30 SMs: at least 2 to be split, got 1"):
        split(spec, 0.5)


@pytest.mark.parametrize(
    ("asked", "given"), [((0, 8), (0, 8)), ((8, 32), (8, 32)), ((64, 132), (64, 128))]
)
def test_ranges_are_whole_groups(asked: tuple[int, int], given: tuple[int, int]) -> None:
    """What is behind the last group comes to nobody."""
    assert h200().place(*asked) == given


@pytest.mark.parametrize("asked", [(0, 12), (4, 8), (8, 8), (128, 136), (0, 140)])
def test_other_ranges_are_refused(asked: tuple[int, int]) -> None:
    text = f"SMs {asked[0]} to {asked[1]} of H200: whole groups of 8, up to 128"
    with pytest.raises(UsageError, match=text):
        h200().place(*asked)


def test_without_groups_there_are_no_parts() -> None:
    with pytest.raises(MissingCapabilityError, match="SMs 0 to 8 of H200: they can not be conf"):
        h200(groups=0).place(0, 8)
