"""Variables that cost less to make again in each region than a register per logical thread."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from miriam.elastic.cuda.scalars import Scalars
from miriam.elastic.cuda.syntax import called_name, find, text, walk
from miriam.elastic.cuda.variables import Variable
from miriam.elastic.cuda.writes import Writes, escapes

_INTEGERS = {
    *("int", "unsigned", "long", "short", "char", "bool", "signed", "size_t", "uint", "const"),
    *("int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"),
}
_INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_CASTS = {"static_cast", "reinterpret_cast", *_INTEGERS}
_LOADS = {
    *("subscript_expression", "pointer_expression", "assignment_expression", "update_expression"),
    *("lambda_expression", "new_expression", "gnu_asm_expression", "initializer_list"),
    *("argument_list_expression", "concatenated_string", "string_literal"),
}


def remakable(found: Sequence[Variable], scalars: Scalars, writes: Writes) -> frozenset[Variable]:
    """Index arithmetic that is never changed: its value is the same wherever it is computed."""
    fixed = {v for v in found if not any(writes.is_write(u, v) or escapes(u, v) for u in v.uses)}
    kept = {v for v in fixed if v not in scalars and _is_index(v)}
    while True:
        less = {v for v in kept if not _is_cheap(v, scalars, fixed, kept)}
        if not less:
            return frozenset(kept)
        kept -= less


def _is_index(variable: Variable) -> bool:
    if variable.kind != "value" or variable.holder.type != "declaration" or variable.is_array:
        return False
    return variable.is_pointer or variable.words <= _INTEGERS


def _is_cheap(
    variable: Variable, scalars: Scalars, fixed: set[Variable], kept: set[Variable]
) -> bool:
    value = variable.value
    if value is None or value.type == "argument_list":
        return False
    for node in walk(value):
        if node.type in _LOADS:
            return False
        if node.type == "call_expression" and called_name(node).partition("<")[0] not in _CASTS:
            return False
        if node.type == "field_expression" and text(node).partition(".")[0] not in _INDICES:
            return False
        if node.type == "binary_expression" and not _divides_by_constant(node, scalars):
            return False
        meant = scalars.meant(node)
        if meant is not None and not (meant in kept or (meant in scalars and meant in fixed)):
            return False
    return True


def _divides_by_constant(node: Node, scalars: Scalars) -> bool:
    operator, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
    if operator is None or right is None or text(operator) not in ("/", "%"):
        return True
    meant = [scalars.meant(n) for n in find(right, "identifier", "type_identifier")]
    return all(v is None or v.kind == "constant" for v in meant)
