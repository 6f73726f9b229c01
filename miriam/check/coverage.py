"""How many kernels of a folder become elastic, and why the others do not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from miriam.check.survey import Surveyed, survey
from miriam.elastic import ElasticKernel
from miriam.errors import MiriamError, SourceError, UsageError

_SUFFIXES = (".cu", ".cuh")
NO_KERNEL = "there is no __global__ function"


@dataclass(frozen=True, slots=True)
class FileError:
    """A file that could not be read as CUDA C++, and why."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """All kernels of a folder, each once, and the files that gave none for an error."""

    folder: str
    archs: tuple[str, ...]
    compiled: bool
    files: int
    kernels: tuple[Surveyed, ...]
    errors: tuple[FileError, ...]

    @property
    def reasons(self) -> Mapping[str, int]:
        """How many kernels each reason refused, the most frequent first."""
        refused = (k.kernel.grid.reason for k in self.kernels if not k.kernel.grid.ok)
        return dict(Counter(refused).most_common())


def cover(
    folder: Path,
    *,
    archs: Sequence[str] = ("sm_87",),
    compiling: bool = False,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> Coverage:
    """Survey every .cu and .cuh file below ``folder``; UsageError when it is no folder.

    A kernel in a header that several files include counts once. Includes are also looked for in
    ``folder`` and in the folders called ``include`` or ``inc`` below it.
    """
    if not folder.is_dir():
        raise UsageError("DIR", "a folder", str(folder))
    paths = sorted(
        (p for p in folder.rglob("*") if p.suffix in _SUFFIXES and p.is_file()),
        # Headers last: a kernel in them is judged where it is included, if it is.
        key=lambda p: (_SUFFIXES.index(p.suffix), str(p)),
    )
    folders = [*include_dirs, folder, *_include_folders(folder)]

    found: dict[_Key, Surveyed] = {}

    def is_new(kernel: ElasticKernel) -> bool:
        return compiling and not (_key(kernel) in found and found[_key(kernel)].compiled)

    def one(path: Path) -> tuple[Surveyed, ...] | FileError:
        try:
            return survey(
                path, archs=archs, include_dirs=folders, defines=defines, compiling=is_new
            ).kernels
        except SourceError as error:
            return () if NO_KERNEL in str(error) else FileError(str(path), str(error))
        except MiriamError as error:
            return FileError(str(path), str(error))
        except Exception as error:  # one odd file must not cost the count of all others
            return FileError(str(path), f"{path}: internal error: {error!r}")

    errors = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        # Compiling uses all cores by itself, and file by file no kernel is compiled twice.
        answers = map(one, paths) if compiling else pool.map(one, paths)
        for done, answer in enumerate(answers, 1):
            progress(done, len(paths))
            if isinstance(answer, FileError):
                errors.append(answer)
                continue
            for item in answer:
                known = found.get(_key(item.kernel))
                # A template in a header may get its arguments from another file.
                if known is None or (item.compiled and not known.compiled):
                    found[_key(item.kernel)] = item
    kernels = tuple(found.values())
    return Coverage(str(folder), tuple(archs), compiling, len(paths), kernels, tuple(errors))


_Key = tuple[str, int, str]


def _key(kernel: ElasticKernel) -> _Key:
    """What tells a kernel from all others of a folder."""
    return str(Path(kernel.path).resolve()), kernel.line, kernel.name


def _include_folders(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.name in ("include", "inc") and p.is_dir())
