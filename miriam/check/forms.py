"""The forms of a kernel that are run against its original, and how each one is run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType

from miriam.check.subject import Range, Subject
from miriam.errors import VerificationError

_MOST_SLICES = 5
_MANY = 16
_RACING = 3


def _slices(subject: Subject, random: Random) -> None:
    parts = _cut(subject.blocks, random, _MOST_SLICES)
    random.shuffle(parts)
    for part in parts:
        subject.slice(part, random.getrandbits(32))


def _persistent(physical: int) -> Callable[[Subject, Random], None]:
    def run(subject: Subject, random: Random) -> None:
        for part in _cut(subject.blocks, random, 2):
            subject.persistent(part, physical, random.getrandbits(32))

    return run


def _many(subject: Subject, random: Random) -> None:
    """More physical blocks than logical ones, where these are few."""
    _persistent(min(subject.blocks + 2, _MANY))(subject, random)


def _yield(subject: Subject, random: Random) -> None:
    for part in _cut(subject.blocks, random, 2):
        _run_yielding(subject, part, random)


def _run_yielding(subject: Subject, part: Range, random: Random, fold: str = "") -> None:
    subject.words[:] = 0
    _expect_nothing(subject, part, random, fold)
    while subject.words[0] < part.count:
        _until_stopped(subject, part, random, fold)


def _expect_nothing(subject: Subject, part: Range, random: Random, fold: str) -> None:
    """With no quota from the start, no block may run."""
    subject.resume(part, _RACING, random.getrandbits(32), fold)
    if subject.words[0]:
        raise VerificationError(f"{subject.words[0]} blocks were claimed under a quota of 0")


def _until_stopped(subject: Subject, part: Range, random: Random, fold: str) -> None:
    """Run until a host thread clears the quota, at a random number of claims, or to the end."""
    words = subject.words
    mark = int(words[0]) + random.randint(1, part.count - int(words[0]))
    words[1] = random.randint(1, _RACING)
    ended = threading.Event()

    def stop() -> None:
        while words[0] < mark and not ended.is_set():
            time.sleep(0)
        words[1] = 0

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        subject.resume(part, _RACING, random.getrandbits(32), fold)
    finally:
        ended.set()
        stopper.join()


def folded(fold: str) -> Callable[[Subject, Random], None]:
    """Runs all blocks on the threads of ``fold``, each range in one of the forms it has."""

    def run(subject: Subject, random: Random) -> None:
        parts = _cut(subject.blocks, random, _MOST_SLICES)
        random.shuffle(parts)
        for part in parts:
            form = random.choice(subject.forms_of(fold))
            if form == "slice":
                subject.slice(part, random.getrandbits(32), fold)
            elif form == "persistent":
                subject.persistent(part, _RACING, random.getrandbits(32), fold)
            else:
                _run_yielding(subject, part, random, fold)

    return run


def _cut(blocks: int, random: Random, most: int) -> list[Range]:
    """All blocks in at most ``most`` ranges, at least two where there are two blocks."""
    parts = min(blocks, random.randint(2, most))
    ends = sorted([*random.sample(range(1, blocks), parts - 1), blocks])
    starts = [0, *ends[:-1]]
    return [Range(a, b - a) for a, b in zip(starts, ends, strict=True)]


FORMS: Mapping[str, Callable[[Subject, Random], None]] = MappingProxyType(
    {
        "slice": _slices,
        "persistent/1": _persistent(1),
        f"persistent/{_RACING}": _persistent(_RACING),
        "persistent/many": _many,
        "yield": _yield,
    }
)
