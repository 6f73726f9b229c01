"""Runs pcpp alone in its own process, under limits: a request on stdin, the answer on stdout.

Request: {"path", "text", "defines": {name: value}, "include_dirs", "seconds", "bytes"}.
Answer: {"text", "files", "origin": [[file index, line] per line of the text]}, or
{"error": [path, line, message]}.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

from pcpp import Action, OutputDirective, Preprocessor


class _Failure(Exception):
    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(message)
        self.path, self.line, self.message = path, line, message


class _Cuda(Preprocessor):  # type: ignore[misc]
    """pcpp that passes unknown includes through, drops comments and stops at the first error."""

    def on_include_not_found(self, *_: object) -> None:
        raise OutputDirective(Action.IgnoreAndPassThrough)

    def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
        return open(includepath, encoding="utf-8", errors="surrogateescape")

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
        raise _Failure(file, line, msg)


def _preprocess(request: dict[str, Any]) -> dict[str, Any]:
    pp = _Cuda()
    pp.line_directive = None
    pp.assume_encoding = "utf-8"
    for name, value in request["defines"].items():
        pp.define(f"{name} {value}")
    for folder in request["include_dirs"]:
        pp.add_path(folder)
    pp.rewrite_paths = []
    path = request["path"]
    pp.parse(request["text"], path)
    lines: list[str] = []
    origin: list[tuple[int, int]] = []
    files: dict[str, int] = {}
    line: list[str] = []
    at: tuple[int, int] | None = None
    while token := pp.token():
        value = token.value
        if value.startswith("\n"):
            _flush(lines, origin, line, at)
            line, at = [], None
            continue
        if token.type in pp.t_LINECONT:
            value = " "
        if at is None and not value.isspace():
            source = token.source or path
            at = (files.setdefault(source, len(files)), token.lineno)
        line.append(value)
    _flush(lines, origin, line, at)
    shown = [_shown(source, path) for source in files]
    return {"text": "\n".join(lines) + "\n", "files": shown, "origin": origin}


def _shown(source: str, main: str) -> str:
    """A file's path as the user would write it, given how the main file's was written."""
    if os.path.abspath(source) == os.path.abspath(main):
        return main
    return source if os.path.isabs(main) else os.path.relpath(source)


def _flush(
    lines: list[str], origin: list[tuple[int, int]], line: list[str], at: tuple[int, int] | None
) -> None:
    if at is None:
        return
    # A string or a comment may span lines: each of them has an origin.
    for offset, text in enumerate("".join(line).split("\n")):
        lines.append(text.rstrip())
        origin.append((at[0], at[1] + offset))


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
