"""Which variables all threads of a block agree on, and may be kept once per physical thread.

Such a variable is only written by statements outside regions, from values of its kind.
"""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from miriam.elastic.cuda.calls import Reach
from miriam.elastic.cuda.levels import Facts, Level, Levels
from miriam.elastic.cuda.memory import written_names
from miriam.elastic.cuda.names import ATOMIC, VOTING_BARRIERS, is_pure
from miriam.elastic.cuda.outline import Outline, condition
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.syntax import called_name, declarator, find
from miriam.elastic.cuda.variables import Variable
from miriam.elastic.cuda.writes import Writes

_EFFECTS = {
    *("assignment_expression", "update_expression", "lambda_expression", "new_expression"),
    *("delete_expression", "gnu_asm_expression", "co_await_expression"),
}
_IMPURE = {"printf", "assert", "memcpy", "memset", "malloc", "free", "clock", "clock64", "swap"}
_NAMING = {"alias_declaration", "type_definition", "using_declaration", "static_assert_declaration"}


class Scalars:
    """The scalar variables of a kernel."""

    def __init__(
        self,
        reached: Reach,
        outline: Outline,
        levels: Levels,
        facts: Facts,
        found: Sequence[Variable],
    ) -> None:
        self._outline, self._levels, self._facts = outline, levels, facts
        self._writes = Writes(reached).is_write
        self._computing = _computing(reached)
        self._objects = objects(reached)
        self._meant = {u.id: v for v in found for u in v.uses}
        self._conditions = [c for n in outline.controls if (c := condition(n)) is not None]
        self._declared: dict[int, list[Variable]] = {}
        for each in found:
            self._declared.setdefault(each.holder.id, []).append(each)
        self._kept = {v for v in found if self._may_be(v)}
        while True:
            kept = {v for v in self._kept if self._stays(v)}
            if kept == self._kept:
                break
            self._kept = kept

    def __contains__(self, variable: Variable) -> bool:
        return variable in self._kept or variable.kind in ("constant", "shared")

    def meant(self, use: Node) -> Variable | None:
        """The variable that an identifier means."""
        return self._meant.get(use.id)

    def declared(self, node: Node) -> Sequence[Variable]:
        """The variables that a declaration declares."""
        return self._declared.get(node.id, ())

    def is_scalar(self, node: Node) -> bool:
        """Whether the block agrees on the value of ``node``, which does nothing but compute it."""
        return self._is_agreed(node, effects=False)

    def is_scalar_condition(self, node: Node) -> bool:
        """The same of a condition outside regions, which may also change scalar variables."""
        return self._is_agreed(node, effects=True)

    def _is_agreed(self, node: Node, effects: bool) -> bool:
        if self._levels.value(self._facts, node) is not Level.BLOCK:
            return False
        stack = [node]
        while stack:
            current = stack.pop()
            if current.type in _EFFECTS and not (effects and self.is_scalar_part(current)):
                return False
            if current.type == "call_expression":
                if called_name(current) in VOTING_BARRIERS:
                    continue
                if not self._computes(called_name(current)):
                    return False
            variable = self._meant.get(current.id)
            if variable is not None and variable not in self:
                return False
            stack += current.children
        return True

    def is_scalar_statement(self, node: Node) -> bool:
        """Whether ``node``, a statement of a list, is done once per physical thread."""
        if node.type == "declaration":
            declared = self.declared(node)
            return all(v in self for v in declared)
        if node.type == "expression_statement":
            return all(self.is_scalar_part(p) for p in parts(node.named_children))
        return node.type in _NAMING and all(
            v in self for n in find(node, "identifier") if (v := self.meant(n)) is not None
        )

    def is_scalar_part(self, node: Node) -> bool:
        """Whether one of the expressions that commas separate is an assignment to a scalar."""
        target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if node.type not in ("assignment_expression", "update_expression") or target is None:
            return False
        variable, value = self._meant.get(target.id), node.child_by_field_name("right")
        return variable in self._kept and (value is None or self.is_scalar(value))

    def _may_be(self, variable: Variable) -> bool:
        name = declarator(variable.node)
        holder, parent = variable.holder, variable.holder.parent
        if name is None or parent is None:
            return False
        if variable.kind == "parameter":
            if variable.end != self._outline.body.end_byte:
                return False
            if not any(self._writes(u, variable) for u in variable.uses):
                return True
        elif (
            variable.kind != "value"
            or holder.type != "declaration"
            or variable.words & self._objects
            or find(variable.plain, "function_declarator")
            or parent not in self._outline
            or parent.type in ("if_statement", "while_statement")
        ):
            return False
        return self._levels.value(self._facts, name) is Level.BLOCK

    def _stays(self, variable: Variable) -> bool:
        value = variable.value
        if value is not None and variable.kind == "value" and not self.is_scalar(value):
            return False
        if any(v not in self for v in self.declared(variable.holder)):
            return False
        return all(self._is_once(u) for u in variable.uses if self._writes(u, variable))

    def _is_once(self, use: Node) -> bool:
        """Whether a write stands outside regions and gives all threads the same."""
        part = use.parent
        if part is None or not self.is_scalar_part(part):
            return False
        if any(self._is_below(part, c) and self.is_scalar_condition(c) for c in self._conditions):
            return True
        whole = part
        while whole.parent is not None and whole.parent.type == "comma_expression":
            whole = whole.parent
        above = whole.parent
        if above is None:
            return False
        if above.type == "for_statement":
            return above in self._outline and whole != above.child_by_field_name("condition")
        inside = above.parent
        in_list = inside is not None and inside in self._outline
        # A statement of a list is done once as a whole or not at all.
        return (
            above.type == "expression_statement"
            and in_list
            and (all(self.is_scalar_part(p) for p in parts(above.named_children)))
        )

    def _is_below(self, node: Node, outer: Node) -> bool:
        return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte

    def _computes(self, name: str) -> bool:
        if name in self._computing:
            return True
        known = is_pure(name) and name not in _IMPURE and not ATOMIC.fullmatch(name)
        return known and name not in self._levels.by_name


def parts(nodes: Sequence[Node]) -> list[Node]:
    """Expressions, those that commas separate one by one."""
    found, stack = [], list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node.type == "comma_expression":
            stack += reversed(node.named_children)
        elif node.type != "comment":
            found.append(node)
    return found


def objects(reached: Reach) -> frozenset[str]:
    """The types with constructors or destructors, which do something when they are declared."""
    found = set[str]()
    for item in (i for i in reached.items if i.kind == "data"):
        for node in find(item.node, "function_declarator"):
            name = declarator(node)
            written = (name.text or b"").decode() if name is not None else ""
            if written.lstrip("~") in item.names:
                found |= item.names
    return frozenset(found)


def _computing(reached: Reach) -> frozenset[str]:
    """The helpers that write nothing but their own variables."""
    helpers = [f for f in reached.functions if f is not reached.kernel]
    names = frozenset(f.name for f in helpers)
    known = {f.name for f in helpers} - {f.name for f in helpers if not _is_quiet(f, names)}
    while True:
        less = {f.name for f in helpers if f.name in known and not _calls_only(f, names, known)}
        if not less:
            return frozenset(known)
        known -= less


def _is_quiet(function: Item, helpers: frozenset[str]) -> bool:
    if function.words & {"asm", "__asm__", "__asm", "volatile", "static", "new", "delete"}:
        return False
    return not written_names(function, frozenset()) and not find(
        function.node, "reference_declarator", "lambda_expression"
    )


def _calls_only(function: Item, helpers: frozenset[str], known: set[str]) -> bool:
    for call in find(function.node, "call_expression"):
        name = called_name(call)
        pure = is_pure(name) and name not in _IMPURE and not ATOMIC.fullmatch(name)
        if not (name in known or (name not in helpers and pure)):
            return False
    return True
