"""Files that a run leaves behind: whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from miriam.errors import UsageError

STANDARD_OUTPUT = "-"


def require_target(option: str, target: str) -> None:
    """UsageError if ``target`` can not be a file, said before the run rather than after it."""
    path = Path(target)
    if target != STANDARD_OUTPUT and (path.is_dir() or not path.parent.is_dir()):
        raise UsageError(option, "a file in a folder that exists", target)


def require_targets(targets: Mapping[str, str | None]) -> None:
    """As `require_target` for each option that has one; one at most is standard output."""
    printed = None
    for option, target in targets.items():
        if target is not None:
            require_target(option, target)
        if target == STANDARD_OUTPUT:
            if printed:
                raise UsageError(option, f"not standard output when {printed} is", target)
            printed = option


def write(option: str, target: str, data: bytes) -> None:
    """Write ``data`` to the file ``target`` in one move; ``-`` is standard output.

    UsageError with the system's reason if the file can not be written.
    """
    if target == STANDARD_OUTPUT:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    path = Path(target)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise UsageError(option, "a file that can be written", target, reason) from error
