"""Runs pcpp alone in its own process, under limits: a request on stdin, the answer on stdout.

Request: {"path", "text", "defines": {name: value}, "include_dirs", "seconds", "bytes"}.
Answer: {"text", "files", "origin": [[file index, line] per line of the text]}, or
{"error": [path, line, message]}.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pcpp import Action, OutputDirective, Preprocessor


class _Failure(Exception):
    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(message)
        self.path, self.line, self.message = path, line, message


class _Cuda(Preprocessor):  # type: ignore[misc]
    """pcpp that passes unknown includes through, drops comments and stops at the first error."""

    folders: Sequence[str] = ()

    def on_include_not_found(self, *_: object) -> None:
        raise OutputDirective(Action.IgnoreAndPassThrough)

    def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
        with open(includepath, encoding="utf-8-sig", errors="surrogateescape") as file:
            return io.StringIO(_has_include(file.read(), includepath, self.folders))

    def on_comment(self, tok: Any) -> None:
        return None

    def on_unknown_macro_in_defined_expr(self, tok: Any) -> bool:
        return False

    def on_unknown_macro_in_expr(self, ident: str) -> int:
        return 0

    def on_unknown_macro_function_in_expr(self, ident: str) -> Any:
        return lambda _: 0

    def on_directive_handle(
        self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any
    ) -> Any:
        if directive.value == "error":
            text = "".join(t.value for t in toks)
            raise _Failure(directive.source, directive.lineno, f"#error {text}")
        if directive.value == "warning":
            raise OutputDirective(Action.IgnoreAndRemove)
        return super().on_directive_handle(directive, toks, ifpassthru, precedingtoks)

    def on_error(self, file: str, line: int, msg: str) -> None:
        # What it says then is Python's trouble with the expression.
        broken = msg.startswith("Could not evaluate expression")
        raise _Failure(file, line, "this condition is not understood" if broken else msg.strip())


_HAS_INCLUDE = re.compile(r"""\b__has_include\s*\(\s*(?:<([^>\n]+)>|"([^"\n]+)")\s*\)""")
# What a CUDA compiler has on its own path: C++'s headers, C's and CUDA's.
_COMPILERS_OWN = re.compile(
    r"[a-z_]+|(assert|float|limits|math|std\w+|string)\.h|"
    r"(cuda|cooperative_groups|cub/|thrust/|nv/|mma|vector_|device_|math_|crt/|sm_).*"
)


def _has_include(text: str, path: str, folders: Sequence[str]) -> str:
    """``text`` with each ``__has_include(...)``, which pcpp does not know, answered: 0 or 1."""

    def answer(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        near = [os.path.dirname(path)] if match[2] else []
        found = any(os.path.isfile(os.path.join(f, name)) for f in (*near, *folders))
        return "1" if found or _COMPILERS_OWN.fullmatch(name) else "0"

    return _HAS_INCLUDE.sub(answer, text)


def _preprocess(request: dict[str, Any]) -> dict[str, Any]:
    pp = _Cuda()
    pp.line_directive = None
    pp.assume_encoding = "utf-8"
    for name, value in request["defines"].items():
        pp.define(f"{name} {value}")
    for folder in request["include_dirs"]:
        pp.add_path(folder)
    pp.folders = request["include_dirs"]
    pp.rewrite_paths = []
    path = request["path"]
    pp.define("__has_include 1")
    pp.parse(_has_include(request["text"], path, pp.folders), path)
    lines: list[str] = []
    origin: list[tuple[int, int]] = []
    files: dict[str, int] = {}
    for tokens in _token_lines(pp):
        written = [t for t in tokens if not t.value.isspace() and t.type not in pp.t_LINECONT]
        if not written:
            continue
        first = written[0]
        at = files.setdefault(first.source or path, len(files))
        if [t.value for t in written[:2]] == ["#", "pragma"]:
            tokens = pp.expand_macros(tokens)  # as nvcc does: #pragma unroll FACTOR
        text = "".join(" " if t.type in pp.t_LINECONT else t.value for t in tokens)
        # A string may span lines: each of them has an origin.
        for offset, piece in enumerate(text.split("\n")):
            lines.append(piece.rstrip())
            origin.append((at, first.lineno + offset))
    shown = [_shown(source, path) for source in files]
    return {"text": "\n".join(lines) + "\n", "files": shown, "origin": origin}


def _token_lines(pp: _Cuda) -> Iterator[list[Any]]:
    """The tokens of each line of the output, without the line's end."""
    line: list[Any] = []
    while token := pp.token():
        if token.value.startswith("\n"):
            yield line
            line = []
        else:
            line.append(token)
    yield line


def _shown(source: str, main: str) -> str:
    """A file's path as the user would write it, given how the main file's was written."""
    if os.path.abspath(source) == os.path.abspath(main):
        return main
    return source if os.path.isabs(main) else os.path.relpath(source)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if hard < 0 else min(value, hard), hard))


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    _limit(resource.RLIMIT_CPU, request["seconds"])
    _limit(resource.RLIMIT_AS, request["bytes"])
    path = request["path"]
    try:
        answer = _preprocess(request)
    except _Failure as failure:
        answer = {"error": [_shown(failure.path, path), failure.line, failure.message]}
    except RecursionError:
        answer = {"error": [path, 1, "macros or includes nest too deeply"]}
    except MemoryError:
        answer = {"error": [path, 1, "preprocessing takes too much memory"]}
    except Exception as error:
        answer = {"error": [path, 1, f"the preprocessor gave up: {error}"]}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
