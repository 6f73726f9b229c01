"""The session's clock, and the GPU's event times on it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from miriam.devices.cuda.driver import ask, driver, event
from miriam.devices.cuda.patience import wait_for
from miriam.devices.cuda.world import World

_TRIES = 20
_REBASE_NS = 1_000_000_000
"""Elapsed times are single-precision milliseconds: over a second they are good to 0.1 us."""


class Clock:
    """Nanoseconds since it was made, by the host; events of the GPU are put on the same scale."""

    def __init__(self, world: World) -> None:
        world.enter()
        with ExitStack() as owned:
            self._stream = world.stream(-(2**31), owned)
            self._base, self._spare = event(owned), event(owned)
            self._opened_ns = time.perf_counter_ns()
            self._base_ns = self._best_base()
            self._owned = owned.pop_all()

    @property
    def now_ns(self) -> int:
        """Now."""
        return time.perf_counter_ns() - self._opened_ns

    def of(self, event: Any) -> int:
        """When ``event``, which has happened, was recorded; within about 5 us."""
        elapsed_ms: float = ask(driver.cuEventElapsedTime(self._base, event))
        return self._base_ns + round(elapsed_ms * 1e6)

    def keep_up(self) -> None:
        """Take a newer event as the base where the present one is old.

        It happened between two looks at the host's clock, so the GPU's can not drift away from it.
        """
        if self.now_ns - self._base_ns < _REBASE_NS:
            return
        before_ns, after_ns = self._record()
        self._base_ns = min(max(self.of(self._spare), before_ns), after_ns)
        self._base, self._spare = self._spare, self._base

    def close(self) -> None:
        """Give it back."""
        self._owned.close()

    def _best_base(self) -> int:
        """The host's time of the base event, from the try that the two agree on best."""
        best_ns, found_ns = 2**63, 0
        for _ in range(_TRIES):
            before_ns, after_ns = self._record()
            if after_ns - before_ns < best_ns:
                best_ns, found_ns = after_ns - before_ns, (before_ns + after_ns) // 2
                self._base, self._spare = self._spare, self._base
        return found_ns

    def _record(self) -> tuple[int, int]:
        """Record the spare event; the host's times before and after."""
        before_ns = self.now_ns
        ask(driver.cuEventRecord(self._spare, self._stream))
        wait_for(self._spare, 1.0)
        return before_ns, self.now_ns
