"""The metrics, against figures worked out by hand."""

import pytest
from bench_fakes import MS, sample_result, task_figures

from miriam.bench import BenchResult, RowFigures, Sample


def test_percentiles_are_nearest_rank() -> None:
    sample = Sample.of([50, 15, 20, 40, 35])
    assert [sample.percentile(p) for p in (5, 30, 40, 50, 100)] == [15, 20, 20, 35, 50]


def test_exact_ranks_are_not_rounded_up() -> None:
    sample = Sample.of(range(1, 101))
    assert [sample.percentile(p) for p in (50, 90, 95, 99, 100)] == [50, 90, 95, 99, 100]
    assert Sample.of(range(1, 21)).percentile(95) == 19


def test_nothing_has_no_percentiles() -> None:
    empty = Sample.of([])
    assert (empty.percentile(50), empty.mean, empty.median_interval()) == (None, None, None)


def test_the_medians_interval_lies_between_order_statistics() -> None:
    # n = 100: ranks 50 - 9.8 and 51 + 9.8, as in the tables of Conover's sign test.
    assert Sample.of(range(1, 101)).median_interval() == (40, 61)
    assert Sample.of([3, 1, 2, 6, 5, 4]).median_interval() == (1, 6)
    assert Sample.of([3, 1, 2, 5, 4]).median_interval() is None


def test_the_medians_interval_covers_the_true_median_95_times_of_100() -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(1_000):
        draws = (rng.exponential(1e6, 60)).astype(int)
        low, high = Sample.of(draws.tolist()).median_interval() or (0, 0)
        covered += low <= np.log(2) * 1e6 <= high
    assert 940 <= covered <= 990


def row(policy: str = "miriam", critical_ms: int = 3) -> RowFigures:
    return RowFigures(
        workload="A",
        policy=policy,
        in_flight=2,
        critical=(
            task_figures("c", [critical_ms * MS, critical_ms * MS, 9 * MS], [2 * MS], 80, 100),
        ),
        normal=(
            task_figures("n", [10 * MS], [4 * MS], 30, 60),
            task_figures("m", [6 * MS], [4 * MS], 9, 36),
        ),
        achieved_occupancy=0.5,
    )


def test_overhead_compares_the_same_percentile() -> None:
    critical = task_figures("c", [30, 90], [20, 30], 1, 1)
    assert critical.overhead(50) == 1.5
    assert critical.overhead(99) == 3


def test_h_stp_antt_and_throughput() -> None:
    figures = row()
    assert [task.relative_rate for task in figures.normal] == [0.5, 0.25]
    assert figures.stp == pytest.approx(0.8 + 0.5 + 0.25)
    assert figures.throughput_rps == 119
    assert figures.antt == pytest.approx((5 / 2 + 10 / 4 + 6 / 4) / 3)


def test_comparisons_with_sequential_use_service_and_all_requests() -> None:
    rows = (row("miriam", 3), row("sequential", 2))
    result = BenchResult("sim:x", True, 1, ("miriam", "sequential"), rows)
    assert result.latency_vs_sequential(rows[0]) == 1.5
    assert result.latency_vs_sequential(rows[1]) == 1
    assert result.throughput_vs_sequential(rows[0]) == 1


def test_without_sequential_there_is_no_comparison() -> None:
    alone = BenchResult("sim:x", True, 1, ("miriam",), (row(),))
    assert alone.latency_vs_sequential(alone.rows[0]) is None
    assert alone.throughput_vs_sequential(alone.rows[0]) is None


def test_a_task_that_completed_nothing_leaves_no_antt_and_counts_0_in_stp() -> None:
    starved = RowFigures(
        "A",
        "gate",
        2,
        (task_figures("c", [2 * MS], [2 * MS], 100, 100),),
        (task_figures("n", [], [4 * MS], 0, 60),),
        0.5,
    )
    assert starved.antt is None
    assert starved.stp == 1
    assert starved.normal[0].overhead(50) is None


def test_each_workload_is_compared_with_its_own_sequential() -> None:
    result = sample_result()
    ratios = [result.latency_vs_sequential(row) for row in result.rows]
    assert ratios == [1, 0.25, 1, 0.25]
