"""What the threads of a block agree on: the levels of names, and of expressions made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from tree_sitter import Node

from miriam.elastic.cuda.calls import Reach
from miriam.elastic.cuda.constants import constants
from miriam.elastic.cuda.lanes import Lanes, lanes
from miriam.elastic.cuda.memory import (
    base,
    escaped_names,
    is_access,
    pointer_names,
    unstable_names,
    written_names,
)
from miriam.elastic.cuda.names import (
    OWN_RESULTS,
    UNIFORM_METHODS,
    VOTING_BARRIERS,
    WARP_RESULTS,
    is_group_object,
    is_pure,
)
from miriam.elastic.cuda.own import own_types, own_variables, reading_methods, type_parameters
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.scopes import Scopes, scopes
from miriam.elastic.cuda.syntax import arguments, called_name, declarator, find, text


class Level(IntEnum):
    """Who agrees: all threads of a block, all of a warp, or nobody for sure."""

    BLOCK = 0
    WARP = 1
    VARYING = 2


@dataclass(slots=True, eq=False)
class Facts:
    """What is known of one function so far; levels only ever rise.

    ``parameters`` and ``values`` use the names that ``scopes`` tells apart; ``by_value``: the
    parameters through which nothing comes back.
    ``pointers``: what is surely a pointer, which a store through it leaves alone.
    ``entry``: the control under which it is called; ``jumps``: what leaving or repeating a loop
    has added to it, by the loop's node id.
    """

    item: Item
    parameters: tuple[str, ...]
    by_value: tuple[bool, ...]
    written: frozenset[str]
    escaped: frozenset[str]
    pointers: frozenset[str]
    lanes: Lanes
    scopes: Scopes
    values: dict[str, Level] = field(default_factory=dict)
    entry: Level = Level.BLOCK
    result: Level = Level.BLOCK
    jumps: dict[int, Level] = field(default_factory=dict)


@dataclass(slots=True)
class Levels:
    """The levels of all functions that a kernel reaches; ``changed`` when one has risen.

    ``passed``: the functions that are named without being called, as template arguments.
    ``own``: the types whose values may differ from thread to thread by themselves; ``reading``:
    the methods that change nothing.
    """

    facts: list[Facts]
    by_name: dict[str, list[Facts]]
    passed: list[Facts]
    unstable: frozenset[str]
    types: frozenset[str]
    own: frozenset[str]
    reading: frozenset[str]
    tile_is_warp: bool
    changed: bool = True

    def raised(self, old: Level, new: Level) -> Level:
        """The higher level."""
        self.changed |= new > old
        return max(old, new)

    def value(self, facts: Facts, node: Node | None) -> Level:
        """Who gets the same value from ``node``, an expression of the function of ``facts``."""
        result = Level.BLOCK
        stack = [node] if node is not None else []
        while stack and result < Level.VARYING:
            current = stack.pop()
            here, inside = self._leaf(facts, current)
            result = max(result, here)
            if inside:
                stack += current.named_children
        return result

    def _leaf(self, facts: Facts, node: Node) -> tuple[Level, bool]:
        """The level that ``node`` adds by itself, and whether its parts count too."""
        if facts.lanes.agrees(node):
            return Level.WARP, False
        if node.type == "field_expression" and text(node) in ("threadIdx.y", "threadIdx.z"):
            return Level.WARP, False
        if node.type == "identifier":
            return self._name(facts, node), False
        if node.type == "type_identifier" and text(node) in self.own:
            return Level.VARYING, False
        if node.type == "call_expression":
            given = arguments(node)
            if called_name(node).startswith("__ld") and given:
                return self._memory(facts, given[0]), True
            return self._call(node)
        if is_access(node):
            return self._memory(facts, node), True
        varying = node.type in ("this", "new_expression", "co_await_expression", "ERROR")
        return (Level.VARYING if varying else Level.BLOCK), True

    def _memory(self, facts: Facts, node: Node) -> Level:
        name = base(node)
        safe = name and name not in facts.written and name not in self.unstable
        return Level.BLOCK if safe else Level.VARYING

    def _name(self, facts: Facts, node: Node) -> Level:
        name = text(node)
        if name == "threadIdx" or name in self.unstable or name in facts.escaped:
            return Level.VARYING
        return facts.values.get(facts.scopes.key(name, node.start_byte), Level.BLOCK)

    def _call(self, call: Node) -> tuple[Level, bool]:
        name = called_name(call)
        function = call.child_by_field_name("function")
        if name in VOTING_BARRIERS:
            return Level.BLOCK, False
        if WARP_RESULTS.fullmatch(name):
            return Level.WARP, False
        if function is not None and function.type == "field_expression":
            if name in UNIFORM_METHODS:
                return Level.BLOCK, False
            warp = name == "meta_group_rank" and self.tile_is_warp
            return (Level.WARP if warp else Level.VARYING), False
        if name in self.by_name:
            return max(f.result for f in self.by_name[name]), True
        if OWN_RESULTS.fullmatch(name):
            return Level.VARYING, False
        known = name in self.types - self.own or (is_pure(name) and not is_group_object(name))
        return (Level.BLOCK if known else Level.VARYING), True


def start(reached: Reach) -> Levels:
    """The levels before anything is known: all agree on everything."""
    data = [i for i in reached.items if i.kind == "data"]
    helpers = frozenset(f.name for f in reached.functions)
    unstable = unstable_names((*reached.items, reached.kernel))
    own = own_types(reached, unstable)
    types = {n for i in data for n in i.names}
    facts = [_facts(f, helpers, data, own) for f in reached.functions]
    by_name: dict[str, list[Facts]] = {}
    for each in facts:
        by_name.setdefault(each.item.name, []).append(each)
    return Levels(
        facts=facts,
        by_name=by_name,
        passed=[f for f in facts if f.item.name in _passed(reached)],
        unstable=unstable,
        types=frozenset(types.union(*map(type_parameters, reached.functions))),
        own=own,
        reading=reading_methods(data),
        tile_is_warp=_tiles_are_warps(reached),
    )


def _facts(
    function: Item, helpers: frozenset[str], data: Sequence[Item], own: frozenset[str]
) -> Facts:
    signature = function.signature
    found = signature.child_by_field_name("parameters") if signature else None
    where, keys, kept = scopes(function.node), [], []
    for node in found.named_children if found else ():
        inside = node.child_by_field_name("declarator")
        name = declarator(inside) if inside is not None else None
        keys.append(where.key(text(name), name.start_byte) if name is not None else "")
        kept.append(inside is not None and inside.type == "identifier")
    known = constants([*data, function])
    written = written_names(function, helpers)
    return Facts(
        item=function,
        parameters=tuple(keys),
        by_value=tuple(kept),
        written=written,
        escaped=escaped_names(function) | own_variables(function, own),
        pointers=pointer_names(function),
        lanes=lanes(function, known),
        scopes=where,
    )


def _passed(reached: Reach) -> set[str]:
    """The names in the function bodies that are not just being called."""
    found = set(reached.given)
    for item in reached.functions:
        calls = find(item.node, "call_expression")
        called = {n.start_byte for c in calls if (n := c.child_by_field_name("function"))}
        names = find(item.node, "identifier", "type_identifier")
        own = item.signature.start_byte if item.signature is not None else -1
        found |= {text(n) for n in names if n.start_byte not in called and n.start_byte != own}
    return found


def _tiles_are_warps(reached: Reach) -> bool:
    sizes = [
        text(node)
        for item in (*reached.items, reached.kernel)
        for node in find(item.node, "template_function", "template_type")
        if text(node).startswith(("thread_block_tile", "tiled_partition"))
        or text(node).endswith("tiled_partition")
    ]
    return all("32" in s or "WARP" in s.upper() for s in sizes)
