"""A kernel with barriers, split so that a physical thread runs several logical ones.

Each region becomes a lambda that runs once per logical thread; barriers and what the block agrees
on stay between them (docs/transforms/regions.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.levels import Levels
from miriam.elastic.cuda.outline import Outline, condition, meetings, outline
from miriam.elastic.cuda.regions import Regions, cut, returns
from miriam.elastic.cuda.remade import remakable
from miriam.elastic.cuda.scalars import Scalars, objects, parts
from miriam.elastic.cuda.subject import Refusal, Subject
from miriam.elastic.cuda.syntax import find, text
from miriam.elastic.cuda.uniform import agreement
from miriam.elastic.cuda.variables import Variable, variables
from miriam.elastic.cuda.writes import Writes


@dataclass(frozen=True, slots=True)
class Fission:
    """How a body is split. ``leaves``: some thread may return before the others."""

    subject: Subject
    outline: Outline
    scalars: Scalars
    regions: Regions
    variables: tuple[Variable, ...]

    @property
    def leaves(self) -> bool:
        """Whether who has returned has to be remembered."""
        return any(r.leaves for r in self.regions.found)

    @property
    def decisions(self) -> Iterator[tuple[Node, Node]]:
        """The conditions outside regions that need a look at a logical thread, and their owners."""
        for node in self.outline.controls:
            decides = condition(node)
            if decides is not None and not self.scalars.is_scalar_condition(decides):
                yield node, decides

    @property
    def updates(self) -> Iterator[Node]:
        """The parts of loops' updates that each logical thread does on its own."""
        for node in self.outline.controls:
            update = node.child_by_field_name("update")
            if node.type == "for_statement" and update is not None:
                yield from (p for p in parts([update]) if not self.scalars.is_scalar_part(p))

    @property
    def votes(self) -> Iterator[Node]:
        """All voting barriers."""
        return (c for c in meetings(self.outline.body) if c not in _plain(self.outline.body))


def split(subject: Subject) -> Fission | Refusal:
    """How the kernel's body is split at its barriers, or why it can not be."""
    levels = agreement(subject.reached)
    kernel = subject.reached.kernel
    body = kernel.body
    assert body is not None  # what makes an item a kernel
    facts = next(f for f in levels.facts if f.item is kernel)
    drawn = outline(body, levels, facts)
    if isinstance(drawn, Refusal):
        return drawn
    found = variables(kernel.core, subject.reached.unit.text.data)
    scalars = Scalars(subject.reached, drawn, levels, facts, found)
    again = remakable(found, scalars, Writes(subject.reached))
    regions = cut(drawn, scalars, found, again, subject.reached.unit.text.data)
    made = Fission(subject, drawn, scalars, regions, found)
    return next(_problems(made, levels), made)


def _plain(body: Node) -> set[Node]:
    return {c for c in meetings(body) if text(c).replace(" ", "") == "__syncthreads()"}


def _problems(made: Fission, levels: Levels) -> Iterator[Refusal]:
    yield from _barriers(made)
    yield from _variables(made)
    yield from _namesakes(made)
    yield from _lambdas(made)
    yield from _jumps(made)
    yield from _strays(made)
    for node, decides in made.decisions:
        if meetings(decides) or (node.type == "switch_statement" and made.leaves):
            detail = f"{' '.join(text(decides).split())[:60]}: threads decide on it one by one"
            yield Refusal("barrier-not-uniform", detail, decides.start_byte)


def _barriers(made: Fission) -> Iterator[Refusal]:
    """A barrier that is part of an expression, or that may not be reached."""
    body = made.outline.body
    for call in _plain(body):
        if call.parent is None or call.parent.type != "expression_statement":
            yield Refusal("barrier-not-uniform", "a barrier in an expression", call.start_byte)
    for region in made.regions.found:
        for call in region.votes:
            if _may_be_left_out(call, region.units[-1]):
                detail = "a barrier in a part of an expression that may be left out"
                yield Refusal("barrier-not-uniform", detail, call.start_byte)


def _may_be_left_out(call: Node, top: Node) -> bool:
    node, above = call, call.parent
    while above is not None and node != top:
        operator = above.child_by_field_name("operator")
        lazy = operator is not None and text(operator) in ("&&", "||", "and", "or")
        lazy &= above.type == "binary_expression"
        if (lazy or above.type == "conditional_expression") and above.named_children[0] != node:
            return True
        node, above = above, above.parent
    return False


def _variables(made: Fission) -> Iterator[Refusal]:
    """variable-kind: a variable that can not have copies."""
    kinds = objects(made.subject.reached)
    for each in sorted(made.regions.expanded, key=lambda v: v.start):
        at, detail = each.holder.start_byte, ""
        parent = each.holder.parent
        if each.kind == "binding":
            detail = "a structured binding"
        elif each.words & kinds:
            detail = "an object with a constructor"
        elif "{" in each.head or "(" in each.head:
            detail = "a type declared with it, or an alignment of its own"
        elif each.holder.type == "declaration" and (
            made.regions.at(at) is None or parent is None or parent not in made.outline
        ):
            detail = "a loop's own variable that differs from thread to thread"
        elif find(each.plain, "function_declarator"):
            detail = "a declaration that may be a function's"
        elif _several(made, each.holder):
            detail = "declared together with others"
        elif find(each.plain, "array_declarator") and "[]" in text(each.plain).replace(" ", ""):
            detail = "an array without a size"
        if detail:
            yield Refusal("variable-kind", f"{each.name}: {detail}", at)
    for each in made.variables:
        at = each.holder.start_byte
        if each.kind == "shared" and made.regions.at(at) is not None:
            yield Refusal("variable-kind", f"{each.name}: shared memory inside a region", at)
    for node in find(made.outline.body, "assignment_expression"):
        left = node.child_by_field_name("left")
        called = left.child_by_field_name("argument") if left is not None else None
        # The parser takes `float (&x)[4] = y;` for an assignment.
        if called is not None and called.type == "call_expression" and "&" in text(called):
            yield Refusal("variable-kind", "a reference to an array", node.start_byte)


def _namesakes(made: Fission) -> Iterator[Refusal]:
    """A region uses a variable of another one, and declares one of the same name."""
    crossing = made.regions.expanded | made.regions.remade
    for region in made.regions.found:
        inside = [v for u in region.units for v in made.scalars.declared(u)]
        for mine in inside:
            for other in (v for v in crossing if v.name == mine.name and v is not mine):
                if any(region.start <= u.start_byte < region.end for u in other.uses):
                    detail = f"{mine.name} hides another one that is used beside it"
                    yield Refusal("variable-kind", detail, mine.holder.start_byte)


def _several(made: Fission, holder: Node) -> bool:
    """Whether a declaration of several variables has one whose type only its value tells."""
    declared = made.scalars.declared(holder)
    return len(declared) > 1 and any(r.made in declared for r in made.regions.found)


def _lambdas(made: Fission) -> Iterator[Refusal]:
    """lambda-copy: a lambda that is made again would see other values than the first one."""
    writes = Writes(made.subject.reached)
    for function in sorted(_remade_lambdas(made), key=lambda v: v.start):
        whole = function.value
        captures = whole.child_by_field_name("captures") if whole is not None else None
        if whole is None or captures is None:
            continue
        copied = "=" in text(captures) or "mutable" in text(whole).partition("{")[0]
        named = {text(n) for n in captures.named_children if n.type == "identifier"}
        named -= set(re.findall(r"&\s*(\w+)", text(captures)))
        for each in made.variables:
            inside = any(_is_in(u, whole) for u in each.uses) and not _is_in(each.holder, whole)
            by_value = copied or each.name in named
            if inside and by_value and any(writes.is_write(u, each) for u in each.uses):
                detail = f"{function.name} keeps a copy of {each.name}, which changes"
                yield Refusal("lambda-copy", detail, function.holder.start_byte)
        if (
            any(
                n.type not in ("identifier", "lambda_default_capture")
                for n in (c for c in captures.named_children if not text(c).startswith("&"))
            )
            or "mutable" in text(whole).partition("{")[0]
        ):
            detail = f"{function.name} has a state of its own"
            yield Refusal("lambda-copy", detail, function.holder.start_byte)


def _remade_lambdas(made: Fission) -> list[Variable]:
    return [v for v in made.variables if v.kind == "lambda" and v in made.regions.remade]


def _jumps(made: Fission) -> Iterator[Refusal]:
    """A region is left other than by a return, or returns a value."""
    for region in made.regions.found:
        for unit in region.units:
            for found in returns(unit):
                if found.named_children or region.made is not None:
                    yield Refusal("variable-kind", "a return with a value", found.start_byte)


def _strays(made: Fission) -> Iterator[Refusal]:
    """A copied variable is used where no logical thread is known."""
    known = [d for _, d in made.decisions]
    known += [*made.updates, *made.votes]
    for each in made.regions.expanded:
        for use in each.uses:
            inside = made.regions.at(use.start_byte) is not None
            if not inside and not any(_is_in(use, n) for n in known):
                detail = f"{each.name}, which differs from thread to thread, outside a region"
                yield Refusal("variable-kind", detail, use.start_byte)
    for function in _remade_lambdas(made):
        for use in function.uses:
            if made.regions.at(use.start_byte) is None and not any(_is_in(use, n) for n in known):
                detail = f"{function.name} is called outside a region"
                yield Refusal("lambda-copy", detail, use.start_byte)


def _is_in(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte < outer.end_byte
