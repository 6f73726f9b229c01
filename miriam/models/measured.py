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
    """The file: how it was made, and the resources by architecture and name expression.

    ``elastic``: those of the yield forms, compiled for the originals' resident blocks.
    """

    command: str
    compiler: str
    resources: dict[str, dict[str, Resources]]
    elastic: dict[str, dict[str, Resources]]


@cache
def table() -> Table:
    """The checked-in table."""
    return msgspec.json.decode(RESOURCES_FILE.read_bytes(), type=Table)


def lookup(arch: str, kernel: str) -> Resources:
    """What ``kernel`` needs on ``arch``; UnknownNameError for either."""
    return _found(table().resources, arch, kernel)


def lookup_elastic(arch: str, kernel: str) -> Resources:
    """What the yield form of ``kernel`` needs on ``arch``; UnknownNameError for either."""
    return _found(table().elastic, arch, kernel)


def _found(resources: dict[str, dict[str, Resources]], arch: str, kernel: str) -> Resources:
    if arch not in ARCHITECTURES:
        raise UnknownNameError("architecture", arch, ARCHITECTURES)
    known = resources[STAND_INS.get(arch, arch)]
    if kernel not in known:
        raise UnknownNameError("kernel in resources.json", kernel, known)
    return known[kernel]
