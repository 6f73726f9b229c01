"""Remakes resources.json: ``python -m miriam.models.resources`` (needs the ``cuda`` extra)."""

from __future__ import annotations

from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import msgspec

from miriam.compile import compile_cubin
from miriam.kernels import ARCHITECTURES, Resources
from miriam.models.measured import RESOURCES_FILE, STAND_INS, Table
from miriam.models.zoo import NAMES, build


def kernels() -> dict[str, tuple[str, ...]]:
    """The name expressions that the networks use, by source file."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name in NAMES:
        for step in build(name, "", lambda _: Resources(0, 0)).steps:
            found[step.kernel.source].add(step.kernel.name)
    return {source: tuple(sorted(names)) for source, names in sorted(found.items())}


def measure(arch: str) -> dict[str, Resources]:
    """What the installed NVRTC reports for each kernel on ``arch``."""
    measured: dict[str, Resources] = {}
    for source, names in kernels().items():
        measured |= compile_cubin(Path(source), names, arch).resources
    return dict(sorted(measured.items()))


def main() -> None:
    """Compile every kernel for every architecture and write the table."""
    made = Table(
        command="python -m miriam.models.resources",
        compiler=f"NVRTC {version('nvidia-cuda-nvrtc')}, -fmad=false",
        resources={arch: measure(arch) for arch in ARCHITECTURES if arch not in STAND_INS},
    )
    RESOURCES_FILE.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


if __name__ == "__main__":
    main()
