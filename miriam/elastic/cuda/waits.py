"""Loops that end only when another thread writes: locks, flags, barriers made by hand.

In the original all blocks of a wave are resident, or start in order; an elastic kernel may run a
waiting block while the one that it waits for is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from miriam.elastic.cuda.constants import literal
from miriam.elastic.cuda.memory import base, is_access
from miriam.elastic.cuda.names import ATOMIC, is_pure
from miriam.elastic.cuda.syntax import arguments, called_name, declarator, find, text, walk

_LOOPS = ("while_statement", "do_statement", "for_statement")
_LOADS = re.compile(r"__ld\w+|load|test|ld_\w+|atomic_ref")
_ADVANCES = re.compile(r"atomic(Add|Sub|Inc|Dec)(_\w+)?|fetch_(add|sub)")


def waiting_loop(node: Node, shared: frozenset[str], unstable: frozenset[str]) -> Node | None:
    """The first loop in ``node`` that may wait for another block, or None.

    ``shared``: names of shared memory, which only the block itself writes. ``unstable``: names
    that other threads may change.
    """
    for loop in find(node, *_LOOPS):
        exits = list(_exits(loop))
        look = _Loop(loop, shared, unstable)
        if exits and all(look.is_foreign(e) for e in exits):
            return loop
    return None


def _exits(loop: Node) -> Iterator[Node]:
    """The conditions on which the loop ends."""
    condition = loop.child_by_field_name("condition")
    if condition is not None and text(condition).strip("() ") not in ("true", "1", ""):
        yield condition
    body = loop.child_by_field_name("body")
    for branch in find(body, "if_statement") if body is not None else ():
        inside = branch.child_by_field_name("condition")
        leaves = find(branch, "break_statement", "return_statement", "goto_statement")
        if inside is not None and any(_leaves(leave, branch, loop) for leave in leaves):
            yield inside


def _leaves(jump: Node, branch: Node, loop: Node) -> bool:
    """Whether ``jump``, in ``branch``, ends ``loop`` itself."""
    if jump.type != "break_statement":
        return True
    current = jump.parent
    while current is not None and current != branch:
        if current.type in (*_LOOPS, "for_range_loop", "switch_statement"):
            return False
        current = current.parent
    while current is not None and current != loop:
        if current.type in (*_LOOPS, "for_range_loop", "switch_statement"):
            return False
        current = current.parent
    return True


class _Loop:
    """What one loop changes by itself, and what it only looks at."""

    def __init__(self, loop: Node, shared: frozenset[str], unstable: frozenset[str]) -> None:
        self._loop, self._shared, self._unstable = loop, shared, unstable
        self._given = list(_assignments(loop))
        self._changed = {base(t) for t, _ in self._given}
        self._stored = {base(t) for t, _ in self._given if is_access(t)}
        self._retries = any(self._is_retry(c) for c in find(loop, "call_expression"))
        self._progress = self._own_progress()

    def is_foreign(self, condition: Node) -> bool:
        """Whether the condition changes only when another thread writes."""
        names = {text(n) for n in find(condition, "identifier")}
        if self._retries or names & self._progress:
            return False
        if any(self._moves(n) for n in walk(condition)):
            return False
        derived = {n for n in names & self._changed if n not in self._progress}
        return bool(derived) or any(self._reads(n) for n in walk(condition))

    def _own_progress(self) -> set[str]:
        """The names that the loop moves on without waiting for anybody."""
        names = {base(t) for t, _ in self._given if not is_access(t)}
        names -= self._unstable - self._shared
        found: set[str] = set()
        while True:
            more = {n for n in names - found if self._moves_on(n, found)}
            if not more:
                return found
            found |= more

    def _moves_on(self, name: str, known: set[str]) -> bool:
        given = [(t, v) for t, v in self._given if base(t) == name]
        for _, value in given:
            if value is None:  # ++, --, +=
                return True
            own = {text(n) for n in find(value, "identifier")}
            if own & known or name in own or any(self._moves(n) for n in walk(value)):
                return True
        return all(v is not None and self._is_plain(t, v) for t, v in given)

    def _is_plain(self, target: Node, value: Node) -> bool:
        """Whether the value, and the decision to assign it, have nothing to do with others."""
        names = [called_name(c) for c in find(value, "call_expression")]
        known = all(is_pure(n) for n in names) and not any(self._reads(n) for n in walk(value))
        return known and not self._guarded(target)

    def _guarded(self, node: Node) -> bool:
        """Whether the assignment happens only after a look at what others write."""
        current = node.parent
        while current is not None and current != self._loop:
            if current.type == "if_statement":
                condition = current.child_by_field_name("condition")
                if condition is not None and any(self._reads(n) for n in walk(condition)):
                    return True
            current = current.parent
        return False

    def _reads(self, node: Node) -> bool:
        """Whether ``node`` looks at memory that others write, at a place that stays the same."""
        if node.type == "call_expression":
            name = called_name(node)
            return bool(ATOMIC.fullmatch(name) or _LOADS.fullmatch(name))
        if node.type == "identifier":
            return text(node) in self._unstable and text(node) not in self._shared
        name = base(node)
        if not is_access(node) or name in self._shared:
            return False
        if name in self._stored and name not in self._unstable:
            return False
        return not any(text(n) in self._changed for n in find(node, "identifier"))

    def _moves(self, node: Node) -> bool:
        """Whether ``node`` brings something new on its own: a next element, a next ticket."""
        if node.type == "call_expression" and _ADVANCES.fullmatch(called_name(node)):
            given = arguments(node)
            return not given or literal(given[-1]) != 0
        if not is_access(node) or base(node) in self._unstable - self._shared:
            return False
        return any(text(n) in self._changed for n in find(node, "identifier"))

    def _is_retry(self, call: Node) -> bool:
        """Compare-and-swap of a value that the loop renews: somebody always succeeds."""
        given = arguments(call)
        if not re.fullmatch(r"atomicCAS\w*|compare_exchange_\w+", called_name(call)):
            return False
        expected = (
            given[1]
            if called_name(call).startswith("atomicCAS") and len(given) > 1
            else (given[0] if given else None)
        )
        if expected is None or literal(expected) is not None:
            return False
        return any(text(n) in self._changed for n in find(expected, "identifier"))


def _assignments(loop: Node) -> Iterator[tuple[Node, Node | None]]:
    """What each turn assigns: the target, and the value unless it is added to what is there."""
    initializer = loop.child_by_field_name("initializer")
    parts = [c for c in loop.named_children if c != initializer]
    for node in (n for part in parts for n in walk(part)):
        if node.type == "update_expression":
            target = node.child_by_field_name("argument")
            if target is not None:
                yield target, None
        elif node.type == "assignment_expression":
            target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
            operator = node.child_by_field_name("operator")
            if target is not None:
                yield target, value if operator is None or text(operator) == "=" else None
        elif node.type == "init_declarator":
            target, value = (
                node.child_by_field_name("declarator"),
                node.child_by_field_name("value"),
            )
            name = declarator(target) if target is not None else None
            if name is not None and value is not None:
                yield name, value
