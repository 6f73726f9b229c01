"""Writes docs/results/block-forms.md: what the folded forms of our networks need and cost.

python -m benchmarks.block_forms > docs/results/block-forms.md      needs g++ and NVRTC
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import date
from importlib.metadata import version
from statistics import median

from miriam import __version__, models
from miriam.devices.host import Host, HostProgram
from miriam.elastic import IndexFunction
from miriam.kernels import KernelSpec, Resources
from miriam.models.measured import Needs
from miriam.models.resources import FOLDS, kernels, measure

NETWORKS = ("alexnet", "squeezenet", "resnet50", "cifarnet", "gru", "lstm")
ARCHS = ("sm_87", "sm_90")
INDICES: tuple[IndexFunction, ...] = ("computed", "table")
TRIES = 3
HEAD = """# Kernels on fewer threads: what the forms need

The yield forms of our networks' kernels with N logical threads on a physical one, compiled with
NVRTC {nvrtc} for as many resident blocks as the original has, or for any number where they would
spill otherwise. Made by `python -m benchmarks.block_forms` with Miriam {version} on {date}, on a
machine without a GPU.

A block may not take more registers (per thread x threads) than the original's, and no form may
spill; a fold that breaks either is missing below, with its reason.

## The two index functions

*computed*: a thread's coordinates by arithmetic; *table*: from a table in shared memory that the
block fills once (both in arXiv 2307.04339). Registers per thread: median and most of a network's
kernels. Shared bytes: the most that a form needs beyond its original. CPU ms: time of one
inference on the host device, one thread, best of {tries}, all blocks through the slice form, on a
machine that others used too; it says what a CPU needs and is no measure of a GPU.

| network | N | index | {archs} | CPU ms |
|---|---|---|{rules}---|
"""
READING = """
- The table brings nothing here. The blocks of these kernels have one row, so that the computed
  index is the thread's number and takes no division; the table takes 16 bytes of shared memory for
  each of up to 256 logical threads, and as many registers. Computed is the default.
- A folded block takes 0.50 to 1.00 of the registers of the original's block with N = 2, and 0.26 to
  0.76 with N = 4.
- The host device runs nearly all folded forms in less CPU time than the form with N = 1.
"""
EACH = """
## Each kernel

Registers per thread of the original and of the yield form with N = 1, 2 and 4 (index computed), and
beside them the registers of a block over those of the original's block.

| kernel | threads | {archs} |
|---|---|{rules}
"""

Table = Mapping[tuple[str, str, str], Needs]


def form(needs: Needs, fold: int) -> Resources | None:
    """What the yield form with ``fold`` logical threads on a physical one needs."""
    return needs.elastic if fold == 1 else needs.folded.get(fold)


def used(network: str) -> dict[str, KernelSpec]:
    """The kernels of a network by name."""
    return {step.kernel.name: step.kernel for step in models.load(network).steps}


def needed(table: Table, network: str, fold: int, index: str, arch: str) -> str:
    """Registers, median and most, and shared bytes beyond the original's."""
    found = [(table[arch, index, name], name) for name in used(network)]
    forms = [(needs.original, form(needs, fold)) for needs, _ in found]
    made = [(original, other) for original, other in forms if other is not None]
    registers = [other.registers for _, other in made]
    more = max(o.static_shared_bytes - w.static_shared_bytes for w, o in made)
    missing = f", {len(forms) - len(made)} without" if len(made) < len(forms) else ""
    return f"{median(registers):g}, {max(registers)}{missing} | {more}"


def host_ms(loaded: HostProgram, network: str, fold: int) -> float:
    """CPU time of one inference through the slice forms of ``fold``."""
    best = float("inf")
    for _ in range(TRIES):
        request = loaded.request()
        request.write(models.example_input(network))
        began = time.process_time()
        for index, step in enumerate(loaded.program.steps):
            threads = next((v.threads for v in step.kernel.variants if v.fold == fold), 0)
            request.run_slice(index, 0, step.kernel.blocks, threads)
        best = min(best, time.process_time() - began)
    return best * 1e3


def indexed(table: Table) -> Iterator[str]:
    """A line per network, N and index function."""
    for network in NETWORKS:
        program, weights = models.load(network), models.weights(network)
        for index in INDICES:
            loaded = Host(workers=1).load(program, weights, elastic=True, index=index)
            for fold in (1, *FOLDS):
                # Without a fold there is no index function.
                if fold == 1 and index != INDICES[0]:
                    continue
                cells = " | ".join(needed(table, network, fold, index, arch) for arch in ARCHS)
                name = index if fold > 1 else "-"
                took = f"{host_ms(loaded, network, fold):.4g}"
                yield f"| {network} | {fold} | {name} | {cells} | {took} |"


def each(table: Table) -> Iterator[str]:
    """A line per kernel, and the folds that are missing."""
    without = []
    for kernel in kernels():
        cells = []
        for arch in ARCHS:
            needs = table[arch, INDICES[0], kernel.name]
            forms = {fold: form(needs, fold) for fold in (1, *FOLDS)}
            registers = [f.registers if f else "-" for f in forms.values()]
            shares = [
                f"{-(-kernel.threads // n) * f.registers / taken:.2f}" if f else "-"
                for n, f in forms.items()
                if (taken := kernel.threads * needs.original.registers)
            ]
            told = ", ".join(map(str, registers))
            cells.append(f"{needs.original.registers}: {told} | {', '.join(shares)}")
            without += [(arch, kernel.name, n, why) for n, why in needs.without.items()]
        yield f"| `{kernel.name}` | {kernel.threads} | {' | '.join(cells)} |"
    yield ""
    yield "Missing:" if without else "None is missing."
    yield from (f"\n- {arch} `{name}`, N = {n}: {why}" for arch, name, n, why in without)


def main() -> None:
    """Print the page."""
    table: Table = {
        (arch, index, kernel.name): measure(kernel, arch, index)
        for arch in ARCHS
        for index in INDICES
        for kernel in kernels()
    }
    words = {"nvrtc": version("nvidia-cuda-nvrtc"), "version": __version__, "tries": TRIES}
    needs = " | ".join(f"{a} registers | {a} shared" for a in ARCHS)
    print(
        HEAD.format(
            **words, date=date.today().isoformat(), archs=needs, rules="---|---|" * len(ARCHS)
        ),
        end="",
    )
    for line in indexed(table):
        print(line, flush=True)
    print(READING, end="")
    registers = " | ".join(f"{a} registers | {a} of the block" for a in ARCHS)
    print(EACH.format(archs=registers, rules="---|---|" * len(ARCHS)), end="")
    print("\n".join(each(table)))


if __name__ == "__main__":
    main()
