"""LAUNCH.toml: with which grid, block and arguments the kernels of a file are verified.

Decoding is strict. A key that is unknown, out of range or without effect in its place is an
error that names the file, the place in it (``kernel."blur<4>".args[1].fill``), rule and value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from miriam import tomlfile
from miriam.check.values import fits
from miriam.errors import UnknownNameError, UsageError
from miriam.kernels import DTYPE_BYTES, Dim3

Fill = Literal["random", "zeros", "arange"]

_MOST_BLOCKS = 1_000_000
_MOST_THREADS = 1_024
_MOST_BYTES = 1 << 30
_BLOCK_LIMITS = (1_024, 1_024, 64)
_GRID_LIMITS = (2**31 - 1, 65_535, 65_535)
_SHARED_BYTES = 228 * 1024


@dataclass(frozen=True, slots=True)
class Array:
    """A pointer argument to ``count`` elements; ``fill`` None leaves poison in them (0xFF)."""

    dtype: str
    count: int
    fill: Fill | None = None
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """An argument by value: its bytes, and whether it was written as a struct."""

    data: bytes
    kind: Literal["int", "float", "struct"]


@dataclass(frozen=True, slots=True)
class Alias:
    """The same pointer as array argument ``of``."""

    of: int


Argument = Array | Value | Alias


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One kernel: ``name`` is a name expression (``blur<4>``), ``place`` its place in the file."""

    name: str
    place: str
    grid: Dim3
    block: Dim3
    args: tuple[Argument, ...]
    shared_bytes: int = 0


class _Argument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    array: str | None = None
    count: int | None = None
    fill: Fill | None = None
    min: float | None = None
    max: float | None = None
    scalar: str | None = None
    value: bool | int | float | None = None
    struct: str | None = None
    same_as: int | None = None


class _Kernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[object, ...]
    shared_bytes: int = 0


# What may stand beside the key that says what an argument is.
_BESIDE = {
    "array": ("count", "fill", "min", "max"),
    "scalar": ("value",),
    "struct": (),
    "same_as": (),
}


def read_launches(path: Path) -> tuple[KernelLaunch, ...]:
    """The kernels of the TOML file ``path``, in its order; UsageError for whatever is wrong."""
    raw = tomlfile.load(path, "launch file")
    for key in raw:
        if key != "kernel":
            raise UnknownNameError(f"{path}: key", key, ("kernel",))
    kernels = raw.get("kernel", {})
    if not isinstance(kernels, Mapping) or not kernels:
        advice = 'a kernel begins with [kernel."name"]'
        raise UsageError(f"{path}: kernel", "a table per kernel", kernels, advice)
    return tuple(_kernel(path, name, table) for name, table in kernels.items())


def _kernel(path: Path, name: str, table: object) -> KernelLaunch:
    key = name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
    inside = f"kernel.{key}"
    place = f"{path}: {inside}"
    made = tomlfile.convert(path, inside, table, _Kernel)
    _check_extent(f"{place}.grid", made.grid, _GRID_LIMITS, _MOST_BLOCKS, "blocks")
    _check_extent(f"{place}.block", made.block, _BLOCK_LIMITS, _MOST_THREADS, "threads")
    _check_range(f"{place}.shared_bytes", made.shared_bytes, 0, _SHARED_BYTES)
    args: list[Argument] = []
    for index, entry in enumerate(made.args):
        at = f"args[{index}]"
        given = tomlfile.convert(path, f"{inside}.{at}", entry, _Argument)
        args.append(_argument(f"{place}.{at}", given, args))
    return KernelLaunch(
        name, place, Dim3(*made.grid), Dim3(*made.block), tuple(args), made.shared_bytes
    )


def _check_extent(
    place: str, extent: tuple[int, ...], limits: tuple[int, ...], most: int, what: str
) -> None:
    for index, (size, limit) in enumerate(zip(extent, limits, strict=True)):
        _check_range(f"{place}[{index}]", size, 1, limit)
    if Dim3(*extent).size > most:
        raise UsageError(place, f"at most {most} {what}", list(extent))


def _check_range(place: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(place, f"from {low} to {high}", value)


def _argument(place: str, entry: _Argument, before: list[Argument]) -> Argument:
    kinds = [k for k in _BESIDE if getattr(entry, k) is not None]
    if len(kinds) != 1:
        raise UsageError(place, f"exactly one of the keys {', '.join(_BESIDE)}", kinds)
    for field in entry.__struct_fields__:
        if getattr(entry, field) is not None and field not in (*kinds, *_BESIDE[kinds[0]]):
            rule = f"not used where the argument is {kinds[0]!r}"
            raise UsageError(f"{place}.{field}", rule, getattr(entry, field))
    if entry.array is not None:
        return _array(place, entry, entry.array)
    if entry.scalar is not None:
        return _scalar(place, entry, entry.scalar)
    if entry.struct is not None:
        return Value(_hex(f"{place}.struct", entry.struct), "struct")
    at = entry.same_as
    if at is None or not 0 <= at < len(before) or not isinstance(before[at], Array):
        raise UsageError(f"{place}.same_as", "the index of an earlier array argument", at)
    return Alias(at)


def _array(place: str, entry: _Argument, dtype: str) -> Array:
    _check_dtype(f"{place}.array", dtype)
    if entry.count is None:
        raise UsageError(f"{place}.count", "required for an array", None)
    _check_range(f"{place}.count", entry.count, 1, _MOST_BYTES // DTYPE_BYTES[dtype])
    return Array(dtype, entry.count, entry.fill, _bounds(place, entry, dtype))


def _bounds(place: str, entry: _Argument, dtype: str) -> tuple[float, float] | None:
    if entry.min is None and entry.max is None:
        return None
    for field, bound in (("min", entry.min), ("max", entry.max)):
        if entry.fill != "random":
            raise UsageError(f"{place}.{field}", "only where fill is 'random'", bound)
        if bound is None:
            raise UsageError(f"{place}.{field}", "min and max, or neither", None)
        if not (math.isfinite(bound) and fits(bound, dtype)):
            raise UsageError(f"{place}.{field}", f"a finite value of {dtype}", bound)
    assert entry.min is not None and entry.max is not None  # the loop saw both
    if entry.min > entry.max:
        raise UsageError(f"{place}.min", f"not above max, {entry.max:g}", entry.min)
    return entry.min, entry.max


def _scalar(place: str, entry: _Argument, dtype: str) -> Value:
    _check_dtype(f"{place}.scalar", dtype)
    if entry.value is None:
        raise UsageError(f"{place}.value", "required for a scalar", None)
    if not fits(entry.value, dtype):
        raise UsageError(f"{place}.value", f"a value of {dtype}", entry.value)
    kind: Literal["int", "float"] = "float" if dtype.startswith("float") else "int"
    return Value(np.array(entry.value).astype(dtype).tobytes(), kind)


def _check_dtype(place: str, dtype: str) -> None:
    if dtype not in DTYPE_BYTES:
        raise UnknownNameError(place, dtype, DTYPE_BYTES)


def _hex(place: str, text: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if not data:
        raise UsageError(place, "bytes as pairs of hexadecimal digits", text)
    return data
