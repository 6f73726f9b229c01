"""Kernels, steps and programs: what they derive and what they refuse."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from miriam.errors import UsageError
from miriam.kernels import (
    Buffer,
    Cost,
    Dim3,
    KernelSpec,
    Pointer,
    Program,
    Resources,
    Scalar,
    Step,
    Variant,
)
from miriam.models import load

ORIGINAL = Variant(256, Resources(32, 2_048))
HALF = Variant(128, Resources(40, 2_048), fold=2)
KERNEL = KernelSpec("relu<4>", "relu.cu", Dim3(3, 5, 7), Dim3(16, 16), (ORIGINAL, HALF))
BUFFERS = (
    Buffer("x", (3, 8, 8), "input"),
    Buffer("w", (16,), "weight", "float16"),
    Buffer("y", (10,), "output"),
)
STEP = Step(
    "relu", "conv1", KERNEL, (Pointer("x"), Pointer("y", 9), Scalar(192)), Cost(1, 2, 3), "y"
)
PROGRAM = Program("tiny", "sm_87", (STEP,), BUFFERS)


def test_unflatten_walks_the_grid_x_fastest() -> None:
    extent = Dim3(3, 5, 7)
    points = [extent.unflatten(i) for i in range(extent.size)]
    assert points == [(x, y, z) for z in range(7) for y in range(5) for x in range(3)]


def test_extent_of_one_dimension() -> None:
    assert Dim3(4).size == 4
    assert Dim3(4).unflatten(3) == (3, 0, 0)


def test_kernel_derives_blocks_threads_and_variants() -> None:
    assert KERNEL.blocks == 105
    assert KERNEL.threads == 256
    assert KERNEL.original is ORIGINAL
    assert KERNEL.variant(128) is HALF


def test_unknown_variant_lists_the_known() -> None:
    with pytest.raises(UsageError) as caught:
        KERNEL.variant(64)
    assert str(caught.value) == "kernel relu<4> threads: one of [256, 128], got 64"


@pytest.mark.parametrize("grid", [Dim3(0), Dim3(3, 0), Dim3(-1, -1)])
def test_kernel_needs_a_logical_block(grid: Dim3) -> None:
    with pytest.raises(UsageError, match="kernel relu<4> grid: at least one logical block, got"):
        replace(KERNEL, grid=grid)


@pytest.mark.parametrize("variants", [(), (HALF,), (HALF, ORIGINAL)])
def test_the_first_variant_is_the_original(variants: tuple[Variant, ...]) -> None:
    with pytest.raises(UsageError, match="variants: the first is the original with 256 threads"):
        replace(KERNEL, variants=variants)


def test_variant_needs_a_thread() -> None:
    with pytest.raises(UsageError, match="variant threads: at least one, got 0"):
        replace(ORIGINAL, threads=0)


def test_buffers_know_their_size() -> None:
    assert [b.size for b in BUFFERS] == [192, 16, 10]
    assert [b.bytes for b in BUFFERS] == [768, 32, 40]
    assert PROGRAM.footprint_bytes == 840


def test_program_finds_buffers() -> None:
    assert PROGRAM.buffer("w") is BUFFERS[1]
    assert PROGRAM.named("output") == (BUFFERS[2],)
    assert PROGRAM.named("scratch") == ()
    with pytest.raises(KeyError, match="nothing"):
        PROGRAM.buffer("nothing")


def test_steps_are_alike_that_do_the_same_on_other_buffers() -> None:
    """AlexNet's first dense layers have one grid, and sums of 9,216 and of 4,096."""
    other = replace(STEP, name="pool", args=(Pointer("y"), Pointer("x"), Scalar(192)), output="x")
    assert other.alike == STEP.alike
    assert replace(STEP, args=(Pointer("x"), Pointer("y", 9), Scalar(96))).alike != STEP.alike
    first, second = (s for s in load("alexnet").steps if s.name in ("classifier.1", "classifier.4"))
    assert first.kernel == second.kernel and first.alike != second.alike


def test_program_needs_steps() -> None:
    with pytest.raises(UsageError, match="program tiny steps: at least one step"):
        replace(PROGRAM, steps=())


def test_buffer_names_are_distinct() -> None:
    with pytest.raises(UsageError, match=r"program tiny buffers: distinct names.*'x', 'x'"):
        replace(PROGRAM, buffers=(BUFFERS[0], *BUFFERS))


@pytest.mark.parametrize("arg", [Pointer("nowhere"), Pointer("y", 10), Pointer("y", -1)])
def test_pointers_lie_inside_a_buffer(arg: Pointer) -> None:
    with pytest.raises(UsageError) as caught:
        replace(PROGRAM, steps=(STEP, replace(STEP, args=(arg,))))
    assert str(caught.value).startswith(
        "program tiny step relu: each pointer lies inside a buffer of the program, got Pointer("
    )


def test_a_program_can_not_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PROGRAM.name = "other"  # type: ignore[misc]
