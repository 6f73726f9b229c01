"""The chart."""

import sys

import pytest
from bench_fakes import MS, sample_result, task_figures

from miriam.bench import BenchResult, RowFigures
from miriam.bench.charts import charts
from miriam.errors import MissingCapabilityError


def chart(result: BenchResult) -> bytes:
    return charts(result)[0].png


def test_the_chart_is_a_png_and_the_same_every_time() -> None:
    first = chart(sample_result())
    assert first.startswith(b"\x89PNG\r\n")
    assert chart(sample_result()) == first


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingCapabilityError, match=r"pip install 'miriam-gpu\[plot\]'"):
        chart(sample_result())


@pytest.mark.parametrize("worst", [2, 300])
def test_a_task_that_completed_nothing_leaves_a_gap(worst: int) -> None:
    normal = (task_figures("n", [MS], [MS], 10, 20),)
    rows = tuple(
        RowFigures("A", policy, 2, (task_figures("c", latency, [MS], 10, 20),), normal, 0.5)
        for policy, latency in (("gate", []), ("another", [worst * MS]))
    )
    result = BenchResult("sim:fake", True, 1, ("gate", "another"), rows)
    assert chart(result).startswith(b"\x89PNG")
