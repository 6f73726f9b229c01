"""Macros, conditions and includes resolved by pcpp, in a child process with limits."""

from __future__ import annotations

import codecs
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from miriam.elastic.cuda.text import Text, excerpt
from miriam.errors import MissingCapabilityError, SourceError, UsageError

_CHILD = Path(__file__).parent / "pcpp_child.py"
_SECONDS = 15
_MEMORY_BYTES = 1 << 30
_MOST_BYTES = 16 << 20
# What nvcc 13 defines and headers ask for.
_DEFINES = {
    "__CUDACC__": "1",
    "__NVCC__": "1",
    "__CUDACC_VER_MAJOR__": "13",
    "__CUDACC_VER_MINOR__": "0",
    "CUDART_VERSION": "13000",
    "__cplusplus": "201703L",
    "__linux__": "1",
}


def preprocess(
    path: str,
    content: bytes,
    arch: str,
    include_dirs: Sequence[str] = (),
    defines: Mapping[str, str] | None = None,
) -> Text:
    """The text that nvcc's front end would see for ``arch`` (``sm_87``), without comments.

    Includes that are found are put in place; the others stay as they are. SourceError where
    the source is no text, breaks the preprocessor, or makes it exceed 15 s of CPU time or 1 GiB.
    """
    if importlib.util.find_spec("pcpp") is None:
        raise MissingCapabilityError(
            "elasticize", "pcpp is not installed", "pip install miriam-gpu[elastic]"
        )
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\0" in content:
        raise SourceError(path, content.count(b"\n", 0, content.index(b"\0")) + 1, "not text")
    macros = {**_DEFINES, "__CUDA_ARCH__": f"{_compute(arch)}0", **(defines or {})}
    request = {
        "path": path,
        "text": content.decode("utf-8", "surrogateescape").replace("\r\n", "\n"),
        "defines": macros,
        "include_dirs": list(include_dirs),
        "seconds": _SECONDS,
        "bytes": _MEMORY_BYTES,
    }
    answer = _ask(path, request)
    main = tuple(content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"))
    if "error" in answer:
        source, line, message = answer["error"]
        known = source == path and line <= len(main)
        shown = excerpt(main[line - 1], 1) if known else ""
        raise SourceError(source or path, line, message, shown, column=1 if known else 0)
    return _text(answer, path, main)


def _compute(arch: str) -> str:
    number = arch.removeprefix("sm_")
    if not arch.startswith("sm_") or not number.isdigit():
        raise UsageError("arch", "sm_ and a number", arch, "for example sm_87")
    return number


def _ask(path: str, request: Mapping[str, object]) -> dict[str, Any]:
    command = [sys.executable, "-P", str(_CHILD)]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=3 * _SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        done = None
    if done is None or done.returncode:
        why = f"preprocessing takes more than {_SECONDS} s or {_MEMORY_BYTES >> 20} MiB"
        raise SourceError(path, 1, f"{why}; does a macro explode?")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _text(answer: Mapping[str, Any], path: str, main: tuple[str, ...]) -> Text:
    text, files = answer["text"], tuple(answer["files"])
    rows = tuple((index, line) for index, line in answer["origin"])
    if len(text) > _MOST_BYTES:
        raise SourceError(path, 1, f"more than {_MOST_BYTES >> 20} MiB after preprocessing")
    try:
        return Text(text.encode(), path, main, files, rows)
    except UnicodeEncodeError as error:
        index, line = rows[text.count("\n", 0, error.start)]
        raise SourceError(files[index], line, "not UTF-8; save the file as UTF-8") from None
