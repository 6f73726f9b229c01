"""Eq. 1: the sizes into which a kernel's logical blocks may be cut, one per level of its tree."""

from __future__ import annotations

from functools import lru_cache

from miriam.errors import UsageError


@lru_cache(maxsize=4_096)
def dichotomy(blocks: int, *, literal: bool = False) -> tuple[int, ...]:
    """Slice sizes in logical blocks, smallest first, ending in ``blocks`` (Eq. 1).

    Halving rounds up and goes on to 1, so that odd grids are sliced too: 49 gives
    (1, 2, 4, 7, 13, 25, 49). ``literal`` stops at the first odd size, as the paper prints it:
    12 gives (3, 6, 12) and 49 only (49,). UsageError for less than one block.
    """
    if blocks < 1:
        raise UsageError("blocks", "at least one logical block", blocks)
    sizes = [blocks]
    while sizes[-1] > 1 and not (literal and sizes[-1] % 2):
        sizes.append((sizes[-1] + 1) // 2)
    return tuple(reversed(sizes))


def slices(blocks: int, size: int) -> tuple[range, ...]:
    """Contiguous ranges of ``size`` logical blocks that cover 0..``blocks``; the last may be less.

    UsageError for a size or a grid of less than one block.
    """
    for field, got in (("blocks", blocks), ("size", size)):
        if got < 1:
            raise UsageError(field, "at least one logical block", got)
    return tuple(range(start, min(start + size, blocks)) for start in range(0, blocks, size))
