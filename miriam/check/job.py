"""What the child process is asked to judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from miriam.check.launchfile import KernelLaunch


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel to be judged: ``text`` stands for ``path``, ``entries`` names its forms in it.

    ``names`` are all names that ``text`` was compiled for, in that order. ``folds``: by name
    (``block/2``), on how many threads a logical block runs; ``entries`` has the forms of each.
    """

    launch: KernelLaunch
    path: str
    text: str
    names: tuple[str, ...]
    entries: Mapping[str, str]
    folds: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """Cases in the order in which they are judged."""

    cases: tuple[Case, ...]
    seed: int
    cache_dir: Path | None
