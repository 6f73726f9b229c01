"""The headers that a source sees: its own, CUDA's from the wheels, and stand-ins for C's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STAND_INS = Path(__file__).parent / "include"

# Files with kernels hold host code too, which is not compiled here but whose includes remain:
# of C, C++ and POSIX, and of CUDA's libraries.
_HOST_NAMES = (
    "array atomic bitset cctype cerrno chrono cinttypes complex condition_variable csignal "
    "cstdarg ctime ctype.h cwchar deque dirent.h errno.h exception execinfo.h fcntl.h fstream "
    "functional future getopt.h initializer_list inttypes.h iomanip ios iostream istream "
    "iterator libgen.h list locale locale.h malloc.h map memory memory.h mutex new numeric "
    "omp.h optional ostream pthread.h queue random ratio regex sched.h set setjmp.h signal.h "
    "sstream stack stdarg.h stdbool.h stdexcept streambuf string string_view strings.h "
    "sys/mman.h sys/resource.h sys/stat.h sys/time.h sys/times.h sys/types.h sys/wait.h "
    "system_error termios.h thread time.h tuple typeinfo unistd.h unordered_map unordered_set "
    "valarray variant vector wchar.h "
    "cublas.h cudaProfiler.h cuda_profiler_api.h cudnn.h cufft.h curand.h "
    "cusolverDn.h cusparse.h nccl.h nvToolsExt.h nvml.h nvrtc.h nvtx3/nvToolsExt.h nvtx3/nvtx3.hpp"
)
HOST_HEADERS = frozenset(_HOST_NAMES.split())

# Wherever the word is followed by a name: that also finds __has_include, and the spare ones
# in comments cost nothing.
_INCLUDE = re.compile(r'include\s*\(?\s*(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>)')
_COMPUTED = re.compile(r"#\s*include(?:_next)?\s+[A-Za-z_]")
_SPLICE = re.compile(r"\\\r?\n")


@cache
def cuda_folders() -> tuple[Path, ...]:
    """The include folders of the CUDA runtime and of its C++ library; empty without them."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return ()
    found = (find_nvidia_header_directory(name) for name in ("cudart", "cccl"))
    return tuple(Path(folder) for folder in found if folder)


def system_folders() -> tuple[Path, ...]:
    """Where angled includes are looked up after the user's folders, in this order."""
    return (STAND_INS, *cuda_folders())


@dataclass(frozen=True, slots=True)
class Headers:
    """What a source includes: ``parts`` tell it from another, None where nobody can know them.

    ``empty`` are headers of the host that no folder of the user's has: no kernel needs them.
    """

    parts: tuple[str | bytes, ...] | None
    empty: tuple[str, ...]


def scan(text: str, folder: Path, include_dirs: Sequence[Path]) -> Headers:
    """What ``text``, a file of ``folder``, may include, and what those files may, and so on.

    A system folder stands for its headers with the time of its last change. ``parts`` is None
    when an include is a macro's value, so that only the compiler knows what it names.
    """
    parts: list[str | bytes] = []
    for path in (*cuda_folders(), *(f / "cuda" for f in cuda_folders())):
        parts += [str(path), str(path.stat().st_mtime_ns) if path.is_dir() else ""]
    known, seen, empty = True, set[Path](), set[str]()
    waiting = [(_SPLICE.sub("", text), folder)]
    while waiting:
        text, folder = waiting.pop()
        known = known and not _COMPUTED.search(text)
        for name, candidates in _includes(text, folder, (*include_dirs, STAND_INS)):
            found = [path for path in candidates if path.is_file()]
            if not found and name in HOST_HEADERS:
                empty.add(name)
            for path in (p for p in found if p not in seen):
                seen.add(path)
                content = path.read_bytes()
                parts += [str(path), content]
                waiting.append((_SPLICE.sub("", content.decode(errors="replace")), path.parent))
    return Headers(tuple(parts) if known else None, tuple(sorted(empty)))


def _includes(
    text: str, folder: Path, include_dirs: Sequence[Path]
) -> Iterator[tuple[str, list[Path]]]:
    """Each name that is included, and where it may lie."""
    for match in _INCLUDE.finditer(text):
        name = match["quoted"] or match["angled"]
        folders = (folder, *include_dirs) if match["quoted"] else include_dirs
        yield name, [f / name for f in folders]
