"""Expressions of the thread index from which a whole warp gets the same value.

Holds where a block's x extent is a multiple of 32: then 32 threads in a row share threadIdx.y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.constants import value_of
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.syntax import declarator, find, text

WARP = 32
_CASTS = {"static_cast", "int", "unsigned", "size_t", "unsigned int"}


@dataclass(frozen=True, slots=True)
class Lanes:
    """The names that count threads one by one, from a multiple of 32, in one function."""

    constants: Mapping[str, int]
    flat: frozenset[str]

    def is_flat(self, node: Node | None) -> bool:
        """Whether the value is the lane plus a multiple of 32 that the warp agrees on."""
        node = _inner(node)
        if node is None or _is_long(node):
            return False
        if node.type == "identifier":
            return text(node) in self.flat
        if text(node) == "threadIdx.x":
            return True
        if node.type == "binary_expression" and _operator(node) == "+":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            return (self.is_flat(left) and self.is_aligned(right)) or (
                self.is_aligned(left) and self.is_flat(right)
            )
        return False

    def is_aligned(self, node: Node | None) -> bool:
        """Whether the value is a multiple of 32 that the warp agrees on."""
        node = _inner(node)
        if node is None or _is_long(node):
            return False
        value = value_of(node, self.constants)
        if value is not None:
            return value % WARP == 0
        if node.type != "binary_expression" or "threadIdx.x" in text(node):
            return text(node) == "blockDim.x"
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if _operator(node) == "+":
            return self.is_aligned(left) and self.is_aligned(right)
        if _operator(node) != "*":
            return False
        factors = (_inner(left), _inner(right))
        same = all(self.is_aligned(f) or self._is_same(f) for f in factors)
        return same and any(self.is_aligned(f) for f in factors)

    def agrees(self, node: Node) -> bool:
        """Whether ``node`` is ``flat / 32``, ``flat >> 5`` or a comparison at a warp's border."""
        if node.type != "binary_expression" or not self.is_flat(node.child_by_field_name("left")):
            return False
        value = value_of(_inner(node.child_by_field_name("right")), self.constants)
        if value is None:
            return False
        operator = _operator(node)
        if operator in ("/", "<", ">="):
            return value > 0 and value % WARP == 0
        return value >= 5 if operator == ">>" else operator in ("<=", ">") and value % WARP == 31

    def _is_same(self, node: Node | None) -> bool:
        """A factor that all threads of a warp agree on, recognised by its look alone."""
        if node is None:
            return False
        known = value_of(node, self.constants) is not None
        return (
            known
            or text(node).partition(".")[0] in ("blockIdx", "blockDim", "gridDim")
            or (text(node) in ("threadIdx.y", "threadIdx.z"))
        )


def lanes(function: Item, known: Mapping[str, int]) -> Lanes:
    """The flat names of ``function``: each is declared once, flat, and never assigned again."""
    given: dict[str, list[Node | None]] = {}
    for node in find(function.node, "init_declarator", "assignment_expression"):
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        plain = node.type == "init_declarator" or _operator(node) == "="
        name = declarator(target) if target is not None else None
        if name is not None:
            given.setdefault(text(name), []).append(value if plain else None)
    for node in find(function.node, "update_expression", "pointer_expression"):
        argument = node.child_by_field_name("argument")
        if argument is not None:
            given.setdefault(text(argument), []).append(None)
    for node in find(function.node, "parameter_declaration", "optional_parameter_declaration"):
        found = node.child_by_field_name("declarator")
        name = declarator(found) if found is not None else None
        if name is not None:
            given.setdefault(text(name), []).append(None)
    result = Lanes(known, frozenset())
    while True:
        flat = {n for n, values in given.items() if all(result.is_flat(v) for v in values)}
        if flat <= result.flat:
            return result
        result = Lanes(known, result.flat | flat)


def _operator(node: Node) -> str:
    found = node.child_by_field_name("operator")
    return text(found) if found is not None else ""


def _is_long(node: Node) -> bool:
    # Index arithmetic is short; this keeps machine-made sums from nesting the questions deeply.
    return node.end_byte - node.start_byte > 200


def _inner(node: Node | None) -> Node | None:
    """``node`` without parentheses and casts."""
    while node is not None:
        if node.type in ("parenthesized_expression", "condition_clause", "initializer_list"):
            kids = node.named_children
            node = kids[0] if len(kids) == 1 else None
        elif node.type == "cast_expression":
            node = node.child_by_field_name("value")
        elif node.type == "call_expression" and _is_cast(node):
            given = node.child_by_field_name("arguments")
            node = given.named_children[0] if given and given.named_children else None
        else:
            return node
    return None


def _is_cast(call: Node) -> bool:
    function = call.child_by_field_name("function")
    return function is not None and text(function).partition("<")[0].strip() in _CASTS
