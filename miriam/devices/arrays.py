"""Checks arrays that a user hands in against the buffers that they fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from miriam.errors import UnknownNameError, UsageError
from miriam.kernels import Buffer


def check_arrays(
    field: str, buffers: Sequence[Buffer], arrays: Mapping[str, NDArray[np.generic]]
) -> None:
    """UsageError unless ``arrays`` has one array of the right shape and dtype per buffer."""
    wanted = {b.name: b for b in buffers}
    for name in arrays:
        if name not in wanted:
            raise UnknownNameError(field, name, wanted)
    for name, buffer in wanted.items():
        if name not in arrays:
            raise UsageError(f"{field} {name}", "an array for each one", None)
        got = arrays[name]
        if not isinstance(got, np.ndarray):
            raise UsageError(f"{field} {name}", "a numpy array", type(got).__name__)
        if got.shape != buffer.shape:
            raise UsageError(f"{field} {name}", f"shape {buffer.shape}", got.shape)
        if got.dtype != np.dtype(buffer.dtype):
            raise UsageError(
                f"{field} {name}", f"dtype {buffer.dtype}", str(got.dtype), "convert it first"
            )
