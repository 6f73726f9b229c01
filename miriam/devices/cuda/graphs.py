"""The graphs of requests: a critical one writes control words, a normal one asks them.

A critical graph is the chain of its original kernels, with copies into its row of the control words
on a branch beside it. In a normal graph a step is one of::

    original                              level 0
    gate, original                        level 1
    yield form, gate, yield form          level 2 and 3; the second one is not stopped again
    yield form, gate, check, WHILE {gate, yield form, check}    the same without end, for long
                                      steps, and for those that may be granted a part of their
                                      blocks: a form that is not stopped does not keep to it either

Blocks that are asked to leave do so at once, and what they leave is picked up behind the gate.
A gate is a kernel or a wait in memory. The kernel is passed 0.8 us faster, and can write down when
it was reached; but it holds a place on an SM, which costs critical kernels up to 8 % on 32 SMs with
two lanes, 29 % with eight (docs/results/gates.md). So in small worlds gates are waits where they
can be; where several critical requests may run, a kernel behind the wait asks whether all rows are
open.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from miriam.devices.cuda.capture import (
    Fork,
    add_wait,
    add_while,
    conditional,
    recording,
    recording_into,
)
from miriam.devices.cuda.code import Function, Original
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.kernels import Form
from miriam.devices.cuda.lane import Announcement, Lane
from miriam.devices.cuda.words import StepWords
from miriam.elastic.launch import Control
from miriam.kernels import Step

WHILE_FROM_NS = 150_000
"""A step this long gets a WHILE node: it costs 1 to 2 us more than a gate and a second launch,
and stops as often as it is asked (docs/results/device.md)."""


class Gate(ctypes.Structure):
    """``Gate`` of controls.cu."""

    _fields_ = (
        ("quota", ctypes.c_void_p),
        ("forms", ctypes.c_uint),
        ("more_quotas", ctypes.c_uint),
        ("quota_stride", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("counter", ctypes.c_void_p),
        ("abort", ctypes.c_void_p),
        ("late", ctypes.c_void_p),
        ("shrunk", ctypes.c_void_p),
        ("limit_ns", ctypes.c_ulonglong),
        ("waits", ctypes.c_void_p),
        ("lane", ctypes.c_uint),
        ("first", ctypes.c_uint),
    )


class _Border(ctypes.Structure):
    """``Border`` of controls.cu."""

    _fields_ = (
        ("round", ctypes.c_void_p),
        ("at", ctypes.c_void_p),
        ("running", ctypes.c_void_p),
        ("abort", ctypes.c_void_p),
        ("late", ctypes.c_void_p),
        ("limit_ns", ctypes.c_ulonglong),
        ("lanes", ctypes.c_uint),
        ("lane", ctypes.c_uint),
    )


WAITS = 8_192
"""How many waits of gates are kept, as in controls.cu."""

WAITS_BYTES = 8 * (1 + 2 * WAITS)


@dataclass(frozen=True, slots=True)
class Controls:
    """The control words of a session: addresses, and the kernels that ask them.

    ``rows``: ``slots`` rows of ``width`` words. ``abort``: a word of the host's memory, not 0 opens
    all gates. ``late``: how many gates opened because ``limit_ns`` were up. ``confined``: whether
    rows name sets of SMs. ``waits``: where gates write when they found themselves shut.
    ``borders``: the words of borders, 0 where there are none; ``lanes``: of all tasks together.
    ``in_memory``: whether gates are waits in memory rather than kernels.
    """

    gate: Function
    again: Function
    rows: int
    width: int
    slots: int
    abort: int
    late: int
    limit_ns: int
    confined: bool
    waits: int
    border: Function | None = None
    borders: int = 0
    lanes: int = 0
    in_memory: bool = False

    def row(self, slot: int) -> int:
        """Where the row of a critical request in flight begins."""
        return self.rows + 4 * self.width * slot


@dataclass(frozen=True, slots=True)
class Place:
    """A normal step: its words, its yield forms (one per word), and where its counter lies.

    ``original``: the step as it was. ``forms`` is empty where the original runs, ``resident``
    says how many blocks of each fill the world.
    """

    step: Step
    alone_ns: int
    original: Original
    words: StepWords | None = None
    forms: tuple[Form, ...] = ()
    resident: tuple[int, ...] = ()
    counter: int = 0
    shrunk: int = 0
    runs: int = 0


def record_critical(
    lane: Lane,
    originals: Sequence[Original],
    announcement: Announcement | None,
    borders: Borders | None = None,
) -> None:
    """Record the graph of a critical request; without an announcement nobody looks at it.

    The lane announces a request before it launches the graph, so that normal work leaves while
    the inputs are copied.
    """
    lane.announcement = announcement
    borders = borders or Borders()
    steps, arguments = lane.task.program.steps, lane.buffers.arguments
    with recording(lane.stream) as lane.graph:
        said = _Said(lane, announcement) if announcement is not None else None
        borders.open(lane.stream)
        lane.mark(lane.began)
        for index, (step, original) in enumerate(zip(steps, originals, strict=True)):
            if said is not None:
                said.before(index)
            borders.before(index, lane.stream)
            original.submit(lane.stream, step, arguments(step))
        if said is not None:
            said.end()
        lane.buffers.copy_out(lane.stream)
        lane.mark(lane.ended)
        borders.close(lane.stream)
        if said is not None:
            said.join()
    lane.graph.upload(lane.stream)


class _Said:
    """What a critical request says, on a branch beside the chain of its steps."""

    def __init__(self, lane: Lane, announcement: Announcement) -> None:
        self._lane, self._announcement = lane, announcement
        self._numbers = {step: number for number, step in enumerate(announcement.steps)}
        self._fork = Fork(lane.stream, lane.side, lane.owned)

    def before(self, step: int) -> None:
        """What changes before ``step``; for the first one the lane has said it already."""
        if step and step in self._numbers:
            self._fork.catch_up()
            self._announcement.before(self._numbers[step], self._lane.side)

    def end(self) -> None:
        """The request has ended."""
        self._fork.catch_up()
        self._announcement.end(self._lane.side)

    def join(self) -> None:
        """The graph ends when the last write has been made."""
        self._fork.join()


class Borders:
    """The borders of one lane, number ``lane``: before which of its steps it waits for others.

    Without controls there are none.
    """

    def __init__(
        self, controls: Controls | None = None, lane: int = 0, steps: frozenset[int] = frozenset()
    ) -> None:
        self._controls, self._lane, self._steps = controls, lane, steps

    def open(self, stream: Any) -> None:
        """The request runs from now on."""
        self._runs(stream, 1)

    def close(self, stream: Any) -> None:
        """It does not run any more."""
        self._runs(stream, 0)

    def before(self, step: int, stream: Any) -> None:
        """Wait here if there is a border before ``step``."""
        controls = self._controls
        if step not in self._steps or controls is None or controls.border is None:
            return
        words = controls.borders
        border = _Border(
            round=words,
            at=words + 4,
            running=words + 4 + 4 * controls.lanes,
            abort=controls.abort,
            late=controls.late,
            limit_ns=controls.limit_ns,
            lanes=controls.lanes,
            lane=self._lane,
        )
        controls.border.launch(stream, (1, 1, 1), (1, 1, 1), [border])

    def _runs(self, stream: Any, value: int) -> None:
        controls = self._controls
        if controls is not None and controls.borders:
            at = controls.borders + 4 + 4 * (controls.lanes + self._lane)
            ask(driver.cuMemsetD32Async(at, value, 1, stream))


def record_normal(
    lane: Lane,
    places: Sequence[Place],
    controls: Controls,
    counters: tuple[int, int],
    borders: Borders | None = None,
) -> None:
    """Record the graph of a normal request; ``counters``: their address, and how many words."""
    borders = borders or Borders()
    with recording(lane.stream) as lane.graph:
        borders.open(lane.stream)
        if counters[1]:
            ask(driver.cuMemsetD32Async(counters[0], 0, counters[1], lane.stream))
        if lane.runs is not None:
            lane.runs.clear(lane.stream)
        lane.mark(lane.began)
        for index, place in enumerate(places):
            borders.before(index, lane.stream)
            record_step(lane, place, controls, first=index == 0)
        lane.buffers.copy_out(lane.stream)
        if lane.runs is not None:
            lane.runs.copy_out(lane.stream)
        lane.mark(lane.ended)
        borders.close(lane.stream)
    lane.graph.upload(lane.stream)


def record_step(lane: Lane, place: Place, controls: Controls, *, first: bool = False) -> None:
    """Record one normal step into what the lane's stream records.

    ``first``: of its request. A gate there that nothing ran before writes no wait down.
    """
    _Recorder(lane, place, controls, first).record()


class _Recorder:
    """Records one normal step."""

    def __init__(self, lane: Lane, place: Place, controls: Controls, first: bool) -> None:
        self._lane, self._place, self._controls, self._first = lane, place, controls, first
        self._arguments = lane.buffers.arguments(place.step)
        self._blocks = place.step.kernel.blocks

    def record(self) -> None:
        """Submit what the step is made of."""
        lane, place = self._lane, self._place
        if not place.forms:
            if place.words is not None:
                self._hold(lane.stream)
            place.original.submit(lane.stream, place.step, self._arguments)
            return
        self._forms(lane.stream)
        limited = place.words is not None and place.words.limited
        if place.alone_ns < WHILE_FROM_NS and not limited:
            self._hold(lane.stream, resuming=True)
            self._form(lane.stream, 0, stoppable=False)
            return
        if self._waits:
            self._hold(lane.stream, resuming=True)
        unfinished = conditional(lane.stream)
        self._check(lane.stream, unfinished)
        with recording_into(add_while(lane.stream, unfinished), lane.side):
            self._gate(lane.side, resuming=True)
            self._forms(lane.side)
            self._check(lane.side, unfinished)

    def _forms(self, stream: Any) -> None:
        for index in range(len(self._place.forms)):
            self._form(stream, index, stoppable=True)

    def _form(self, stream: Any, index: int, *, stoppable: bool) -> None:
        place, kernel = self._place, self._place.step.kernel
        blocks = min(kernel.blocks, place.resident[index])
        control = self._control(index, stoppable)
        place.forms[index].launch(stream, kernel, self._arguments, blocks, control)

    def _control(self, index: int, stoppable: bool) -> Control:
        place, controls = self._place, self._controls
        if not stoppable or place.words is None:
            return Control(place.counter, runs=place.runs)
        return Control(
            counter=place.counter,
            quota=controls.rows + 4 * (place.words.index + index),
            quotas=controls.slots,
            stride=controls.width,
            sms=controls.rows if controls.confined else 0,
            runs=place.runs,
            shrunk=place.shrunk,
        )

    @property
    def _waits(self) -> bool:
        """Whether the gates of this step are waits in memory: of several forms any may open."""
        words = self._place.words
        return self._controls.in_memory and words is not None and len(words.threads) == 1

    def _hold(self, stream: Any, *, resuming: bool = False) -> None:
        """A gate outside of conditional nodes."""
        place, controls = self._place, self._controls
        if not self._waits or place.words is None:
            self._gate(stream, resuming=resuming)
            return
        word = controls.rows + 4 * place.words.index
        add_wait(stream, [word + 4 * controls.width * slot for slot in range(controls.slots)])
        if controls.slots > 1:
            # The waits pass one after the other, and a row that was passed may be shut again.
            self._gate(stream, resuming=resuming)

    def _gate(self, stream: Any, *, resuming: bool = False) -> None:
        place, controls = self._place, self._controls
        assert place.words is not None  # only steps with words are held
        gate = Gate(
            quota=controls.rows + 4 * place.words.index,
            forms=len(place.words.threads),
            more_quotas=controls.slots - 1,
            quota_stride=controls.width,
            count=self._blocks,
            counter=place.counter if resuming else None,
            abort=controls.abort,
            late=controls.late,
            shrunk=place.shrunk if resuming else None,
            limit_ns=controls.limit_ns,
            waits=controls.waits,
            lane=self._lane.number,
            first=self._first,
        )
        controls.gate.launch(stream, (1, 1, 1), (1, 1, 1), [gate])

    def _check(self, stream: Any, condition: Any) -> None:
        arguments = [
            ctypes.c_void_p(self._place.counter),
            ctypes.c_uint(self._blocks),
            ctypes.c_ulonglong(int(condition)),
        ]
        self._controls.again.launch(stream, (1, 1, 1), (1, 1, 1), arguments)
