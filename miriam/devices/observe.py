"""The observer protocol: what a session tells about its run; nothing of it decides anything."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Told what happened; times are ns since the session opened."""

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        """A step ended; it began when its predecessor's end let it."""
