"""Runs cases in a child process: what hangs or crashes costs one verdict, not the run."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

import miriam
from miriam.check.job import Case, Job
from miriam.check.judge import KernelVerdict


def judged(
    cases: Sequence[Case], seed: int, seconds: float, cache_dir: Path | None = None
) -> Iterator[KernelVerdict]:
    """The verdicts of ``cases``, in their order; each may take ``seconds``."""
    left = list(cases)
    while left:
        for verdict in _until_it_ends(tuple(left), seed, seconds, cache_dir):
            del left[0]
            yield verdict


def _until_it_ends(
    cases: Sequence[Case], seed: int, seconds: float, cache_dir: Path | None
) -> Iterator[KernelVerdict]:
    """Verdicts of one child; the last one, if it is the child's end, says why it ended."""
    command = [sys.executable, "-P", "-m", "miriam.check.child"]
    environment = {**os.environ, "PYTHONPATH": _import_path()}
    with tempfile.TemporaryFile() as job, tempfile.TemporaryFile() as complaints:
        job.write(pickle.dumps(Job(tuple(cases), seed, cache_dir)))
        job.seek(0)
        with subprocess.Popen(
            command, stdin=job, stdout=subprocess.PIPE, stderr=complaints, env=environment
        ) as child:
            assert child.stdout is not None  # a pipe was asked for
            try:
                for case in cases:
                    line = _line(child.stdout, seconds)
                    if not line:
                        why = _end(child, seconds, complaints)
                        yield KernelVerdict(case.launch.name, "error", why)
                        return
                    yield _read(case, line)
            finally:
                child.kill()


def _read(case: Case, line: bytes) -> KernelVerdict:
    """The verdict in ``line``, written by a process in which a wrong kernel may have written too.

    What it says is only believed where it is about ``case``.
    """
    try:
        verdict = msgspec.json.decode(line, type=KernelVerdict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        verdict = None
    if verdict is None or verdict.name != case.launch.name:
        why = "the process that ran it answered nonsense: a form overwrote its memory"
        return KernelVerdict(case.launch.name, "error", why)
    return verdict


def _import_path() -> str:
    """Where the child finds this package, whatever its working directory."""
    root = str(Path(miriam.__file__).parent.parent)
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def _line(stream: IO[bytes], seconds: float) -> bytes:
    """The next line, or nothing when it does not come within ``seconds`` or the stream ends."""
    deadline, line = time.monotonic() + seconds, b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(stream.fileno(), 1) if ready else b""
        if not piece:
            return b""
        line += piece
    return line


def _end(child: subprocess.Popen[bytes], seconds: float, complaints: IO[bytes]) -> str:
    try:
        code = child.wait(timeout=0.1)
    except subprocess.TimeoutExpired:
        return f"no end after {seconds:g} s: a form hangs or is too slow"
    complaints.seek(0)
    last = complaints.read().decode(errors="replace").strip().rpartition("\n")[2]
    what = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"the process that ran it ended with {what}" + (f": {last}" if last else "")
