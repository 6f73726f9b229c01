"""The launch struct of miriam_elastic.h as the bytes of a kernel argument."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from miriam.kernels import Dim3

_LAYOUT = struct.Struct("<5I4xQQ2IQQ")
LAUNCH_BYTES = _LAYOUT.size


@dataclass(frozen=True, slots=True)
class Control:
    """What a yield form reads and writes while it runs: addresses, 0 for none.

    ``counter``: the word of numbers claimed so far. ``quota``: ``quotas`` words, ``stride`` words
    apart, and the smallest counts. ``sms``: as many sets of SMs, a bit for each. ``runs``: a word
    per logical block, for forms that were compiled to count.
    """

    counter: int = 0
    quota: int = 0
    quotas: int = 1
    stride: int = 0
    sms: int = 0
    runs: int = 0


def launch_bytes(grid: Dim3, start: int, count: int, control: Control = Control()) -> bytes:
    """``MiriamLaunch``: logical blocks ``start`` to ``start + count - 1`` of the grid ``grid``."""
    words = (control.counter, control.quota, control.quotas - 1, control.stride)
    return _LAYOUT.pack(*(grid.x, grid.y, grid.z, start, count), *words, control.sms, control.runs)
