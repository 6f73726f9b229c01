"""How long normal work took to leave when a critical request was announced, as gates saw it.

A gate that finds itself shut writes down when: all blocks of the step before it have gone by then.
A gate that nothing of its request ran before writes nothing: nobody had to leave.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from miriam.coordinator import Mix, Plan
from miriam.devices.cuda.clock import Clock
from miriam.devices.cuda.code import Function
from miriam.devices.cuda.driver import ask, driver, event
from miriam.devices.cuda.graphs import WAITS, WAITS_BYTES
from miriam.devices.cuda.memory import Memory, download
from miriam.devices.cuda.patience import drain

Spans = Sequence[tuple[int, int]]
"""When critical requests were announced and when they had ended, in ns on one clock."""


class Waits:
    """The waits of a session's gates."""

    def __init__(self, memory: Memory) -> None:
        self.address = memory.device(WAITS_BYTES)
        self._time = memory.device(8)
        self._offset_ns = 0

    def settle(self, clock: Clock, now: Function, stream: Any) -> None:
        """Put the GPU's timer on the scale of ``clock``; ``now`` is the kernel miriam_now."""
        with ExitStack() as owned:
            before, after = event(owned), event(owned)
            ask(driver.cuEventRecord(before, stream))
            now.launch(stream, (1, 1, 1), (1, 1, 1), [ctypes.c_void_p(self._time)])
            ask(driver.cuEventRecord(after, stream))
            drain(stream)
            read_ns = int(download(self._time, 1, "uint64")[0])
            self._offset_ns = (clock.of(before) + clock.of(after)) // 2 - read_ns

    def yields_ns(self, held: Spans, ended: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
        """For each request of ``held``, from its announcement until all normal work had left.

        ``held``: critical requests that nothing normal may run beside, on the session's clock.
        ``ended``: when normal requests had ended, by the number of their lane. Requests since
        which waits have been overwritten do not count; others as in ``yields_ns`` of this module.
        """
        words = download(self.address, 1 + 2 * WAITS, "uint64").astype(np.int64)
        pairs = words[1:].reshape(-1, 2)[: min(int(words[0]), WAITS)]
        lanes: dict[int, list[int]] = defaultdict(list)
        for time_ns, lane in pairs.tolist():
            lanes[lane].append(time_ns + self._offset_ns)
        if words[0] > WAITS:
            oldest_ns = min(min(times) for times in lanes.values())
            held = [span for span in held if span[0] >= oldest_ns]
        for lane, times_ns in ended.items():
            lanes[lane] += times_ns
        return yields_ns(held, [sorted(times) for times in lanes.values()])


def yields_ns(held: Spans, left: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """For each request of ``held``, how long after its announcement the last lane left.

    ``left``, per normal lane and ascending: when it came to a shut gate, or to the end of a
    request. The first time after the announcement counts; lanes that have none before the critical
    request ended do not count, nor requests for which no lane has one.
    """
    found = []
    for since_ns, until_ns in held:
        firsts = [_first(times, since_ns, until_ns) for times in left]
        took = [first - since_ns for first in firsts if first is not None]
        if took:
            found.append(max(took))
    return tuple(found)


def holds_all(plan: Plan, mix: Mix, critical: int) -> bool:
    """Whether ``plan`` lets nothing normal run at any step of the task ``critical``.

    Only then must all normal work leave when a request of it is announced.
    """
    tables = [plan.grants.get((critical, normal)) for normal in mix.normal]
    return all(
        table is not None and all(not grant.blocks for row in table for grant in row)
        for table in tables
    )


def _first(times: Sequence[int], since_ns: int, until_ns: int) -> int | None:
    """The first of the ascending ``times`` after ``since_ns``, None if later than ``until_ns``."""
    place = bisect_right(times, since_ns)
    return times[place] if place < len(times) and times[place] <= until_ns else None
