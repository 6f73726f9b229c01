"""Preprocessed source text, and where each byte of it stands in the user's files."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from miriam.errors import SourceError

_MOST_SHOWN = 200  # characters of a line


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a user's file: line and column count from 1; the excerpt has a caret."""

    path: str
    line: int
    column: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class Text:
    """UTF-8 text and the origin of each line of it: an index into ``files``, and a line there.

    The origin of a line that a macro made is the macro's invocation. ``main``: the lines of the
    file ``path`` that all began with, which may be text in memory.
    """

    data: bytes
    path: str
    main: tuple[str, ...]
    files: tuple[str, ...]
    origin: tuple[tuple[int, int], ...]
    starts: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts, at = [0], -1
        while (at := self.data.find(b"\n", at + 1)) >= 0:
            starts.append(at + 1)
        object.__setattr__(self, "starts", tuple(starts))

    def row(self, at: int) -> int:
        """The line of the text, from 0, that byte ``at`` is in."""
        return min(bisect_right(self.starts, at) - 1, len(self.origin) - 1)

    def source(self, row: int) -> tuple[str, int]:
        """File and line of row ``row``."""
        index, line = self.origin[row]
        return self.files[index], line

    def position(self, at: int) -> Position:
        """Where byte ``at`` stands in the user's files."""
        if not self.origin:
            return Position(self.path, 1, 1, "")
        row = self.row(at)
        path, line = self.source(row)
        column = len(self.data[self.starts[row] : at].decode(errors="replace")) + 1
        written = self.written(path, line)
        text = self.slice(self.starts[row], self._end(row))
        # A macro makes text that is not in the file: then the caret shows the line's beginning.
        if written.rstrip() != text.rstrip():
            column = len(written) - len(written.lstrip()) + 1
        return Position(path, line, column, excerpt(written, column))

    def written(self, path: str, line: int) -> str:
        """A line as it stands in the user's file; empty when it is not there."""
        lines = self.main if path == self.path else source_lines(path)
        return lines[line - 1] if line <= len(lines) else ""

    def slice(self, start: int, end: int) -> str:
        """The text of the bytes from ``start`` to ``end``."""
        return self.data[start:end].decode(errors="replace")

    def _end(self, row: int) -> int:
        return self.starts[row + 1] - 1 if row + 1 < len(self.starts) else len(self.data)

    def error(self, at: int, message: str) -> SourceError:
        """A SourceError at byte ``at``."""
        place = self.position(at)
        return SourceError(place.path, place.line, message, place.excerpt, place.column)


def excerpt(line: str, column: int) -> str:
    """A line of source with a caret below ``column``; of a long line what surrounds that."""
    first = max(0, column - _MOST_SHOWN // 2) if column > _MOST_SHOWN else 0
    shown = line.expandtabs(1)[first : first + _MOST_SHOWN]
    return f"    {shown}\n    {' ' * (min(column - first, len(shown) + 1) - 1)}^"


@cache
def source_lines(path: str) -> tuple[str, ...]:
    """The lines of a user's file, for excerpts; empty when there is no such file."""
    try:
        return tuple(Path(path).read_bytes().decode("utf-8", "replace").split("\n"))
    except OSError:
        return ()
