"""The floating-point instructions of a compiled kernel, counted from its disassembly."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import msgspec

from miriam.compile.cache import Cache, cache_folder
from miriam.errors import MiriamError, MissingCapabilityError, UnknownNameError

# FFMA, DADD, HMUL2, FFMA2 (two at once), UFADD (on the uniform path), FADD32I (an immediate).
_OPCODE = re.compile(r"U?([FDH])(FMA|MUL|ADD)(2?)(?:_?32I)?")
_ZERO = re.compile(r"U?RZ\b")
_OPTIONS = ("-json", "-c", "-ndf")


@dataclass(frozen=True, slots=True)
class FpMix:
    """How many instructions of each kind a kernel has: f32, f64 and packed half precision.

    Rounding modes, ``.FTZ`` and bfloat16 count with their kind. An FMA that adds zero is a
    multiplication and one that multiplies by one is an addition, since ptxas writes them so to
    balance its pipes; what only moves or negates a value does not count.
    """

    ffma: int = 0
    fmul: int = 0
    fadd: int = 0
    dfma: int = 0
    dmul: int = 0
    dadd: int = 0
    hfma2: int = 0
    hmul2: int = 0
    hadd2: int = 0

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of instruction that occur at all."""
        return frozenset(name for name in self.__slots__ if getattr(self, name))


def same_mix(original: FpMix, elastic: FpMix) -> bool:
    """Whether two forms of a kernel have each kind equally often: neither contracts more."""
    return astuple(original) == astuple(elastic)


def fp_mix(cubin: bytes, symbol: str) -> FpMix:
    """The mix of the kernel ``symbol`` of ``cubin``, with the functions that it calls.

    UnknownNameError for another symbol; MissingCapabilityError without nvdisasm, which is part
    of the ``cuda`` extra; MiriamError where it can not read the cubin.
    """
    tool = _nvdisasm()
    parts = (str(tool), str(tool.stat().st_mtime_ns), *_OPTIONS, cubin)
    written = Cache(cache_folder("sass")).fetch(parts, lambda: _disassemble(tool, cubin)).content
    _, functions = msgspec.json.decode(written, type=_Disassembly)
    code = {function.name: function.code for function in functions}
    if symbol not in code:
        raise UnknownNameError("kernel in the cubin", symbol, code)
    return _count(code[symbol])


class _Instruction(msgspec.Struct):
    opcode: str
    operands: str = ""


class _Function(msgspec.Struct, rename={"name": "function-name", "code": "sass-instructions"}):
    name: str
    code: list[_Instruction]


_Disassembly = tuple[object, list[_Function]]


@cache
def _nvdisasm() -> Path:
    advice = "pip install miriam-gpu[cuda]"
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError as error:
        raise MissingCapabilityError("nvdisasm", "cuda-pathfinder is missing", advice) from error
    found = find_nvidia_binary_utility("nvdisasm")
    if found is None:
        raise MissingCapabilityError("nvdisasm", "it is not installed", advice)
    return Path(found)


def _disassemble(tool: Path, cubin: bytes) -> bytes:
    with tempfile.TemporaryDirectory(prefix="miriam-") as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([str(tool), *_OPTIONS, str(path)], capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise MiriamError(f"cubin: {tool} does not read it: {said}")
    return done.stdout


def _count(code: Sequence[_Instruction]) -> FpMix:
    found: Counter[str] = Counter()
    for instruction in code:
        match = _OPCODE.fullmatch(instruction.opcode.partition(".")[0])
        operation = _operation(match[2], instruction.operands) if match else None
        if match and operation:
            half = match[1] == "H"
            # FFMA2 works on two values, as two FFMA do.
            kind = f"{match[1]}{operation}{'2' if half else ''}".lower()
            found[kind] += 2 if match[3] and not half else 1
    return FpMix(**found)


def _operation(written: str, operands: str) -> str | None:
    """What an instruction written as FMA, MUL or ADD computes; None if it only moves a value."""
    _, *inputs = (operand.strip().lstrip("-+|~") for operand in operands.split(","))
    zero = [bool(_ZERO.match(operand)) for operand in inputs]
    if written == "ADD":
        return None if any(zero) else written
    if written == "MUL":
        return written
    if zero[0] and zero[1]:
        return None
    if zero[-1]:
        return "MUL"
    return "ADD" if "1" in inputs[:-1] else "FMA"
