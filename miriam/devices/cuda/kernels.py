"""The kernels of programs on the GPU: originals and yield forms, compiled once each."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from miriam.compile import Job, compile_many, read_source
from miriam.devices.cuda.code import Function, Module
from miriam.elastic import Elasticized, elasticize
from miriam.elastic.launch import Control, launch_bytes
from miriam.errors import MiriamError
from miriam.kernels import Dim3, KernelSpec, Program, Step, Variant

_Key = tuple[str, str]
_Place = tuple[_Key, Dim3, int]
"""A kernel, the shape of its logical blocks, and the physical threads of a form."""

_Wanted = defaultdict[tuple[str, int], defaultdict[str, list[tuple[KernelSpec, int]]]]


@dataclass(frozen=True, slots=True)
class Form:
    """A yield form on ``threads`` physical threads, compiled for ``bound`` resident blocks."""

    function: Function
    threads: int
    bound: int

    def launch(
        self,
        stream: Any,
        kernel: KernelSpec,
        arguments: Sequence[Any],
        blocks: int,
        control: Control,
        part: tuple[int, int] | None = None,
    ) -> None:
        """Launch it on ``blocks`` physical blocks; ``arguments`` as the original's.

        ``part``: the first logical block and their number, None for all.
        """
        first, count = part or (0, kernel.blocks)
        launch = launch_bytes(kernel.grid, first, count, control, block=kernel.block)
        words = (ctypes.c_char * len(launch)).from_buffer_copy(launch)
        shape = (self.threads, 1, 1)
        if self.threads == kernel.threads:
            shape = (kernel.block.x, kernel.block.y, kernel.block.z)
        given = [words, *arguments]
        self.function.launch(stream, (blocks, 1, 1), shape, given, kernel.dynamic_shared_bytes)


class Kernels:
    """Loaded kernels; ``counting``: elastic forms count how often each logical block ran."""

    def __init__(self, arch: str, *, counting: bool) -> None:
        self._arch, self._counting = arch, counting
        self._originals: dict[_Key, Function] = {}
        self._forms: dict[_Place, list[Form]] = {}
        self._elastic: dict[str, Elasticized] = {}
        self._modules: list[Module] = []

    def load(self, programs: Iterable[Program]) -> None:
        """Compile and load what is missing of ``programs``; SourceError where the compiler refuses.

        After this no launch of theirs loads or allocates anything. What is compiled for a program
        does not depend on what was loaded before, so that it is found again from run to run.
        """
        for program in programs:
            steps = [step for step in program.steps if step.kernel.source]
            self._load_originals(steps)
            for step in steps:
                self.original(step).allow(step.kernel.dynamic_shared_bytes)
            self._load_elastic(steps)
            for step in steps:
                for variant in step.kernel.variants:
                    for form in self.forms(step, variant.threads):
                        form.function.allow(step.kernel.dynamic_shared_bytes)

    def original(self, step: Step) -> Function:
        """The kernel as its author wrote it."""
        return self._originals[_key(step.kernel)]

    def forms(self, step: Step, threads: int) -> tuple[Form, ...]:
        """The yield forms of ``step`` on ``threads`` physical threads per block.

        They differ in the number of resident blocks for which they were compiled; empty for a
        step that is not elastic, or not with so many threads.
        """
        return tuple(self._forms.get(_place(step.kernel, threads), ()))

    def _load_originals(self, steps: Sequence[Step]) -> None:
        if all(_key(step.kernel) in self._originals for step in steps):
            return
        wanted: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for step in steps:
            wanted[step.kernel.source][step.kernel.name] = None
        jobs = [
            Job(read_source(Path(s)), s, tuple(names), self._arch) for s, names in wanted.items()
        ]
        for job, module in zip(jobs, self._compiled(jobs), strict=True):
            for name in job.names:
                self._originals[job.path, name] = module.function(name)

    def _load_elastic(self, steps: Sequence[Step]) -> None:
        kernels = {_place(s.kernel, 0): s.kernel for s in steps if s.rigid is None}
        variants = {_place(k, v.threads): (k, v) for k in kernels.values() for v in k.variants}
        if all(place in self._forms for place in variants):
            return
        wanted: _Wanted = defaultdict(lambda: defaultdict(list))
        for kernel, variant in variants.values():
            for bound in self._bounds(kernel, variant):
                made = self._made(kernel.source).kernel(kernel.name)
                entry = made.entry("yield", kernel.name, variant.fold, kernel.block)
                wanted[kernel.source, bound][entry].append((kernel, variant.threads))
        jobs = [
            Job(self._made(source).source, source, tuple(entries), self._arch, defines=defines)
            for (source, bound), entries in wanted.items()
            for defines in (self._defines(bound),)
        ]
        forms: dict[_Place, list[Form]] = defaultdict(list)
        for (source, bound), module in zip(wanted, self._compiled(jobs), strict=True):
            for entry, known in wanted[source, bound].items():
                for kernel, threads in known:
                    form = Form(module.function(entry), threads, bound)
                    forms[_place(kernel, threads)].append(form)
        self._forms.update(forms)

    def _bounds(self, kernel: KernelSpec, variant: Variant) -> set[int]:
        """Blocks per SM that yield forms are compiled for: the original's residency, and one.

        A compiler spends fewer registers on a body in a loop unless a bound tells it how many it
        may have; which bound is better depends on the step (docs/results/elastic-h200.md).
        """
        if variant.fold > 1:
            # Folded forms have registers to spare, and each of them is one more compilation.
            return {1}
        original = self._originals[_key(kernel)]
        resident = original.resident_blocks(kernel.threads, kernel.dynamic_shared_bytes)
        return {max(1, resident), 1}

    def _made(self, source: str) -> Elasticized:
        if source not in self._elastic:
            self._elastic[source] = elasticize(Path(source), arch=self._arch)
        return self._elastic[source]

    def _defines(self, bound: int) -> tuple[str, ...]:
        counting = ("MIRIAM_COUNT_RUNS",) if self._counting else ()
        return (f"MIRIAM_RESIDENT_BLOCKS={bound}", *counting)

    def _compiled(self, jobs: list[Job]) -> list[Module]:
        modules = []
        for made in compile_many(jobs):
            if isinstance(made, MiriamError):
                raise made
            modules.append(Module(made))
        self._modules += modules
        return modules


def _key(kernel: KernelSpec) -> _Key:
    return kernel.source, kernel.name


def _place(kernel: KernelSpec, threads: int) -> _Place:
    return _key(kernel), kernel.block, threads
