"""CUDA C++ to elastic CUDA C++: preprocess, parse, reach, rules, emit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from miriam.elastic.cuda.calls import Names, Reach
from miriam.elastic.cuda.emit import emit, entry_names
from miriam.elastic.cuda.parse import Unit, parse
from miriam.elastic.cuda.preprocess import preprocess
from miriam.elastic.cuda.signature import kernel_signature
from miriam.elastic.result import Elasticized, ElasticKernel, Verdict
from miriam.errors import SourceError, UnknownNameError, UsageError

__all__ = ["elasticize"]

_IN_MEMORY = "kernel.cu"
_BLOCK = Verdict(False, "not-implemented", "elastic block is not implemented yet")


def elasticize(
    source: str | Path,
    *,
    kernels: Collection[str] | None = None,
    arch: str = "sm_87",
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
) -> Elasticized:
    """Make the kernels of ``source`` (a path, or CUDA C++ text) elastic where the rules allow.

    ``kernels``: only these, by name. ``arch``: macros and conditions are resolved for it.
    UsageError for an unreadable file, UnknownNameError for a kernel that is not there,
    SourceError for text that is no CUDA C++, MissingCapabilityError without the ``elastic``
    extra. A kernel that breaks a rule is not an error: its verdicts say which one and where.
    """
    path, content = _read(source)
    folders = [str(f) for f in include_dirs]
    unit = parse(preprocess(path, content, arch, folders, defines))
    _check(path, unit, kernels)
    names = Names(unit)
    wanted = [k for k in unit.kernels if _is_wanted(k.qualified, kernels)]
    made = [names.reach(k) for k in wanted]
    title = f"// Elastic forms of the kernels of {Path(path).name}, made by Miriam for {arch}."
    done = tuple(_kernel(r, title) for r in made)
    elastic = [r for r, k in zip(made, done, strict=True) if k.grid.ok]
    text = emit(elastic, [True for _ in elastic], title) if elastic else ""
    return Elasticized(path, arch, done, text)


def _read(source: str | Path) -> tuple[str, bytes]:
    if isinstance(source, str) and "\n" in source:
        return _IN_MEMORY, source.encode("utf-8", "surrogateescape")
    try:
        return str(source), Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError("source", "a readable file", str(source), str(error)) from error


def _is_wanted(name: str, kernels: Collection[str] | None) -> bool:
    return kernels is None or name in kernels or name.rpartition("::")[2] in kernels


def _check(path: str, unit: Unit, kernels: Collection[str] | None) -> None:
    if not unit.kernels:
        raise SourceError(path, 1, "there is no __global__ function in it")
    known = {k.qualified for k in unit.kernels} | {k.name for k in unit.kernels}
    for name in kernels or ():
        if name not in known:
            raise UnknownNameError("kernel", name, {k.qualified for k in unit.kernels})


def _kernel(reached: Reach, title: str) -> ElasticKernel:
    kernel = reached.kernel
    place = reached.unit.text.position(kernel.node.start_byte)
    ok = Verdict(True)
    return ElasticKernel(
        name=kernel.qualified,
        path=place.path,
        line=place.line,
        template=kernel_signature(reached.unit.text, kernel).parameters,
        grid=ok,
        block=_BLOCK,
        yields=ok,
        entries=entry_names(kernel),
        source=emit([reached], [True], title),
    )
