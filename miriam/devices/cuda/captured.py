"""Captured graphs as programs: their kernels are rigid steps, which gates can hold (level 1)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from miriam.devices.cuda.capture import recording
from miriam.devices.cuda.code import Function
from miriam.devices.cuda.driver import ask, driver, event
from miriam.devices.cuda.nodes import KERNEL, Clone, Node, read_nodes
from miriam.devices.cuda.patience import drain
from miriam.devices.cuda.recording import Recording
from miriam.devices.cuda.world import World
from miriam.errors import UsageError
from miriam.kernels import Buffer, Cost, Dim3, KernelSpec, Program, Resources, Step, Variant

RIGID = "captured"
"""Why such a step can not be sliced or stopped: nothing is known of it but its launch."""

RUNS = 7
_UNKNOWN = Cost(0.0, 0.0, 0.0)
_EXTERNAL = 1  # CU_EVENT_RECORD_EXTERNAL


@dataclass(frozen=True, slots=True)
class CapturedStep:
    """A kernel node and what comes between it and the kernel before it."""

    clone: Clone
    nodes: tuple[Node, ...]

    def submit(self, stream: Any, step: Step, arguments: Sequence[Any]) -> None:
        """Make its nodes again in what ``stream`` records; they have their own arguments."""
        self.clone.submit(stream, self.nodes)


class Captured:
    """A program made of recordings, one for each request in flight."""

    def __init__(self, name: str, arch: str, recordings: Sequence[Recording], world: World) -> None:
        """UsageError where the recordings differ, or keep to other SMs than ``world``'s."""
        if not recordings:
            raise UsageError(f"captured program {name}", "at least one recording", recordings)
        self._recordings, self._world = tuple(recordings), world
        self._parts = [_parts(read_nodes(r.handle)) for r in recordings]
        handles = [[_kernel(part) for part in parts] for parts in self._parts]
        programs = [
            _program(name, arch, found, r.buffers, world)
            for found, r in zip(handles, recordings, strict=True)
        ]
        for other in programs[1:]:
            if other != programs[0]:
                raise UsageError(
                    f"captured program {name}",
                    "the same kernels, inputs and outputs in all recordings",
                    [len(p.steps) for p in programs],
                    "capture the same function on inputs of the same shape",
                )
        self.program = programs[0]
        self.functions = tuple(_function(handle) for handle in handles[0])
        self._holder: weakref.ref[object] | None = None

    def lend(self, holder: object, task: str, in_flight: int) -> None:
        """Give the memory of the recordings to ``holder`` until it is gone or gives it back."""
        if in_flight > len(self._recordings):
            raise UsageError(
                f"task {task} in_flight",
                f"at most {len(self._recordings)}, the recordings of its program",
                in_flight,
                "capture it once more for each further request in flight",
            )
        if self._holder is not None and self._holder() is not None:
            raise UsageError(
                f"task {task} program",
                "a captured program serves one task of one open session",
                self.program.name,
                "capture it once more",
            )
        self._holder = weakref.ref(holder)

    def give_back(self) -> None:
        """The memory of the recordings is free for another session."""
        self._holder = None

    def addresses(self, request: int) -> dict[str, int]:
        """Where the inputs and outputs of the recording number ``request`` lie."""
        return self._recordings[request].addresses

    def originals(self, request: int) -> tuple[CapturedStep, ...]:
        """The steps of the recording number ``request``, to be recorded once."""
        clone = Clone()
        return tuple(CapturedStep(clone, part) for part in self._parts[request])

    def step_ns(self) -> tuple[int, ...]:
        """The time of each step alone, at least 1, from runs of the first recording.

        Between two events in the graph; what these cost is what the steps' times sum up to more
        than the whole takes without them, and is taken off each step in equal parts.
        """
        marked = self._interval_ns(list(range(len(self._parts[0]) + 1)))
        whole = self._interval_ns([0, len(self._parts[0])])[0]
        event_ns = max(0.0, sum(marked) - whole) / len(marked)
        return tuple(max(1, round(taken_ns - event_ns)) for taken_ns in marked)

    def _interval_ns(self, borders: Sequence[int]) -> list[float]:
        """Medians of the times between ``borders``: the numbers of the steps that follow them."""
        self._world.enter()
        samples: list[list[float]] = []
        with ExitStack() as owned:
            stream = self._world.stream(0, owned)
            events = {border: event(owned) for border in borders}
            steps = self.originals(0)
            with recording(stream) as graph:
                owned.callback(graph.destroy)
                for index, step in enumerate(steps):
                    if index in events:
                        ask(driver.cuEventRecordWithFlags(events[index], stream, _EXTERNAL))
                    step.submit(stream, self.program.steps[index], ())
                ask(driver.cuEventRecordWithFlags(events[len(steps)], stream, _EXTERNAL))
            for _ in range(RUNS):
                graph.launch(stream)
                drain(stream)
                pairs = pairwise(events.values())
                samples.append([ask(driver.cuEventElapsedTime(a, b)) * 1e6 for a, b in pairs])
        return [median(taken) for taken in zip(*samples[1:], strict=True)]


def _parts(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """The nodes by step: each kernel with what is before it, the last one with what is after."""
    parts: list[list[Node]] = [[]]
    for node in nodes:
        parts[-1].append(node)
        if node.kind == KERNEL:
            parts.append([])
    trailing = parts.pop()
    if parts:
        parts[-1] += trailing
    return tuple(tuple(part) for part in parts)


def _kernel(part: Sequence[Node]) -> Any:
    """The parameters of the kernel of a step."""
    (kernel,) = (node for node in part if node.kind == KERNEL)
    return ask(driver.cuGraphKernelNodeGetParams(driver.CUgraphNode(kernel.handle)))


def _function(parameters: Any) -> Function:
    # A copy: what the parameters hand out ends with them.
    handle = driver.CUfunction(int(parameters.func))
    if not int(handle):
        kernel = driver.CUkernel(int(parameters.kern))
        handle = ask(driver.cuKernelGetFunction(kernel))
    ask(driver.cuFuncLoad(handle))
    return Function(handle, ask(driver.cuFuncGetName(handle)).decode())


def _program(
    name: str, arch: str, kernels: Sequence[Any], buffers: tuple[Buffer, ...], world: World
) -> Program:
    outputs = [b.name for b in buffers if b.role == "output"]
    if not outputs:
        raise UsageError(f"captured program {name}", "at least one output", outputs)
    steps = []
    for index, parameters in enumerate(kernels):
        _check_sms(name, parameters, world)
        label = f"step{index}"
        spec = _spec(_function(parameters), parameters)
        steps.append(Step(label, label, spec, (), _UNKNOWN, outputs[-1], rigid=RIGID))
    return Program(name, arch, tuple(steps), buffers)


def _spec(function: Function, parameters: Any) -> KernelSpec:
    names = driver.CUfunction_attribute

    def attribute(name: str) -> int:
        which = getattr(names, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(ask(driver.cuFuncGetAttribute(which, function.handle)))

    resources = Resources(
        attribute("NUM_REGS"), attribute("SHARED_SIZE_BYTES"), attribute("LOCAL_SIZE_BYTES")
    )
    grid, block = (
        Dim3(*(int(getattr(parameters, f"{extent}Dim{axis}")) for axis in "XYZ"))
        for extent in ("grid", "block")
    )
    return KernelSpec(
        function.name,
        "",
        grid,
        block,
        (Variant(block.size, resources),),
        int(parameters.sharedMemBytes),
    )


def _check_sms(name: str, parameters: Any, world: World) -> None:
    """In a world of some SMs, a kernel has to come from a stream of that world."""
    if world.green is not None and int(parameters.ctx) != int(world.context):
        raise UsageError(
            f"captured program {name}",
            f"kernels that keep to the {world.sms} SMs of the device's world",
            "a kernel of another context",
            "capture on a stream of the device, within its context (docs/bring-your-own.md)",
        )
