"""What is compiled for programs on a GPU, seen without one."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cuda.bindings")

from miriam import models
from miriam.compile import Job
from miriam.devices.cuda import kernels
from miriam.devices.cuda.kernels import Kernels
from miriam.kernels import Program

Jobs = list[Job]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """What was to be compiled."""
    jobs: Jobs = []

    def compile_many(wanted: Sequence[Job]) -> list[Any]:
        jobs.extend(wanted)
        return list(wanted)

    class Module:
        def __init__(self, job: Job) -> None:
            self._job = job

        def function(self, name: str, shared_bytes: int = 0) -> Any:
            assert name in self._job.names
            return SimpleNamespace(resident_blocks=lambda threads, shared_bytes: 2)

    monkeypatch.setattr(kernels, "compile_many", compile_many)
    monkeypatch.setattr(kernels, "Module", Module)
    return jobs


def program(name: str) -> Program:
    return models.load(name, "sm_90")


def test_what_is_compiled_does_not_depend_on_what_was_loaded_before(compiled: Jobs) -> None:
    alone = Kernels("sm_90", counting=False)
    alone.load([program("squeezenet")])
    expected = list(compiled)
    assert expected
    beside = Kernels("sm_90", counting=False)
    beside.load([program("resnet50")])
    compiled.clear()
    beside.load([program("squeezenet")])
    assert compiled == expected


def test_nothing_is_compiled_twice_in_a_process(compiled: Jobs) -> None:
    loaded = Kernels("sm_90", counting=False)
    loaded.load([program("gru"), program("lstm")])
    forms = [loaded.forms(step, step.kernel.threads) for step in program("gru").steps]
    compiled.clear()
    loaded.load([program("lstm"), program("gru")])
    assert not compiled
    assert [loaded.forms(step, step.kernel.threads) for step in program("gru").steps] == forms
    assert all({form.bound for form in found} == {1, 2} for found in forms if found)
