"""What Eq. 1 to 4 promise for every grid, block size and GPU."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from miriam.kernels import ARCHITECTURES, Dim3, GpuSpec, KernelSpec, Resources, Variant
from miriam.shrink import (
    Critical,
    Overheads,
    Space,
    dichotomy,
    left_over,
    max_blocks,
    max_threads,
    oscore,
    slices,
    wiscore,
)

GPUS = st.builds(
    GpuSpec, st.just("any"), st.sampled_from(sorted(ARCHITECTURES)), st.integers(1, 132)
)
CRITICALS = st.builds(Critical, st.integers(1, 5_000), st.integers(1, 1_024))
OVERHEADS = st.builds(Overheads, st.integers(0, 10**6), st.integers(0, 10**6))


@st.composite
def kernels(draw: st.DrawFn) -> KernelSpec:
    shades = sorted(draw(st.sets(st.integers(1, 1_024), min_size=1, max_size=5)), reverse=True)
    variants = tuple(Variant(t, Resources(32, 0)) for t in shades)
    return KernelSpec("k", "k.cu", Dim3(draw(st.integers(1, 3_000))), Dim3(shades[0]), variants)


SPACES = st.builds(Space, GPUS, CRITICALS, kernels(), OVERHEADS, st.booleans())


@given(st.integers(1, 10**6))
def test_sizes_halve_down_to_one_block(blocks: int) -> None:
    sizes = dichotomy(blocks)
    assert sizes[0] == 1 and sizes[-1] == blocks
    assert all(2 * small - large in (0, 1) for small, large in pairwise(sizes))


@given(st.integers(1, 10**6))
def test_literal_sizes_are_the_equation(blocks: int) -> None:
    n = max(i for i in range(21) if blocks % 2**i == 0)
    assert dichotomy(blocks, literal=True) == tuple(blocks // 2**i for i in range(n, -1, -1))


@given(st.integers(2, 10**6).filter(lambda m: m % 2))
def test_odd_grids_are_sliced_and_literally_not(blocks: int) -> None:
    assert len(dichotomy(blocks)) > 1 == len(dichotomy(blocks, literal=True))


@given(st.integers(0, 16))
def test_both_forms_agree_on_powers_of_two(level: int) -> None:
    assert dichotomy(2**level) == dichotomy(2**level, literal=True)


@given(st.integers(1, 3_000), st.data())
def test_slices_of_any_size_cover_each_block_once(blocks: int, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from(dichotomy(blocks)))
    cut = slices(blocks, size)
    assert [b for part in cut for b in part] == list(range(blocks))
    assert all(len(part) == size for part in cut[:-1]) and 1 <= len(cut[-1]) <= size


@given(GPUS, CRITICALS, st.data())
def test_wiscore_stays_within_one_under_the_limits(
    gpu: GpuSpec, critical: Critical, data: st.DataObject
) -> None:
    bound = left_over(gpu, critical)
    blocks = data.draw(st.integers(0, bound.blocks))
    threads = data.draw(st.integers(0, bound.threads))
    assert 0 <= wiscore(gpu, critical, blocks, threads) <= 1
    assert wiscore(gpu, critical, blocks, threads) <= wiscore(
        gpu, critical, bound.blocks, bound.threads
    )


@given(GPUS, CRITICALS)
def test_our_limits_are_never_below_the_literal_ones(gpu: GpuSpec, critical: Critical) -> None:
    ours, printed = left_over(gpu, critical), left_over(gpu, critical, literal=True)
    assert ours.blocks == printed.blocks == max_blocks(gpu.sms, critical.blocks) >= 1
    assert (
        ours.threads
        >= printed.threads
        == max_threads(gpu.limits.threads, critical.threads, resident=True)
    )


@given(st.integers(1, 500), st.integers(1, 500), OVERHEADS)
def test_oscore_never_rises_with_more_fragments_or_claims(
    fragments: int, claims: int, costs: Overheads
) -> None:
    score = oscore(fragments, claims, costs)
    assert score >= oscore(fragments + 1, claims, costs)
    assert score >= oscore(fragments, claims + 1, costs)


@given(SPACES)
def test_pruning_keeps_only_what_breaks_no_limit_best_first(space: Space) -> None:
    found, bound = space.prune(), space.limits
    for candidate in found.kept:
        assert candidate.blocks <= bound.blocks and candidate.threads <= bound.threads
        assert space.score(candidate) > 0
    scores = [space.score(c) for c in found.kept]
    assert scores == sorted(scores, reverse=True)


@given(SPACES)
def test_pruning_loses_nothing_that_passes_every_rule(space: Space) -> None:
    found, bound = space.prune(), space.limits
    lost = set(space.candidates()) - set(found.kept)
    assert all(
        c.blocks > bound.blocks or c.threads > bound.threads or space.score(c) == 0 for c in lost
    )
    assert len(found.kept) == round((1 - found.joint) * found.total)
    shares = [share for _, share in found.shares]
    assert max(shares) <= found.joint + 1e-9 and found.joint <= sum(shares) + 1e-9
