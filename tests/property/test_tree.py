"""Exactly once: the tree against a model that marks every block, whatever happens."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from miriam.coordinator import ShadedTree, Shard
from miriam.errors import UsageError

SHADES = (32, 64, 256)


class Launches(RuleBasedStateMachine):
    """Grants, yields, resumes and completions of one launch, with shards under way side by side.

    ``runs[b]`` counts how often block b ran, ``under_way`` the blocks that a shard holds now.
    """

    shards = Bundle("shards")
    settled = Bundle("settled")

    @initialize(blocks=st.integers(1, 60), literal=st.booleans())
    def launch(self, blocks: int, literal: bool) -> None:
        self.tree = ShadedTree(blocks, SHADES, literal=literal)
        self.runs = [0] * blocks
        self.under_way: set[int] = set()

    def dispatched(self, shard: Shard) -> Shard:
        blocks = set(range(shard.start, shard.stop))
        assert shard.count >= 1 and not blocks & self.under_way
        assert not any(self.runs[b] for b in blocks)
        self.under_way |= blocks
        return shard

    def ran(self, shard: Shard, done: int) -> None:
        self.under_way -= set(range(shard.start, shard.stop))
        for block in range(shard.start, shard.start + done):
            self.runs[block] += 1

    @precondition(lambda self: self.tree.remaining)
    @rule(target=shards, count=st.integers(1, 70), threads=st.sampled_from(SHADES))
    def claim(self, count: int, threads: int) -> Shard:
        shard = self.tree.take(count, threads)
        assert shard.count <= count and shard.threads == threads
        return self.dispatched(shard)

    @precondition(lambda self: self.tree.remaining)
    @rule(target=shards, blocks=st.integers(1, 70), threads=st.integers(32, 1_024))
    def grant(self, blocks: int, threads: int) -> Shard:
        head = self.tree.head(blocks, threads)
        if head is None:
            # Only the literal plan of an odd part has no slice of one block.
            assert min(s.count for s in self.tree.virtual()) > blocks
            head = self.tree.virtual()[-1]
        else:
            assert head.count <= blocks and head.threads <= threads
            within = [s for s in self.tree.virtual() if s.count <= blocks and s.threads <= threads]
            assert head in within
            assert (head.count, head.threads) == max((s.count, s.threads) for s in within)
        shard = self.tree.take(head.count, head.threads)
        assert shard == head
        return self.dispatched(shard)

    @precondition(lambda self: not self.tree.remaining)
    @rule(threads=st.sampled_from(SHADES))
    def claim_of_nothing(self, threads: int) -> None:
        assert self.tree.head(70, 1_024) is None
        with pytest.raises(UsageError, match="some block is left"):
            self.tree.take(1, threads)

    @rule(target=settled, shard=consumes(shards))
    def complete(self, shard: Shard) -> Shard:
        self.tree.complete(shard)
        self.ran(shard, shard.count)
        return shard

    @rule(target=settled, shard=consumes(shards), data=st.data())
    def give_back(self, shard: Shard, data: st.DataObject) -> Shard:
        done = data.draw(st.integers(0, shard.count))
        self.tree.give_back(shard, done)
        self.ran(shard, done)
        return shard

    @rule(shard=settled, yields=st.booleans())
    def settle_again(self, shard: Shard, yields: bool) -> None:
        with pytest.raises(UsageError, match="under way"):
            self.tree.give_back(shard, 0) if yields else self.tree.complete(shard)

    @invariant()
    def every_block_ran_waits_or_is_under_way(self) -> None:
        free = [b for b, n in enumerate(self.runs) if not n and b not in self.under_way]
        assert self.tree.remaining == len(free)
        assert self.tree.finished == (self.runs == [1] * len(self.runs))
        assert max(self.runs) <= 1
        virtual = {b for s in self.tree.virtual() for b in range(s.start, s.stop)}
        assert virtual <= set(free) and bool(virtual) == bool(free)
        # The whole virtual shard is the first contiguous run of free blocks, as long as can be.
        assert not free or min(virtual) == free[0]
        assert not free or max(virtual) + 1 not in free

    @invariant()
    def actual_shards_are_what_ran_or_is_under_way(self) -> None:
        actual = [b for s in self.tree.actual for b in range(s.start, s.stop)]
        gone = {b for b, n in enumerate(self.runs) if n} | self.under_way
        assert sorted(actual) == sorted(gone)
        assert 0 <= self.tree.degree <= len(self.runs).bit_length()

    def teardown(self) -> None:
        """Whatever happened, yielding all and running the rest alone finishes the launch."""
        if not hasattr(self, "tree"):
            return
        for shard in self.tree.actual:
            if shard.start in self.under_way:
                self.tree.give_back(shard, 0)
                self.ran(shard, 0)
        while self.tree.remaining:
            shard = self.dispatched(self.tree.take(len(self.runs), 256))
            self.tree.complete(shard)
            self.ran(shard, shard.count)
        assert self.tree.finished and self.runs == [1] * len(self.runs)


TestLaunches = Launches.TestCase
TestLaunches.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
