"""The benchmarks, one file each: a module ``x`` here with ``TITLE`` and ``cells``.

``cells(options, executor)`` gives the workloads and their machines; ``POLICIES`` and
``WORKLOADS`` are what is run unless something else is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from miriam.bench.benchmark import Cell, run_cells
from miriam.bench.execute import Executor
from miriam.bench.metrics import BenchResult
from miriam.bench.options import Options
from miriam.errors import UnknownNameError

NAMES = ("mdtb", "lgsvl", "pairs", "alexnets", "growth")


class Study(Protocol):
    """A benchmark's module."""

    TITLE: str
    POLICIES: tuple[str, ...]
    WORKLOADS: tuple[str, ...]

    def cells(self, options: Options, executor: Executor) -> Sequence[Cell]:
        """The workloads asked for; UnknownNameError for one that the benchmark does not have."""


def get(name: str) -> Study:
    """The benchmark called ``name``; UnknownNameError lists the known ones."""
    if name not in NAMES:
        raise UnknownNameError("benchmark", name, NAMES)
    study: Study = import_module(f"{__name__}.{name}")
    return study


def run(options: Options, executor: Executor) -> BenchResult:
    """Run the benchmark that ``options`` name."""
    study = get(options.benchmark)
    return run_cells(options, study.TITLE, study.cells(options, executor), executor)
