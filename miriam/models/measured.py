"""What the compiler reported for our kernels: resources.json, read back."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from miriam.errors import UnknownNameError
from miriam.kernels import ARCHITECTURES, Resources

RESOURCES_FILE = Path(__file__).parent / "resources.json"

# NVRTC 13 starts at sm_75: Volta's figures are Turing's, its closest relative.
STAND_INS = {"sm_72": "sm_75"}


class Table(msgspec.Struct, frozen=True):
    """The file: how it was made, and the resources by architecture and name expression."""

    command: str
    compiler: str
    resources: dict[str, dict[str, Resources]]


@cache
def table() -> Table:
    """The checked-in table."""
    return msgspec.json.decode(RESOURCES_FILE.read_bytes(), type=Table)


def lookup(arch: str, kernel: str) -> Resources:
    """What ``kernel`` needs on ``arch``; UnknownNameError for either."""
    if arch not in ARCHITECTURES:
        raise UnknownNameError("architecture", arch, ARCHITECTURES)
    known = table().resources[STAND_INS.get(arch, arch)]
    if kernel not in known:
        raise UnknownNameError("kernel in resources.json", kernel, known)
    return known[kernel]
