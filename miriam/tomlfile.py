"""TOML files that people write: what is wrong in one, by file, place, rule and value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import inspect

from miriam.errors import UnknownNameError, UsageError

_Kind = TypeVar("_Kind", bound=msgspec.Struct)

# What msgspec calls a kind of value, in a TOML author's words.
_KINDS = {
    "array": "an array",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "text in quotes",
}
_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<place>[^`]*)`)?$")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def load(path: Path, what: str) -> Mapping[str, object]:
    """The content of the file ``path``, which is ``what`` (``mix``) to its author.

    UsageError where it is not readable or no TOML, then with line and column.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(what, "a readable text file", str(path), reason) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _broken(path, text, str(error)) from None


def convert(
    path: Path, place: str, raw: object, kind: type[_Kind], *, arrays: str = "an array"
) -> _Kind:
    """``raw``, which stands at ``place`` (``kernel.k``, empty for the whole) of ``path``.

    ``arrays``: what an array is called. UsageError with file, place, rule and value.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        found = _MESSAGE.match(str(error))
        what, inside = (found["what"], found["place"] or "") if found else (str(error), "")
    place = ".".join(filter(None, [place, inside]))
    where = f"{path}: {place}" if place else str(path)
    raise _explained(where, what, _at(raw, inside), _types_at(kind, inside), arrays)


def _broken(path: Path, text: str, message: str) -> UsageError:
    lines = text.splitlines() or [""]
    reason, _, place = message.rpartition(" (at ")
    found = re.match(r"line (\d+), column (\d+)", place)
    line, column = (int(n) for n in found.groups()) if found else (len(lines), len(lines[-1]) + 1)
    excerpt = lines[min(line, len(lines)) - 1].strip()
    return UsageError(f"{path}:{line}:{column}", "valid TOML", excerpt, reason)


def _explained(
    where: str, what: str, value: object, types: Sequence[inspect.Type], arrays: str
) -> UsageError:
    """msgspec's complaint ``what`` in our words."""
    name = (re.findall(r"`([^`]+)`", what) or [""])[0]
    if "unknown field" in what:
        fields = [f.name for t in types if isinstance(t, inspect.StructType) for f in t.fields]
        key = f"{where} key" if ": " in where else f"{where}: key"
        return UnknownNameError(key, name, fields)
    if "missing required" in what:
        got = sorted(value) if isinstance(value, Mapping) else value
        return UsageError(where, f"the key {name!r} is required", got)
    if "enum value" in what:
        known = [v for t in types if isinstance(t, inspect.LiteralType) for v in t.values]
        return UnknownNameError(where, str(value), map(str, known))
    length = re.search(r"of length (\d+)", what)
    if length:
        return UsageError(where, f"{arrays} of length {length[1]}", value)
    kinds = {**_KINDS, "array": arrays}
    named = [kinds[k] for k in name.split(" | ") if k in kinds]
    return UsageError(where, " or ".join(named) or what, value)


def _at(raw: object, place: str) -> object:
    """The value at a place such as ``task[1].arrivals.hz``."""
    for name, index in _STEP.findall(place):
        if index and isinstance(raw, Sequence):
            raw = raw[int(index)]
        elif name and isinstance(raw, Mapping):
            raw = raw.get(name)
    return raw


def _types_at(kind: type[msgspec.Struct], place: str) -> Sequence[inspect.Type]:
    """What the value at ``place`` may be."""
    types: Sequence[inspect.Type] = [inspect.type_info(kind)]
    for name, index in _STEP.findall(place):
        inner: list[inspect.Type] = []
        for found in types:
            if index and isinstance(found, inspect.VarTupleType):
                inner.append(found.item_type)
            elif name and isinstance(found, inspect.StructType):
                inner += [f.type for f in found.fields if f.name == name]
        types = [t for f in inner for t in (f.types if isinstance(f, inspect.UnionType) else [f])]
    return types
