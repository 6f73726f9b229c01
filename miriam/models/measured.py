"""What the compiler reported for our kernels: resources.json, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec

from miriam.errors import UnknownNameError
from miriam.kernels import ARCHITECTURES, Resources

RESOURCES_FILE = Path(__file__).parent / "resources.json"

# NVRTC 13 starts at sm_75: Volta's figures are Turing's, its closest relative.
STAND_INS = {"sm_72": "sm_75"}


@dataclass(frozen=True, slots=True)
class Needs:
    """What the forms of a kernel need on one architecture.

    ``elastic``: its yield form, ``folded``: its yield form with so many logical threads on each
    physical one; ``without``: why there is none for a fold. ``elastic`` and ``folded`` are
    compiled for the original's resident blocks, or for any number where they would spill.
    """

    original: Resources
    elastic: Resources | None = None
    folded: Mapping[int, Resources] = field(default_factory=dict)
    without: Mapping[int, str] = field(default_factory=dict)


class Table(msgspec.Struct, frozen=True):
    """The file: how it was made, and the needs by architecture and name expression."""

    command: str
    compiler: str
    needs: dict[str, dict[str, Needs]]


@cache
def table() -> Table:
    """The checked-in table."""
    return msgspec.json.decode(RESOURCES_FILE.read_bytes(), type=Table)


def lookup(arch: str, kernel: str) -> Needs:
    """What the forms of ``kernel`` need on ``arch``; UnknownNameError for either."""
    if arch not in ARCHITECTURES:
        raise UnknownNameError("architecture", arch, ARCHITECTURES)
    known = table().needs[STAND_INS.get(arch, arch)]
    if kernel not in known:
        raise UnknownNameError("kernel in resources.json", kernel, known)
    return known[kernel]
