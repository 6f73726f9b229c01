"""Which levels of control a world offers: each is tried, none is assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from miriam.devices.cuda.capture import recording
from miriam.devices.cuda.code import Module
from miriam.devices.cuda.doctor.costs import FILL_30, HEAD_START_S, SHORT
from miriam.devices.cuda.doctor.report import Finding, LevelReport, WorldReport
from miriam.devices.cuda.doctor.subject import FLOATS, Subject, spin
from miriam.devices.cuda.doctor.writes import Writer
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.graphs import record_step
from miriam.devices.cuda.memory import download, upload
from miriam.devices.cuda.patience import drain
from miriam.devices.cuda.words import OPEN, SM_WORDS
from miriam.devices.cuda.world import Gpu, World
from miriam.errors import DeviceError, MissingCapabilityError, UsageError

Check = Callable[[Subject], str]
"""Says what was seen; DeviceError where it is not as it should be."""


def check_levels(subject: Subject) -> Iterator[LevelReport]:
    """Levels 0 to 3; a level needs the ones below it."""
    offered = True
    for level, check in enumerate((_order, _gate, _yield, _grant)):
        if offered:
            try:
                why = check(subject)
            except DeviceError as error:
                offered, why = False, str(error)
        else:
            why = f"level {level - 1} is not offered"
        yield LevelReport(level, offered, why)


def _order(subject: Subject) -> str:
    least, greatest = ask(driver.cuCtxGetStreamPriorityRange())
    if least == greatest:
        raise DeviceError("streams have no priorities")
    return f"streams of priority {greatest} to {least}"


def _gate(subject: Subject) -> str:
    """A shut gate holds its step, and a copy from the host's memory opens it."""
    word = subject.word(SHORT)
    subject.open_all()
    subject.write(word, 0)
    lane = subject.lane
    with recording(lane.stream) as graph:
        record_step(lane, subject.place(SHORT, "gate"), subject.controls)
        lane.mark(lane.ended)
    graph.launch(lane.stream)
    spin(2e-3)
    held = int(driver.cuEventQuery(lane.ended)[0]) != 0
    subject.write(word, OPEN)
    subject.settle()
    graph.destroy()
    late = int(download(subject.controls.late, 1, "uint32")[0])
    if not held or late:
        raise DeviceError("a shut gate let its step through")
    return "a shut gate held its step for 2 ms and opened when its word was written"


def _yield(subject: Subject) -> str:
    """A step is stopped inside and resumed, and leaves the bytes of its original."""
    place = subject.place(FILL_30, "claim")
    upload(_argument(subject, 0), np.random.default_rng(1).random(FLOATS, np.float32))
    record_step(subject.lane, subject.place(FILL_30, "original"), subject.controls)
    subject.settle()
    expected = _output(subject)
    subject.write(_argument(subject, 1), 0, FLOATS)
    subject.open_all()
    writer = Writer(subject)
    graph = writer.record("host copy", subject.word(FILL_30))
    subject.claim(FILL_30)
    spin(HEAD_START_S)
    graph.launch(subject.urgent)
    subject.settle()
    blocks, claimed = place.step.kernel.blocks, subject.claimed()
    subject.write(subject.word(FILL_30), OPEN)
    subject.write(place.shrunk, 0)
    subject.claim(FILL_30)
    subject.settle()
    graph.destroy()
    writer.close()
    if not 0 < claimed < blocks:
        raise DeviceError(f"a step was not stopped: {claimed} of {blocks} blocks had run")
    if subject.claimed() < blocks or _output(subject) != expected:
        raise DeviceError("a step that was stopped and resumed left other bytes than its original")
    return f"a step was stopped after {claimed} of {blocks} blocks, resumed, and left equal bytes"


def _grant(subject: Subject) -> str:
    """A step runs on no SM outside its set, and goes on when the set is whole."""
    subject.open_all()
    rows = subject.controls.rows
    subject.write(rows, 0, SM_WORDS)
    subject.claim(SHORT, sms=rows)
    subject.settle()
    without = subject.claimed()
    subject.write(rows, OPEN, SM_WORDS)
    subject.write(subject.place(SHORT, "claim").shrunk, 0)
    subject.write(subject.word(SHORT), 1)
    subject.claim(SHORT, sms=rows)
    subject.settle()
    blocks = subject.program.steps[SHORT].kernel.blocks
    if without or subject.claimed() < blocks:
        raise DeviceError("a step did not keep to its set of SMs")
    return "a step kept off all SMs when its set was empty, and ran on one block when told so"


def _argument(subject: Subject, index: int) -> int:
    """The address that the filling steps have as argument ``index``."""
    argument = subject.lane.buffers.arguments(subject.program.steps[FILL_30])[index]
    return int(argument.value)


def _output(subject: Subject) -> bytes:
    return download(_argument(subject, 1), FLOATS, "float32").tobytes()


def check_worlds(gpu: Gpu, where: Module) -> tuple[tuple[WorldReport, ...], tuple[Finding, ...]]:
    """Worlds of 8, 16, 32 SMs and all, and whether two parts of the GPU share no SM."""
    kernel = where.function("miriam_where")
    found: dict[int, WorldReport] = {}
    for asked in (8, 16, 32, gpu.sms):
        try:
            world = gpu.whole() if asked == gpu.sms else gpu.world(0, asked)
        except (UsageError, MissingCapabilityError):
            continue
        # All SMs may be more than all groups: the last ones make up no whole group.
        groups = min(len(gpu.groups), (world.range[1] - world.range[0]) // gpu.group_sms)
        found[asked] = WorldReport(asked, world.sms, groups, world.ids(kernel))
    return tuple(found.values()), (_disjoint(gpu, kernel),)


def _disjoint(gpu: Gpu, kernel: Any) -> Finding:
    what, why = "two worlds side by side", "a critical task confined to some SMs has them alone"
    size = gpu.group_sms
    if len(gpu.groups) < 2:
        return Finding(what, "missing", "SMs can not be confined", why, "use whole-GPU policies")
    halves: tuple[World, World] = (gpu.world(0, size), gpu.world(size, 2 * size))
    first, second = (set(half.ids(kernel)) for half in halves)
    gpu.whole().enter()
    shared = sorted(first & second)
    expected = tuple(half.sms for half in halves)
    if shared or (len(first), len(second)) != expected:
        value = f"SMs {shared} are in both; {len(first)} and {len(second)} SMs were seen"
        return Finding(what, "trap", value, why, "use no policy that confines tasks to SMs")
    return Finding(what, "ok", f"{expected[0]} and {expected[1]} SMs, none in both", why)


def check_features(subject: Subject) -> Iterator[Finding]:
    """What graphs must be able to hold."""

    def memory_operation() -> None:
        writer = Writer(subject)
        graph = writer.record("memory-op", subject.word(SHORT))
        graph.launch(subject.urgent)
        drain(subject.urgent)
        graph.destroy()
        writer.close()

    def while_node() -> None:
        subject.times_us(SHORT, ("while",), 1, 1)

    def event_node() -> None:
        subject.times_us(SHORT, ("original",), 1, 1)

    features: dict[str, tuple[Callable[[], None], str]] = {
        "event nodes": (event_node, "times of requests are taken by them"),
        "conditional nodes": (while_node, "long steps are resumed by WHILE nodes"),
        "memory-op nodes": (memory_operation, "another way to write control words"),
    }
    for what, (attempt, why) in features.items():
        subject.open_all()
        try:
            attempt()
            yield Finding(what, "ok", "works", why)
        except DeviceError as error:
            yield Finding(what, "missing", str(error), why, "update the NVIDIA driver")
    subject.open_all()
