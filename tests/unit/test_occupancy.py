"""Resident blocks against NVIDIA's occupancy calculator."""

from __future__ import annotations

import pytest

from miriam.errors import UsageError
from miriam.kernels import (
    ARCHITECTURES,
    Dim3,
    KernelSpec,
    Resources,
    Variant,
    footprint,
    resident_blocks,
)

ARCHS = ("sm_72", "sm_75", "sm_87", "sm_90")

# (threads, registers, shared bytes): blocks per SM on ARCHS, as cuda_occupancy.h of CUDA 13.0
# computes them with the largest shared-memory carve-out. The comment says what binds.
CALCULATOR = {
    # Threads: 2,048 / 1,024 / 1,536 / 2,048 per SM.
    (1024, 32, 0): (2, 1, 1, 2),
    (256, 32, 0): (8, 4, 6, 8),
    (928, 64, 0): (1, 1, 1, 1),
    # Block slots: 32 / 16 / 16 / 32.
    (32, 16, 0): (32, 16, 16, 32),
    (64, 16, 0): (32, 16, 16, 32),
    (1, 1, 0): (32, 16, 16, 32),
    # Registers in units of 256 a warp: 65 registers are 2,304 a warp, 7 warps a scheduler.
    (256, 65, 0): (3, 3, 3, 3),
    (1024, 64, 0): (1, 1, 1, 1),
    (512, 128, 0): (1, 1, 1, 1),
    # Whole warps a scheduler: 1,536 a warp are 10 warps of 16,384, so 40 and not 42 an SM.
    (256, 48, 0): (5, 4, 5, 5),
    (128, 168, 0): (3, 3, 3, 3),
    # Blocks whose warps are no multiple of four: 48 warps of 40 registers are 16 blocks of 3.
    (96, 40, 0): (16, 10, 16, 16),
    (160, 40, 0): (9, 6, 9, 9),
    # 33 threads are two warps.
    (33, 64, 0): (16, 16, 16, 16),
    # Shared: 96 / 64 / 164 / 228 KiB, each block with 1 KiB of the system on sm_87 and sm_90.
    (128, 32, 16_384): (6, 4, 9, 13),
    (128, 32, 32_768): (3, 2, 4, 6),
    # 15,361 bytes round up to 15,616 on sm_72 and sm_75.
    (256, 40, 15_361): (6, 4, 6, 6),
    (64, 24, 2_048): (32, 16, 16, 32),
    (1, 255, 1): (8, 8, 8, 8),
}

# The same tables as the CUDA C++ Programming Guide, "Technical Specifications per Compute
# Capability": threads, blocks and shared KiB per SM.
GUIDE = {
    "sm_72": (2_048, 32, 96),
    "sm_75": (1_024, 16, 64),
    "sm_80": (2_048, 32, 164),
    "sm_86": (1_536, 16, 100),
    "sm_87": (1_536, 16, 164),
    "sm_89": (1_536, 24, 100),
    "sm_90": (2_048, 32, 228),
    "sm_110": (1_536, 24, 228),
}


def kernel(threads: int, registers: int, shared: int = 0, dynamic: int = 0) -> KernelSpec:
    variant = Variant(threads, Resources(registers, shared))
    return KernelSpec("k", "k.cu", Dim3(64), Dim3(threads), (variant,), dynamic)


@pytest.mark.parametrize(("case", "blocks"), CALCULATOR.items(), ids=str)
def test_agrees_with_the_calculator(case: tuple[int, int, int], blocks: tuple[int, ...]) -> None:
    spec = kernel(*case)
    got = tuple(resident_blocks(spec, spec.original, ARCHITECTURES[arch]) for arch in ARCHS)
    assert got == blocks


@pytest.mark.parametrize("arch", GUIDE)
def test_limits_are_the_published_ones(arch: str) -> None:
    limits = ARCHITECTURES[arch]
    assert (limits.threads, limits.blocks, limits.shared_bytes / 1_024) == GUIDE[arch]
    assert limits.warps == limits.threads // 32


def test_static_and_dynamic_shared_bytes_count_alike() -> None:
    static, split = kernel(128, 32, 16_384), kernel(128, 32, 10_000, dynamic=6_384)
    for arch in ARCHS:
        limits = ARCHITECTURES[arch]
        assert footprint(static, static.original, limits) == footprint(
            split, split.original, limits
        )


def test_a_smaller_variant_takes_less() -> None:
    half = Variant(128, Resources(40, 0), fold=2)
    spec = KernelSpec("k", "k.cu", Dim3(64), Dim3(256), (Variant(256, Resources(40, 0)), half))
    limits = ARCHITECTURES["sm_87"]
    assert resident_blocks(spec, spec.original, limits) == 6
    assert resident_blocks(spec, half, limits) == 12


def test_footprints_of_resident_blocks_add_up_to_at_most_one_sm() -> None:
    limits = ARCHITECTURES["sm_90"]
    for threads, registers, shared in CALCULATOR:
        spec = kernel(threads, registers, shared)
        taken, blocks = (
            footprint(spec, spec.original, limits),
            resident_blocks(spec, spec.original, limits),
        )
        assert taken.warps == -(-threads // 32)
        assert blocks * taken.threads <= limits.threads
        assert blocks * taken.registers <= limits.registers
        assert blocks * taken.shared_bytes <= limits.shared_bytes


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (kernel(1_056, 32), "kernel k threads: at most 1024 per block, got 1056"),
        (kernel(32, 256), "kernel k registers per thread: at most 255 per block, got 256"),
        # 800 threads are 25 warps, seven on one scheduler, which holds six of 80 registers.
        (kernel(800, 80), "kernel k registers: at most 65536 per block, got 68250"),
        (kernel(32, 32, 65_537), "kernel k shared bytes: at most 65536 per block, got 65792"),
        (kernel(32, 32, 0, 65_537), "kernel k shared bytes: at most 65536 per block, got 65792"),
    ],
)
def test_a_block_that_fits_nowhere(spec: KernelSpec, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        resident_blocks(spec, spec.original, ARCHITECTURES["sm_75"])
    assert str(caught.value) == text
