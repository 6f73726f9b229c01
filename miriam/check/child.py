"""Judges kernels in a process of its own: a job on stdin, a line of JSON per verdict on stdout."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import msgspec

from miriam.check.job import Case, Job
from miriam.check.judge import KernelVerdict, judge
from miriam.check.subject import Subject
from miriam.devices.host import Host
from miriam.errors import MiriamError


def main() -> None:
    """Judge the job on standard input; what kernels print goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    job: Job = pickle.load(sys.stdin.buffer)
    host = Host(cache_dir=job.cache_dir)
    for case in job.cases:
        answers.write(msgspec.json.encode(_judged(host, case, job.seed)) + b"\n")


def _judged(host: Host, case: Case, seed: int) -> KernelVerdict:
    try:
        kernels = host.compile(Path(case.path), case.names, case.text)
        forms = {form: kernels[entry] for form, entry in case.entries.items()}
        return judge(case.launch.name, Subject(host, case.launch, forms, seed, case.folds), seed)
    except MiriamError as error:
        return KernelVerdict(case.launch.name, "error", str(error))


if __name__ == "__main__":
    main()
