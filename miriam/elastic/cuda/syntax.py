"""Questions to ask of tree-sitter's nodes of CUDA C++; nothing here recurses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from miriam.errors import MissingCapabilityError

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

_LARGE_BYTES = 100_000  # from here on a query is faster than a walk, its making included
WORD = re.compile(r"[A-Za-z_]\w*")
_DECLARATORS = {
    "pointer_declarator",
    "reference_declarator",
    "array_declarator",
    "init_declarator",
    "parenthesized_declarator",
    "variadic_declarator",
    "attributed_declarator",
    "function_declarator",
}
_NAMES = {
    "identifier",
    "type_identifier",
    "field_identifier",
    "namespace_identifier",
    "qualified_identifier",
    "template_function",
    "operator_name",
    "destructor_name",
    "operator_cast",
}


def text(node: Node) -> str:
    """The source text of ``node``."""
    return (node.text or b"").decode(errors="replace")


def words(node: Node) -> frozenset[str]:
    """All identifiers and keywords in ``node``, those in strings included."""
    return frozenset(WORD.findall(text(node)))


def walk(node: Node, skip: Collection[str] = ()) -> Iterator[Node]:
    """``node`` and all below it, in source order; not inside nodes of the types ``skip``."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if current.type not in skip or current is node:
            stack.extend(reversed(current.children))


def find(node: Node, *types: str) -> list[Node]:
    """The nodes of these types in ``node``, itself included, in source order."""
    if node.end_byte - node.start_byte < _LARGE_BYTES:
        return [n for n, kind in _listed(node) if kind in types]
    from tree_sitter import QueryCursor

    found = QueryCursor(_query(types)).captures(node).get("found", [])
    return sorted(found, key=lambda n: (n.start_byte, -n.end_byte))


# The rules ask the same few functions again and again.
@lru_cache(maxsize=32)
def _listed(node: Node) -> tuple[tuple[Node, str], ...]:
    return tuple((n, n.type) for n in walk(node))


@cache
def _query(types: tuple[str, ...]) -> Query:
    from tree_sitter import Query

    known = (t for t in types if language().id_for_node_kind(t, True))
    return Query(language(), "[" + " ".join(f"({t})" for t in known) + "] @found")


@cache
def language() -> Language:
    """tree-sitter's CUDA C++; MissingCapabilityError where it is not installed."""
    try:
        import tree_sitter_cuda
        from tree_sitter import Language
    except ImportError as error:
        raise MissingCapabilityError(
            "elasticize", "tree-sitter is not installed", "pip install miriam-gpu[elastic]"
        ) from error
    return Language(tree_sitter_cuda.language())


def declarator(node: Node) -> Node | None:
    """The innermost named part of a declarator, or None when it declares no name."""
    current: Node | None = node
    while current is not None and current.type not in _NAMES:
        if current.type not in _DECLARATORS:
            return None
        below = current.child_by_field_name("declarator")
        if below is None:
            kids = current.named_children
            inner = [c for c in kids if c.type in _DECLARATORS or c.type in _NAMES]
            below = inner[0] if inner else None
        current = below
    return current


def function_declarator(node: Node) -> Node | None:
    """The ``name(parameters)`` of a function's definition or declaration, or None."""
    current = node.child_by_field_name("declarator")
    while current is not None and current.type in _DECLARATORS:
        if current.type == "function_declarator":
            inner = current.child_by_field_name("declarator")
            # int (*f)(int) declares a pointer.
            return current if inner is not None and inner.type in _NAMES else None
        below = current.child_by_field_name("declarator")
        current = below or (current.named_children[-1] if current.named_children else None)
    return None


def last_name(node: Node) -> str:
    """The name without qualifiers and template arguments: ``f`` for ``a::f<int>``."""
    current = node
    while current.type in ("qualified_identifier", "template_function", "template_type"):
        below = current.child_by_field_name("name")
        if below is None:
            break
        current = below
    return text(current)


def callee(call: Node) -> Node | None:
    """What a call expression calls, as a name; None for members and computed functions."""
    function = call.child_by_field_name("function")
    named = {"identifier", "qualified_identifier", "template_function"}
    return function if function is not None and function.type in named else None


def called_name(call: Node) -> str:
    """The last name of what is called, members included; empty if it is computed."""
    function = call.child_by_field_name("function")
    if function is None:
        return ""
    if function.type == "field_expression":
        field = function.child_by_field_name("field")
        return last_name(field) if field is not None else ""
    if function.type == "parenthesized_expression" and len(function.named_children) == 1:
        # (type)(value) looks like a call.
        inner = function.named_children[0]
        return text(inner) if inner.type == "identifier" else ""
    if function.type in ("primitive_type", "sized_type_specifier"):
        return text(function)
    return last_name(function) if callee(call) is not None else ""


def arguments(call: Node) -> list[Node]:
    """The argument expressions of a call."""
    found = call.child_by_field_name("arguments")
    return [c for c in found.named_children if c.type != "comment"] if found else []
