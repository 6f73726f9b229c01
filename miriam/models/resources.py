"""Remakes resources.json: ``python -m miriam.models.resources`` (needs the ``cuda`` extra)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from miriam.compile import Job, compile_many, read_source
from miriam.errors import MiriamError
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


def measure(archs: Sequence[str]) -> dict[str, dict[str, Resources]]:
    """What the installed NVRTC reports for each kernel on each of ``archs``."""
    sources = kernels()
    jobs = [
        Job(read_source(Path(source)), source, names, arch)
        for arch in archs
        for source, names in sources.items()
    ]
    measured: dict[str, dict[str, Resources]] = {arch: {} for arch in archs}
    for job, made in zip(jobs, compile_many(jobs), strict=True):
        if isinstance(made, MiriamError):
            raise made
        measured[job.arch] |= made.resources
    return {arch: dict(sorted(found.items())) for arch, found in measured.items()}


def main() -> None:
    """Compile every kernel for every architecture and write the table."""
    made = Table(
        command="python -m miriam.models.resources",
        compiler=f"NVRTC {version('nvidia-cuda-nvrtc')}, -fmad=false",
        resources=measure([arch for arch in ARCHITECTURES if arch not in STAND_INS]),
    )
    RESOURCES_FILE.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


if __name__ == "__main__":
    main()
