"""The launch struct of miriam_elastic.h as the bytes of a kernel argument."""

from __future__ import annotations

import struct

from miriam.kernels import Dim3

_LAYOUT = struct.Struct("<5I4xQQ")
LAUNCH_BYTES = _LAYOUT.size


def launch_bytes(grid: Dim3, start: int, count: int, *, counter: int = 0, quota: int = 0) -> bytes:
    """``MiriamLaunch``: logical blocks ``start`` to ``start + count - 1`` of the grid ``grid``.

    ``counter`` and ``quota`` are addresses, both of 32-bit words; only the yield form reads them.
    """
    return _LAYOUT.pack(grid.x, grid.y, grid.z, start, count, counter, quota)
