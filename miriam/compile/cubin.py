"""Reading a cubin: the registers, shared and local bytes of each kernel in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from struct import iter_unpack, unpack_from
from typing import TYPE_CHECKING

from miriam.errors import MiriamError, MissingCapabilityError
from miriam.kernels import Resources

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

# Records of the .nv.info section (checked against ptxas -v on sm_75 to sm_121).
_SIZED_FORMAT = 0x04
_REGISTER_COUNT = 0x2F
_MIN_STACK_BYTES = 0x12  # only kernels have one; it covers the functions that they call

_CODE = ".text."
# Of 16 and 64 bits; a division of 32 bits is written in place and has no float arithmetic.
_INTEGER_DIVISION = re.compile(r"\$__internal_\d+_\$__cuda_sm\d+_(?:div|rem)_[us]\d+")
_SYSTEM_SHARED_BYTES = 1_024
_FIRST_ARCH_COUNTING_IT = 90


def read_resources(cubin: bytes, arch: str) -> dict[str, Resources]:
    """What each kernel of ``cubin``, built for ``arch`` (``sm_90``), needs, by lowered name.

    Static shared bytes are without the 1,024 that the system takes per block from sm_80 on.
    Local bytes are stack frame and spills per thread. MissingCapabilityError without pyelftools.
    """
    elf = _elf(cubin)
    info, symbols = elf.get_section_by_name(".nv.info"), _symbols(elf)
    if info is None:
        raise MiriamError(f"cubin for {arch}: it has no .nv.info")
    registers, local = {}, {}
    for attribute, index, value in _records(info.data()):
        if attribute == _REGISTER_COUNT:
            registers[symbols.get_symbol(index).name] = value
        elif attribute == _MIN_STACK_BYTES:
            local[symbols.get_symbol(index).name] = value
    system = _SYSTEM_SHARED_BYTES if int(arch[3:]) >= _FIRST_ARCH_COUNTING_IT else 0
    return {
        name: Resources(registers[name], _static_shared_bytes(elf, name, system), local_bytes)
        for name, local_bytes in local.items()
    }


def read_code(cubin: bytes) -> dict[str, bytes]:
    """The machine code of each kernel of ``cubin`` with the functions it calls, by lowered name.

    Without the compiler's own routines for dividing integers: they compute with floating point,
    and which of them a form calls depends on what is known of its operands.
    MissingCapabilityError without pyelftools; MiriamError for what is no cubin.
    """
    elf = _elf(cubin)
    divisions: dict[int, list[tuple[int, int]]] = {}
    for symbol in _symbols(elf).iter_symbols():
        if _INTEGER_DIVISION.fullmatch(symbol.name):
            start = symbol["st_value"]
            divisions.setdefault(symbol["st_shndx"], []).append((start, start + symbol["st_size"]))
    return {
        section.name.removeprefix(_CODE): _without(section.data(), divisions.get(index, ()))
        for index, section in enumerate(elf.iter_sections())
        if section.name.startswith(_CODE)
    }


def _without(code: bytes, parts: Iterable[tuple[int, int]]) -> bytes:
    for start, end in sorted(parts, reverse=True):
        code = code[:start] + code[end:]
    return code


def _elf(cubin: bytes) -> ELFFile:
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError as error:
        raise MissingCapabilityError(
            "reading a cubin", "pyelftools is not installed", "pip install miriam-gpu[cuda]"
        ) from error
    try:
        return ELFFile(BytesIO(cubin))
    except ELFError as error:
        raise MiriamError(f"cubin: it is no ELF file: {error}") from error


def _symbols(elf: ELFFile) -> SymbolTableSection:
    from elftools.elf.sections import SymbolTableSection

    symbols = elf.get_section_by_name(".symtab")
    if not isinstance(symbols, SymbolTableSection):
        raise MiriamError("cubin: it has no symbol table")
    return symbols


def _records(info: bytes) -> Iterator[tuple[int, int, int]]:
    """The (attribute, symbol index, value) records of an .nv.info section."""
    at = 0
    while at < len(info):
        form, attribute, size = unpack_from("<BBH", info, at)
        at += 4
        if form != _SIZED_FORMAT:
            continue  # the value sits in the size field
        if attribute in (_REGISTER_COUNT, _MIN_STACK_BYTES):
            for index, value in iter_unpack("<II", info[at : at + size]):
                yield attribute, index, value
        at += size


def _static_shared_bytes(elf: ELFFile, kernel: str, system: int) -> int:
    section = elf.get_section_by_name(f".nv.shared.{kernel}")
    return max(0, section["sh_size"] - system) if section else 0
