"""What the device's means cost in one world: launches, gates, claims, resumes, yields."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from miriam.devices.cuda.capture import Graph, recording
from miriam.devices.cuda.doctor.report import Cost, cost
from miriam.devices.cuda.doctor.subject import Mode, Subject, elapsed_us, sampled, spin
from miriam.devices.cuda.doctor.writes import WRITES, Write, Writer
from miriam.devices.cuda.driver import ask, driver

SHORT, FILL_5, FILL_30 = 0, 1, 2
"""The steps of the synthetic program."""

SAMPLES = 200
_REPEATS = 40
HEAD_START_S = 150e-6
"""What a step that is to be stopped has run before: it fills the world by then."""

# Those that wait for the whole step are slow, and no candidates.
_WRITE_SAMPLES: dict[Write, int] = {"memset": SAMPLES, "host copy": SAMPLES, "memory-op": SAMPLES}

# What design and issue ask for on an H200; the rest has no target.
_TARGETS_US: dict[Mode, float] = {"gate": 1.0, "claim": 1.6}
YIELD_TARGET_US = 20.0

_NAMES: dict[Mode, str] = {
    "gate": "gate, a step",
    "claim": "claim loop (yield form alone), a step",
    "chain": "{yield form, gate, rest}, a step",
    "while": "{yield form, check, WHILE not entered}, a step",
}


def measure_costs(subject: Subject) -> Iterator[Cost]:
    """All costs, with ``subject`` the synthetic program in the world."""
    yield from _host_costs(subject)
    yield _node_cost(subject)
    yield from _step_costs(subject)
    yield from write_costs(subject)


def _host_costs(subject: Subject) -> Iterator[Cost]:
    """Time of the host's thread in each call."""
    lane = subject.lane
    short = subject.device.kernels.original(subject.program.steps[SHORT])
    arguments = lane.buffers.arguments(subject.program.steps[SHORT])
    calls: dict[str, Callable[[], None]] = {
        "kernel launch from Python, host": lambda: short.launch(
            lane.stream, (1, 1, 1), (128, 1, 1), arguments
        ),
        "event record, host": lambda: ask(driver.cuEventRecord(lane.ended, lane.stream)),
        "event query, host": lambda: driver.cuEventQuery(lane.ended),
    }
    for what, call in calls.items():
        yield cost(what, sampled(lambda call=call: _host_us(call), SAMPLES))  # type: ignore[misc]
        subject.settle()
    graph = subject.record(SHORT, "original", _REPEATS)
    yield cost("graph launch, host", sampled(lambda: _launch_us(subject, graph), SAMPLES))
    graph.destroy()


def _host_us(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e6


def _launch_us(subject: Subject, graph: Graph) -> float:
    taken_us = _host_us(lambda: graph.launch(subject.lane.stream))
    subject.settle()
    return taken_us


def _node_cost(subject: Subject) -> Cost:
    """A kernel of one block that does next to nothing, in a chain of them."""
    lane, step = subject.lane, subject.program.steps[SHORT]
    function = subject.device.kernels.original(step)
    arguments = [*lane.buffers.arguments(step)[:2], type(lane.buffers.arguments(step)[2])(0)]
    with recording(lane.stream) as graph:
        lane.mark(lane.began)
        for _ in range(_REPEATS):
            function.launch(lane.stream, (1, 1, 1), (32, 1, 1), arguments)
        lane.mark(lane.ended)
    found = sampled(lambda: subject.run_us(graph) / _REPEATS, SAMPLES)
    graph.destroy()
    return cost("graph node, an empty kernel", found)


def _step_costs(subject: Subject) -> Iterator[Cost]:
    """What each form of a step takes over its original."""
    times = subject.times_us(SHORT, ("original", *_NAMES), _REPEATS, SAMPLES)
    base_us = median(times["original"])
    yield cost("short step, original", times["original"])
    for mode, what in _NAMES.items():
        over = [taken - base_us for taken in times[mode]]
        yield cost(f"{what}, over the original", over, _TARGETS_US.get(mode))


def write_costs(subject: Subject) -> Iterator[Cost]:
    """Control writes and yields while the register file is full.

    Both count from the submission of the graph that writes: until the write is done, and until
    the last block has left.
    """
    writer = Writer(subject)
    for index in (FILL_5, FILL_30):
        block_us = subject.profiles[index].original_ns * 1e-3 / waves(subject, index)
        blocks = f"blocks of {block_us:.1f} us"
        for write in WRITES:
            samples = _WRITE_SAMPLES.get(write, 10)
            found = yields(subject, writer, index, write, [HEAD_START_S] * samples)
            yield cost(f"control write by {write}, {blocks}", [y.written_us for y in found])
            # The product writes by copies from the host's memory.
            target_us = YIELD_TARGET_US if write == "host copy" and block_us <= 10 else None
            gone_us = [y.gone_us for y in found]
            yield cost(f"yield, written by {write}, {blocks}", gone_us, target_us, "p99")
    writer.close()


def waves(subject: Subject, index: int) -> int:
    """How many blocks one after the other a step's elastic form takes."""
    place = subject.place(index, "claim")
    return -(-place.step.kernel.blocks // place.resident[0])


@dataclass(frozen=True, slots=True)
class Yield:
    """From the submission of a control write: until it was done, until the last block had left.

    ``stopped``: whether the step had blocks left.
    """

    written_us: float
    gone_us: float
    stopped: bool


def yields(
    subject: Subject, writer: Writer, index: int, write: Write, head_starts_s: Sequence[float]
) -> list[Yield]:
    """Stop step ``index`` once per head start, the first two not counted."""
    urgent, lane = subject.urgent, subject.lane
    graph = writer.record(write, subject.word(index))
    asked, written, gone = (ask(driver.cuEventCreate(0)) for _ in range(3))
    blocks = subject.program.steps[index].kernel.blocks
    found = []
    for head_start_s in (*head_starts_s[:2], *head_starts_s):
        subject.open_all()
        subject.claim(index)
        ask(driver.cuEventRecord(gone, lane.stream))
        spin(head_start_s)
        ask(driver.cuEventRecord(asked, urgent))
        graph.launch(urgent)
        ask(driver.cuEventRecord(written, urgent))
        subject.settle()
        times_us = elapsed_us(asked, written), elapsed_us(asked, gone)
        found.append(Yield(*times_us, subject.claimed() < blocks))
    for event in (asked, written, gone):
        ask(driver.cuEventDestroy(event))
    graph.destroy()
    return found[2:]
