"""A lane: one request in flight of a task, with its streams, buffers and graph."""

from __future__ import annotations

from typing import Any

from miriam.coordinator import Task
from miriam.devices.contract import Arrays
from miriam.devices.cuda.buffers import Buffers, Runs
from miriam.devices.cuda.capture import Graph
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.world import World

EXTERNAL = 1  # CU_EVENT_RECORD_EXTERNAL: a node that records the event in each run of the graph


class Lane:
    """One request in flight: the graph of a whole inference and what it works on.

    ``began`` and ``ended`` are events that the graph records: before its first kernel, and when
    its outputs are in the host's memory; ``announced``, before it writes the control words.
    ``side``, of the same priority, records what runs beside the chain of steps; lanes share it.
    ``number``: its own in the session.
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
        self.runs: Runs | None = None
        world.enter()
        self.stream, self.side = world.stream(priority), side
        self.began, self.ended, self.announced = (ask(driver.cuEventCreate(0)) for _ in range(3))

    def mark(self, event: Any) -> None:
        """Record ``event`` here, in each run of the graph that is being recorded."""
        ask(driver.cuEventRecordWithFlags(event, self.stream, EXTERNAL))

    def start(self, inputs: Arrays) -> None:
        """Launch the graph of a request; the one before it must have ended."""
        self.buffers.stage(inputs)
        self.rerun()

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
        if self.graph is not None:
            self.graph.destroy()
        for event in (self.began, self.ended, self.announced):
            ask(driver.cuEventDestroy(event))
        ask(driver.cuStreamDestroy(self.stream))
