"""How long normal work took to leave when a critical request was announced, as gates saw it.

A gate that finds itself shut writes down when: all blocks of the step before it have gone by then.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from miriam.devices.cuda.clock import Clock
from miriam.devices.cuda.code import Function
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.graphs import WAITS, WAITS_BYTES
from miriam.devices.cuda.memory import Memory, download
from miriam.devices.cuda.patience import drain


class Waits:
    """The waits of a session's gates."""

    def __init__(self, memory: Memory) -> None:
        self.address = memory.device(WAITS_BYTES)
        self._time = memory.device(8)
        self._offset_ns = 0

    def settle(self, clock: Clock, now: Function, stream: Any) -> None:
        """Put the GPU's timer on the scale of ``clock``; ``now`` is the kernel miriam_now."""
        before, after = (ask(driver.cuEventCreate(0)) for _ in range(2))
        ask(driver.cuEventRecord(before, stream))
        now.launch(stream, (1, 1, 1), (1, 1, 1), [ctypes.c_void_p(self._time)])
        ask(driver.cuEventRecord(after, stream))
        drain(stream)
        read_ns = int(download(self._time, 1, "uint64")[0])
        self._offset_ns = (clock.of(before) + clock.of(after)) // 2 - read_ns
        for event in (before, after):
            ask(driver.cuEventDestroy(event))

    def yields_ns(self, announced: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """For each critical request, from its announcement to the last normal lane's wait.

        ``announced``: when each was announced and when it had ended, on the session's clock.
        Requests that no lane waited for do not count, nor waits that were overwritten since.
        """
        begun = self._by_lane()
        found = []
        for since_ns, until_ns in announced:
            firsts = [_first(times, since_ns, until_ns) for times in begun]
            took = [first - since_ns for first in firsts if first is not None]
            if took:
                found.append(max(took))
        return tuple(found)

    def _by_lane(self) -> list[list[int]]:
        words = download(self.address, 1 + 2 * WAITS, "uint64").astype(np.int64)
        pairs = words[1:].reshape(-1, 2)[: min(int(words[0]), WAITS)]
        lanes: dict[int, list[int]] = defaultdict(list)
        for time_ns, lane in pairs.tolist():
            lanes[lane].append(time_ns + self._offset_ns)
        return [sorted(times) for times in lanes.values()]


def _first(times: Sequence[int], since_ns: int, until_ns: int) -> int | None:
    """The first of the ascending ``times`` after ``since_ns``, None if later than ``until_ns``."""
    place = bisect_right(times, since_ns)
    return times[place] if place < len(times) and times[place] <= until_ns else None
