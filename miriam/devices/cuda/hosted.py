"""The paper's form of coordination: the host looks on and launches normal steps, shard by shard.

A critical request is a graph all the same, but instead of writing control words it records an
event at each step where the grants change, and the host asks these events how far it is. A normal
request is launched from the host: the whole step where nothing limits it, else as many of its
logical blocks as the grant leaves free; a launch is not stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from miriam.coordinator import UNLIMITED, Grant, Plan
from miriam.devices.contract import Arrays
from miriam.devices.cuda.driver import ask, driver, event
from miriam.devices.cuda.graphs import Place
from miriam.devices.cuda.kernels import Form
from miriam.devices.cuda.lane import EXTERNAL, Announcement, Lane
from miriam.devices.cuda.patience import drain
from miriam.devices.cuda.rows import Table
from miriam.devices.cuda.stage import CLOSE_LIMIT_S, Stage
from miriam.elastic.launch import Control

SHARDS = 4_096
"""Counters of a lane: each launch of a shard takes one, and when all are used they are reset."""

Permitted = Callable[[int], Grant]
"""What a step of a lane may hold now."""


class _Progress:
    """Records events where a device-resident request would write words."""

    def __init__(self, steps: Sequence[int], owner: ExitStack) -> None:
        self.steps = steps
        self.events = [event(owner) for _ in range(len(steps) + 1)]

    def begin(self, stream: Any) -> None:
        """The host knows."""

    def before(self, number: int, stream: Any) -> None:
        """Record an event in each run of the graph."""
        ask(driver.cuEventRecordWithFlags(self.events[number], stream, EXTERNAL))

    def end(self, stream: Any) -> None:
        """Record the last event."""
        self.before(len(self.steps), stream)


@dataclass(slots=True)
class _Pieces:
    """A normal request that is launched piece by piece: where it stands."""

    places: Sequence[Place]
    counters: int
    piece: Any
    step: int = 0
    first: int = 0
    held: int = 0
    shards: int = 0


@dataclass(slots=True)
class _Host:
    """What the host knows of a lane."""

    active: bool = False
    progress: _Progress | None = None
    passed: int = 0
    pieces: _Pieces | None = None


class HostedLane(Lane):
    """A lane that the host attends to."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.host = _Host()

    def start(self, inputs: Arrays) -> None:
        """Begin a request; a normal one is launched by ``attend``."""
        self.buffers.copy_in(inputs, self.stream)
        self.rerun()

    def rerun(self) -> None:
        """Begin a request on the inputs of the last one."""
        host, pieces = self.host, self.host.pieces
        host.active, host.passed = True, 0
        if pieces is None:
            super().rerun()
            return
        pieces.step = pieces.first = pieces.held = pieces.shards = 0
        ask(driver.cuMemsetD32Async(pieces.counters, 0, SHARDS, self.stream))
        if self.runs is not None:
            self.runs.clear(self.stream)
        ask(driver.cuEventRecord(self.began, self.stream))
        ask(driver.cuEventRecord(pieces.piece, self.stream))

    def has_ended(self) -> bool:
        """Whether the outputs of the last request are there."""
        if self.host.pieces is not None and self.host.active:
            return False
        ended = super().has_ended()
        if ended:
            self.host.active = False
        return ended

    def position(self) -> int | None:
        """The step of a critical request that counts now, None if none runs."""
        host = self.host
        if not host.active or host.progress is None:
            return None
        steps = host.progress.steps
        while host.passed < len(steps) and _has_happened(host.progress.events[host.passed + 1]):
            host.passed += 1
        return steps[host.passed] if host.passed < len(steps) else None

    def attend(self, permitted: Permitted, free: Callable[[Grant], int]) -> None:
        """Launch the next piece of a normal request, if the last one has ended."""
        pieces = self.host.pieces
        if pieces is None or not self.host.active or not _has_happened(pieces.piece):
            return
        pieces.held = 0
        if pieces.first >= pieces.places[pieces.step].step.kernel.blocks:
            pieces.step, pieces.first = pieces.step + 1, 0
        if pieces.step == len(pieces.places):
            self._end()
            return
        grant = permitted(pieces.step)
        self._launch(pieces, grant, free(grant))

    def _launch(self, pieces: _Pieces, grant: Grant, free: int) -> None:
        place, kernel = pieces.places[pieces.step], pieces.places[pieces.step].step.kernel
        left = kernel.blocks - pieces.first
        whole = not pieces.first and (free >= kernel.blocks)
        if whole and not (place.forms and self.runs is not None):
            arguments = self.buffers.arguments(place.step)
            place.original.submit(self.stream, place.step, arguments)
            count = kernel.blocks
        else:
            count = min(left, free) if place.forms else 0
            if count < 1:
                return
            self._shard(pieces, place, self._form(place, grant), count)
        pieces.first += count
        pieces.held = count
        ask(driver.cuEventRecord(pieces.piece, self.stream))

    def _form(self, place: Place, grant: Grant) -> Form:
        return next((f for f in place.forms if f.threads == grant.threads), place.forms[0])

    def _shard(self, pieces: _Pieces, place: Place, form: Form, count: int) -> None:
        if pieces.shards == SHARDS:
            ask(driver.cuMemsetD32Async(pieces.counters, 0, SHARDS, self.stream))
            pieces.shards = 0
        control = Control(pieces.counters + 4 * pieces.shards, runs=place.runs)
        pieces.shards += 1
        arguments = self.buffers.arguments(place.step)
        part = pieces.first, count
        form.launch(self.stream, place.step.kernel, arguments, count, control, part)

    def _end(self) -> None:
        self.buffers.copy_out(self.stream)
        if self.runs is not None:
            self.runs.copy_out(self.stream)
        ask(driver.cuEventRecord(self.ended, self.stream))
        self.host.active = False


class HostedStage(Stage):
    """Lanes whose normal requests the host launches."""

    lane_type: type[Lane] = HostedLane

    def attend(self) -> None:
        """Look how far critical requests are, and launch what their grants leave room for."""
        standing = [
            (task, position)
            for task in self._watched
            for lane in self.lanes[task]
            if isinstance(lane, HostedLane) and (position := lane.position()) is not None
        ]
        normal = [lane for task in self._mix.normal for lane in self.lanes[task]]
        for task in self._mix.normal:
            permitted = partial(_least, self._plan, standing, task)
            for lane in self.lanes[task]:
                if isinstance(lane, HostedLane):
                    lane.attend(permitted, partial(_free, normal))

    def use(self, plan: Plan) -> None:
        """Let the host go by the grants of ``plan``, one that the stage was made for."""
        super().use(plan)
        self._plan = plan

    def warm_up(self) -> None:
        """Run each lane once, one after the other."""
        for lane in (lane for lanes in self.lanes for lane in lanes):
            lane.world.enter()
            lane.rerun()
            while isinstance(lane, HostedLane) and lane.host.pieces and lane.host.active:
                lane.attend(lambda step: UNLIMITED, lambda grant: grant.blocks)
            drain(lane.stream, CLOSE_LIMIT_S)
            lane.has_ended()
        self.enter()

    def announces(self, task: int) -> bool:
        """Nothing is announced on the device."""
        return False

    def _announcement(self, lane: Lane, table: Table, slot: int) -> Announcement:
        assert isinstance(lane, HostedLane)
        lane.host.progress = _Progress(table.steps, lane.owned)
        return lane.host.progress

    def _record_normal(self, lane: Lane, task: int, request: int) -> None:
        assert isinstance(lane, HostedLane)
        lane.world.enter()
        counters = self._memory.device(4 * SHARDS)
        places = self._places(lane, task, request, counters)
        lane.host.pieces = _Pieces(places, counters, event(lane.owned))


def _free(normal: Sequence[Lane], grant: Grant) -> int:
    """What ``grant``, which is for all ``normal`` lanes together, leaves."""
    hosts = [lane.host for lane in normal if isinstance(lane, HostedLane)]
    return grant.blocks - sum(host.pieces.held for host in hosts if host.pieces is not None)


def _least(plan: Plan, standing: Sequence[tuple[int, int]], normal: int, step: int) -> Grant:
    """The smallest grant of a normal step beside the critical ones that run."""
    grants = [
        plan.grants[critical, normal][position][step]
        for critical, position in standing
        if (critical, normal) in plan.grants
    ]
    return min(grants, key=lambda grant: grant.blocks, default=UNLIMITED)


def _has_happened(mark: Any) -> bool:
    result = driver.cuEventQuery(mark)
    if result[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
        return False
    ask(result)
    return True
