"""CUDA C++ to cubin through NVRTC: no GPU, no driver and no toolkit needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from miriam.compile.cubin import read_resources
from miriam.compile.diagnostics import compile_error
from miriam.errors import MiriamError, MissingCapabilityError, UnknownNameError, UsageError
from miriam.kernels import Resources

_FMAD = {False: "-fmad=false", True: "-fmad=true"}


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


def compile_cubin(source: Path, names: Sequence[str], arch: str, *, fmad: bool = False) -> Compiled:
    """Compile the kernels ``names`` of the CUDA C++ file ``source`` for ``arch`` (``sm_90``).

    A name is a C++ name expression, ``conv2d<3, 1>`` for example; templates are instantiated.
    Quoted includes are looked up beside the source. ``fmad`` lets a*b+c be contracted.
    SourceError where the source is wrong; UsageError for an unreadable file or a name that is
    no kernel of it; UnknownNameError for an architecture that this NVRTC does not know;
    MissingCapabilityError without the ``cuda`` extra.
    """
    if not names:
        raise UsageError("kernel names", "at least one", names)
    try:
        text = source.read_bytes()
    except OSError as error:
        raise UsageError("source", f"a readable file ({error.strerror})", str(source)) from error
    known = supported_archs()
    if arch not in known:
        raise UnknownNameError("architecture", arch, known)
    cubin, symbols, log = _build(source, text, names, (f"-arch={arch}", _FMAD[fmad], "-std=c++17"))
    found = read_resources(cubin, arch)
    for name, symbol in zip(names, symbols, strict=True):
        if symbol not in found:
            raise UsageError(f"kernel name in {source}", "a __global__ function", name)
    resources = {name: found[symbol] for name, symbol in zip(names, symbols, strict=True)}
    return Compiled(cubin, dict(zip(names, symbols, strict=True)), resources, log)


def supported_archs() -> tuple[str, ...]:
    """The architectures that the installed NVRTC compiles for, oldest first."""
    return tuple(f"sm_{number}" for number in _call(_nvrtc().nvrtcGetSupportedArchs()))


def _build(
    source: Path, text: bytes, names: Sequence[str], options: Sequence[str]
) -> tuple[bytes, list[str], str]:
    """The cubin, the lowered names in the order of ``names``, and the log."""
    nvrtc: Any = _nvrtc()
    with _program(nvrtc, text, source) as program:
        for name in names:
            _call(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        written = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        log = written.rstrip(b"\0").decode(errors="replace").strip()
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION:
            raise compile_error(source, names, log)
        _call((status,))
        cubin = _read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        symbols = [_call(nvrtc.nvrtcGetLoweredName(program, n.encode())).decode() for n in names]
    return cubin, symbols, log


def _nvrtc() -> Any:
    advice = "pip install miriam-gpu[cuda]"
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise MissingCapabilityError("NVRTC", "cuda-bindings is not installed", advice) from error
    try:
        nvrtc.nvrtcVersion()
    except RuntimeError as error:
        raise MissingCapabilityError("NVRTC", "libnvrtc was not found", advice) from error
    return nvrtc


@contextmanager
def _program(nvrtc: Any, text: bytes, source: Path) -> Iterator[Any]:
    program = _call(nvrtc.nvrtcCreateProgram(text, str(source).encode(), 0, None, None))
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read(size: Any, read: Any, program: Any) -> bytes:
    buffer = bytearray(_call(size(program)))
    _call(read(program, buffer))
    return bytes(buffer)


def _call(answer: tuple[Any, ...]) -> Any:
    """The value of an NVRTC call's (status, value)."""
    status, *value = answer
    if status:
        raise MiriamError(f"NVRTC answered {status.name}")
    return value[0] if value else None
