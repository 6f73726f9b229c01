"""Programs run through the slice forms of their kernels: the original's bits, each block once."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from miriam import models
from miriam.devices.host import Host, HostRequest
from miriam.errors import UsageError
from miriam.kernels import Buffer, Dim3, Resources, Variant
from tests.kernels.programs import single


def run(network: str, parts: int | None) -> HostRequest:
    """One inference, with originals or with each step in ``parts`` slices, the last ones first.

    Each slice runs in the next of the kernel's variants.
    """
    program = models.load(network, "sm_87")
    request = Host().load(program, models.weights(network, 1), elastic=True).request()
    request.write(models.example_input(network, 1))
    for index, step in enumerate(program.steps):
        if parts is None:
            request.run(index)
            continue
        size = -(-step.kernel.blocks // parts)
        starts = reversed(range(0, step.kernel.blocks, size))
        for start, form in zip(starts, cycle(step.kernel.variants[::-1]), strict=False):
            count = min(size, step.kernel.blocks - start)
            request.run_slice(index, start, count, form.threads)
    return request


@pytest.mark.parametrize(
    "network",
    [
        "cifarnet",
        "gru",
        "lstm",
        "squeezenet",
        pytest.param("alexnet", marks=pytest.mark.slow),
        pytest.param("resnet50", marks=pytest.mark.slow),
    ],
)
def test_a_network_in_slices_has_the_originals_bits(network: str) -> None:
    whole, sliced = run(network, None), run(network, 3)
    for name, wanted in whole.outputs().items():
        np.testing.assert_array_equal(
            sliced.read(name).view(np.uint8), wanted.view(np.uint8), err_msg=name
        )
    assert all((counts == 1).all() for counts in sliced.runs())


def test_a_kernel_that_is_refused_must_be_rigid(tmp_path: Path) -> None:
    source = tmp_path / "spin.cu"
    source.write_text("__global__ void spin(volatile int* x) { while (x[0] == 0) {} }\n")
    program = single(source, "spin", [Buffer("out", (1,), "output", "int32")])
    with pytest.raises(UsageError) as caught:
        Host(cache_dir=tmp_path).load(program, {}, elastic=True)
    assert "rigid, because its kernel is refused (spin-wait, " in str(caught.value)


def test_a_fold_that_the_generator_refuses_is_named(tmp_path: Path) -> None:
    source = tmp_path / "mask.cu"
    source.write_text("__global__ void mask(int* x) { x[threadIdx.x] = __activemask(); }\n")
    program = single(source, "mask", [Buffer("out", (64,), "output", "int32")], block=Dim3(64))
    (step,) = program.steps
    forms = (step.kernel.original, Variant(32, Resources(32, 0), fold=2))
    folded = replace(step, kernel=replace(step.kernel, variants=forms))
    with pytest.raises(UsageError) as caught:
        Host(cache_dir=tmp_path).load(replace(program, steps=(folded,)), {}, elastic=True)
    assert "variants: no fold, because its kernel's block form is refused (active-mask, " in str(
        caught.value
    )


def test_slices_need_a_program_that_was_loaded_elastic(tmp_path: Path) -> None:
    source = tmp_path / "one.cu"
    source.write_text("__global__ void one(int* x) { x[blockIdx.x] = 1; }\n")
    program = single(source, "one", [Buffer("out", (1,), "output", "int32")])
    plain = Host(cache_dir=tmp_path).load(program, {}).request()
    with pytest.raises(UsageError, match="loaded as elastic"):
        plain.run_slice(0, 0, 1)
    elastic = Host(cache_dir=tmp_path).load(program, {}, elastic=True).request()
    with pytest.raises(UsageError, match=r"threads: one of \[1\], got 32"):
        elastic.run_slice(0, 0, 1, 32)
    with pytest.raises(UsageError, match=r"slice: blocks below 1, got \(0, 2\)"):
        elastic.run_slice(0, 0, 2)
