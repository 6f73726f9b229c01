"""What became elastic in a file, and what the compiled forms need on each architecture."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from miriam.compile import CompiledForms, Form, FormSet, compile_forms, supported_archs
from miriam.elastic import Elasticized, ElasticKernel, IndexFunction, Verdict, elasticize
from miriam.errors import MiriamError, MissingCapabilityError, UsageError
from miriam.kernels import Dim3

ORIGINAL = "original"
FOLDS = (2, 4)
FOLDED_BLOCK = Dim3(256)
"""The logical block for which folded forms are compiled here, where they depend on it."""

_Answers = dict[tuple[str, int, str], CompiledForms | str]
_Forms = Callable[[str, ElasticKernel, str], FormSet]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A kernel: its verdicts for all architectures, and its compiled forms by architecture.

    ``folded``: those of the grid and, called ``block/2`` and ``block/4``, the folded yield forms,
    under one policy for all of them. ``notes``: why an architecture is missing, or why its bits
    can not be trusted.
    """

    kernel: ElasticKernel
    compiled: Mapping[str, CompiledForms] = field(default_factory=dict)
    folded: Mapping[str, CompiledForms] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """A file's kernels, and the elastic text for each architecture."""

    path: str
    kernels: tuple[Surveyed, ...]
    texts: Mapping[str, str]

    def text(self) -> str:
        """The one elastic text for all architectures; UsageError where they differ."""
        first, *others = self.texts.items()
        for arch, text in others:
            # The title names the architecture.
            if text.partition("\n")[2] != first[1].partition("\n")[2]:
                rule = "one --arch, because the text depends on it"
                raise UsageError("-o", rule, f"{first[0]}, {arch}")
        return first[1]


def survey(
    source: str | Path,
    *,
    kernels: Collection[str] | None = None,
    archs: Sequence[str] = ("sm_87",),
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    compiling: Callable[[ElasticKernel], bool] = lambda kernel: True,
    index: IndexFunction = "computed",
) -> Survey:
    """Make the kernels of ``source`` elastic for each of ``archs`` and compile what became so.

    Only kernels for which ``compiling`` says so are compiled. Without the ``cuda`` extra nothing
    is, and a note says so. ``index`` and errors as ``elasticize`` has them.
    """
    made = {
        arch: elasticize(
            source,
            kernels=kernels,
            arch=arch,
            include_dirs=include_dirs,
            defines=defines,
            index=index,
        )
        for arch in archs
    }
    first = made[archs[0]]
    wanted = {(k.name, k.line) for k in first.kernels if k.source and compiling(k)}
    missing = _missing_compiler() if wanted else ""
    done, folded = _Answers(), _Answers()
    for arch, found in made.items() if not missing else ():
        elastic = [k for k in found.kernels if k.source and (k.name, k.line) in wanted]
        done |= _compiled(first.path, elastic, arch, _grid_forms)
        blocks = [k for k in elastic if k.block.ok]
        folded |= _compiled(first.path, blocks, arch, _all_forms)
    surveyed = [_surveyed(kernel, made, (done, folded), missing) for kernel in first.kernels]
    return Survey(first.path, tuple(surveyed), {a: m.source for a, m in made.items()})


def _missing_compiler() -> str:
    try:
        supported_archs()
    except MissingCapabilityError as error:
        return f"no resources: {error}"
    return ""


def _surveyed(
    kernel: ElasticKernel,
    made: Mapping[str, Elasticized],
    answers: tuple[_Answers, _Answers],
    missing: str,
) -> Surveyed:
    compiled: tuple[dict[str, CompiledForms], dict[str, CompiledForms]] = ({}, {})
    notes: dict[str, list[str]] = {missing: []} if missing and kernel.source else {}
    for arch in made:
        for title, done, kept in zip(("", "block: "), answers, compiled, strict=True):
            found = done.get((kernel.name, kernel.line, arch))
            if isinstance(found, CompiledForms):
                kept[arch] = found
                if found.refused:
                    notes.setdefault(f"{title}bits may differ: {found.refused}", []).append(arch)
            elif found is not None:
                notes.setdefault(f"{title}{found}", []).append(arch)
                break
    texts = (f"{', '.join(a)}: {text}" if a else text for text, a in notes.items())
    return Surveyed(_everywhere(kernel, made), *compiled, tuple(texts))


def _everywhere(kernel: ElasticKernel, made: Mapping[str, Elasticized]) -> ElasticKernel:
    """The kernel with the first refusal of any architecture."""
    if len(made) == 1:
        return kernel
    for arch, other in made.items():
        for found in other.kernels:
            if (found.name, found.line) != (kernel.name, kernel.line):
                continue
            if kernel.grid.ok and not found.grid.ok:
                kernel = replace(kernel, grid=_on(arch, found.grid), yields=_on(arch, found.yields))
            if kernel.block.ok and not found.block.ok:
                kernel = replace(kernel, block=_on(arch, found.block))
    return kernel


def _on(arch: str, verdict: Verdict) -> Verdict:
    return replace(verdict, detail=f"{verdict.detail} ({arch})") if verdict.detail else verdict


def _compiled(path: str, kernels: Sequence[ElasticKernel], arch: str, forms: _Forms) -> _Answers:
    """The ``forms`` of each of ``kernels`` for ``arch``, or why there are none.

    Of a template the first instance that can be compiled.
    """
    waiting = [_instances(path, kernel) for kernel in kernels]
    answers: list[CompiledForms | str] = [
        "no resources: a template that this file gives no arguments" for _ in kernels
    ]
    first = True
    while left := [i for i, instances in enumerate(waiting) if instances]:
        sets = [forms(path, kernels[i], waiting[i].pop(0)) for i in left]
        for i, made in zip(left, compile_forms(sets, arch), strict=True):
            if isinstance(made, CompiledForms):
                answers[i] = made
                waiting[i] = []
            elif first:
                answers[i] = f"no resources: {_head(made)}"
        first = False
    return {(k.name, k.line, arch): a for k, a in zip(kernels, answers, strict=True)}


def _grid_forms(path: str, kernel: ElasticKernel, instance: str) -> FormSet:
    entries = {form: kernel.entry(form, instance) for form in kernel.entries}
    forms = (Form(form, kernel.source, path, entry) for form, entry in entries.items())
    return FormSet(Form(ORIGINAL, kernel.original, path, instance), tuple(forms))


def _all_forms(path: str, kernel: ElasticKernel, instance: str) -> FormSet:
    """Those of the grid too: one policy, because a step changes between them while it runs."""
    grid, size = _grid_forms(path, kernel, instance), FOLDED_BLOCK.size
    folded = (
        Form(
            f"block/{fold}",
            kernel.source,
            path,
            kernel.entry("yield", instance, fold, FOLDED_BLOCK),
            kernel.physical_threads(size, fold),
            fold=fold,
        )
        for fold in FOLDS
    )
    return FormSet(grid.original, (*grid.forms, *folded))


def _head(error: MiriamError) -> str:
    return str(error).partition("\n")[0]


def _instances(path: str, kernel: ElasticKernel) -> list[str]:
    """Name expressions of the kernel: its name, or as the file launches the template."""
    if not kernel.template:
        return [kernel.name]
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    plain = kernel.name.rpartition("::")[2]
    found = re.findall(rf"\b{re.escape(plain)}\s*<((?:[^<>;{{}}]|<[^<>]*>)+)>\s*<<<", text)
    return list(dict.fromkeys(f"{kernel.name}<{arguments}>" for arguments in found))
