"""How fast the normal tasks get on while a critical request runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from miriam.coordinator import Task, policies
from miriam.devices.contract import Device
from miriam.devices.observe import Observer
from miriam.kernels import Program
from miriam.runtime import Served

_SECOND_NS = 1_000_000_000
_FOREVER_NS = 10**15


class Beside(Observer):
    """Keeps every normal step, and weighs it by its time alone.

    ``critical`` says it of each task, ``step_ns`` has each task's steps alone. A step counts as
    progressing evenly from its beginning to its end, but for the times that a gate held it.
    """

    def __init__(self, critical: Sequence[bool], step_ns: Sequence[Sequence[int]]) -> None:
        self._critical, self._step_ns = critical, step_ns
        self._steps: list[list[tuple[int, int, int]]] = [[] for _ in critical]
        self._holds: list[list[tuple[int, int, int]]] = [[] for _ in critical]
        self._waits: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def held(self, task: int, request: int, step: int, since_ns: int, until_ns: int) -> None:
        """A gate held a step."""
        self._waits.setdefault((task, request), []).append((since_ns, until_ns))

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        """A step ended."""
        if not self._critical[task]:
            number = len(self._steps[task])
            for since_ns, until_ns in self._waits.pop((task, request), ()):
                self._holds[task].append((number, since_ns, until_ns))
            self._steps[task].append((step, began_ns, ended_ns))

    def rates_hz(self, served: Sequence[Sequence[Served]]) -> list[float | None]:
        """Each normal task's requests per second while a critical one ran, None for the others.

        ``served`` per task: the critical ones say when one was running.
        """
        chosen = zip(served, self._critical, strict=True)
        busy = [(r.start_ns, r.end_ns) for done, critical in chosen if critical for r in done]
        edges, shares, total_ns = cumulative(busy)
        return [
            None if critical or not total_ns else self._rate(task, edges, shares, total_ns)
            for task, critical in enumerate(self._critical)
        ]

    def _rate(
        self, task: int, edges: NDArray[np.float64], shares: NDArray[np.float64], total_ns: float
    ) -> float:
        if not self._steps[task]:
            return 0.0
        steps, began, ended = np.array(self._steps[task], np.int64).T
        busy_ns = np.interp(ended, edges, shares) - np.interp(began, edges, shares)
        took_ns = (ended - began).astype(np.float64)
        if self._holds[task]:
            number, since, until = np.array(self._holds[task], np.int64).T
            held_ns = np.interp(until, edges, shares) - np.interp(since, edges, shares)
            np.subtract.at(busy_ns, number, held_ns)
            np.subtract.at(took_ns, number, until - since)
        alone = np.array(self._step_ns[task], np.float64)
        work = (alone[steps] * busy_ns / np.maximum(took_ns, 1)).sum() / alone.sum()
        return float(work) * _SECOND_NS / total_ns


def step_times(device: Device, program: Program) -> tuple[int, ...]:
    """Each step's time, in ns, of one request alone on ``device``."""
    watch = _Steps(len(program.steps))
    session = device.open([Task("alone", program)], policies.get("multistream"), (watch,))
    session.submit(0, 0)
    while not session.advance(_FOREVER_NS):
        pass
    session.close()
    return tuple(watch.step_ns)


class _Steps(Observer):
    def __init__(self, steps: int) -> None:
        self.step_ns = [1] * steps

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        self.step_ns[step] = max(1, ended_ns - began_ns)


def cumulative(
    busy: Sequence[tuple[int, int]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Where the union of intervals begins and ends, how much of it has passed there, its length."""
    edges: list[float] = [0.0]
    shares: list[float] = [0.0]
    for start, end in sorted(busy):
        begin = max(start, edges[-1])
        if end > begin:
            edges += [begin, end]
            shares += [shares[-1], shares[-1] + end - begin]
    return np.array(edges), np.array(shares), shares[-1]
