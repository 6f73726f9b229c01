"""A lane: one request in flight of a task, with its streams, buffers and graph."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from miriam.coordinator import Task
from miriam.devices.contract import Arrays
from miriam.devices.cuda.buffers import Buffers, Runs
from miriam.devices.cuda.capture import Graph
from miriam.devices.cuda.driver import ask, driver, event
from miriam.devices.cuda.world import World

EXTERNAL = 1  # CU_EVENT_RECORD_EXTERNAL: a node that records the event in each run of the graph


class Announcement(Protocol):
    """What a critical request says, and how: in its row of the control words, if it has one.

    ``steps``: those before which something changes, the first one included.
    """

    steps: Sequence[int]

    def begin(self, stream: Any) -> None:
        """Say that a request begins; before its graph, and not part of it."""

    def before(self, number: int, stream: Any) -> None:
        """Record what is said before ``steps[number]``."""

    def end(self, stream: Any) -> None:
        """Say that the request has ended; in its graph, or at once where that does not run."""


class Lane:
    """One request in flight: the graph of a whole inference and what it works on.

    ``began`` and ``ended`` are events that the graph records: before its first kernel, and when
    its outputs are in the host's memory. ``announced``: when it was about to be announced.
    ``side``, of the same priority, records what runs beside the chain of steps; lanes share it.
    ``number``: its own in the session. ``owned``: what it gives back when it is closed.
    """

    def __init__(
        self,
        task: Task,
        world: World,
        priority: int,
        buffers: Buffers,
        side: Any,
        number: int = 0,
    ) -> None:
        self.task, self.number, self.world, self.buffers = task, number, world, buffers
        self.graph: Graph | None = None
        self.announcement: Announcement | None = None
        self.runs: Runs | None = None
        world.enter()
        with ExitStack() as owned:
            self.stream, self.side = world.stream(priority, owned), side
            self.began, self.ended, self.announced = (event(owned) for _ in range(3))
            self.owned = owned.pop_all()

    def mark(self, event: Any) -> None:
        """Record ``event`` here, in each run of the graph that is being recorded."""
        ask(driver.cuEventRecordWithFlags(event, self.stream, EXTERNAL))

    def start(self, inputs: Arrays) -> None:
        """Announce a request, copy its inputs, launch its graph; the one before has ended."""
        try:
            self.announce()
            self.buffers.copy_in(inputs, self.stream)
            self.rerun()
        except BaseException:
            # Nothing else opens what was shut for a request whose graph does not run.
            self.withdraw()
            raise

    def announce(self) -> None:
        """Let normal work leave, if this lane's requests are announced at all.

        On the lane's own stream: the request before it may still have to write its end.
        """
        if self.announcement is not None:
            ask(driver.cuEventRecord(self.announced, self.stream))
            self.announcement.begin(self.stream)

    def withdraw(self) -> None:
        """Say that no request of it runs, if its requests are announced at all."""
        if self.announcement is not None:
            self.announcement.end(self.stream)

    def rerun(self) -> None:
        """Launch the graph on the inputs of the last request."""
        assert self.graph is not None  # recorded before any request starts
        self.graph.launch(self.stream)

    def has_ended(self) -> bool:
        """Whether the outputs of the last request are there; DeviceError where it failed."""
        result = driver.cuEventQuery(self.ended)
        if result[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        ask(result)
        return True

    def is_idle(self) -> bool:
        """Whether nothing of it is left on the GPU, control writes included."""
        result = driver.cuStreamQuery(self.stream)
        if result[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        ask(result)
        return True

    def close(self) -> None:
        """Give back what is not memory; nothing of it may be running."""
        # The graph first: it records the events.
        if self.graph is not None:
            self.graph.destroy()
        self.owned.close()
