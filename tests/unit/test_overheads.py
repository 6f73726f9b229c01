"""The overheads: what is timed, what is simulated, and how they are shown."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from miriam.bench import Options, html_parts, overheads_table, paper
from miriam.bench.charts import overheads as chart
from miriam.bench.execute import workshop
from miriam.bench.overheads import NAME, OverheadsReport, host, measure
from miriam.bench.pruning import explore
from miriam.cli import main
from miriam.errors import UsageError


@pytest.fixture(scope="module")
def report() -> OverheadsReport:
    options = Options(
        benchmark=NAME,
        device="sim:xavier",
        policies=("miriam", "multistream"),
        seconds=1.0,
        seed=1,
        workloads=("gru+cifarnet",),
    )
    return measure(options, workshop(1))


def test_decisions_are_timed_and_requests_simulated(report: OverheadsReport) -> None:
    miriam, plain = report.rows
    assert (miriam.critical, miriam.normal) == ("gru", "cifarnet")
    assert all(row.plan_ms > 0 and row.admit_us > 0 for row in report.rows)
    # Without gates or elastic forms nothing is added; with them a little, to the normal task.
    assert plain.normal_us == plain.normal_plain_us == miriam.normal_plain_us
    assert plain.normal_us < miriam.normal_us < 1.3 * plain.normal_us
    assert miriam.critical_us == miriam.critical_plain_us
    assert miriam.delays.count >= 4 * 20
    assert 0.8 < miriam.prompt <= 1


def test_a_policy_that_measures_decides_with_what_the_device_measured() -> None:
    asked = Options(
        benchmark=NAME,
        device="sim:orin",
        policies=("miriam-measured",),
        seconds=1.0,
        seed=1,
        workloads=("cifarnet+cifarnet",),
        in_flight=1,
    )
    (row,) = measure(asked, workshop(1)).rows
    assert row.plan_ms > 0
    assert row.delays.count > 0


def test_the_table_says_what_was_measured_where(report: OverheadsReport) -> None:
    text = io.StringIO()
    overheads_table.show(report, Console(file=text))
    assert "Overheads on sim:xavier (simulated)" in text.getvalue()
    assert f"measured on {host()}" in " ".join(text.getvalue().split())
    assert "gru + cifarnet" in text.getvalue()


def test_the_chart_is_in_the_page_and_labelled(report: OverheadsReport) -> None:
    (shown,) = chart.charts(report)
    assert shown.png.startswith(b"\x89PNG")
    section = html_parts.overheads(report)
    assert section.count("data:image/png;base64,") == 1
    assert section.count("simulated (sim:xavier)</figcaption>") == 2


def test_the_papers_page_has_them_and_its_figures_too(report: OverheadsReport) -> None:
    options = Options(
        benchmark="shrink",
        device="sim:xavier",
        policies=("miriam",),
        seconds=1.0,
        seed=1,
        workloads=("gru+cifarnet",),
    )
    found = paper.Evaluation({}, {}, explore(options, workshop(1)), report)
    assert "| gru + cifarnet | miriam | 4 + 12 |" in paper._overheads(report)
    page = paper.figures(found).decode()
    assert page.count("data:image/png;base64,") == 2
    assert "<h2>Overheads, simulated (sim:xavier)</h2>" in page


def test_a_device_that_is_not_simulated_is_refused() -> None:
    options = Options(benchmark=NAME, device="host", policies=("gate",), seconds=1.0, seed=1)
    with pytest.raises(UsageError, match="device: a simulated one, sim:<gpu>, got 'host'"):
        measure(options, workshop(1))


def test_the_command_prints_and_writes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "overheads.html"
    args = ["--pair", "gru+cifarnet", "--policy", "gate", "--html", str(page)]
    monkeypatch.setattr(sys, "argv", ["miriam", "bench", "overheads", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "gru + cifarnet" in capsys.readouterr().out
    assert "data:image/png;base64," in page.read_text()
