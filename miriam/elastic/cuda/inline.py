"""Helpers with barriers put in the place of their calls, so that a kernel can be split at them.

Source to source, before anything is analysed: the lines keep the places they come from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from miriam.elastic.cuda.inline_call import Inlining, inlining
from miriam.elastic.cuda.names import BARRIERS, VOTING_BARRIERS
from miriam.elastic.cuda.parse import Item, Unit, parse
from miriam.elastic.cuda.subject import Refusal
from miriam.elastic.cuda.syntax import arguments, called_name, find
from miriam.elastic.cuda.text import Text

_MOST_ROUNDS = 24


@dataclass(slots=True)
class Inlined:
    """A unit in which no kernel calls a helper that has a barrier.

    ``refused``: by the start of the kernel in ``unit``, why its helpers stay where they are.
    """

    unit: Unit
    refused: dict[int, Refusal] = field(default_factory=dict)


def inlined(unit: Unit) -> Inlined:
    """Put the helpers with barriers of all kernels of ``unit`` in place."""
    refused: dict[str, Refusal] = {}
    taken: set[tuple[str, str]] = set()
    numbers = 0
    for _ in range(_MOST_ROUNDS):
        helpers = _meeting(unit)
        pieces: list[Inlining] = []
        for kernel in unit.kernels:
            if _key(kernel) in refused:
                continue
            call = _next_call(kernel, helpers)
            if call is None:
                continue
            numbers += 1
            made = inlining(unit, kernel, call, helpers[called_name(call)], numbers, taken)
            if isinstance(made, Refusal):
                refused[_key(kernel)] = made
            else:
                pieces.append(made)
        if not pieces:
            break
        unit = parse(_rewritten(unit.text, pieces))
    return Inlined(unit, _remaining(unit, refused))


def _key(kernel: Item) -> str:
    return kernel.qualified


def _remaining(unit: Unit, refused: dict[str, Refusal]) -> dict[int, Refusal]:
    helpers, found = _meeting(unit), dict[int, Refusal]()
    for kernel in unit.kernels:
        call = _next_call(kernel, helpers)
        if call is not None:
            known = refused.get(_key(kernel))
            detail = known.detail if known else f"{called_name(call)} calls itself"
            found[kernel.node.start_byte] = Refusal("barrier-in-helper", detail, call.start_byte)
    return found


def _meeting(unit: Unit) -> dict[str, list[Item]]:
    """The helpers with barriers, themselves or through others, by name."""
    functions = [i for i in unit.items if i.kind == "device"]
    wanted, found = {*BARRIERS, *VOTING_BARRIERS}, set[str]()
    while wanted:
        wanted = {f.name for f in functions if f.words & wanted} - found
        found |= wanted
    by_name: dict[str, list[Item]] = {}
    for each in functions:
        if each.name in found:
            by_name.setdefault(each.name, []).append(each)
    return by_name


def _next_call(kernel: Item, helpers: dict[str, list[Item]]) -> Node | None:
    """The first call to one of ``helpers`` that has no other one in its arguments."""
    body = kernel.body
    if body is None or not kernel.words & set(helpers):
        return None
    for call in find(body, "call_expression"):
        if called_name(call) in helpers and not any(
            called_name(c) in helpers for a in arguments(call) for c in find(a, "call_expression")
        ):
            return call
    return None


def _rewritten(source: Text, pieces: list[Inlining]) -> Text:
    """``source`` with every piece in place; each line knows where it comes from."""
    data, origin = bytearray(), list[tuple[int, int]]()
    at = 0

    def put(written: bytes, row: int, own: bool) -> None:
        for line in written.splitlines(keepends=True):
            if not data or data.endswith(b"\n"):
                origin.append(source.origin[min(row, len(source.origin) - 1)])
            data.extend(line)
            row += own

    for piece in sorted(pieces, key=lambda p: p.start):
        put(source.data[at : piece.start], source.row(at), True)
        for written, row, own in piece.parts:
            put(written, row, own)
        at = piece.end
    put(source.data[at:], source.row(at), True)
    return Text(bytes(data), source.path, source.main, source.files, tuple(origin))
