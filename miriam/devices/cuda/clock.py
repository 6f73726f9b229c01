"""The session's clock, and the GPU's event times on it."""

from __future__ import annotations

import time
from typing import Any

from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.patience import wait_for
from miriam.devices.cuda.world import World

_TRIES = 20
_REBASE_NS = 1_000_000_000
"""Elapsed times are single-precision milliseconds: over a second they are good to 0.1 us."""


class Clock:
    """Nanoseconds since it was made, by the host; events of the GPU are put on the same scale."""

    def __init__(self, world: World) -> None:
        world.enter()
        self._stream = world.stream(-(2**31))
        self._opened_ns = time.perf_counter_ns()
        self._base = self._event()
        self._base_ns = self._best_base()

    @property
    def now_ns(self) -> int:
        """Now."""
        return time.perf_counter_ns() - self._opened_ns

    def of(self, event: Any) -> int:
        """When ``event``, which has happened, was recorded; within about 5 us."""
        elapsed_ms: float = ask(driver.cuEventElapsedTime(self._base, event))
        return self._base_ns + round(elapsed_ms * 1e6)

    def keep_up(self) -> None:
        """Take a newer event as the base where the present one is old."""
        if self.now_ns - self._base_ns < _REBASE_NS:
            return
        newer = self._event()
        ask(driver.cuEventRecord(newer, self._stream))
        wait_for(newer, 1.0)
        self._base_ns = self.of(newer)
        ask(driver.cuEventDestroy(self._base))
        self._base = newer

    def close(self) -> None:
        """Give it back."""
        ask(driver.cuEventDestroy(self._base))
        ask(driver.cuStreamDestroy(self._stream))

    def _event(self) -> Any:
        return ask(driver.cuEventCreate(0))

    def _best_base(self) -> int:
        """The host's time of the base event, from the try that the two agree on best."""
        best_ns, found_ns = 2**63, 0
        for _ in range(_TRIES):
            event = self._event()
            before_ns = self.now_ns
            ask(driver.cuEventRecord(event, self._stream))
            wait_for(event, 1.0)
            after_ns = self.now_ns
            if after_ns - before_ns < best_ns:
                best_ns, found_ns = after_ns - before_ns, (before_ns + after_ns) // 2
                event, self._base = self._base, event
            ask(driver.cuEventDestroy(event))
        return found_ns
