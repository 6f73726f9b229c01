"""What a call means to the other threads of its block."""

from __future__ import annotations

import re
from enum import Enum

from tree_sitter import Node

from miriam.elastic.cuda.memory import base
from miriam.elastic.cuda.names import (
    ACTIVE,
    ATOMIC,
    BARRIERS,
    GROUP_BARRIERS,
    GROUP_METHODS,
    VOTING_BARRIERS,
    is_collective,
    is_pure,
)
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.subject import Subject
from miriam.elastic.cuda.syntax import WORD, arguments, called_name, declarator, find, text
from miriam.elastic.cuda.uniform import Call

_SYNCHRONISES = re.compile(r"__syncthreads\w*|__syncwarp|__shfl\w*|__(ballot|any|all)\w*|sync")
_MASKS = re.compile(r"__ballot_sync|__activemask|__match_\w+")
_TILES = {"thread_block_tile", "tiled_partition", "coalesced_group", "coalesced_threads"}
_HARMLESS = {"std", "thrust"}
_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration")


class Kind(Enum):
    """``UNKNOWN``: it may be a barrier or a collective."""

    PLAIN = 0
    BARRIER = 1
    COLLECTIVE = 2
    UNKNOWN = 3


class Kinds:
    """The kinds of the calls of one kernel and its helpers."""

    def __init__(self, subject: Subject) -> None:
        functions, data = subject.reached.functions, tuple(subject.data)
        self._functions = frozenset(f.name for f in functions)
        self._words = frozenset(w for i in data for w in i.words)
        self._types = frozenset(n for i in data for n in i.names)
        self._quiet = not any(_SYNCHRONISES.fullmatch(w) for w in self._words)
        self._tiles = frozenset(n for f in functions for n in _tiles(f))
        self._local = {f: _declared(f) for f in functions}

    def kind(self, call: Call) -> Kind:
        """What ``call`` means."""
        function, name = call.node.child_by_field_name("function"), called_name(call.node)
        if function is None:
            return Kind.UNKNOWN
        if function.type == "field_expression":
            return self._method(name, function)
        if name in BARRIERS | VOTING_BARRIERS:
            return Kind.BARRIER
        if name in self._functions:
            return Kind.PLAIN
        group = bool({base(a) for a in arguments(call.node)} & self._tiles)
        if is_collective(name, member=group):
            return Kind.COLLECTIVE
        if name in GROUP_BARRIERS:
            return Kind.COLLECTIVE if group else Kind.BARRIER
        return Kind.PLAIN if self._is_quiet(call, name, function) else Kind.UNKNOWN

    def _method(self, name: str, function: Node) -> Kind:
        owner = function.child_by_field_name("argument")
        tile = owner is not None and (base(owner) in self._tiles or bool(_TILES & _words(owner)))
        if tile and (name in GROUP_BARRIERS or is_collective(name, member=True)):
            return Kind.COLLECTIVE
        if name in GROUP_BARRIERS:
            return Kind.BARRIER
        known = name in GROUP_METHODS or (name in self._words and self._quiet)
        return Kind.PLAIN if known else Kind.UNKNOWN

    def _is_quiet(self, call: Call, name: str, function: Node) -> bool:
        if is_pure(name) or ATOMIC.fullmatch(name) or name in ACTIVE or name in self._types:
            return True
        if function.type == "qualified_identifier":
            scope = text(function).partition("::")[0]
            return scope in _HARMLESS or (scope in self._types and self._quiet)
        return name in self._local[call.function] and self._quiet


def has_full_mask(call: Call) -> bool:
    """Whether a collective names lanes that may have left, rather than those that are there."""
    given = arguments(call.node)
    if not given:
        return True
    source = _words(given[0])
    if any(_MASKS.fullmatch(w) for w in source):
        return False
    if given[0].type != "identifier":
        return True
    name, found = text(given[0]), []
    for node in find(call.function.node, "init_declarator", "assignment_expression"):
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is not None and value is not None and base(target) == name:
            found.append(any(_MASKS.fullmatch(w) for w in _words(value)))
    return not found or not all(found)


def _words(node: Node) -> set[str]:
    return set(WORD.findall(text(node)))


def _tiles(function: Item) -> set[str]:
    """The names of cooperative groups no larger than a warp."""
    found = set()
    for node in find(function.node, "declaration", *_PARAMETERS):
        for child in node.children_by_field_name("declarator"):
            name = declarator(child)
            if name is not None and _words(node) & _TILES:
                found.add(text(name))
    return found


def _declared(function: Item) -> frozenset[str]:
    """The names of variables, parameters, template parameters and types in a function."""
    found = set()
    for node in find(function.node, "declaration", "alias_declaration", *_PARAMETERS):
        for field in ("declarator", "name"):
            names = (declarator(child) for child in node.children_by_field_name(field))
            found |= {text(n) for n in names if n is not None}
    for node in find(function.node, "template_parameter_list"):
        found |= {text(n) for n in find(node, "type_identifier", "identifier")}
    return frozenset(found)
