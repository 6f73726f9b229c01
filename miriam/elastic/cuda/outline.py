"""Which statements of a body stay outside its regions, because threads meet inside them.

Those that contain a barrier, those that jump out of such a statement, and what contains these. All
threads of the block have to agree on their conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.levels import Facts, Level, Levels
from miriam.elastic.cuda.names import VOTING_BARRIERS
from miriam.elastic.cuda.subject import Refusal
from miriam.elastic.cuda.syntax import called_name, find, text

BARRIER = "__syncthreads"
LOOPS = {"for_statement", "while_statement", "do_statement"}
_CONTROL = {*LOOPS, "if_statement", "switch_statement"}
_GROUPS = {"compound_statement", "case_statement", "else_clause"}
_LEFT = {*LOOPS, "for_range_loop", "switch_statement"}


@dataclass(frozen=True, slots=True)
class Outline:
    """The statements outside regions, by node id, in source order."""

    body: Node
    nodes: dict[int, Node]

    def __contains__(self, node: Node) -> bool:
        return node.id in self.nodes

    @property
    def controls(self) -> Iterator[Node]:
        """The statements with conditions."""
        return (n for n in self.nodes.values() if n.type in _CONTROL)


def outline(body: Node, levels: Levels, facts: Facts) -> Outline | Refusal:
    """The outline of a kernel's ``body``, or the statement that keeps it from being split."""
    for node in find(body, "goto_statement", "labeled_statement"):
        return Refusal("barrier-not-uniform", "goto beside barriers", node.start_byte)
    found = {body.id: body}
    for call in meetings(body):
        refusal = _mark(call, body, found)
        if refusal is not None:
            return refusal
    _mark_jumps(body, found, levels, facts)
    _complete(found)
    ordered = sorted(found.values(), key=lambda n: (n.start_byte, -n.end_byte))
    made = Outline(body, {n.id: n for n in ordered})
    for node in made.controls:
        refusal = _check(node, levels, facts)
        if refusal is not None:
            return refusal
    return made


def meetings(node: Node) -> list[Node]:
    """The barriers in ``node``, those that vote included."""
    names = {BARRIER, *VOTING_BARRIERS}
    return [c for c in find(node, "call_expression") if called_name(c) in names]


def ancestors(node: Node, top: Node) -> Iterator[Node]:
    """What contains ``node``, from the inside, up to ``top`` without it."""
    current = node.parent
    while current is not None and current != top:
        yield current
        current = current.parent


def condition(node: Node) -> Node | None:
    """The expression that decides about ``node``; None where there is none."""
    found = node.child_by_field_name("condition")
    if found is None or found.type not in ("condition_clause", "parenthesized_expression"):
        return found
    return found.child_by_field_name("value") or found.named_children[0]


def _mark(call: Node, body: Node, found: dict[int, Node]) -> Refusal | None:
    for node in ancestors(call, body):
        if node.type == "lambda_expression":
            return Refusal("barrier-not-uniform", "a barrier in a lambda", call.start_byte)
        if node.type in ("for_range_loop", "try_statement"):
            return Refusal("barrier-not-uniform", f"a barrier in a {node.type}", call.start_byte)
        if node.type in _CONTROL | _GROUPS:
            found[node.id] = node
    return None


def _complete(found: dict[int, Node]) -> None:
    """All branches of an ``if`` and all cases of a ``switch``."""
    for node in list(found.values()):
        other = node.child_by_field_name("alternative") if node.type == "if_statement" else None
        cases = node.child_by_field_name("body") if node.type == "switch_statement" else None
        more = [other] if other is not None else []
        if cases is not None:
            more += [cases, *(c for c in cases.named_children if c.type == "case_statement")]
        found.update({n.id: n for n in more})


def _mark_jumps(body: Node, found: dict[int, Node], levels: Levels, facts: Facts) -> None:
    jumps = find(body, "break_statement", "continue_statement", "return_statement")
    before = -1
    while before != len(found):
        before = len(found)
        for jump in jumps:
            path = list(ancestors(jump, body))
            if any(n.type == "lambda_expression" for n in path):
                continue
            inside = _inside(jump, path, found, levels, facts)
            found.update({n.id: n for n in inside if n.type in _CONTROL | _GROUPS})


def _inside(
    jump: Node, path: list[Node], found: dict[int, Node], levels: Levels, facts: Facts
) -> list[Node]:
    """What stands between ``jump`` and the outline, where it has to stand outside regions."""
    if jump.type == "return_statement":
        inner = []
        for node in path:
            if node.id in found:
                break
            inner.append(node)
        uniform = all(
            n.type in ("compound_statement", "else_clause")
            or (n.type == "if_statement" and _agreed(n, levels, facts))
            for n in inner
        )
        return inner if uniform else []
    kinds = LOOPS | {"for_range_loop"} if jump.type == "continue_statement" else _LEFT
    inner = []
    for node in path:
        if node.type in kinds:
            return inner if node.id in found else []
        inner.append(node)
    return []


def _agreed(node: Node, levels: Levels, facts: Facts) -> bool:
    decides = condition(node)
    return (
        decides is not None
        and not find(node.child_by_field_name("condition") or node, "declaration")
        and levels.value(facts, decides) is Level.BLOCK
    )


def _check(node: Node, levels: Levels, facts: Facts) -> Refusal | None:
    whole, decides = node.child_by_field_name("condition"), condition(node)
    if whole is not None and find(whole, "declaration", "init_statement"):
        detail = "a condition around a barrier declares a variable"
        return Refusal("barrier-not-uniform", detail, whole.start_byte)
    if decides is not None and levels.value(facts, decides) is not Level.BLOCK:
        detail = f"not all threads of a block may agree on {' '.join(text(decides).split())[:60]}"
        return Refusal("barrier-not-uniform", detail, decides.start_byte)
    return None
