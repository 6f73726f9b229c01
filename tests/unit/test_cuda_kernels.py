"""What is compiled for programs on a GPU, seen without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

pytest.importorskip("cuda.bindings")

from miriam import models
from miriam.compile import Job
from miriam.devices.cuda import kernels
from miriam.devices.cuda.kernels import Kernels
from miriam.kernels import Buffer, Cost, Dim3, KernelSpec, Program, Resources, Step, Variant
from tests.kernels.programs import BLOCKS, FOLDER

Jobs = list[Job]


class Loaded:
    """A kernel; ``allowed``: how much dynamic shared memory it may have."""

    def __init__(self, name: str) -> None:
        self.name, self.allowed = name, 0

    def allow(self, shared_bytes: int) -> None:
        self.allowed = max(self.allowed, shared_bytes)

    def resident_blocks(self, threads: int, shared_bytes: int) -> int:
        return 2


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

        def function(self, name: str) -> Any:
            assert name in self._job.names
            return Loaded(name)

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


def on_threads(threads: int, shared_bytes: int = 0) -> Step:
    """block_sums on blocks of so many threads, or of half as many physical ones."""
    resources = Resources(32, 4_096)
    variants = (Variant(threads, resources), Variant(threads // 2, resources, fold=2))
    source = str(FOLDER / "two_steps.cu")
    block = Dim3(threads)
    kernel = KernelSpec("block_sums", source, Dim3(BLOCKS), block, variants, shared_bytes)
    return Step("sums", "sums", kernel, (), Cost(1.0, 1.0, 1.0), "sums")


def of(*steps: Step) -> Program:
    return Program("sums", "sm_90", steps, (Buffer("sums", (BLOCKS,), "output"),))


@pytest.mark.parametrize("sizes", [(256, 128), (128, 256)])
@pytest.mark.parametrize("at_once", [True, False])
def test_forms_are_of_the_block_that_a_step_has(
    compiled: Jobs, sizes: tuple[int, int], at_once: bool
) -> None:
    """One kernel on blocks of 256 and 128 threads: the one's folded form is not the other's own."""
    steps = [on_threads(size) for size in sizes]
    loaded = Kernels("sm_90", counting=False)
    loaded.load([of(*steps)] if at_once else [of(step) for step in steps])
    for size, step in zip(sizes, steps, strict=True):
        alone = Kernels("sm_90", counting=False)
        alone.load([of(step)])
        for threads in (size, size // 2):
            expected = {form.function.name for form in alone.forms(step, threads)}
            assert {form.function.name for form in loaded.forms(step, threads)} == expected
            assert expected
        assert not loaded.forms(step, 4 * size)


def test_a_kernel_may_have_the_shared_memory_of_all_steps_that_launch_it(compiled: Jobs) -> None:
    large, small = on_threads(256, 96_000), on_threads(256, 64_000)
    loaded = Kernels("sm_90", counting=False)
    loaded.load([of(small, large, small), of(small)])
    functions = [loaded.original(small), *(form.function for form in loaded.forms(small, 256))]
    assert [cast(Loaded, function).allowed for function in functions] == [96_000] * len(functions)
