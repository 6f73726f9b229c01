"""The benchmark: workloads, arrivals, metrics, verification against originals, reports."""

from miriam.bench.arrivals import Arrivals, Closed, Poisson, Trace, Uniform
from miriam.bench.benchmark import Cell, run_cells
from miriam.bench.execute import Executor, InProcess, Observer, Processes
from miriam.bench.jobs import Job, JobRecord, Workshop
from miriam.bench.machine import Machine
from miriam.bench.metrics import BenchResult, RowFigures, Sample, TaskFigures
from miriam.bench.networks import Networks
from miriam.bench.options import Options
from miriam.bench.report import Report, encode, report
from miriam.bench.workloads import Point, Workload, WorkloadTask

__all__ = [
    "Arrivals",
    "BenchResult",
    "Cell",
    "Closed",
    "Executor",
    "InProcess",
    "Job",
    "JobRecord",
    "Machine",
    "Networks",
    "Observer",
    "Options",
    "Point",
    "Poisson",
    "Processes",
    "Report",
    "RowFigures",
    "Sample",
    "TaskFigures",
    "Trace",
    "Uniform",
    "Workload",
    "WorkloadTask",
    "Workshop",
    "encode",
    "report",
    "run_cells",
]
