"""Integers that the text fixes: literals, and constants initialised with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tree_sitter import Node

from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.syntax import declarator, find, text

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
        for node in find(item.node, "declaration", "field_declaration", "enumerator"):
            for name, value in _given(node):
                if found.setdefault(name, value) != value:
                    clash.add(name)
    return {n: v for n, v in found.items() if n not in clash}


def _given(node: Node) -> list[tuple[str, int]]:
    if node.type == "enumerator":
        value = literal(node.child_by_field_name("value"))
        return [(text(node.children[0]), value)] if value is not None else []
    kinds = [text(c) for c in node.children if c.type == "type_qualifier"]
    if "const" not in kinds and "constexpr" not in kinds:
        return []
    result = []
    for child in node.children_by_field_name("declarator"):
        value = literal(child.child_by_field_name("value"))
        name = declarator(child)
        if child.type == "init_declarator" and value is not None and name is not None:
            result.append((text(name), value))
    return result


def value_of(node: Node | None, known: Mapping[str, int]) -> int | None:
    """The value of a literal or of a known constant."""
    if node is not None and node.type == "identifier":
        return 32 if text(node) == "warpSize" else known.get(text(node))
    return literal(node)
