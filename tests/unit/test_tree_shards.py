"""The shaded tree: shards under limits, yields, resumes, and what misuse says."""

from __future__ import annotations

import pytest

from miriam.coordinator import ShadedTree, Shard
from miriam.errors import UsageError

EVERYTHING = 2**31 - 1


def test_alone_the_head_is_all_that_is_left_in_the_largest_shade() -> None:
    tree = ShadedTree(49, (64, 256, 128))
    assert tree.head(EVERYTHING, 1_024) == Shard(0, 49, 256)
    assert tree.remaining == 49 and tree.actual == ()


def test_beside_a_critical_kernel_the_head_is_the_largest_slice_within_limits() -> None:
    tree = ShadedTree(49, (64, 128, 256))
    assert tree.head(20, 200) == Shard(0, 13, 128)
    assert tree.head(0, 1_024) is None
    assert tree.head(20, 63) is None


def test_literal_slicing_of_an_odd_grid_waits_for_the_whole_gpu() -> None:
    tree = ShadedTree(49, (64,), literal=True)
    assert tree.head(48, 64) is None
    assert tree.head(49, 64) == Shard(0, 49, 64)


def test_virtual_shards_are_the_head_slices_of_what_the_predecessor_left() -> None:
    tree = ShadedTree(16, (64, 128))
    tree.take(4, 128)
    assert [(s.start, s.count) for s in tree.virtual() if s.threads == 64] == [
        (4, 1),
        (4, 2),
        (4, 3),
        (4, 6),
        (4, 12),
    ]
    assert len(tree.virtual()) == 10


def test_the_picture_of_the_documentation() -> None:
    tree = ShadedTree(16, (64, 128))
    tree.complete(tree.take(4, 128))
    tree.give_back(tree.take(3, 64), done=1)
    tree.complete(tree.take(EVERYTHING, 128))
    assert tree.finished and tree.remaining == 0 and tree.virtual() == ()
    assert tree.actual == (Shard(0, 4, 128), Shard(4, 1, 64), Shard(5, 11, 128))
    assert str(tree).splitlines() == [
        "16 blocks, degree 4",
        "|-- 4 [0, 4) 128 threads",
        "|-- 1 [4, 5) 64 threads",
        "`-- 11 [5, 16) 128 threads",
    ]


def test_a_yield_out_of_order_leaves_a_gap_that_is_the_next_head() -> None:
    tree = ShadedTree(12, (32,))
    first, second = tree.take(4, 32), tree.take(4, 32)
    tree.give_back(first, done=1)
    assert tree.head(EVERYTHING, 32) == Shard(1, 3, 32)
    assert tree.take(EVERYTHING, 32) == Shard(1, 3, 32)
    tree.give_back(second, done=0)
    assert tree.head(EVERYTHING, 32) == Shard(4, 8, 32)
    assert tree.remaining == 8 and not tree.finished


def test_not_finished_while_a_shard_is_under_way() -> None:
    tree = ShadedTree(4, (32,))
    shard = tree.take(4, 32)
    assert tree.remaining == 0 and not tree.finished
    tree.complete(shard)
    assert tree.finished


@pytest.mark.parametrize(("takes", "degree"), [([], 0), ([16], 0), ([8], 1), ([4], 2), ([8, 1], 4)])
def test_degree_counts_the_halvings_down_to_the_smallest_shard(
    takes: list[int], degree: int
) -> None:
    tree = ShadedTree(16, (32,))
    for count in takes:
        tree.take(count, 32)
    assert tree.degree == degree


def test_misuse_says_what_is_wrong() -> None:
    tree = ShadedTree(8, (32, 64))
    shard = tree.take(4, 32)
    with pytest.raises(UsageError, match=r"done: 0 to the 4 blocks of Shard\(.*\), got 5"):
        tree.give_back(shard, done=5)
    with pytest.raises(UsageError, match="shard: under way"):
        tree.complete(Shard(0, 4, 32))
    tree.complete(shard)
    for again in (tree.complete, lambda s: tree.give_back(s, 0)):
        with pytest.raises(UsageError, match=r"shard: under way.*keep what take returned"):
            again(shard)
    with pytest.raises(UsageError, match=r"threads of \(32, 64\), got \(1, 48\)"):
        tree.take(1, 48)
    with pytest.raises(UsageError, match="at least 1 block"):
        tree.take(0, 32)
    tree.take(4, 64)
    with pytest.raises(UsageError, match="some block is left"):
        tree.take(1, 32)


def test_a_stale_shard_cannot_complete_the_equal_one_that_was_taken_after_its_yield() -> None:
    tree = ShadedTree(8, (32,))
    stale = tree.take(8, 32)
    tree.give_back(stale, done=0)
    fresh = tree.take(8, 32)
    assert stale == fresh
    with pytest.raises(UsageError, match="under way"):
        tree.complete(stale)
    tree.complete(fresh)
    assert tree.finished


def test_trees_need_blocks_and_shades() -> None:
    with pytest.raises(UsageError, match="blocks: at least one logical block, got 0"):
        ShadedTree(0, (32,))
    for shades in ((), (0, 32)):
        with pytest.raises(UsageError, match="shades: at least one number of threads"):
            ShadedTree(8, shades)
