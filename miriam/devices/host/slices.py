"""The slice forms of a program's kernels: what the generator makes of their source files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from miriam.elastic import Elasticized, IndexFunction, Verdict
from miriam.errors import UsageError
from miriam.kernels import Program, Step

_FORM = "slice"


def slice_entries(program: Program) -> tuple[dict[int, str], ...]:
    """What the slice form of each step's kernel is called, by the threads of its variants.

    Empty for a rigid step. UsageError where the generator refuses the kernel of another one, or
    a fold that it has; MissingCapabilityError without the ``elastic`` extra.
    """
    return tuple({} if s.rigid is not None else _entries(program, s) for s in program.steps)


def _entries(program: Program, step: Step) -> dict[int, str]:
    spec = step.kernel
    kernel = elastic_file(spec.source).kernel(spec.name)
    title = f"program {program.name} step {step.name}"
    if not kernel.grid.ok:
        rule = f"rigid, because its kernel is refused ({_why(kernel.grid)})"
        raise UsageError(title, rule, "elastic", "give the step that reason as `rigid`")
    folds = [form.fold for form in spec.variants if form.fold > 1]
    if folds and not kernel.block.ok:
        rule = f"no fold, because its kernel's block form is refused ({_why(kernel.block)})"
        raise UsageError(f"{title} variants", rule, folds)
    return {
        form.threads: kernel.entry(_FORM, spec.name, form.fold, spec.block)
        for form in spec.variants
    }


def _why(verdict: Verdict) -> str:
    return f"{verdict.reason}, {verdict.path}:{verdict.line}: {verdict.detail}"


def elastic_file(source: str, index: IndexFunction = "computed") -> Elasticized:
    """What the generator makes of a file, kept until the file changes."""
    return _elasticized(source, index, Path(source).stat().st_mtime_ns)


@cache
def _elasticized(source: str, index: IndexFunction, _changed_ns: int) -> Elasticized:
    from miriam.elastic import elasticize  # needs an extra

    return elasticize(Path(source), index=index)
