"""CUDA C++ to cubin: one compilation, many at once, and none of them twice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from miriam.compile.cache import Cache, cache_folder
from miriam.compile.cubin import read_resources
from miriam.compile.headers import scan, system_folders
from miriam.compile.nvrtc import build, identity, supported_archs
from miriam.errors import MiriamError, UnknownNameError, UsageError
from miriam.kernels import Resources

_FMAD = {False: "-fmad=false", True: "-fmad=true"}
_DEFINE = re.compile(r"[A-Za-z_]\w*(?:=.*)?", re.DOTALL)
# nvcc shows these to every source, asked for or not.
_IMPLICIT = ("--pre-include=math.h", "--pre-include=stdlib.h")


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


@dataclass(frozen=True, slots=True)
class Job:
    """One compilation: the kernels ``names`` of ``text`` for ``arch`` (``sm_90``).

    A name is a C++ name expression, ``conv2d<3, 1>`` for example; templates are instantiated.
    ``path`` is the file that the text stands for, in errors and for quoted includes, which are
    looked up beside it and then in ``include_dirs``. ``fmad`` lets a*b+c be contracted;
    ``defines`` are macros, ``X`` or ``X=1``. UsageError for a value that breaks a rule.
    """

    text: str
    path: str
    names: tuple[str, ...]
    arch: str
    fmad: bool = False
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            raise UsageError("kernel names", "at least one", self.names)
        for define in self.defines:
            if not _DEFINE.fullmatch(define):
                raise UsageError("define", "NAME or NAME=VALUE", define)
        for folder in self.include_dirs:
            if not folder.is_dir():
                raise UsageError("include directory", "an existing folder", str(folder))

    def options(self) -> tuple[str, ...]:
        """What NVRTC is told."""
        folders = (*self.include_dirs, *system_folders())
        return (
            *(f"-arch={self.arch}", _FMAD[self.fmad], "-std=c++17", *_IMPLICIT),
            *(f"-I{folder}" for folder in folders),
            *(f"-D{define}" for define in self.defines),
        )


def read_source(path: Path) -> str:
    """The text of a source file, bytes that are no UTF-8 as surrogates; UsageError without it."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise UsageError("source", f"a readable file ({error.strerror})", str(path)) from error


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

    NVRTC 13.0.88 is not quite reproducible: on a busy machine 5 of 48 compilations of a large
    kernel took up to two registers more. The cache keeps the first result.
    SourceError where the source is wrong; UsageError for a name that is no kernel of it, or for
    a cache directory that takes no files; UnknownNameError for an architecture that this NVRTC
    does not know; MissingCapabilityError without the ``cuda`` extra.
    """
    job = Job(text, path, tuple(names), arch, fmad, tuple(include_dirs), tuple(defines))
    return _compile(job)


def compile_many(
    jobs: Iterable[Job], *, workers: int | None = None
) -> tuple[Compiled | MiriamError, ...]:
    """Compile all ``jobs`` on ``workers`` threads (default: one per core); results in their order.

    A job that fails has its error for a result. MissingCapabilityError without the ``cuda`` extra.
    """
    supported_archs()
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:
        return tuple(pool.map(_result, jobs))


def _result(job: Job) -> Compiled | MiriamError:
    try:
        return _compile(job)
    except MiriamError as error:
        return error


def _compile(job: Job) -> Compiled:
    known = supported_archs()
    if job.arch not in known:
        raise UnknownNameError("architecture", job.arch, known)
    cubin, symbols, log = _built(job)
    found = read_resources(cubin, job.arch)
    lowered = dict(zip(job.names, symbols, strict=True))
    for name, symbol in lowered.items():
        if symbol not in found:
            raise UsageError(f"kernel name in {job.path}", "a __global__ function", name)
    return Compiled(cubin, lowered, {name: found[lowered[name]] for name in lowered}, log)


_Built = tuple[bytes, list[str], str]


def _built(job: Job) -> _Built:
    """What NVRTC makes of ``job``, from the cache if it is there."""
    options = job.options()
    headers = scan(job.text, Path(job.path).parent, job.include_dirs)

    def make() -> _Built:
        return build(job.text, job.path, job.names, options, headers.empty)

    if headers.parts is None:
        return make()
    parts = (identity(), job.text, job.path, *job.names, *options, *headers.empty, *headers.parts)
    entry = Cache(cache_folder("cubin")).fetch(parts, lambda: msgspec.msgpack.encode(make()))
    return msgspec.msgpack.decode(entry.content, type=_Built)
