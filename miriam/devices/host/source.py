"""CUDA C++ text as g++ takes it: quoted includes in place, shared memory as plain C++."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from miriam.errors import UsageError

NAMES_FILE = "miriam-kernel-names"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)".*$', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once.*$", re.MULTILINE)
_QUOTED = r"""(?P<quoted>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
_COMMENT = re.compile(rf"{_QUOTED}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_DYNAMIC = re.compile(
    rf"{_QUOTED}|\bextern\s+__shared__\s+(?P<type>[^;{{}}=#]*?)(?P<name>\w+)\s*\[\s*\]\s*;"
)
_STATIC = re.compile(rf"{_QUOTED}|(?<!extern )\b__shared__\b(?P<rest>[^;{{}}=#\"]*);")
_ALIGN = re.compile(r"(?:__align__|alignas)\s*\([^()]*\)")
_DECLARATOR = re.compile(r"(?P<head>(?:.*\W)?)(?P<name>[A-Za-z_]\w*)(?P<space>\s*)", re.DOTALL)
_INSIDE = 'static_assert(*__builtin_FUNCTION(), "declare it inside a function");'


def read_source(path: Path) -> str:
    """The text of a source file; UsageError when it can not be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("kernel source", "a readable UTF-8 file", str(path), str(error)) from None


def translation_unit(text: str, path: Path, names: Sequence[str]) -> str:
    """What g++ compiles for ``text``, the content of ``path``: it, and an entry per kernel name.

    Compile errors in the text keep their file and line; those in the names are reported in
    ``NAMES_FILE``, where line n is ``names[n - 1]``.
    """
    entries = "\n".join(f"MIRIAM_HOST_ENTRY({n}, {name})" for n, name in enumerate(names))
    return f"{_expand(text, path, ())}\n{_line(1, NAMES_FILE)}\n{entries}\n"


def _line(number: int, path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {number} "{escaped}"'


def _expand(source: str, path: Path, above: tuple[Path, ...]) -> str:
    text = _COMMENT.sub(_blank, source)
    above = (*above, path.resolve())

    def replace(match: re.Match[str]) -> str:
        header = path.parent / match[1]
        if not header.is_file():
            return match[0]
        if header.resolve() in above:
            return ""
        after = text.count("\n", 0, match.end()) + 2
        return f"{_expand(read_source(header), header, above)}\n{_line(after, str(path))}"

    text = _STATIC.sub(_static_shared, _DYNAMIC.sub(_dynamic_shared, text))
    body = _INCLUDE.sub(replace, text)
    if not _ONCE.search(text):
        return f"{_line(1, str(path))}\n{body}"
    # Headers are put in place textually, where the compiler would ignore `once`.
    guard = f"MIRIAM_ONCE_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    body = _ONCE.sub("", body)
    return f"#ifndef {guard}\n#define {guard}\n{_line(1, str(path))}\n{body}\n#endif"


def _blank(match: re.Match[str]) -> str:
    """Comments as blanks, so that words in them are never taken for code."""
    return match[0] if match["quoted"] else re.sub(r"[^\n]", " ", match[0])


def _dynamic_shared(match: re.Match[str]) -> str:
    """Turn ``extern __shared__ T name[];`` into a pointer; the lines stay where they are."""
    if match["quoted"]:
        return match[0]
    element = " ".join(_ALIGN.sub("", match["type"]).split())
    lines = "\n" * match[0].count("\n")
    return (
        f"{element}* const {match['name']} = "
        f"reinterpret_cast<{element}*>(miriam_host::dynamic_shared()); {_INSIDE}{lines}"
    )


def _static_shared(match: re.Match[str]) -> str:
    """Turn ``__shared__ T a[2], b;`` into references; what is not understood stays a macro.

    As a macro it is thread-local memory whose address g++ asks for again and again, which costs
    a third of a convolution's time; a reference that g++ can not look through is asked for once.
    """
    if match["quoted"]:
        return match[0]
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    pieces = [_declarator(p) for p in _split(match["rest"])]
    if line.lstrip().startswith("#") or not pieces or None in pieces:
        return match[0]
    renamed, references = [], ""
    for head, name, rest in (p for p in pieces if p):
        renamed.append(f"{head}{name}_miriam{rest}")
        references += f" auto& {name} = miriam_host::keep({name}_miriam);"
    return f"__shared__ __align__(16) {','.join(renamed)};{references} {_INSIDE}"


def _split(text: str) -> list[str]:
    """The declarators in ``text``: cut at commas outside of brackets."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "([<") - (character in ")]>")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def _declarator(text: str) -> tuple[str, str, str] | None:
    """Type (if any), name and extents of one declarator; None for all but plain forms."""
    angles, end = 0, len(text)
    for at, character in enumerate(text):
        angles += (character == "<") - (character == ">")
        if character == "[" and angles == 0:
            end = at
            break
    match = _DECLARATOR.fullmatch(text[:end])
    if match is None or "(" in _ALIGN.sub("", match["head"]):
        return None
    return match["head"], match["name"], match["space"] + text[end:]
