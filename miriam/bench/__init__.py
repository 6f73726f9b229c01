"""The benchmark: workloads, arrivals, metrics, verification against originals, reports."""

from miriam.bench.arrivals import Arrivals, Closed, Poisson, Trace, Uniform
from miriam.bench.benchmark import Benchmark, Observer, Settings
from miriam.bench.metrics import BenchResult, RowFigures, Sample, TaskFigures
from miriam.bench.networks import Networks
from miriam.bench.report import Report, encode, report
from miriam.bench.workloads import Workload, WorkloadTask, mdtb

__all__ = [
    "Arrivals",
    "BenchResult",
    "Benchmark",
    "Closed",
    "Networks",
    "Observer",
    "Poisson",
    "Report",
    "RowFigures",
    "Sample",
    "Settings",
    "TaskFigures",
    "Trace",
    "Uniform",
    "Workload",
    "WorkloadTask",
    "encode",
    "mdtb",
    "report",
]
