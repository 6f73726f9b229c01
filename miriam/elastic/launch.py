"""The launch struct of miriam_elastic.h as the bytes of a kernel argument."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from miriam.kernels import Dim3

_LAYOUT = struct.Struct("<5I4xQQ2I3Q3I4x")
LAUNCH_BYTES = _LAYOUT.size


@dataclass(frozen=True, slots=True)
class Control:
    """What a yield form reads and writes while it runs: addresses, 0 for none.

    ``counter``: the word of numbers claimed so far. ``quota``: ``quotas`` words, ``stride`` words
    apart, and the smallest counts. ``sms``: as many sets of SMs, a bit for each. ``runs``: a word
    per logical block, for forms that were compiled to count. ``shrunk``: a word, 0 at
    the launch, by which the last blocks give way to a full launch once nothing limits it.
    """

    counter: int = 0
    quota: int = 0
    quotas: int = 1
    stride: int = 0
    sms: int = 0
    runs: int = 0
    shrunk: int = 0


def launch_bytes(
    grid: Dim3,
    start: int,
    count: int,
    control: Control = Control(),
    *,
    block: Dim3 | None = None,
) -> bytes:
    """``MiriamLaunch``: logical blocks ``start`` to ``start + count - 1`` of the grid ``grid``.

    ``block``: the shape of a logical block, which the block forms need and no other form reads.
    """
    words = (control.counter, control.quota, control.quotas - 1, control.stride)
    shape = (block.x, block.y, block.z) if block is not None else (0, 0, 0)
    numbers = (grid.x, grid.y, grid.z, start, count)
    return _LAYOUT.pack(*numbers, *words, control.sms, control.runs, control.shrunk, *shape)
