"""Pieces of the user's text with edits, each line kept at its number by ``#line``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.text import Text

_MOST_BLANK_LINES = 12


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """The bytes from ``start`` to ``end`` become ``text``."""

    start: int
    end: int
    text: str


def render(source: Text, start: int, end: int, edits: Iterable[Edit] = ()) -> str:
    """The bytes from ``start`` to ``end`` with ``edits``, preceded by a ``#line``."""
    inside = sorted(e for e in edits if start <= e.start and e.end <= end)
    first, last = source.row(start), source.row(max(start, end - 1))
    result: list[str] = []
    path, line = "", 0
    for row in range(first, last + 1):
        at = max(start, source.starts[row])
        stop = source.starts[row + 1] - 1 if row + 1 < len(source.starts) else end
        piece = _edited(source, at, min(stop, end), inside)
        here = source.source(row)
        if here[0] == path and line <= here[1] <= line + _MOST_BLANK_LINES:
            result += [_comment(source.written(path, n)) for n in range(line, here[1])]
        elif here != (path, line):
            result.append(line_directive(*here))
        result += _with_line(piece, here)
        path, line = here[0], here[1] + 1
    return "\n".join(result)


def _with_line(piece: str, here: tuple[str, int]) -> list[str]:
    """A line of the user's text that edits have put others before: its number stays."""
    before, cut, last = piece.rpartition("\n")
    return [before, line_directive(*here), last] if cut else [piece]


def one_line(source: Text, start: int, end: int, edits: Iterable[Edit] = ()) -> str:
    """The bytes from ``start`` to ``end`` with ``edits``, on one line."""
    inside = sorted(e for e in edits if start <= e.start and e.end <= end)
    return " ".join(_edited(source, start, end, inside).split())


def insertion(node: Node, words: str) -> Edit:
    """Puts ``words`` first into the list ``(...)`` that ``node`` is."""
    kept = [c for c in node.named_children if c.type != "comment"]
    void = len(kept) == 1 and (kept[0].text or b"") == b"void"
    if not kept or void:
        return Edit(node.start_byte + 1, node.end_byte - 1, words)
    return Edit(node.start_byte + 1, node.start_byte + 1, f"{words}, ")


def line_directive(path: str, line: int) -> str:
    """``#line`` for ``path``."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{escaped}"'


def _edited(source: Text, start: int, end: int, edits: list[Edit]) -> str:
    pieces, at = [], start
    for edit in edits:
        if (edit.start >= end and not edit.start == edit.end == end) or edit.end < start:
            continue
        if edit.start >= start:
            pieces += [source.slice(at, edit.start), edit.text]
        at = max(at, min(edit.end, end))
    return "".join([*pieces, source.slice(at, end)])


def _comment(written: str) -> str:
    """A line of the user's file if it is a comment, otherwise an empty line."""
    line = written.rstrip()
    return line if line.lstrip().startswith("//") and not line.endswith("\\") else ""
