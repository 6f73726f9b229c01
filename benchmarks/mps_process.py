"""A process that runs one network when it is told to (benchmarks.mps_client), from outside."""

from __future__ import annotations

import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from benchmarks.mps_client import Ask, Hello
from miriam.bench import JobRecord
from miriam.errors import DeviceError

_T = TypeVar("_T")
ANSWER_S = 300.0
"""A process that says nothing for so long is taken for a hang."""


class Process:
    """A client process (miriam.bench network on a device); DeviceError when it fails."""

    def __init__(
        self, device: str, network: str, in_flight: int, seed: int, environment: Mapping[str, str]
    ) -> None:
        command = [sys.executable, "-m", "benchmarks.mps_client", device, network]
        self._name = network
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed with the process
        self._child = subprocess.Popen(
            [*command, str(in_flight), str(seed)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def hello(self) -> Hello:
        """What it sees of the GPU, once it is up."""
        return self._heard(Hello)

    def prepare(self, ask: Ask) -> None:
        """Open a session."""
        self._tell(msgspec.json.encode(ask).decode())
        self._heard(str)

    def begin(self, begin_ns: int) -> None:
        """Run from ``begin_ns`` on."""
        self._tell(str(begin_ns))

    def result(self) -> JobRecord:
        """What the run found."""
        return self._heard(JobRecord)

    def close(self) -> None:
        """End it."""
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.close()
            self._child.wait(ANSWER_S / 10)
        except (OSError, subprocess.TimeoutExpired):
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()
        self._errors.close()

    def _tell(self, line: str) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(line + "\n")
            self._child.stdin.flush()
        except OSError as error:
            raise DeviceError(f"the process of {self._name} is gone: {error}") from error

    def _heard(self, kind: type[_T]) -> _T:
        assert self._child.stdout is not None
        # One line is under way at a time, so nothing is left in the stream's own buffer.
        ready, _, _ = select.select([self._child.stdout], [], [], ANSWER_S)
        line = self._child.stdout.readline() if ready else ""
        if not line:
            what = "ended" if ready else f"said nothing for {ANSWER_S:g} s"
            self._errors.seek(0)
            raise DeviceError(f"the process of {self._name} {what}{last_line(self._errors.read())}")
        return msgspec.json.decode(line, type=kind)


def last_line(text: str) -> str:
    """The last line of what a process said, after a colon; nothing if it said nothing."""
    lines = text.strip().splitlines()
    return f": {lines[-1]}" if lines else ""
