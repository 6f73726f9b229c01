"""The page on critical weights in L2: both rounds of both settings side by side."""

from __future__ import annotations

import pytest

pytest.importorskip("cuda.bindings")

from benchmarks.l2_gpu import lines
from miriam.bench import Point, RowFigures, Sample, TaskFigures


def row(service_us: int, rate_hz: float) -> RowFigures:
    """A critical network of 100 us alone beside one that does 50 requests a second alone."""
    nothing = Sample(())
    alone, service = Sample.of([100_000]), Sample.of([service_us * 1_000])
    critical = TaskFigures("c", nothing, service, nothing, 1.0, 1.0, solo_service=alone)
    normal = TaskFigures("n", nothing, nothing, nothing, rate_hz, 50.0)
    point = Point(gap_us=4_000.0, world="cuda:0:32")
    return RowFigures("c+n 4 ms", "gate", 2, (critical,), (normal,), 0.5, True, point=point)


def test_a_line_has_both_rounds_of_both_settings() -> None:
    rounds = [
        {"off": (row(120, 40.0),), "on": (row(110, 41.0),)},
        {"off": (row(121, 42.0),), "on": (row(111, 43.0),)},
    ]
    assert list(lines(rounds)) == [
        "| cuda:0:32 | c+n 4 ms | gate | 1.20, 1.21 | 1.10, 1.11 | 1.20, 1.21 | 1.10, 1.11 "
        "| 0.80, 0.84 | 0.82, 0.86 |"
    ]
