"""The benchmarks beside MDTB: what they run, and what their rows carry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from bench_fakes import Silent
from rich.console import Console

from miriam.bench import BenchResult, InProcess, Machine, Options, encode, studies
from miriam.bench.arrivals import Uniform
from miriam.bench.charts import charts
from miriam.bench.execute import workshop
from miriam.bench.html_parts import page
from miriam.bench.jobs import Job, JobRecord, TaskRecord
from miriam.bench.metrics import Sample
from miriam.bench.studies import growth, lgsvl, pairs
from miriam.bench.table import show, table
from miriam.errors import ExecutionError, UnknownNameError, UsageError


def asked(benchmark: str, workloads: Sequence[str], **changes: Any) -> Options:
    options = Options(
        benchmark=benchmark,
        device="sim:xavier",
        policies=("multistream", "sequential"),
        seconds=0.004,
        seed=1,
        workloads=tuple(workloads),
    )
    return replace(options, **changes)


def run(options: Options) -> BenchResult:
    return studies.run(options, InProcess(workshop(1), Silent()))


def rows(options: Options) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(encode(run(options)))["rows"]
    return found


def test_pairs_carry_gap_world_and_number_of_requests() -> None:
    options = asked("pairs", ["lstm+cifarnet"], gaps_us=(0.0, 500.0), worlds=(4, 8))
    found = rows(options)
    grid = [(r["gap_us"], r["world"]) for r in found if r["policy"] == "multistream"]
    assert grid == [(gap, f"sim:xavier:{sms}") for sms in (4, 8) for gap in (0.0, 500.0)]
    assert all(r["n"] == r["critical"]["requests"] for r in found)
    assert found[0]["n"] > found[2]["n"] > 1
    assert found[0]["critical"]["cdf_us"] == sorted(found[0]["critical"]["cdf_us"])


def test_h_is_the_rate_while_a_critical_request_runs() -> None:
    options = asked("pairs", ["alexnet+cifarnet"], gaps_us=(0.0,), worlds=(0,))
    shared, alone = (row["normal"][0] for row in rows(replace(options, seconds=0.02)))
    # One inference at a time: nothing of the normal task runs while the critical one does.
    assert alone["h"] == 0
    # A closed loop of critical requests leaves no other time.
    assert shared["h"] == pytest.approx(shared["H"], rel=0.15)
    assert shared["h"] > 0.05


def test_a_pair_is_two_networks() -> None:
    with pytest.raises(UsageError, match=r"workload: two networks, critical\+normal, got 'lstm'"):
        run(asked("pairs", ["lstm"], gaps_us=(0.0,), worlds=(0,)))


def test_lgsvl_as_given_and_at_120_percent_of_sequential() -> None:
    cells = lgsvl.cells(asked("lgsvl", lgsvl.WORKLOADS), InProcess(workshop(1), Silent()))
    given, scaled, balanced = (cell.workload for cell in cells)
    assert given.point.rates_hz == (10, 12.5)
    scale = scaled.point.scale
    assert scale is not None and scaled.point.rates_hz == pytest.approx(
        (10 * scale, 12.5 * scale), rel=1e-4
    )
    alone_s = lgsvl._alone_s(asked("lgsvl", ()), cells[0].machine, InProcess(workshop(1), Silent()))
    times = [alone_s["resnet50"], alone_s["squeezenet"]]
    for workload in (scaled, balanced):
        rates = workload.point.rates_hz or ()
        load = sum(hz * s for hz, s in zip(rates, times, strict=True))
        assert load == pytest.approx(1.2, rel=0.01)
    first, second = balanced.point.rates_hz or (0, 0)
    assert first * times[0] == pytest.approx(second * times[1], rel=0.01)


class Alone:
    """Networks whose service alone is so many ms, most often.

    Their latency has the benchmark's loop in it: by that the load would be too low.
    """

    def __init__(self, *ms: float) -> None:
        self.ms, self.jobs = ms, list[Job]()

    def run(self, jobs: Sequence[Job]) -> list[JobRecord]:
        self.jobs += jobs
        samples = [Sample((round(ms * 1e6),) * 3 + (10**9,) if ms else ()) for ms in self.ms]
        latency = Sample((10**10,))
        return [JobRecord((TaskRecord(latency, each, 100.0),), 1.0) for each in samples]


def test_requests_of_lgsvl_come_at_the_rates_that_its_rows_say() -> None:
    found = lgsvl.cells(asked("lgsvl", lgsvl.WORKLOADS, in_flight=3), Alone(4, 1))
    for workload in (cell.workload for cell in found):
        critical, normal = workload.critical[0], workload.normal[0]
        assert isinstance(critical.arrivals, Uniform) and isinstance(normal.arrivals, Uniform)
        rates = (critical.arrivals.hz, normal.arrivals.hz)
        assert rates == pytest.approx(workload.point.rates_hz, rel=1e-4)
        assert (critical.in_flight, normal.in_flight) == (1, 3)
    assert [cell.workload.point.scale is None for cell in found] == [False, False, True]
    assert found[2].workload.point.rates_hz == pytest.approx((150, 600))


def test_lgsvl_as_given_needs_no_times_alone() -> None:
    alone = Alone(4, 1)
    (cell,) = lgsvl.cells(asked("lgsvl", ["given"]), alone)
    assert cell.workload.point.scale == 1 and not alone.jobs


def test_a_network_that_completes_nothing_alone_can_not_be_scaled() -> None:
    with pytest.raises(ExecutionError, match="squeezenet alone completed nothing"):
        lgsvl.cells(asked("lgsvl", ["scaled"]), Alone(4, 0))


def test_growth_adds_normal_tasks_and_a_critical_one() -> None:
    cells = growth.cells(asked("growth", growth.WORKLOADS), InProcess(workshop(1), Silent()))
    sizes = [(len(c.workload.critical), len(c.workload.normal)) for c in cells]
    assert sizes == [(1, 1), (1, 2), (1, 4), (1, 8), (2, 4)]
    (row, _) = rows(asked("growth", ["two critical"], seconds=0.002))
    assert [task["task"] for task in row["criticals"]] == [
        "squeezenet (critical)", "lstm (critical)",
    ]  # fmt: skip


def test_alexnets_have_layers_and_a_timeline() -> None:
    shared, alone = rows(asked("alexnets", ["alexnets"], seconds=0.03))
    assert alone["deep"]["layers"][0]["layer"] == "features.1"
    assert {piece["task"] for piece in shared["deep"]["timeline"]} == {0, 1}
    assert {piece["task"] for piece in alone["deep"]["timeline"]} == {0}
    for name in ("achieved_occupancy", "busy_share"):
        assert all(0 <= layer[name] <= 1 for layer in shared["deep"]["layers"])
    mean = [
        sum(x["ms"] * x["achieved_occupancy"] for x in row["deep"]["layers"]) for row in
        (shared, alone)
    ]  # fmt: skip
    assert mean[0] > mean[1]


@pytest.mark.parametrize(
    ("benchmark", "known"), [("lgsvl", "balanced, given, scaled"), ("growth", "1, 2, 4, 8, two")]
)
def test_an_unknown_workload_lists_the_known_ones(benchmark: str, known: str) -> None:
    with pytest.raises(UnknownNameError, match=f"workload: unknown name, got 'x'; known: {known}"):
        run(asked(benchmark, ["x"]))


def test_an_unknown_benchmark_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="known: alexnets, growth, lgsvl, mdtb, pairs"):
        studies.get("mdbt")


def test_the_tango_geometry_is_another_program() -> None:
    ours = rows(asked("mdtb", ["C"]))[0]["critical"]["solo_p50_us"]
    tango = rows(asked("mdtb", ["C"], geometry="tango"))[0]["critical"]["solo_p50_us"]
    assert ours != tango or (ours, tango) == (None, None)
    with pytest.raises(UnknownNameError, match="geometry: unknown name, got 'x'; known: ours, ta"):
        asked("mdtb", ["C"], geometry="x")


@pytest.mark.parametrize(
    "options",
    [
        asked("pairs", ["lstm+gru"], gaps_us=pairs.GAPS_US, worlds=(0,), seconds=0.001),
        asked("growth", ["1", "two critical"], seconds=0.001),
        asked("alexnets", ["alexnets"], in_flight=1),
    ],
    ids=lambda options: options.benchmark,
)
def test_every_chart_is_in_the_page_and_labelled(options: Options) -> None:
    result = run(options)
    shown = charts(result)
    assert all(chart.png.startswith(b"\x89PNG") for chart in shown)
    text = page(result).decode()
    assert text.count("data:image/png;base64,") == len(shown)
    assert text.count("simulated (sim:xavier)</figcaption>") == len(shown) + 1
    assert "http" not in text


def test_a_world_of_a_world_is_refused() -> None:
    assert Machine("sim:orin").world(5).name == "sim:orin:5"
    text = "device: a whole GPU where worlds are chosen besides, as sim:orin, got 'sim:orin:3'"
    with pytest.raises(UsageError, match=text):
        Machine("sim:orin:3").world(5)


def test_a_table_names_the_only_world_that_was_run() -> None:
    def title(*worlds: int) -> str:
        options = Options(
            benchmark="pairs",
            device="sim:orin",
            policies=("gate",),
            seconds=0.001,
            seed=1,
            workloads=("gru+lstm",),
            gaps_us=(0.0,),
            worlds=worlds,
        )
        result = studies.run(options, InProcess(workshop(1), Silent()))
        return str(table(result).title)

    assert title(4) == "Pairs on sim:orin:4 (simulated), seed 1"
    assert title(0, 4) == "Pairs on sim:orin (simulated), seed 1"


def test_the_host_says_that_it_only_orders() -> None:
    def shown(device: str) -> str:
        text = StringIO()
        show(BenchResult(device, True, 1, ("gate",), (), "Pairs"), Console(file=text))
        return text.getvalue()

    assert "host: requests run one after the other" in shown("host")
    assert "host:" not in shown("sim:orin")
