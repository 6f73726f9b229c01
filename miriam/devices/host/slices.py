"""The slice forms of a program's kernels: what the generator makes of their source files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from miriam.elastic import Elasticized
from miriam.errors import UsageError
from miriam.kernels import Program

_FORM = "slice"


def slice_entries(program: Program) -> dict[str, dict[str, str]]:
    """By source file and kernel name, what the slice form of each elastic step's kernel is called.

    UsageError where the generator refuses the kernel of a step that is not rigid;
    MissingCapabilityError without the ``elastic`` extra.
    """
    found: dict[str, dict[str, str]] = {}
    for step in program.steps:
        if step.rigid is not None:
            continue
        spec = step.kernel
        kernel = elastic_file(spec.source).kernel(spec.name)
        if not kernel.grid.ok:
            why = f"{kernel.grid.path}:{kernel.grid.line}: {kernel.grid.detail}"
            raise UsageError(
                f"program {program.name} step {step.name}",
                f"rigid, because its kernel is refused ({kernel.grid.reason}, {why})",
                "elastic",
                "give the step that reason as `rigid`",
            )
        found.setdefault(spec.source, {})[spec.name] = kernel.entry(_FORM, spec.name)
    return found


def elastic_file(source: str) -> Elasticized:
    """What the generator makes of a file, kept until the file changes."""
    return _elasticized(source, Path(source).stat().st_mtime_ns)


@cache
def _elasticized(source: str, _changed_ns: int) -> Elasticized:
    from miriam.elastic import elasticize  # needs an extra

    return elasticize(Path(source))
