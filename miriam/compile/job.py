"""One compilation: what NVRTC is asked, and its answer, from the cache if it is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from miriam.compile.cache import Cache, cache_folder
from miriam.compile.headers import scan, system_folders
from miriam.compile.nvrtc import build, identity
from miriam.errors import UsageError

_FMAD = {False: "-fmad=false", True: "-fmad=true"}
_DEFINE = re.compile(r"[A-Za-z_]\w*(?:=.*)?", re.DOTALL)
# nvcc shows these to every source, asked for or not.
_IMPLICIT = ("--pre-include=math.h", "--pre-include=stdlib.h")


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


Built = tuple[bytes, list[str], str]


def build_cached(job: Job) -> Built:
    """The cubin, the lowered names in the order of the job's, and the log; errors as NVRTC's."""
    parts, make = _request(job)
    if parts is None:
        return make()
    entry = _cubins().fetch(parts, lambda: msgspec.msgpack.encode(make()))
    return msgspec.msgpack.decode(entry.content, type=Built)


def is_missing(job: Job) -> bool:
    """Whether the cache lacks what ``job`` asks for, and can keep it."""
    parts, _ = _request(job)
    return parts is not None and not _cubins().holds(parts)


def _cubins() -> Cache:
    return Cache(cache_folder("cubin"))


def _request(job: Job) -> tuple[tuple[str | bytes, ...] | None, Callable[[], Built]]:
    """All that the answer depends on, None if that is not known, and how to get it."""
    options = job.options()
    headers = scan(job.text, Path(job.path).parent, job.include_dirs)

    def make() -> Built:
        return build(job.text, job.path, job.names, options, headers.empty)

    if headers.parts is None:
        return None, make
    asked = (identity(), job.text, job.path, *job.names, *options, *headers.empty)
    return (*asked, *headers.parts), make
