"""The headers that a source sees: its own, CUDA's from the wheels, and stand-ins for C's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

STAND_INS = Path(__file__).parent / "include"

# Wherever the word is followed by a name: that also finds __has_include, and the spare ones
# in comments cost nothing.
_INCLUDE = re.compile(r'include\s*\(?\s*(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>)')
_COMPUTED = re.compile(r"#\s*include(?:_next)?\s+[A-Za-z_]")
_SPLICE = re.compile(r"\\\r?\n")


@cache
def cuda_folders() -> tuple[Path, ...]:
    """The include folders of the CUDA runtime and of its C++ library; empty without them."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return ()
    found = (find_nvidia_header_directory(name) for name in ("cudart", "cccl"))
    return tuple(Path(folder) for folder in found if folder)


def system_folders() -> tuple[Path, ...]:
    """Where angled includes are looked up after the user's folders, in this order."""
    return (STAND_INS, *cuda_folders())


def fingerprint(text: str, folder: Path, include_dirs: Sequence[Path]) -> list[str | bytes] | None:
    """Name and content of each header that ``text``, a file of ``folder``, may include.

    A system folder stands for its headers with the time of its last change. None when an include
    is a macro's value, so that nobody but the compiler knows what it names.
    """
    parts: list[str | bytes] = []
    for path in (*cuda_folders(), *(f / "cuda" for f in cuda_folders())):
        parts += [str(path), str(path.stat().st_mtime_ns) if path.is_dir() else ""]
    seen: set[Path] = set()
    waiting = [(_SPLICE.sub("", text), folder)]
    while waiting:
        text, folder = waiting.pop()
        if _COMPUTED.search(text):
            return None
        for path in _candidates(text, folder, (*include_dirs, STAND_INS)):
            if path not in seen and path.is_file():
                seen.add(path)
                content = path.read_bytes()
                parts += [str(path), content]
                waiting.append((_SPLICE.sub("", content.decode(errors="replace")), path.parent))
    return parts


def _candidates(text: str, folder: Path, include_dirs: Sequence[Path]) -> Iterator[Path]:
    for match in _INCLUDE.finditer(text):
        name = match["quoted"] or match["angled"]
        if match["quoted"]:
            yield folder / name
        yield from (include / name for include in include_dirs)
