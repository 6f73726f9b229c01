"""CUDA C++ to cubin: one compilation, many at once, and none of them twice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from miriam.compile.cubin import read_resources
from miriam.compile.job import Job, build_cached, is_missing, read_source
from miriam.compile.nvrtc import supported_archs
from miriam.compile.worker import fill_cache
from miriam.errors import MiriamError, UnknownNameError, UsageError
from miriam.kernels import Resources


@dataclass(frozen=True, slots=True)
class Compiled:
    """A cubin for one architecture and what is in it.

    ``lowered`` and ``resources`` are keyed by the name expressions that were asked for;
    ``lowered`` gives the symbol to load, ``log`` the compiler's warnings.
    """

    cubin: bytes
    lowered: dict[str, str]
    resources: dict[str, Resources]
    log: str


def compile_cubin(
    source: Path,
    names: Sequence[str],
    arch: str,
    *,
    fmad: bool = False,
    include_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
) -> Compiled:
    """Compile the kernels ``names`` of the CUDA C++ file ``source``; see ``compile_source``.

    UsageError also where the file is not readable.
    """
    return compile_source(
        read_source(source),
        str(source),
        names,
        arch,
        fmad=fmad,
        include_dirs=include_dirs,
        defines=defines,
    )


def compile_source(
    text: str,
    path: str,
    names: Sequence[str],
    arch: str,
    *,
    fmad: bool = False,
    include_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
) -> Compiled:
    """Compile the kernels ``names`` of ``text``; a ``Job`` says what each argument is.

    SourceError where the source is wrong; UsageError for a name that is no kernel of it, or for
    a cache directory that takes no files; UnknownNameError for an architecture that this NVRTC
    does not know; MissingCapabilityError without the ``cuda`` extra.
    """
    job = Job(text, path, tuple(names), arch, fmad, tuple(include_dirs), tuple(defines))
    return _compile(job)


def compile_many(
    jobs: Iterable[Job], *, workers: int | None = None
) -> tuple[Compiled | MiriamError, ...]:
    """Compile all ``jobs`` in ``workers`` processes (default: one per core), in order.

    A job that fails has its error for a result. MissingCapabilityError without the ``cuda`` extra.
    """
    known = supported_archs()
    listed = tuple(jobs)
    missing = [job for job in listed if job.arch in known and is_missing(job)]
    count = min(workers or len(os.sched_getaffinity(0)), len(missing))
    crashed = fill_cache(missing, count) if count > 1 else ()
    return tuple(_result(job, job in crashed) for job in listed)


def _result(job: Job, crashed: bool) -> Compiled | MiriamError:
    if crashed:
        return MiriamError(f"{job.path}: NVRTC crashed on it for {job.arch}")
    try:
        return _compile(job)
    except MiriamError as error:
        return error


def _compile(job: Job) -> Compiled:
    known = supported_archs()
    if job.arch not in known:
        raise UnknownNameError("architecture", job.arch, known)
    cubin, symbols, log = build_cached(job)
    found = read_resources(cubin, job.arch)
    lowered = dict(zip(job.names, symbols, strict=True))
    for name, symbol in lowered.items():
        if symbol not in found:
            raise UsageError(f"kernel name in {job.path}", "a __global__ function", name)
    return Compiled(cubin, lowered, {name: found[lowered[name]] for name in lowered}, log)
