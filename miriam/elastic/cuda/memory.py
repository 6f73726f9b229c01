"""Which names of a function stand for memory that other threads may change meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from miriam.elastic.cuda.names import ATOMIC
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.syntax import (
    WORD,
    arguments,
    called_name,
    declarator,
    find,
    text,
    walk,
)

_ACCESS = {"subscript_expression", "pointer_expression", "field_expression"}


def base(node: Node) -> str:
    """The variable that an lvalue or pointer expression starts from; empty if unclear."""
    current: Node | None = node
    while current is not None:
        if current.type in ("identifier", "this"):
            return text(current)
        if current.type == "parenthesized_expression":
            current = current.named_children[0] if current.named_children else None
        elif current.type == "binary_expression":
            current = current.child_by_field_name("left")
        elif current.type == "cast_expression":
            current = current.child_by_field_name("value")
        elif current.type == "call_expression":
            given = arguments(current)
            current = given[0] if called_name(current).endswith("_cast") and given else None
        else:
            current = current.child_by_field_name("argument")
    return ""


def is_access(node: Node) -> bool:
    """Whether ``node`` goes through a pointer or into an array: ``a[i]``, ``*p``, ``p->m``."""
    if node.type == "subscript_expression":
        return True
    operator = node.child_by_field_name("operator")
    if node.type == "pointer_expression":
        return operator is not None and text(operator) == "*"
    return node.type == "field_expression" and operator is not None and text(operator) == "->"


def shared_names(items: Iterable[Item]) -> frozenset[str]:
    """The names declared ``__shared__``, at namespace scope or in functions."""
    return _qualified(items, "__shared__")


def unstable_names(items: Iterable[Item]) -> frozenset[str]:
    """The names that other threads may change: shared, volatile, ``__device__`` variables."""
    data = [i for i in items if i.kind == "data"]
    changing = {n for n in _qualified(data, "__device__") if not _is_const(data, n)}
    found = _qualified(items, "__shared__") | _qualified(items, "volatile") | changing
    return found | _qualified(data, "__managed__")


def _is_const(data: Iterable[Item], name: str) -> bool:
    return all({"const", "constexpr", "__constant__"} & i.words for i in data if name in i.names)


def _qualified(items: Iterable[Item], qualifier: str) -> frozenset[str]:
    found = set()
    for item in items:
        if qualifier not in item.words:
            continue
        for node in find(item.node, "declaration", "parameter_declaration"):
            inside = node.children_by_field_name("declarator")
            end = inside[0].start_byte if inside else node.end_byte
            head = text(node)[: end - node.start_byte]
            if qualifier in WORD.findall(head):
                names = (declarator(child) for child in inside)
                found |= {text(n) for n in names if n is not None}
    return frozenset(found)


def written_names(function: Item, helpers: frozenset[str]) -> frozenset[str]:
    """The names through which ``function`` writes memory, and those that may be the same memory.

    A pointer given to one of ``helpers``, to an atomic or to a method counts as written.
    """
    written: set[str] = set()
    for node in walk(function.node):
        if node.type in ("assignment_expression", "update_expression"):
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            if target is not None and any(is_access(n) for n in walk(target)):
                written.add(base(target))
        elif node.type == "call_expression":
            name = called_name(node)
            if name in helpers or ATOMIC.fullmatch(name) or name.startswith("__st"):
                written.update(base(a) for a in arguments(node))
    groups = _aliases(function)
    while True:
        wider = {n for g in groups if g & written for n in g} - written
        if not wider:
            return frozenset(written - {""})
        written |= wider


def pointer_names(function: Item) -> frozenset[str]:
    """The names that are only ever declared as pointers in ``function``."""
    found: dict[str, bool] = {}
    for node in find(function.node, "declaration", *_PARAMETERS):
        for child in node.children_by_field_name("declarator"):
            name = declarator(child)
            if name is not None:
                inner = child.child_by_field_name("declarator")
                plain = inner if child.type == "init_declarator" and inner is not None else child
                points = bool(find(plain, "pointer_declarator"))
                points &= not find(plain, "array_declarator", "reference_declarator")
                found[text(name)] = found.get(text(name), True) and points
    return frozenset(n for n, points in found.items() if points)


def escaped_names(function: Item) -> frozenset[str]:
    """The variables that pointers or references to them may change, calls' arguments aside."""
    found = set()
    for node in find(function.node, "pointer_expression"):
        operator, inner = node.child_by_field_name("operator"), node.child_by_field_name("argument")
        passed = node.parent is not None and node.parent.type == "argument_list"
        if operator is not None and text(operator) == "&" and inner is not None and not passed:
            found.add(base(inner))
    for node in find(function.node, "init_declarator", "for_range_loop"):
        target = node.child_by_field_name("declarator")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is not None and target.type == "reference_declarator" and value is not None:
            found |= {base(value), text(declarator(target) or target)}
    return frozenset(found - {""})


def _aliases(function: Item) -> list[set[str]]:
    """Per pointer or reference that is initialised or assigned: it and what it comes from."""
    groups, pointers = [], set[str]()
    for node in find(function.node, "declaration", *_PARAMETERS):
        automatic = "auto" in WORD.findall(text(node)[:40])
        for child in node.children_by_field_name("declarator"):
            name = declarator(child)
            if name is not None and (automatic or find(child, *_POINTERS)):
                pointers.add(text(name))
    for node in find(function.node, "init_declarator", "assignment_expression"):
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        name = declarator(target) if target is not None else None
        if name is not None and value is not None and text(name) in pointers:
            groups.append({text(name)} | {text(n) for n in find(value, "identifier")} - _INDICES)
    return groups


_INDICES = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration")
_POINTERS = ("pointer_declarator", "reference_declarator", "array_declarator")
