"""A body cut into regions: stretches of statements that each logical thread runs on its own.

Between regions stand barriers, the statements that contain them, and what is done once per
physical thread. A variable that lives across regions has a copy per logical thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from miriam.elastic.cuda.outline import BARRIER, Outline, meetings
from miriam.elastic.cuda.scalars import Scalars
from miriam.elastic.cuda.syntax import WORD, called_name, find, text
from miriam.elastic.cuda.variables import Variable, first_byte
from miriam.elastic.cuda.writes import escapes

_JUMPS = {"return_statement", "break_statement", "continue_statement"}
_TYPES = {"struct_specifier", "class_specifier", "union_specifier", "enum_specifier"}


@dataclass(slots=True, eq=False)
class Region:
    """Statements that follow each other in one list, from byte ``start`` on.

    ``alone``: they are no list's. ``made``: it only declares this variable. ``votes``: the voting
    barriers of its first statement, which are taken before it. ``hoisted``: declarations inside
    it that go before it.
    """

    units: list[Node]
    made: Variable | None = None
    alone: bool = False
    votes: list[Node] = field(default_factory=list)
    hoisted: list[Node] = field(default_factory=list)
    start: int = 0

    @property
    def end(self) -> int:
        """The byte after it."""
        return self.units[-1].end_byte

    @property
    def leaves(self) -> bool:
        """Whether a thread may return in it."""
        return any(returns(u) for u in self.units)


@dataclass(slots=True)
class Regions:
    """The regions of a body, and what becomes of the variables that cross from one to another.

    ``expanded``: they have a copy per logical thread. ``remade``: they are made again in every
    region that uses them: lambdas, and arithmetic on the thread's index.
    """

    found: list[Region]
    expanded: set[Variable] = field(default_factory=set)
    remade: set[Variable] = field(default_factory=set)

    def at(self, byte: int) -> Region | None:
        """The region that ``byte`` is in, unless it stands in a hoisted declaration."""
        for region in self.found:
            if region.start <= byte < region.end:
                inside = any(h.start_byte <= byte < h.end_byte for h in region.hoisted)
                return None if inside else region
        return None


def cut(
    outline: Outline,
    scalars: Scalars,
    found: Sequence[Variable],
    remakable: frozenset[Variable],
    data: bytes,
) -> Regions:
    """Cut a body whose scalar variables are known; ``remakable``: what may be made again."""
    alone: set[Variable] = set()
    again = remakable | {v for v in found if v.kind == "lambda"}
    while True:
        regions = [r for n in outline.nodes.values() for r in _of(n, outline, scalars, alone)]
        for region in regions:
            region.start = first_byte(region.units[0], data)
        made = Regions(sorted(regions, key=lambda r: r.start))
        _place(made, scalars, found, again)
        more = {v for v in made.expanded if is_made(v)} - alone
        hidden = {v for v in made.remade if v in remakable and _is_hidden(v, made, found)} & again
        if not more and not hidden:
            return made
        alone |= more
        again -= hidden


def returns(node: Node) -> list[Node]:
    """The return statements in ``node`` that are not those of a lambda."""
    return [r for r in find(node, "return_statement") if not _in_lambda(r, node)]


def is_made(variable: Variable) -> bool:
    """Whether only its value can tell its type, or what it refers to."""
    return variable.kind == "reference" or (variable.kind == "value" and "auto" in variable.words)


def is_barrier(node: Node) -> bool:
    """Whether ``node`` is ``__syncthreads();``."""
    kids = node.named_children
    call = kids[0] if len(kids) == 1 and node.type == "expression_statement" else None
    return call is not None and call.type == "call_expression" and called_name(call) == BARRIER


def is_outside(node: Node, outline: Outline, scalars: Scalars) -> bool:
    """Whether a statement is done once per physical thread, or contains some that are."""
    if node in outline or node.type in _JUMPS | _TYPES or is_barrier(node):
        return True
    return scalars.is_scalar_statement(node)


def _in_lambda(node: Node, top: Node) -> bool:
    current = node
    while current != top and current.parent is not None:
        current = current.parent
        if current.type == "lambda_expression":
            return True
    return False


def _of(node: Node, outline: Outline, scalars: Scalars, alone: set[Variable]) -> Iterator[Region]:
    """The regions of a statement of the outline, without those of its parts."""
    if node.type in ("compound_statement", "case_statement"):
        yield from _of_list(node, outline, scalars, alone)
        return
    only = [node.child_by_field_name(f) for f in ("consequence", "body")]
    if node.type == "else_clause":
        only = [c for c in node.named_children if c.type != "comment"]
    for child in only:
        if child is not None and not is_outside(child, outline, scalars):
            yield Region([child], alone=True, votes=meetings(child))


def _of_list(
    node: Node, outline: Outline, scalars: Scalars, alone: set[Variable]
) -> Iterator[Region]:
    pending: Region | None = None
    glued: list[Node] = []
    label = node.child_by_field_name("value") if node.type == "case_statement" else None
    for child in (c for c in node.named_children if c != label and c.type != "comment"):
        if child.type == "preproc_call":  # a pragma belongs to the statement that follows it
            glued.append(child)
            continue
        outside = is_outside(child, outline, scalars)
        made = next((v for v in scalars.declared(child) if v in alone), None)
        votes = [] if outside else meetings(child)
        if pending is not None and outside and not glued and _may_pass(child, pending, scalars):
            pending.hoisted.append(child)
            pending.units.append(child)
            continue
        if pending is not None and (outside or made is not None or votes or pending.made):
            yield _trimmed(pending)
            pending = None
        if not outside:
            pending = pending or Region([], made, votes=votes)
            pending.units += [*glued, child]
        glued = []
    if pending is not None:
        yield _trimmed(pending)


def _trimmed(region: Region) -> Region:
    """Without the hoisted declarations at its end: they stay where they are."""
    while region.units[-1] in region.hoisted:
        region.hoisted.remove(region.units.pop())
    return region


def _may_pass(node: Node, pending: Region, scalars: Scalars) -> bool:
    """Whether a scalar declaration may as well stand before the region ``pending``.

    It loads nothing, divides by nothing and hides no name that the region uses; nobody can have
    returned before it; what it reads is not written in a region.
    """
    if node.type != "declaration" or pending.leaves or pending.made is not None:
        return False
    declared = scalars.declared(node)
    if not declared or any(v.kind != "value" or v.value is None for v in declared):
        return False
    if "(" in declared[0].head:  # an attribute, which the parser does not see
        return False
    if find(node, "subscript_expression", "pointer_expression", "call_expression"):
        return False
    fields = find(node, "field_expression")
    indices = ("blockIdx", "blockDim", "gridDim")
    written = text(node)
    if any(text(f).partition(".")[0] not in indices for f in fields) or set("/%{[") & set(written):
        return False
    used = {w for u in pending.units for w in WORD.findall(text(u))}
    return not any(v.name in used for v in declared)


def _place(
    made: Regions, scalars: Scalars, found: Sequence[Variable], again: frozenset[Variable]
) -> None:
    """Find out where each variable is used, and what becomes of those that cross."""
    where = {v: {made.at(u.start_byte) for u in v.uses} for v in found}
    needs = {v: [w for w in found if any(_is_in(u, v.node) for u in w.uses)] for v in again}
    changed = True
    while changed:
        changed = False
        for each, needed in needs.items():
            for other in needed:
                changed |= not where[each] <= where[other]
                where[other] |= where[each]
    for variable in found:
        home = made.at(variable.holder.start_byte)
        if variable in scalars or (home is not None and variable.holder not in home.units):
            continue
        crosses = home is None or bool(where[variable] - {home})
        if variable in again and home is not None:
            made.remade |= {variable} if crosses else set()
        elif crosses or (home is not None and _is_kept(variable, home, made)):
            made.expanded.add(variable)


def _is_hidden(variable: Variable, made: Regions, found: Sequence[Variable]) -> bool:
    """Whether a name in the variable's value means something else where the variable is used."""
    needed = [w for w in found if any(_is_in(u, variable.node) for u in w.uses)]
    for use in variable.uses:
        region = made.at(use.start_byte)
        at = region.start if region is not None else use.start_byte
        for other in needed:
            same = [v for v in found if v.name == other.name and v.start <= at < v.end]
            if max(same, key=lambda v: v.start, default=None) is not other:
                return True
    return False


def _is_kept(variable: Variable, home: Region, made: Regions) -> bool:
    """Whether something may refer to the variable after its region has ended."""
    later = any(home.end <= r.start < variable.end for r in made.found)
    return later and any(escapes(u, variable) for u in variable.uses)


def _is_in(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte < outer.end_byte
