"""A CUDA GPU as a device: not built yet, and it says so."""

from __future__ import annotations

from miriam.devices.contract import Device
from miriam.errors import MissingCapabilityError


def open_device(rest: str, compute: bool) -> Device:
    """Raises MissingCapabilityError: this release has no CUDA device yet."""
    raise MissingCapabilityError(
        f"device cuda:{rest or 0}",
        f"Miriam {_version()} has no CUDA device yet, with or without a GPU in this machine",
        "use --device sim:orin, sim:xavier, sim:rtx2060, sim:thor or sim:h200",
    )


def _version() -> str:
    from miriam import __version__

    return __version__
