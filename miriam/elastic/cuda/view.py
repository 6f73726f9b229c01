"""The text as the parser gets it: same length, without what its grammar stumbles over."""

from __future__ import annotations

import re

_BRACKETED = re.compile(
    rb"\b(__launch_bounds__|__align__|__attribute__|__maxnreg__|__cluster_dims__|__block_size__|"
    rb"_Pragma)\s*\("
)
# `struct point* p`: the keyword adds nothing once the type is declared.
_ELABORATED = re.compile(
    rb"\b(struct|union|enum)(?=\s+[A-Za-z_]\w*\s*(?:[*&]|\s[A-Za-z_]\w*\s*[,)=\[;(]))"
)
# `tile<32> t = ...`: otherwise taken for two comparisons.
_TYPE_ARGUMENTS = re.compile(
    rb"\b(?!template\b|operator\b)[A-Za-z_]\w*\s*(<[\w\s,:*]+>)(?=\s*[A-Za-z_]\w*\s*[=;,{\[])"
)

# Between the head of a loop and its body without braces: the grammar has pragmas among statements.
_INNER_PRAGMA = re.compile(rb"(?:\)|\belse|\bdo)\s*\n((?:[ \t]*#[ \t]*pragma\b[^\n]*\n\s*)+)")


def parser_view(data: bytes) -> bytes:
    """``data`` with blanks in place of those pieces; line ends stay."""
    view = bytearray(data)
    for match in _BRACKETED.finditer(data):
        _blank(view, match.start(), _closing(data, match.end()))
    for match in _ELABORATED.finditer(data):
        _blank(view, *match.span(1))
    for match in _INNER_PRAGMA.finditer(data):
        _blank(view, *match.span(1))
    for match in _TYPE_ARGUMENTS.finditer(bytes(view)):
        _blank(view, *match.span(1))
    return bytes(view)


def _blank(view: bytearray, start: int, end: int) -> None:
    view[start:end] = bytes(c if c == 10 else 32 for c in view[start:end])


def _closing(data: bytes, at: int) -> int:
    """The byte after the bracket that closes the one before ``at``; ``at`` if there is none."""
    depth, end = 1, at
    while end < len(data) and depth:
        depth += (data[end] == 40) - (data[end] == 41)
        end += 1
    return end if depth == 0 else at
