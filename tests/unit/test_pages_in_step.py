"""Committed pages are what their generators make of the committed reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import (
    compare_policies,
    coverage_page,
    device_page,
    elastic_page,
    mdtb_page,
    pairs_headline,
    pairs_page,
    pairs_rows,
)

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


def reports(*patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted((RESULTS / "data").glob(pattern))]


def test_the_page_of_pairs() -> None:
    merged = pairs_rows.load(reports("h200-pairs-*.json", "h200-mps.json", "h200-share.json"))
    assert pairs_page.page(merged).rstrip() == (RESULTS / "pairs-h200.md").read_text().rstrip()


def test_the_headline() -> None:
    merged = pairs_rows.load(reports("h200-pairs-*.json", "h200-mps.json"))
    readme = (ROOT / "README.md").read_text()
    assert pairs_headline.replaced(readme, pairs_headline.headline(merged)) == readme


def test_the_page_of_workloads() -> None:
    names = [f"h200-{study}-32.json" for study in ("mdtb", "lgsvl", "growth", "alexnets")]
    text = mdtb_page.page(mdtb_page.load(reports(*names)))
    assert text.rstrip() == (RESULTS / "mdtb-h200.md").read_text().rstrip()


def test_the_page_of_policies_in_the_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    measured = [f"h200-pairs-{sms}-[!t]*.json" for sms in (132, 32, 16)]
    simulated = [f"sim-h200-pairs{sms}.json" for sms in ("", "-32", "-16")]
    compare_policies.main(*map(str, reports(*measured, *simulated)))
    assert capsys.readouterr().out == (RESULTS / "sim-vs-h200-policies.md").read_text()


def test_the_page_of_the_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["", *map(str, reports("h200-device.json"))])
    device_page.main()
    assert capsys.readouterr().out == (RESULTS / "device.md").read_text()


def test_the_page_of_elastic_kernels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"h200-elastic-{bound}.json" for bound in ("original", "1", "none")]
    monkeypatch.setattr("sys.argv", ["", *map(str, reports(*names))])
    elastic_page.main()
    assert capsys.readouterr().out == (RESULTS / "elastic-h200.md").read_text()


def test_the_page_of_coverage() -> None:
    data = json.loads((RESULTS / "data" / "coverage.json").read_text())
    text = "\n".join(coverage_page.page(data)) + "\n"
    assert text == (RESULTS / "coverage.md").read_text()
