"""NVRTC itself: no GPU, no driver and no toolkit needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from miriam.compile.diagnostics import compile_error
from miriam.errors import MiriamError, MissingCapabilityError


def supported_archs() -> tuple[str, ...]:
    """The architectures that the installed NVRTC compiles for, oldest first."""
    return tuple(f"sm_{number}" for number in _call(_nvrtc().nvrtcGetSupportedArchs()))


def identity() -> str:
    """What tells this NVRTC from others: its library, when and how large it was written."""
    _nvrtc()
    from cuda.pathfinder import load_nvidia_dynamic_lib

    path = Path(load_nvidia_dynamic_lib("nvrtc").abs_path or "")
    written = path.stat()
    return f"{path} {written.st_mtime_ns} {written.st_size}"


def build(
    text: str, name: str, names: Sequence[str], options: Sequence[str], empty: Sequence[str] = ()
) -> tuple[bytes, list[str], str]:
    """The cubin, the lowered names in the order of ``names``, and the log.

    ``name`` is the file that the text stands for, ``empty`` are headers with nothing in them.
    Other threads run on meanwhile.
    """
    nvrtc: Any = _nvrtc()
    with _program(nvrtc, text, name, empty) as program:
        for kernel in names:
            _call(nvrtc.nvrtcAddNameExpression(program, kernel.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        written = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        log = written.rstrip(b"\0").decode(errors="replace").strip()
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION:
            raise compile_error(text, name, names, log)
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
def _program(nvrtc: Any, text: str, name: str, empty: Sequence[str]) -> Iterator[Any]:
    # Bytes that are no UTF-8 were read as surrogates; they go back as they came.
    source = text.encode(errors="surrogateescape")
    headers, contents = [header.encode() for header in empty], [b""] * len(empty)
    program = _call(nvrtc.nvrtcCreateProgram(source, name.encode(), len(empty), contents, headers))
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
