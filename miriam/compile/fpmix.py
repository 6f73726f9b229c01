"""The floating-point instructions of a compiled kernel, counted from its disassembly."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path

import msgspec

from miriam.compile.cache import Cache, cache_folder
from miriam.compile.cubin import read_code
from miriam.errors import MiriamError, MissingCapabilityError, UnknownNameError

# FFMA, DADD, HMUL2, FFMA2 (two at once), UFADD (on the uniform path), FADD32I (an immediate).
_OPCODE = re.compile(r"U?([FDH])(FMA|MUL|ADD)(2?)(?:_?32I)?")
_ZERO = re.compile(r"U?RZ\b")
_INSTRUCTION_BYTES = 16  # from sm_70 on


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


def same_mix(original: FpMix, elastic: FpMix, fold: int = 1) -> bool:
    """Whether neither of two forms of a kernel contracts more: both have each kind equally often.

    A form that runs ``fold`` logical threads on a physical one may have the code of up to as many
    of them, so that each kind is there the same whole number of times as often.
    """
    counts = astuple(original)
    found = astuple(elastic)
    return any(found == tuple(n * times for n in counts) for times in range(1, fold + 1))


def fp_mixes(kernels: Sequence[tuple[bytes, str]], arch: str) -> tuple[FpMix, ...]:
    """The mix of each (cubin, symbol) of ``kernels``, with the functions that it calls.

    One call for many: the disassembler takes a third of a second to start. UnknownNameError for
    a symbol that the cubin, built for ``arch``, has not; MissingCapabilityError without
    nvdisasm, which is part of the ``cuda`` extra; MiriamError where it can not read the code.
    """
    tool = _nvdisasm()
    known = {cubin: read_code(cubin) for cubin, _ in kernels}
    for cubin, symbol in kernels:
        if symbol not in known[cubin]:
            raise UnknownNameError("kernel in the cubin", symbol, known[cubin])
    codes = [known[cubin][symbol] for cubin, symbol in kernels]
    identity = (str(tool), str(tool.stat().st_mtime_ns), arch)
    entries = Cache(cache_folder("sass")).fetch_many(
        [(*identity, code) for code in codes],
        lambda absent: _disassemble(tool, arch, [codes[i] for i in absent]),
    )
    return tuple(
        _count(msgspec.json.decode(entry.content, type=list[_Instruction])) for entry in entries
    )


class _Instruction(msgspec.Struct):
    opcode: str
    operands: str = ""


class _Function(msgspec.Struct, rename={"code": "sass-instructions"}):
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


def _disassemble(tool: Path, arch: str, codes: Sequence[bytes]) -> list[bytes]:
    """The instructions of each of ``codes`` as JSON; all go through one process, end to end."""
    command = [str(tool), "-json", "-b", f"SM{arch.removeprefix('sm_')}"]
    with tempfile.TemporaryDirectory(prefix="miriam-") as folder:
        path = Path(folder) / "kernels.bin"
        path.write_bytes(b"".join(codes))
        done = subprocess.run([*command, str(path)], capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise MiriamError(f"cubin for {arch}: {tool} does not read it: {said}")
    _, functions = msgspec.json.decode(done.stdout, type=_Disassembly)
    found = [instruction for function in functions for instruction in function.code]
    ends = list(accumulate(len(code) // _INSTRUCTION_BYTES for code in codes))
    if len(found) != ends[-1]:
        raise MiriamError(f"cubin for {arch}: {len(found)} instructions read of {ends[-1]}")
    parts = (found[start:end] for start, end in pairwise([0, *ends]))
    return [msgspec.json.encode(part) for part in parts]


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
