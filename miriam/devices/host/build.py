"""Runs g++ and keeps what it makes, addressed by everything that it depends on."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from miriam.compile import Cache, cache_folder
from miriam.devices.host.source import NAMES_FILE, read_source, translation_unit
from miriam.errors import MiriamError, MissingCapabilityError, SourceError, UsageError

SHIM = Path(__file__).parent / "shim"
OLDEST_COMPILER = 12

# Only the author contracts (fmaf) and nothing reassociates: the bits do not depend on the machine.
_KERNEL_FLAGS = (
    *("-std=c++17", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno"),
    *("-fno-strict-aliasing", "-fwrapv", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-Wno-unknown-pragmas", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret"),
    *("-U_FORTIFY_SOURCE", "-x", "c++"),
)
_RUNTIME_FLAGS = (
    *("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"),
    # Kernels read the runtime's thread-local names so too, which has to hold from the first load.
    *("-ftls-model=initial-exec", "-fdiagnostics-color=never", "-U_FORTIFY_SOURCE"),
    f"-Wl,--version-script={SHIM / 'exports.map'}",
)
_MESSAGE = re.compile(r"^(?P<path>.+?):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: ")

_NAMED = re.compile(rf"^{NAMES_FILE}:(?P<line>\d+):", re.MULTILINE)


def default_cache_dir() -> Path:
    """``$MIRIAM_CACHE_DIR/host``, or ``~/.cache/miriam/host``."""
    return cache_folder("host")


def load_library(path: Path, source: str, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    """Load the shared object made from ``source``; MiriamError when the loader refuses it."""
    try:
        return ctypes.CDLL(str(path), mode=mode)
    except OSError as error:
        reason = str(error).removeprefix(f"{path}: ")
        advice = "define whatever its kernels call in the same file or a quoted include"
        raise MiriamError(
            f"{source}: g++ took it but it does not load: {reason}; {advice}"
        ) from None


class Builder:
    """Compiles the runtime and kernel sources into shared objects in ``cache_dir``.

    The loader ignores the digest that the cache puts behind an object.
    """

    def __init__(self, cache_dir: Path) -> None:
        self._compiler, self._identity = _find_compiler()
        self._cache = Cache(cache_dir)

    def runtime(self) -> Path:
        """The runtime's shared object."""
        sources = [str(SHIM / "block.cpp"), str(SHIM / "runtime.cpp")]
        return self._cached(_RUNTIME_FLAGS, sources, None)

    def kernels(self, path: Path, names: Sequence[str], source: str | None = None) -> Path:
        """The shared object with the kernels ``names`` of the CUDA C++ file ``path``.

        ``source``: text that stands for the file, which then need not exist.
        SourceError where g++ refuses the file; UsageError where it refuses a name.
        """
        written = read_source(path) if source is None else source
        text = translation_unit(written, path, names)
        flags = (*_KERNEL_FLAGS, f"-I{SHIM}", "-include", str(SHIM / "cuda.hpp"))
        try:
            return self._cached(flags, ["-"], text)
        except _CompilerError as error:
            raise _explain(error.output, path, names) from None

    def _cached(self, flags: Sequence[str], sources: Sequence[str], text: str | None) -> Path:
        parts = [self._identity, _shim_text(), *flags, *sources, text or ""]
        return self._cache.fetch(parts, lambda: self._compile(flags, sources, text), ".so").path

    def _compile(self, flags: Sequence[str], sources: Sequence[str], text: str | None) -> bytes:
        with tempfile.TemporaryDirectory(prefix="miriam-") as folder:
            made = Path(folder) / "made.so"
            done = subprocess.run(
                [self._compiler, *flags, *sources, "-o", str(made)],
                input=text,
                capture_output=True,
                text=True,
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
            if done.returncode:
                raise _CompilerError(done.stderr)
            return made.read_bytes()


class _CompilerError(Exception):
    def __init__(self, output: str) -> None:
        super().__init__(output)
        self.output = output


def _find_compiler() -> tuple[str, str]:
    """The path of g++ and what tells this one, on this CPU, from others."""
    compiler = shutil.which("g++")
    advice = f"install g++ {OLDEST_COMPILER} or later (apt-get install g++)"
    if compiler is None:
        raise MissingCapabilityError("device host", "there is no g++ on the PATH", advice)
    version = _version(compiler)
    if int(version.split(".", 1)[0]) < OLDEST_COMPILER:
        raise MissingCapabilityError("device host", f"g++ is version {version}", advice)
    return compiler, f"{compiler} {version} {_cpu()}"


@cache
def _version(compiler: str) -> str:
    return subprocess.run(
        [compiler, "-dumpfullversion"], capture_output=True, text=True, check=True
    ).stdout.strip()


@cache
def _cpu() -> str:
    """What -march=native depends on: the architecture, the model and its features."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0].splitlines()
    kept = [x for x in lines if x.split("\t")[0] in ("model name", "flags", "CPU part", "Features")]
    return "\n".join([platform.machine(), *kept])


@cache
def _shim_text() -> str:
    return "\0".join(p.read_text(encoding="utf-8") for p in sorted(SHIM.iterdir()) if p.is_file())


def _explain(output: str, path: Path, names: Sequence[str]) -> SourceError | UsageError:
    """The first error of a compiler's output as one of ours."""
    errors = [(m, line) for line in output.splitlines() if (m := _MESSAGE.match(line))]
    if not errors:
        return SourceError(str(path), 1, f"g++ failed: {output.strip()}")
    match, line = errors[0]
    message = line[match.end() :]
    # An error inside the shim's macro for a name is followed by where the name stands.
    named = _NAMED.search(output, output.index(line)) if str(SHIM) in match["path"] else None
    if match["path"] == NAMES_FILE or named:
        name = names[int((named or match)["line"]) - 1]
        return UsageError("kernel", f"a name expression of a kernel in {path}", name, message)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    number = int(match["line"])
    excerpt = _excerpt(Path(match["path"]), number, int(match["column"] or 1))
    return SourceError(match["path"], number, f"error: {message}{more}", excerpt)


def _excerpt(path: Path, number: int, column: int) -> str:
    if not path.is_file():
        return ""
    lines = read_source(path).splitlines()
    if not 1 <= number <= len(lines):
        return ""
    line = lines[number - 1].expandtabs(1)
    return f"    {line}\n    {' ' * (column - 1)}^"
