"""Compiling in other processes: NVRTC's threads change each other's register allocation.

Two compilations at once in one process gave a kernel 93 or 94 registers on sm_75 by chance
(NVRTC 13.0.88); one at a time, in any order and in any process, the cubin is always the same.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from threading import Thread

from miriam.compile.job import Job, build_cached
from miriam.errors import MiriamError

_DONE = b"\n"
_COMMAND = "from miriam.compile.worker import main; main()"


def fill_cache(jobs: Sequence[Job], workers: int) -> Collection[Job]:
    """Let ``workers`` processes compile ``jobs`` into the cache; those that crash them."""
    waiting, crashed = deque(jobs), list[Job]()
    threads = [Thread(target=_feed, args=(waiting, crashed)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return crashed


def _feed(waiting: deque[Job], crashed: list[Job]) -> None:
    """Hand jobs to a process until none waits; a new process follows one that crashed."""
    with suppress(IndexError):
        while True:
            with _process() as process:
                while _ask(process, job := waiting.popleft()):
                    pass
            crashed.append(job)


def _process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _ask(process: subprocess.Popen[bytes], job: Job) -> bool:
    """Whether the process lived through ``job``."""
    if process.stdin is None or process.stdout is None:
        return False
    try:
        pickle.dump(job, process.stdin)
        process.stdin.flush()
    except BrokenPipeError:
        return False
    return process.stdout.read(len(_DONE)) == _DONE


def main() -> None:
    """Compile each job that comes in; errors are left to the asker, who meets them too."""
    with suppress(EOFError):
        while True:
            job: Job = pickle.load(sys.stdin.buffer)
            with suppress(MiriamError):
                build_cached(job)
            sys.stdout.buffer.write(_DONE)
            sys.stdout.buffer.flush()
