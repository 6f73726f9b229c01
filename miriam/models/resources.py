"""Remakes resources.json: ``python -m miriam.models.resources`` (extras ``cuda``, ``elastic``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from miriam.compile import Job, compile_many, read_source
from miriam.elastic import elasticize
from miriam.errors import MiriamError
from miriam.kernels import (
    ARCHITECTURES,
    Dim3,
    KernelSpec,
    Resources,
    Variant,
    resident_blocks,
)
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


def measure_elastic(
    originals: Mapping[str, Mapping[str, Resources]],
) -> dict[str, dict[str, Resources]]:
    """What each kernel's yield form needs beside ``originals``.

    It is compiled for as many resident blocks as the original has, and without that bound where
    it would spill.
    """
    threads = {
        step.kernel.name: step.kernel.block
        for name in NAMES
        for step in build(name, "", lambda _: Resources(0, 0)).steps
    }
    measured: dict[str, dict[str, Resources]] = {}
    for arch, found in originals.items():
        bounds = {n: _resident(n, threads[n], needs, arch) for n, needs in found.items()}
        made = _yield_forms(arch, bounds)
        spilled = [n for n in made if made[n].local_bytes > found[n].local_bytes]
        made |= _yield_forms(arch, dict.fromkeys(spilled, 0))
        measured[arch] = dict(sorted(made.items()))
    return measured


def _yield_forms(arch: str, bounds: Mapping[str, int]) -> dict[str, Resources]:
    """The yield forms of the kernels in ``bounds``, each for so many resident blocks or, 0, any."""
    jobs, forms = [], []
    for source, names in kernels().items():
        grouped: defaultdict[int, list[str]] = defaultdict(list)
        for name in names:
            if name in bounds:
                grouped[bounds[name]].append(name)
        made = elasticize(Path(source), arch=arch)
        for blocks, group in sorted(grouped.items()):
            entries = {made.kernel(name).entry("yield", name): name for name in group}
            defines = (f"MIRIAM_RESIDENT_BLOCKS={blocks}",) if blocks else ()
            jobs.append(Job(made.source, source, tuple(entries), arch, defines=defines))
            forms.append(entries)
    found: dict[str, Resources] = {}
    for entries, compiled in zip(forms, compile_many(jobs), strict=True):
        if isinstance(compiled, MiriamError):
            raise compiled
        found |= {entries[entry]: needs for entry, needs in compiled.resources.items()}
    return found


def _resident(name: str, block: Dim3, resources: Resources, arch: str) -> int:
    variant = Variant(block.size, resources)
    kernel = KernelSpec(name, "", Dim3(1), block, (variant,))
    return resident_blocks(kernel, variant, ARCHITECTURES[arch])


def main() -> None:
    """Compile every kernel for every architecture and write the table."""
    originals = measure([arch for arch in ARCHITECTURES if arch not in STAND_INS])
    made = Table(
        command="python -m miriam.models.resources",
        compiler=f"NVRTC {version('nvidia-cuda-nvrtc')}, -fmad=false",
        resources=originals,
        elastic=measure_elastic(originals),
    )
    RESOURCES_FILE.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


if __name__ == "__main__":
    main()
