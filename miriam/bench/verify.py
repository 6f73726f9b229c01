"""Verification: co-run outputs against the solo outputs, every logical block exactly once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from miriam.bench.networks import Networks
from miriam.devices.contract import Arrays, Completion
from miriam.kernels import Program


class Checker:
    """Checks the requests of one row as they complete; ``faults`` keeps what was wrong.

    ``tasks``: the network of each task. Requests of which nothing was computed pass unseen.
    """

    def __init__(self, networks: Networks, tasks: Sequence[str]) -> None:
        self._networks, self._tasks = networks, tasks
        self._computed = 0
        self.faults: list[str] = []

    @property
    def verdict(self) -> bool | None:
        """Whether everything computed was right, None when nothing was computed."""
        return not self.faults if self._computed else None

    def check(self, done: Completion, ordinal: int) -> None:
        """Check a completion, its task's request number ``ordinal``."""
        if done.outputs is None:
            return
        self._computed += 1
        network = self._tasks[done.task]
        expected = self._networks.expected(network, ordinal)
        fault = find_fault(self._networks.program(network), done, expected)
        if fault:
            self.faults.append(f"task {done.task} ({network}) request {ordinal}: {fault}")


def find_fault(program: Program, done: Completion, expected: Arrays) -> str | None:
    """What is wrong with a computed request of ``program``, None if nothing is.

    Each logical block of each step must have run once, where the device counted, and the outputs
    must equal ``expected``, the solo run's, bit for bit. The text names step and block, or output
    and element.
    """
    return _wrong_block(program, done) or _wrong_output(program, done, expected)


def _wrong_block(program: Program, done: Completion) -> str | None:
    if done.runs is None:
        return None
    runs = done.runs
    if len(runs) != len(program.steps):
        return f"blocks of {len(runs)} steps counted, the program has {len(program.steps)}"
    for index, (step, counts) in enumerate(zip(program.steps, runs, strict=True)):
        where = f"step {index} ({step.name})"
        if counts.size != step.kernel.blocks:
            return f"{where}: {counts.size} blocks counted, the grid has {step.kernel.blocks}"
        wrong = np.flatnonzero(counts != 1)
        if wrong.size:
            block = int(wrong[0])
            times = f"block {block} ran {int(counts.flat[block])} times instead of once"
            return f"{where}: {times}; blocks concerned: {wrong.size} of {counts.size}"
    return None


def _wrong_output(program: Program, done: Completion, expected: Arrays) -> str | None:
    for name in (buffer.name for buffer in program.named("output")):
        got, want = (done.outputs or {}).get(name), expected[name]
        if got is None:
            return f"output {name} is missing"
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"output {name} is {got.dtype}{got.shape}, alone {want.dtype}{want.shape}"
        if got.tobytes() == want.tobytes():
            continue
        # Bytes, not values: a NaN equals itself here, and -0.0 differs from 0.0.
        differs = np.flatnonzero((_bytes(got) != _bytes(want)).any(axis=1))
        if differs.size:
            first = int(differs[0])
            values = f"{got.flat[first]}, alone {want.flat[first]}"
            count = f"elements concerned: {differs.size} of {want.size}"
            return f"output {name}: element {first} is {values}; {count}"
    return None


def _bytes(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
