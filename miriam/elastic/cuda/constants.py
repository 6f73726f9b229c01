"""Integers that the text fixes: literals, and constants initialised with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tree_sitter import Node

from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.syntax import declarator, find, text

_DECLARATIONS = (
    "declaration",
    "field_declaration",
    "enumerator",
    "parameter_declaration",
    "optional_parameter_declaration",
)
_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")


def literal(node: Node | None) -> int | None:
    """The value of an integer literal, parentheses and a sign allowed; None for others."""
    while node is not None and node.type in ("parenthesized_expression", "condition_clause"):
        node = node.named_children[0] if node.named_children else None
    if node is None:
        return None
    match = _LITERAL.fullmatch(text(node).replace("'", ""))
    return int(match[1], 0) if match and not re.fullmatch(r"0\d+", match[1]) else None


def constants(items: Iterable[Item]) -> dict[str, int]:
    """Names of ``const`` and ``constexpr`` integers and enumerators with a literal value."""
    found: dict[str, int] = {}
    clash: set[str] = set()
    for item in items:
        for node in find(item.node, *_DECLARATIONS):
            for name, value in _given(node):
                if value is None or found.setdefault(name, value) != value:
                    clash.add(name)
    return {n: v for n, v in found.items() if n not in clash}


def _given(node: Node) -> list[tuple[str, int | None]]:
    """The names in a declaration, each with its value, or None when it may change."""
    if node.type == "enumerator":
        return [(text(node.children[0]), literal(node.child_by_field_name("value")))]
    kinds = {text(c) for c in node.children if c.type == "type_qualifier"}
    fixed = kinds & {"const", "constexpr"} and node.type in ("declaration", "field_declaration")
    result = []
    for child in node.children_by_field_name("declarator"):
        name = declarator(child)
        if name is not None:
            given = child.child_by_field_name("value")
            value = given or node.child_by_field_name("default_value")
            result.append((text(name), literal(value) if fixed else None))
    return result


def value_of(node: Node | None, known: Mapping[str, int]) -> int | None:
    """The value of a literal or of a known constant."""
    if node is not None and node.type == "identifier":
        return 32 if text(node) == "warpSize" else known.get(text(node))
    return literal(node)
