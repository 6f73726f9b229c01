"""The declarations of a translation unit, from tree-sitter's tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tree_sitter import Node

from miriam.elastic.cuda.syntax import (
    WORD,
    declarator,
    find,
    function_declarator,
    language,
    last_name,
    text,
    words,
)
from miriam.elastic.cuda.text import Text
from miriam.elastic.cuda.view import parser_view

Kind = Literal["kernel", "device", "host", "data", "include", "using"]

_ON_DEVICE = re.compile(r"\b(__device__|constexpr|consteval)\b")
_CONSTANT = re.compile(
    r"\b(__device__|__constant__|__shared__|__managed__|const|constexpr|texture|surface)\b"
)
_TYPES = {"struct_specifier", "class_specifier", "union_specifier", "enum_specifier"}
_IGNORED = {";", "static_assert_declaration", "preproc_call", "preproc_def", "empty_declaration"}


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One declaration at namespace scope.

    ``node`` includes ``template <...>``, ``core`` does not. ``start``: its first byte, attributes
    that the parser does not see included. ``opener`` is the text that opens its namespaces,
    ``scope`` their names. ``names`` are all names that it declares.
    """

    node: Node
    core: Node
    kind: Kind
    name: str
    names: frozenset[str]
    opener: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    extern_c: bool = False
    start: int = 0
    words: frozenset[str] = frozenset()

    @property
    def qualified(self) -> str:
        """``namespace::name``."""
        return "::".join((*self.scope, self.name))

    @property
    def body(self) -> Node | None:
        """The function's body, if it has one."""
        return self.core.child_by_field_name("body")

    @property
    def signature(self) -> Node | None:
        """The ``name(parameters)`` of a function, or None when this is no function."""
        return function_declarator(self.core)


@dataclass(frozen=True, slots=True)
class Unit:
    """A parsed file: its items in order, and what is asked of all of them again and again.

    ``kernels`` are those with a body, ``headers`` the includes and using directives, ``names`` all
    that is declared. ``unparsed``: where a ``__global__`` stands that was not understood.
    """

    text: Text
    root: Node
    items: tuple[Item, ...]
    kernels: tuple[Item, ...]
    headers: tuple[Item, ...]
    names: frozenset[str]
    unparsed: tuple[int, ...]


def parse(source: Text) -> Unit:
    """Parse preprocessed CUDA C++; MissingCapabilityError without tree-sitter."""
    grammar = language()
    from tree_sitter import Parser

    view = parser_view(source.data)
    root = Parser(grammar).parse(view).root_node
    items = tuple(_items(root, source))
    known = [
        (i.start, i.node.end_byte)
        for i in items
        if i.kind == "kernel" or i.node.type == "template_instantiation"
    ]
    marks = (m.start() for m in re.finditer(rb"\b__global__\b", source.data))
    unparsed = tuple(m for m in marks if not any(a <= m < b for a, b in known))
    return Unit(
        text=source,
        root=root,
        items=items,
        kernels=tuple(i for i in items if i.kind == "kernel" and i.body is not None),
        headers=tuple(i for i in items if i.kind in ("include", "using")),
        names=frozenset(n for i in items for n in i.names),
        unparsed=unparsed,
    )


def _items(root: Node, source: Text) -> Iterator[Item]:
    Level = tuple[Node, tuple[str, ...], tuple[str, ...], bool]
    stack: list[Level] = [(c, (), (), False) for c in reversed(root.children)]
    while stack:
        node, opener, scope, extern_c = stack.pop()
        body = node.child_by_field_name("body")
        if node.type == "namespace_definition" and body is not None:
            head = text(node)[: body.start_byte - node.start_byte].strip()
            name = node.child_by_field_name("name")
            inner = (*scope, *text(name).split("::")) if name is not None else scope
            level = ((*opener, head), inner, extern_c)
            stack += [(c, *level) for c in reversed(body.named_children)]
        elif node.type == "linkage_specification" and body is not None:
            inside = body.named_children if body.type == "declaration_list" else [body]
            stack += [(c, opener, scope, True) for c in reversed(inside)]
        elif node.type not in _IGNORED:
            item = _item(node, opener, scope, extern_c)
            if item is not None:
                start = _start(node, source.data)
                found = WORD.findall(source.slice(start, node.end_byte))
                yield replace(item, start=start, words=frozenset(found))


def _start(node: Node, data: bytes) -> int:
    before = node.prev_sibling
    start = before.end_byte if before is not None else 0
    if before is None and node.parent is not None and node.parent.parent is not None:
        start = node.parent.start_byte
    return node.end_byte - len(data[start : node.end_byte].lstrip())


def _item(
    node: Node, opener: tuple[str, ...], scope: tuple[str, ...], extern_c: bool
) -> Item | None:
    core = node
    while core.type == "template_declaration":
        core = core.named_children[-1]
    where = (opener, scope, extern_c)
    if node.type == "preproc_include":
        return Item(node, core, "include", "", frozenset())
    if node.type == "using_declaration" and "namespace" in words(node):
        return Item(node, core, "using", "", frozenset(), *where)
    signature = function_declarator(core)
    if core.type in ("function_definition", "declaration") and signature is not None:
        name = last_name(signature.child_by_field_name("declarator") or signature)
        head = text(core)[: signature.start_byte - core.start_byte]
        return Item(node, core, _kind(head), name, frozenset({name}), *where)
    if node.type == "template_instantiation":
        return Item(node, core, "host", "", frozenset(), *where)
    names = frozenset(_declared(core))
    if not names:
        return None
    kind: Kind = "data"
    if core.type == "declaration" and not _CONSTANT.search(text(core)):
        kind = "host"
    return Item(node, core, kind, min(names), names, *where)


def _kind(head: str) -> Kind:
    if re.search(r"\b__global__\b", head):
        return "kernel"
    return "device" if _ON_DEVICE.search(head) else "host"


def _declared(core: Node) -> Iterator[str]:
    """The names of types, enumerators, variables and aliases that ``core`` declares."""
    kind = core.child_by_field_name("type")
    for holder in (core, kind):
        if holder is not None and holder.type in _TYPES:
            name = holder.child_by_field_name("name")
            if name is not None:
                yield last_name(name)
            if holder.type == "enum_specifier":
                yield from (text(e.children[0]) for e in find(holder, "enumerator"))
    for child in core.children_by_field_name("declarator"):
        name = declarator(child)
        if name is not None:
            yield last_name(name)
    if core.type in ("alias_declaration", "namespace_alias_definition", "concept_definition"):
        name = core.child_by_field_name("name")
        if name is not None:
            yield text(name)
    if core.type == "using_declaration":
        yield last_name(core.named_children[-1])
