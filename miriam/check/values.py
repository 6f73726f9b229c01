"""The values of arguments: filled from a seed, compared byte by byte."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_INTEGERS = 100  # random integers lie in -100 ... 100 unless the file says otherwise


def fits(value: float, dtype: str) -> bool:
    """Whether ``value`` is a value of the numpy type ``dtype``: whole and in range for integers."""
    if dtype.startswith("float"):
        return not math.isfinite(value) or abs(value) <= float(np.finfo(dtype).max)
    if isinstance(value, float) and not value.is_integer():
        return False
    limits = np.iinfo(dtype)
    return int(limits.min) <= int(value) <= int(limits.max)


def filled(
    dtype: str, count: int, fill: str, bounds: tuple[float, float] | None, seed: Sequence[int]
) -> NDArray[np.generic]:
    """``count`` values: ``zeros``, ``arange`` (0, 1, 2, ..., wrapping), or ``random``.

    Random floats lie between ``bounds``, by default -1 and 1; random integers too, both
    included, by default -100 and 100 within the type's range.
    """
    if fill == "zeros":
        return np.zeros(count, dtype)
    if fill == "arange":
        return np.arange(count, dtype=np.int64).astype(dtype)
    random = np.random.default_rng(seed)
    if dtype.startswith("float"):
        low, high = bounds or (-1.0, 1.0)
        return (low + (high - low) * random.random(count)).astype(dtype)
    limits = np.iinfo(dtype)
    bottom, top = bounds or (max(limits.min, -_INTEGERS), min(limits.max, _INTEGERS))
    return random.integers(int(bottom), int(top), count, dtype, endpoint=True)


def first_difference(
    wanted: NDArray[np.generic], got: NDArray[np.generic]
) -> tuple[int, object, object] | None:
    """Index of the first element whose bytes differ, and both values; None if none does."""
    size = wanted.dtype.itemsize
    rows = wanted.view(np.uint8).reshape(-1, size) != got.view(np.uint8).reshape(-1, size)
    different = rows.any(axis=1)
    if not different.any():
        return None
    index = int(different.argmax())
    return index, wanted.flat[index], got.flat[index]
