"""The chart."""

import sys

import pytest
from bench_fakes import sample_result

from miriam.bench.plot import chart
from miriam.errors import MissingCapabilityError


def test_the_chart_is_a_png_and_the_same_every_time() -> None:
    first = chart(sample_result())
    assert first.startswith(b"\x89PNG\r\n")
    assert chart(sample_result()) == first


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingCapabilityError, match=r"pip install 'miriam-gpu\[plot\]'"):
        chart(sample_result())
