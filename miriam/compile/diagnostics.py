"""NVRTC's log to an error with file, line, message and excerpt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from miriam.compile.headers import cuda_folders
from miriam.errors import MiriamError, SourceError, UsageError

_ERROR = re.compile(r"^(?P<path>.+)\((?P<line>\d+)\): (?:\w+ )?error(?: #\S+)?: (?P<message>.*)$")
_PTXAS = re.compile(r"^ptxas (?:error|fatal) *: (?P<message>.*)$", re.MULTILINE)
_NAME_EXPRESSION = re.compile(r"^ *#pragma nv_mangled_name (?P<name>.*)$", re.MULTILINE)
_NO_CUDA_HEADERS = "CUDA's headers are not installed: pip install miriam-gpu[cuda]"
_NO_HEADERS = "name its folder (-I), or drop it: a kernel needs no header of the host"


def compile_error(text: str, path: str, names: Sequence[str], log: str) -> MiriamError:
    """The first error of ``log``, which NVRTC wrote for ``text`` and the name expressions."""
    lines = log.splitlines()
    for number, line in enumerate(lines):
        if match := _ERROR.match(line):
            excerpt = _paragraph(lines[number + 1 :])
            if match["path"] == "__nv_name_map":
                return _unknown_kernel(path, match["message"], excerpt)
            message = match["message"]
            if "open source file" in message:
                message = f"{message}; {_NO_HEADERS if cuda_folders() else _NO_CUDA_HEADERS}"
            return SourceError(match["path"], int(match["line"]), message, excerpt)
    if match := _PTXAS.search(log):
        return SourceError(path, _line_of(text, names, match["message"]), match["message"])
    return MiriamError(f"{path}: NVRTC refused it without a position: {log.strip()}")


def _paragraph(lines: Sequence[str]) -> str:
    end = next((i for i, text in enumerate(lines) if not text.strip()), len(lines))
    return "\n".join(lines[:end])


def _unknown_kernel(path: str, message: str, excerpt: str) -> UsageError:
    match = _NAME_EXPRESSION.search(excerpt)
    got = match["name"] if match else excerpt
    return UsageError(f"kernel name in {path}", f"a kernel of this file ({message})", got)


def _line_of(text: str, names: Sequence[str], message: str) -> int:
    """Where the kernel whose lowered name ``message`` quotes is written; 1 if not in the file."""
    for name in names:
        identifier = name.partition("<")[0].rpartition("::")[2].strip()
        quoted = rf"'(?:_Z\w*?{len(identifier)})?{re.escape(identifier)}"
        written = re.search(rf"\b{re.escape(identifier)}\s*\(", text)
        if written and re.search(quoted, message):
            return text.count("\n", 0, written.start()) + 1
    return 1
