"""The parts of a critical request's delay, and how they are said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CAUSES = {
    "queue": "waited for its turn",
    "launch": "waited for the host, which launched others",
    "barrier": "waited at a barrier",
    "places": "places on the SMs",
    "issue": "issue slots shared",
    "l2": "L2 bandwidth shared",
    "dram": "DRAM bandwidth shared",
    "cache": "data driven out of the L2",
    "rest": "rounding of the model",
}
SLOW = 1.05
"""A request is slow from this multiple of its latency alone on."""


@dataclass(frozen=True, slots=True)
class Delay:
    """One part of a delay: its cause (see CAUSES), the task behind it, ns (negative: gained)."""

    cause: str
    by: str
    ns: int


@dataclass(frozen=True, slots=True)
class Explained:
    """A finished critical request: when, how long alone, and the parts of the difference."""

    task: int
    request: int
    arrival_ns: int
    finish_ns: int
    solo_ns: int
    delays: tuple[Delay, ...]

    @property
    def delay_ns(self) -> int:
        """What the request took longer than alone."""
        return self.finish_ns - self.arrival_ns - self.solo_ns

    @property
    def slow(self) -> bool:
        """Whether it took noticeably longer than alone."""
        return self.finish_ns - self.arrival_ns > SLOW * self.solo_ns


def worded(delays: Iterable[Delay], least_ns: int = 0) -> str:
    """``places on the SMs: segmenter +0.41 ms, ...``, parts below ``least_ns`` left out."""
    parts = [
        f"{CAUSES[d.cause]}: {d.by} {d.ns / 1e6:+.3f} ms" for d in delays if abs(d.ns) >= least_ns
    ]
    return ", ".join(parts)
