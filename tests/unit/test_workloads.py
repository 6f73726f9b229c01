"""MDTB as the paper defines it."""

from dataclasses import replace

import pytest
from bench_fakes import asked

from miriam.bench import Closed, Poisson, Uniform, Workload, WorkloadTask
from miriam.bench.arrivals import Arrivals
from miriam.bench.studies import mdtb
from miriam.errors import UnknownNameError, UsageError


@pytest.mark.parametrize(
    ("name", "critical", "arrivals", "normal"),
    [
        ("A", "alexnet", Closed(1), "cifarnet"),
        ("B", "squeezenet", Uniform(10), "alexnet"),
        ("C", "gru", Poisson(10), "resnet50"),
        ("D", "lstm", Uniform(10), "squeezenet"),
    ],
)
def test_mdtb_is_the_papers(name: str, critical: str, arrivals: Arrivals, normal: str) -> None:
    workload = mdtb.workload(name, replace(asked("gate"), in_flight=2))
    assert workload.critical == (WorkloadTask(critical, critical, arrivals, critical=True),)
    assert workload.normal == (WorkloadTask(normal, normal, Closed(2), in_flight=2),)


def test_in_flight_is_that_of_the_normal_task_only() -> None:
    workload = mdtb.workload("A", replace(asked("gate"), in_flight=5))
    assert workload.normal[0].arrivals == Closed(5)
    assert (workload.critical[0].in_flight, workload.normal[0].in_flight) == (1, 5)


def test_an_unknown_workload_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownNameError, match="workload: unknown name, got 'E'; known: A, B, C, D"
    ):
        mdtb.workload("E", asked("gate"))


def test_critical_tasks_come_most_urgent_first() -> None:
    slow, fast = (
        WorkloadTask(name, name, Closed(), critical=True, priority=priority)
        for name, priority in (("slow", 2), ("fast", 1))
    )
    assert Workload("w", (slow, fast)).critical == (fast, slow)


def test_tasks_have_distinct_names_and_one_is_critical() -> None:
    task = WorkloadTask("t", "t", Closed(), critical=True)
    with pytest.raises(UsageError, match="distinct names"):
        Workload("w", (task, task))
    with pytest.raises(UsageError, match="at least one critical task"):
        Workload("w", (WorkloadTask("t", "t", Closed()),))
