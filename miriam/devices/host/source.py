"""CUDA C++ text as g++ takes it: quoted includes in place, dynamic shared memory as a pointer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from miriam.errors import UsageError

NAMES_FILE = "miriam-kernel-names"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)".*$', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once.*$", re.MULTILINE)
_DYNAMIC = re.compile(
    r"\bextern\s+__shared__\s+([^;{}()]*?(?:\([^()]*\)[^;{}()]*?)?)(\w+)\s*\[\s*\]\s*;"
)
_ALIGN = re.compile(r"(?:__align__|alignas)\s*\([^()]*\)")


def read_source(path: Path) -> str:
    """The text of a source file; UsageError when it can not be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("kernel source", "a readable UTF-8 file", str(path), str(error)) from None


def translation_unit(path: Path, names: Sequence[str]) -> str:
    """What g++ compiles for ``path``: its text, and an entry for each kernel name expression.

    Compile errors in the text keep their file and line; those in the names are reported in
    ``NAMES_FILE``, where line n is ``names[n - 1]``.
    """
    entries = "\n".join(f"MIRIAM_HOST_ENTRY({n}, {name})" for n, name in enumerate(names))
    return f"{_expand(path, ())}\n{_line(1, NAMES_FILE)}\n{entries}\n"


def _line(number: int, path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {number} "{escaped}"'


def _expand(path: Path, above: tuple[Path, ...]) -> str:
    text = read_source(path)
    above = (*above, path.resolve())

    def replace(match: re.Match[str]) -> str:
        header = path.parent / match[1]
        if not header.is_file():
            return match[0]
        if header.resolve() in above:
            return ""
        after = text.count("\n", 0, match.end()) + 2
        return f"{_expand(header, above)}\n{_line(after, str(path))}"

    body = _INCLUDE.sub(replace, _dynamic_shared(text))
    if not _ONCE.search(text):
        return f"{_line(1, str(path))}\n{body}"
    # Headers are put in place textually, where the compiler would ignore `once`.
    guard = f"MIRIAM_ONCE_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    body = _ONCE.sub("", body)
    return f"#ifndef {guard}\n#define {guard}\n{_line(1, str(path))}\n{body}\n#endif"


def _dynamic_shared(text: str) -> str:
    """Turn ``extern __shared__ T name[];`` into a pointer; the lines stay where they are."""

    def replace(match: re.Match[str]) -> str:
        element = " ".join(_ALIGN.sub("", match[1]).split())
        lines = "\n" * match[0].count("\n")
        # At file scope the pointer would be set once, before there is any such memory.
        return (
            'static_assert(*__builtin_FUNCTION(), "declare it inside a function"); '
            f"{element}* const {match[2]} = "
            f"reinterpret_cast<{element}*>(miriam_host::dynamic_shared());{lines}"
        )

    return _DYNAMIC.sub(replace, text)
