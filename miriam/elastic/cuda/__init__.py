"""CUDA C++ to elastic CUDA C++: preprocess, parse, reach, rules, emit."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from miriam.elastic.cuda.block import BlockJudge
from miriam.elastic.cuda.block_emit import block_entry_names
from miriam.elastic.cuda.calls import Names
from miriam.elastic.cuda.emit import Plan, emit, entry_names, original
from miriam.elastic.cuda.parse import Unit, parse
from miriam.elastic.cuda.preprocess import preprocess
from miriam.elastic.cuda.rules import judge
from miriam.elastic.cuda.signature import kernel_signature
from miriam.elastic.cuda.subject import Refusal, Subject
from miriam.elastic.cuda.syntax import walk
from miriam.elastic.cuda.text import Text
from miriam.elastic.cuda.unresolved import unresolved
from miriam.elastic.result import Elasticized, ElasticKernel, IndexFunction, Verdict
from miriam.errors import SourceError, UnknownNameError, UsageError

__all__ = ["elasticize"]

_IN_MEMORY = "kernel.cu"


def elasticize(
    source: str | Path,
    *,
    kernels: Collection[str] | None = None,
    arch: str = "sm_87",
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    index: IndexFunction = "computed",
) -> Elasticized:
    """Make the kernels of ``source`` (a path, or CUDA C++ text) elastic where the rules allow.

    ``kernels``: only these, by name. ``arch``: macros and conditions are resolved for it.
    ``index``: how the block forms find a logical thread's coordinates, by arithmetic or from a
    table in shared memory ("Two index functions", arXiv 2307.04339).
    UsageError for an unreadable file, UnknownNameError for a kernel that is not there,
    SourceError for text that is no CUDA C++, MissingCapabilityError without the ``elastic``
    extra. A kernel that breaks a rule is not an error: its verdicts say which one and where.
    """
    path, content = _read(source)
    folders = [_folder(f) for f in include_dirs]
    unit = parse(preprocess(path, content, arch, folders, defines))
    _check(path, unit, kernels)
    names, blocks = Names(unit), BlockJudge(unit, index)
    title = f"// Elastic forms of the kernels of {Path(path).name}, made by Miriam for {arch}."
    done, plans = [_unparsed(unit, at) for at in unit.unparsed], []
    for kernel in unit.kernels:
        if not _is_wanted(kernel.qualified, kernels):
            continue
        reached = names.reach(kernel)
        subject = Subject(reached, kernel_signature(unit.text, kernel))
        answer = judge(subject)
        if isinstance(answer, Refusal):
            done.append(_refused(subject, answer))
            continue
        block = blocks.judge(kernel, answer[1])
        plans.append(
            Plan(*answer, unresolved(subject), None if isinstance(block, Refusal) else block)
        )
        refusal = _verdict(blocks.text, block) if isinstance(block, Refusal) else None
        done.append(_elastic(plans[-1], refusal, title))
    if not plans:
        return Elasticized(path, arch, tuple(done), "")
    originals = original({p.subject: p.foreign for p in plans})
    return Elasticized(path, arch, tuple(done), emit(plans, title), originals)


def _read(source: str | Path) -> tuple[str, bytes]:
    if isinstance(source, str) and "\n" in source:
        return _IN_MEMORY, source.encode("utf-8", "surrogateescape")
    if any("\ud800" <= character <= "\udfff" for character in str(source)):
        # Bytes that are no UTF-8: no report could name the file.
        raise UsageError("source", "a file whose name is UTF-8", str(source))
    try:
        return str(source), Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError("source", "a readable file", str(source), str(error)) from error


def _folder(path: str | Path) -> str:
    if not Path(path).is_dir():
        raise UsageError("include directory", "an existing folder", str(path))
    return str(path)


def _is_wanted(name: str, kernels: Collection[str] | None) -> bool:
    return kernels is None or name in kernels or name.rpartition("::")[2] in kernels


def _check(path: str, unit: Unit, kernels: Collection[str] | None) -> None:
    if not unit.kernels:
        wrong = [n for n in walk(unit.root) if n.is_error or n.is_missing]
        if wrong:
            closest = min(wrong, key=lambda n: n.end_byte - n.start_byte)
            raise unit.text.error(closest.start_byte, "this is not CUDA C++ as the parser knows it")
        raise SourceError(path, 1, "there is no __global__ function with a body in it")
    known = {k.qualified for k in unit.kernels} | {k.name for k in unit.kernels}
    for name in kernels or ():
        if name not in known:
            raise UnknownNameError("kernel", name, {k.qualified for k in unit.kernels})


def _elastic(plan: Plan, refused: Verdict | None, title: str) -> ElasticKernel:
    kernel, signature = plan.subject.reached.kernel, plan.subject.signature
    source = plan.subject.reached.unit.text
    place = source.position(kernel.node.start_byte)
    block = plan.block
    return ElasticKernel(
        name=kernel.qualified,
        path=place.path,
        line=place.line,
        template=signature.parameters,
        grid=Verdict(True),
        block=refused or Verdict(True),
        yields=Verdict(True),
        entries=entry_names(kernel),
        block_entries=block_entry_names(kernel) if block is not None else {},
        source=emit([plan], title),
        original=original({plan.subject: plan.foreign}),
        has_barrier=plan.flow.has_barrier,
        has_shared=plan.flow.has_shared,
        any_threads=block is not None and block.fission is None,
        whole_warps=block is not None and block.warps,
    )


def _refused(subject: Subject, refusal: Refusal) -> ElasticKernel:
    kernel, source = subject.reached.kernel, subject.reached.unit.text
    place = source.position(kernel.node.start_byte)
    verdict = _verdict(source, refusal)
    parameters = subject.signature.parameters
    written = original({subject: unresolved(subject)})
    return ElasticKernel(
        kernel.qualified,
        place.path,
        place.line,
        parameters,
        verdict,
        verdict,
        verdict,
        original=written,
    )


def _unparsed(unit: Unit, at: int) -> ElasticKernel:
    """A ``__global__`` that the parser could not make a kernel of."""
    after = unit.text.slice(at, at + 2_000)
    name = re.search(
        r"(\w+)\s*(?:<[^<>()]*>\s*)?\((?!\s*\d)", after.replace("__launch_bounds__", "")
    )
    verdict = _verdict(unit.text, Refusal("parse-error", "syntax not understood", at))
    found = name[1] if name else "?"
    return ElasticKernel(found, verdict.path, verdict.line, (), verdict, verdict, verdict)


def _verdict(source: Text, refusal: Refusal) -> Verdict:
    place = source.position(refusal.at)
    return Verdict(
        False,
        refusal.reason,
        refusal.detail,
        place.path,
        place.line,
        place.column,
        place.excerpt,
    )
