"""Remakes resources.json: ``python -m miriam.models.resources`` (extras ``cuda``, ``elastic``)."""

from __future__ import annotations

import os
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec

from miriam.compile import compile_cubin, compile_source
from miriam.elastic import Elasticized, IndexFunction, elasticize
from miriam.errors import UsageError
from miriam.kernels import ARCHITECTURES, KernelSpec, Resources, Variant, resident_blocks
from miriam.models.measured import RESOURCES_FILE, STAND_INS, Needs, Table
from miriam.models.zoo import NAMES, build

FOLDS = (2, 4)


def kernels() -> tuple[KernelSpec, ...]:
    """The kernels that the networks use, each once, ordered by source file and name."""
    steps = [step for name in NAMES for step in build(name).steps]
    found = {(s.kernel.source, s.kernel.name): s.kernel for s in steps}
    return tuple(found[key] for key in sorted(found))


def measure(kernel: KernelSpec, arch: str, index: IndexFunction = "computed") -> Needs:
    """What the installed NVRTC reports for the forms of ``kernel`` on ``arch``.

    Yield forms are compiled for as many resident blocks as the original has, and without that
    bound where they would spill. A fold has none where the generator refuses, and where either
    way it spills or a block needs more registers than the original's. ``index``: how folded
    forms find a thread's coordinates.
    """
    compiled = compile_cubin(Path(kernel.source), (kernel.name,), arch)
    original = compiled.resources[kernel.name]
    whole = Variant(kernel.threads, original)
    bounds = (resident_blocks(kernel, whole, ARCHITECTURES[arch]), 0)
    made = _elastic_file(kernel.source, arch, index)
    elastic, _ = _first_without_fault(made, kernel, whole, 1, bounds)
    folded, without = dict[int, Resources](), dict[int, str]()
    for fold in FOLDS:
        verdict = made.kernel(kernel.name).block
        if not verdict.ok:
            without[fold] = f"refused, {verdict.reason}: {verdict.detail}"
            continue
        needs, why = _first_without_fault(made, kernel, whole, fold, bounds)
        if why:
            without[fold] = why
        else:
            folded[fold] = needs
    return Needs(original, elastic, folded, without)


def _first_without_fault(
    made: Elasticized, kernel: KernelSpec, whole: Variant, fold: int, bounds: tuple[int, ...]
) -> tuple[Resources, str]:
    """The yield form for the first of ``bounds`` that does it no harm, else the last, and why."""
    elastic = made.kernel(kernel.name)
    needs, why = whole.resources, ""
    try:
        threads = elastic.physical_threads(kernel.threads, fold)
    except UsageError as error:
        return needs, f"refused: {error}"
    entry = elastic.entry("yield", kernel.name, fold, kernel.block)
    for bound in bounds:
        defines = (f"MIRIAM_RESIDENT_BLOCKS={bound}",) if bound else ()
        compiled = compile_source(made.source, kernel.source, (entry,), made.arch, defines=defines)
        needs = compiled.resources[entry]
        why = fault(Variant(threads, needs, fold), whole)
        if not why:
            break
    return needs, why


def fault(form: Variant, whole: Variant) -> str:
    """Why ``form`` costs more than the original ``whole`` does, empty where it does not."""
    spilled = form.resources.local_bytes - whole.resources.local_bytes
    if spilled > 0:
        return f"spills {spilled} bytes per thread"
    taken, given = (v.resources.registers * v.threads for v in (form, whole))
    if form.fold > 1 and taken > given:
        return f"a block takes {taken} registers, the original's {given}"
    return ""


@cache
def _elastic_file(source: str, arch: str, index: IndexFunction) -> Elasticized:
    return elasticize(Path(source), arch=arch, index=index)


def main() -> None:
    """Compile every kernel for every architecture and write the table."""
    jobs = [(k, a) for a in ARCHITECTURES if a not in STAND_INS for k in kernels()]
    needs: defaultdict[str, dict[str, Needs]] = defaultdict(dict)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for (kernel, arch), found in zip(jobs, pool.map(lambda j: measure(*j), jobs), strict=True):
            needs[arch][kernel.name] = found
    made = Table(
        command="python -m miriam.models.resources",
        compiler=f"NVRTC {version('nvidia-cuda-nvrtc')}, -fmad=false",
        needs=needs,
    )
    RESOURCES_FILE.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


if __name__ == "__main__":
    main()
