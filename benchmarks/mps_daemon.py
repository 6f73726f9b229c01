"""A daemon of NVIDIA's Multi-Process Service of one's own, stopped in every case."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from miriam.errors import DeviceError, MissingCapabilityError

PROGRAM = "nvidia-cuda-mps-control"
LIMIT_S = 30.0
_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon; ``environment``: what makes a process its client.

    Without CUDA_VISIBLE_DEVICES: the daemon goes by it, and numbers what its clients see anew.
    """

    program: str
    folder: Path
    environment: Mapping[str, str]

    def ask(self, command: str) -> str:
        """The daemon's answer to a command of nvidia-cuda-mps-control(1)."""
        done = subprocess.run(
            [self.program],
            input=f"{command}\n",
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return done.stdout

    def clients(self) -> int:
        """How many processes its servers serve."""
        servers = self.ask("get_server_list").split()
        return sum(len(self.ask(f"get_client_list {server}").split()) for server in servers)

    def stop(self) -> None:
        """Ask it to quit, and end it if it does not."""
        file = self.folder / "pipe" / f"{PROGRAM}.pid"
        number = file.read_text().strip() if file.is_file() else ""
        with suppress(OSError, subprocess.SubprocessError):
            self.ask("quit")
        if number.isdecimal():
            _await_end(int(number))


@contextmanager
def daemon() -> Iterator[Daemon]:
    """A daemon in a temporary folder, for as long as the context lasts.

    MissingCapabilityError where it is not installed, DeviceError where it does not start.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise MissingCapabilityError("MPS", f"{PROGRAM} is not installed", "see NVIDIA's driver")
    with tempfile.TemporaryDirectory(prefix="mps-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in ("pipe", "log"):
            (folder / part).mkdir()
        environment = {
            **{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"},
            "CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(folder / "log"),
        }
        found = Daemon(program, folder, environment)
        try:
            _start(found)
            yield found
        finally:
            found.stop()


def _start(found: Daemon) -> None:
    said = found.folder / "said"
    # The daemon keeps what it is given open: a pipe would never end.
    with said.open("w") as file:
        done = subprocess.run(
            [found.program, "-d"],
            env={**os.environ, **found.environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            timeout=LIMIT_S,
            check=False,
        )
    if done.returncode:
        log = found.folder / "log" / "control.log"
        lines = said.read_text().split("\n") + (log.read_text().split("\n") if log.exists() else [])
        text = "; ".join(line.strip() for line in lines if line.strip())
        raise DeviceError(f"{PROGRAM} -d ended with {done.returncode}: {text or 'no message'}")


def _await_end(process: int) -> None:
    """Until ``process`` is gone; from half of the time on it is told to go."""
    begun = time.monotonic()
    with suppress(ProcessLookupError):
        while (waited_s := time.monotonic() - begun) < _STOP_S:
            os.kill(process, 0 if waited_s < _STOP_S / 2 else signal.SIGTERM)
            time.sleep(0.1)
        os.kill(process, signal.SIGKILL)
