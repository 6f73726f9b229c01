"""Arrivals: when the requests of a task come."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol
from zlib import crc32

import numpy as np

from miriam.errors import UsageError

_SECOND_NS = 1_000_000_000


class Arrivals(Protocol):
    """When requests come: some are known beforehand, others follow a completion."""

    @property
    def closed(self) -> bool:
        """Whether every request but the first ones follows a completion."""

    def known(self, until_ns: int, rng: np.random.Generator) -> Sequence[int]:
        """Arrival times in ns, ascending, below ``until_ns``, that depend on no completion."""

    def following(self, finish_ns: int) -> int | None:
        """Arrival time of the request that a completion brings about, None for none."""


class _Open:
    """Arrivals that do not wait for completions."""

    __slots__ = ()

    @property
    def closed(self) -> bool:
        """Never."""
        return False

    def following(self, finish_ns: int) -> int | None:
        """No request follows from a completion."""
        return None


@dataclass(frozen=True, slots=True)
class Uniform(_Open):
    """``hz`` requests per second at equal distances, the first one at 0."""

    hz: float

    def __post_init__(self) -> None:
        _require_rate(self.hz)

    def known(self, until_ns: int, rng: np.random.Generator) -> Sequence[int]:
        """Times 0, 1/hz, 2/hz, ... in ns; no chance is involved."""
        times = (round(k * _SECOND_NS / self.hz) for k in count())
        return _below(times, until_ns)


@dataclass(frozen=True, slots=True)
class Poisson(_Open):
    """``hz`` requests per second on average, at exponentially distributed distances."""

    hz: float

    def __post_init__(self) -> None:
        _require_rate(self.hz)

    def known(self, until_ns: int, rng: np.random.Generator) -> Sequence[int]:
        """Times in ns drawn from ``rng``; a longer window continues the same sequence."""
        return _below(self._times(rng), until_ns)

    def _times(self, rng: np.random.Generator) -> Iterator[int]:
        time = 0.0
        while True:
            time += rng.exponential(_SECOND_NS / self.hz)
            yield round(time)


@dataclass(frozen=True, slots=True)
class Closed:
    """``in_flight`` requests at 0, then a new one ``gap_ns`` after one completes."""

    in_flight: int = 1
    gap_ns: int = 0

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise UsageError("arrivals in_flight", "at least 1", self.in_flight)
        if self.gap_ns < 0:
            raise UsageError("arrivals gap_ns", "not negative", self.gap_ns)

    @property
    def closed(self) -> bool:
        """Always."""
        return True

    def known(self, until_ns: int, rng: np.random.Generator) -> Sequence[int]:
        """The first ``in_flight`` requests, all at 0."""
        return [0] * self.in_flight if until_ns > 0 else []

    def following(self, finish_ns: int) -> int | None:
        """The next request comes after the gap."""
        return finish_ns + self.gap_ns


@dataclass(frozen=True, slots=True)
class Trace(_Open):
    """Recorded arrival times in ns, not negative, ascending; equal times are allowed."""

    times_ns: tuple[int, ...]

    def __post_init__(self) -> None:
        previous = 0
        for time in self.times_ns:
            if time < previous:
                raise UsageError(
                    "arrivals times_ns", f"ascending from 0, at least {previous} here", time
                )
            previous = time

    @classmethod
    def read(cls, path: Path) -> Trace:
        """Read a text file with one arrival time in seconds per line; ``#`` starts a comment.

        UsageError names the line that is not a time, or the file that can not be read.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                "arrivals file", "a readable text file", str(path), str(error)
            ) from error
        times = []
        for number, line in enumerate(lines, start=1):
            text = line.partition("#")[0].strip()
            if text:
                times.append(_seconds(text, f"arrivals file {path}:{number}"))
        return cls(tuple(times))

    def known(self, until_ns: int, rng: np.random.Generator) -> Sequence[int]:
        """The recorded times below ``until_ns``; no chance is involved."""
        return _below(iter(self.times_ns), until_ns)


def stream(seed: int, *key: str) -> np.random.Generator:
    """The random stream of ``key`` under ``seed``; streams of other keys are independent."""
    words = [crc32(part.encode()) for part in key]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def _below(times: Iterator[int], until_ns: int) -> list[int]:
    chosen = []
    for time in times:
        if time >= until_ns:
            break
        chosen.append(time)
    return chosen


def _require_rate(hz: float) -> None:
    if not 0 < hz < math.inf:
        raise UsageError("arrivals hz", "a finite number above 0", hz)


def _seconds(text: str, field: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UsageError(field, "a time in seconds, not negative", text)
    return round(value * _SECOND_NS)
