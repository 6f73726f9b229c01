"""Types whose values a thread makes its own: a constructor or method reads who it is."""

from __future__ import annotations

from collections.abc import Iterable

from miriam.elastic.cuda.calls import Reach
from miriam.elastic.cuda.names import ATOMIC, OWN_RESULTS, is_collective
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.syntax import WORD, declarator, find, text

_DECLARATIONS = ("declaration", "parameter_declaration", "optional_parameter_declaration")
_ASSEMBLY = {"asm", "__asm", "__asm__"}


def own_types(reached: Reach, unstable: frozenset[str]) -> frozenset[str]:
    """The types of which two threads may hold different values though they did the same.

    Those whose text names ``threadIdx``, ``unstable`` memory or a function that does, those made
    of such types, and those with an operator that does. A template's parameters are such types
    where the file gives the kernel one of them.
    """
    own = _closed(reached.items, unstable)
    types = {n for i in reached.items if i.kind == "data" for n in i.names}
    for item in reached.items:
        if item.name.startswith("operator") and item.words & own:
            own |= item.words & types
    own = _closed(reached.items, own) & types
    if own & reached.given:
        own |= {n for f in reached.functions for n in type_parameters(f)}
    return frozenset(own)


def own_variables(function: Item, own: frozenset[str]) -> frozenset[str]:
    """The variables and parameters of ``function`` that are declared with a type in ``own``."""
    found = set()
    for node in find(function.node, *_DECLARATIONS) if function.words & own else ():
        declared = node.children_by_field_name("declarator")
        end = declared[0].start_byte if declared else node.end_byte
        if own.intersection(WORD.findall(text(node)[: end - node.start_byte])):
            found |= {text(n) for c in declared if (n := declarator(c)) is not None}
    return frozenset(found)


def type_parameters(function: Item) -> set[str]:
    """The type parameters of a template."""
    lists = find(function.node, "template_parameter_list")
    return {text(n) for each in lists for n in find(each, "type_identifier")}


def reading_methods(data: Iterable[Item]) -> frozenset[str]:
    """The names of methods that are ``const`` in all types of ``data`` that have them."""
    reading, changing = set[str](), set[str]()
    for item in data:
        for node in find(item.node, "function_declarator"):
            name = declarator(node)
            constant = any(c.type == "type_qualifier" and text(c) == "const" for c in node.children)
            if name is not None:
                (reading if constant else changing).add(text(name))
    return frozenset(reading - changing)


def _closed(items: Iterable[Item], seeds: Iterable[str]) -> set[str]:
    """``seeds``, ``threadIdx``, and the names of all items that mention one of them."""
    known = {"threadIdx", *seeds}
    while True:
        more = {n for i in items if _differs(i, known) for n in i.names} - known
        if not more:
            return known
        known |= more


def _differs(item: Item, known: set[str]) -> bool:
    return bool(item.words & (known | _ASSEMBLY)) or any(
        OWN_RESULTS.fullmatch(w) or ATOMIC.fullmatch(w) or is_collective(w, member=False)
        for w in item.words
    )
