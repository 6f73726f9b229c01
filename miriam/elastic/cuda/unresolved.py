"""The names that a kernel takes from headers: those that the file itself does not declare."""

from __future__ import annotations

import re

from tree_sitter import Node

from miriam.elastic.cuda.names import ACTIVE, ATOMIC, is_collective, is_pure
from miriam.elastic.cuda.subject import Subject
from miriam.elastic.cuda.syntax import declarator, text, walk

_DECLARATIONS = (
    "declaration",
    "alias_declaration",
    "type_definition",
    "parameter_declaration",
    "optional_parameter_declaration",
    "variadic_parameter_declaration",
    "field_declaration",
    "function_definition",
    "enumerator",
    "struct_specifier",
    "class_specifier",
    "union_specifier",
    "enum_specifier",
    "type_parameter_declaration",
    "variadic_type_parameter_declaration",
    "optional_type_parameter_declaration",
    "template_template_parameter_declaration",
    "lambda_capture_initializer",
    "for_range_loop",
    "structured_binding_declarator",
    "namespace_alias_definition",
)
# Their direct children include the name of a type that they only use.
_TYPED = {
    "declaration",
    "parameter_declaration",
    "optional_parameter_declaration",
    "variadic_parameter_declaration",
    "field_declaration",
    "function_definition",
    "type_definition",
    "for_range_loop",
    "alias_declaration",
}
_NAMES = {"identifier", "type_identifier", "namespace_identifier"}
# What every CUDA compiler knows without a header, beyond functions.
_BUILTIN = re.compile(
    r"threadIdx|blockIdx|blockDim|gridDim|warpSize|NULL|nullptr|true|false|this|dim3|auto|"
    r"u?(char|short|int|long|longlong)[1-4]|(float|double)[1-4]|size_t|ptrdiff_t|uchar|ushort|uint|"
    r"ulong|texture|surface|cuda(Texture|Surface)Object_t|cudaTextureType\w+|cudaReadMode\w+|"
    r"final|override|__\w+__"
)
# What the toolkit's and the compiler's headers define.
_FROM_KNOWN_HEADERS = re.compile(
    r"std|cuda|thrust|cub|cg|cooperative_groups|nvcuda|wmma|u?int\w*_t|u?intptr_t|__?half2?\w*|"
    r"half2?|nv_bfloat\w*|__nv_\w+|curand\w*|cu[A-Z]\w*|CUDART_\w+|(FLT|DBL|U?INT\d*|U?LL?ONG|U?CHAR|"
    r"S?CHAR|U?SHRT|SIZE|UINT|RAND)_\w+|INFINITY|NAN|HUGE_VALF?|M_\w+|HALF_\w+|FILE|stdout|stderr|"
    r"EXIT_\w+|U?INT(8|16|32|64|PTR)_\w+|MAXFLOAT|NVCC\w*|cuComplex|cuDoubleComplex|cuFloatComplex"
)


def unresolved(subject: Subject) -> frozenset[str]:
    """The names that need some header."""
    used: set[str] = set()
    declared: set[str] = set()
    for item in subject.items:
        declared |= item.names
        for node in walk(item.node):
            if node.type in _NAMES:
                used.add(text(node))
            elif node.type in _DECLARATIONS:
                declared |= _declares(node)
    return frozenset(n for n in used - declared if not _is_builtin(n))


def unknown(names: frozenset[str]) -> frozenset[str]:
    """Those of ``names`` that no header of the toolkit or the compiler defines."""
    return frozenset(n for n in names if not _FROM_KNOWN_HEADERS.fullmatch(n))


def _declares(node: Node) -> set[str]:
    found = {text(c) for c in node.named_children if c.type in ("type_identifier", "identifier")}
    if node.type in _TYPED:
        found = set()
    for field in ("declarator", "name", "left"):
        for child in node.children_by_field_name(field):
            name = declarator(child)
            if name is not None:
                found.add(text(name))
            if child.type == "structured_binding_declarator":
                found |= {text(n) for n in child.named_children}
    return found


def _is_builtin(name: str) -> bool:
    if _FROM_KNOWN_HEADERS.fullmatch(name):
        return False
    known = is_pure(name) or ATOMIC.fullmatch(name) or name in ACTIVE or is_collective(name, False)
    return bool(known or _BUILTIN.fullmatch(name))
