"""Eq. 1 to 4 and the pruning on examples worked by hand."""

from __future__ import annotations

import pytest

from miriam.errors import UsageError
from miriam.kernels import Dim3, GpuSpec, KernelSpec, Resources, Variant
from miriam.shrink import (
    Candidate,
    Critical,
    Limits,
    Overheads,
    Space,
    best_measured,
    dichotomy,
    full_space,
    left_over,
    max_blocks,
    max_threads,
    oscore,
    slices,
    wiscore,
)

RTX2060 = GpuSpec("rtx2060", "sm_75", 30)
AMPLE = Overheads(max_blk_ns=10**9, max_pt_ns=10**9)


def kernel(blocks: int = 64, *threads: int) -> KernelSpec:
    shades = threads or (256, 128, 64)
    variants = tuple(Variant(t, Resources(32, 0), shades[0] // t) for t in shades)
    return KernelSpec("k", "k.cu", Dim3(blocks), Dim3(shades[0]), variants)


def test_eq1_halves_and_ends_in_the_whole_grid() -> None:
    assert dichotomy(16) == dichotomy(16, literal=True) == (1, 2, 4, 8, 16)


def test_eq1_slices_odd_grids_that_the_literal_form_leaves_whole() -> None:
    assert dichotomy(49) == (1, 2, 4, 7, 13, 25, 49)
    assert dichotomy(49, literal=True) == (49,)
    assert dichotomy(12, literal=True) == (3, 6, 12)


def test_slices_are_contiguous_and_the_last_may_be_short() -> None:
    assert slices(10, 4) == (range(0, 4), range(4, 8), range(8, 10))


@pytest.mark.parametrize("call", [lambda: dichotomy(0), lambda: slices(0, 1), lambda: slices(4, 0)])
def test_less_than_one_block_is_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(UsageError, match="at least one logical block, got 0"):
        call()


@pytest.mark.parametrize(("critical", "free"), [(1, 29), (29, 1), (30, 30), (100, 20)])
def test_eq2_blocks_are_the_sms_that_the_last_wave_leaves(critical: int, free: int) -> None:
    assert max_blocks(30, critical) == free


def test_eq2_threads_bind_only_beside_a_resident_critical_block() -> None:
    assert max_threads(1_024, 1_024, resident=True) == 0
    assert max_threads(1_024, 1_024, resident=False) == 1_024
    with pytest.raises(UsageError, match="critical_threads: 0 to 1024, got 2048"):
        max_threads(1_024, 2_048, resident=True)


def test_a_critical_kernel_smaller_than_the_gpu_leaves_whole_sms() -> None:
    assert left_over(RTX2060, Critical(10, 256)) == Limits(20, 1_024)
    assert left_over(RTX2060, Critical(10, 256), literal=True) == Limits(20, 768)
    assert left_over(RTX2060, Critical(40, 256)) == Limits(20, 768)


def test_eq3_is_one_when_everything_is_full() -> None:
    assert wiscore(RTX2060, Critical(40, 256), 20, 768) == 1
    assert wiscore(RTX2060, Critical(10, 256), 20, 1_024) == 1
    assert wiscore(RTX2060, Critical(40, 256), 5, 256) == 0.5 * 0.5


def test_eq3_as_printed_can_exceed_one_within_the_limits() -> None:
    critical = Critical(40, 256)
    bound = left_over(RTX2060, critical, literal=True)
    assert wiscore(RTX2060, critical, bound.blocks, bound.threads, literal=True) == 1.5


def test_eq4_is_strict_and_the_first_launch_is_free() -> None:
    costs = Overheads(max_blk_ns=5_200, max_pt_ns=2_100, relaunch_ns=2_600, claim_ns=700)
    assert oscore(2, 2, costs) == 1
    assert oscore(3, 2, costs) == 0
    assert oscore(2, 3, costs) == 0
    assert oscore(1, 1, Overheads(0, 10**9)) == 0


def test_overhead_budget_is_a_share_of_the_solo_time() -> None:
    assert Overheads.of_solo(100_000) == Overheads(50_000, 50_000)
    assert oscore(1_000, 1, Overheads.of_solo(100_000, relaunch_ns=0)) == 1
    with pytest.raises(UsageError, match="overhead budget"):
        Overheads.of_solo(-1)


def test_pruning_reports_what_each_rule_alone_removes() -> None:
    # Sizes 1 2 4 8 16 32 64, threads 256 128 64; 26 SMs and 128 threads are left over, and ten
    # relaunches are too many, so that shards of less than 7 blocks are out.
    costs = Overheads(max_blk_ns=26_000, max_pt_ns=10**9)
    found = Space(RTX2060, Critical(34, 896), kernel(), costs).prune()
    assert found.total == 21
    assert dict(found.shares) == pytest.approx(
        {"blocks": 2 / 7, "threads": 1 / 3, "overhead": 3 / 7}
    )
    assert found.joint == pytest.approx(1 - 4 / 21)
    assert found.kept == (
        Candidate(16, 128),
        Candidate(16, 64),
        Candidate(8, 128),
        Candidate(8, 64),
    )


def test_nothing_is_kept_beside_a_critical_kernel_that_fills_every_sm() -> None:
    found = Space(RTX2060, Critical(30, 1_024), kernel(), AMPLE).prune()
    assert found.kept == () and found.joint == 1


def test_literal_space_keeps_an_odd_grid_whole() -> None:
    space = Space(RTX2060, Critical(10, 256), kernel(49), AMPLE, literal=True)
    assert {c.blocks for c in space.candidates()} == {49}
    assert space.prune().kept == ()


def test_pruning_works_on_the_whole_space_and_refuses_an_empty_one() -> None:
    space = Space(RTX2060, Critical(40, 256), kernel(40, 64), AMPLE)
    found = space.prune(space.every())
    assert found.total == 40 * 64 == full_space([space.kernel])
    assert found.kept[0] == Candidate(20, 64) and len(found.kept) == 20 * 64
    with pytest.raises(UsageError, match="candidates: at least one"):
        space.prune(())


def test_full_space_is_a_product_over_kernels() -> None:
    assert full_space([kernel(49, 256), kernel(64, 128)]) == 49 * 256 * 64 * 128


def test_best_fifth_by_measurement_less_is_better() -> None:
    pool = [Candidate(n, 64) for n in range(1, 11)]
    assert best_measured(pool, lambda c: -c.blocks) == (Candidate(10, 64), Candidate(9, 64))
    assert best_measured(pool[:1], lambda c: c.blocks) == (Candidate(1, 64),)
    with pytest.raises(UsageError, match="share: more than 0 and at most 1"):
        best_measured(pool, lambda c: c.blocks, share=0)
