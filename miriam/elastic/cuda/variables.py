"""The variables of a function: where each is declared, what it is, and every use of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tree_sitter import Node

from miriam.elastic.cuda.syntax import WORD, declarator, find, text

_SCOPES = {
    "compound_statement",
    "for_statement",
    "for_range_loop",
    "if_statement",
    "while_statement",
    "switch_statement",
    "lambda_expression",
    "function_definition",
    "template_declaration",
}
_DECLARE = (
    "declaration",
    "parameter_declaration",
    "optional_parameter_declaration",
    "variadic_parameter_declaration",
    "for_range_loop",
)
_NAMES = ("identifier", "type_identifier")

# "binding": one of several names of a structured binding.
Kind = Literal["value", "reference", "lambda", "binding", "parameter", "constant", "shared"]


@dataclass(slots=True, eq=False)
class Variable:
    """A variable or parameter; ``holder`` declares it, alone or with others, by ``node``.

    Its name means it from byte ``start`` to byte ``end``. ``head``: its type and qualifiers, as
    they are written.
    """

    name: str
    kind: Kind
    holder: Node
    node: Node
    start: int
    end: int
    head: str = ""
    uses: list[Node] = field(default_factory=list)

    @property
    def value(self) -> Node | None:
        """What it is initialised with."""
        return self.node.child_by_field_name("value") or (
            self.holder.child_by_field_name("value") if self.node.type in _NAMES else None
        )

    @property
    def words(self) -> set[str]:
        """The words of its type."""
        return set(WORD.findall(self.head))

    @property
    def is_array(self) -> bool:
        """Whether it is declared as an array."""
        return bool(find(self.plain, "array_declarator"))

    @property
    def may_decay(self) -> bool:
        """Whether its name may stand for a pointer to it."""
        named = find(self.holder, "type_identifier", "template_type", "qualified_identifier")
        return self.is_array or (not self.is_pointer and bool(named))

    @property
    def is_pointer(self) -> bool:
        """Whether it is surely a pointer."""
        return bool(find(self.plain, "pointer_declarator")) and not self.is_array

    @property
    def plain(self) -> Node:
        """Its declarator without the value."""
        inner = self.node.child_by_field_name("declarator")
        return inner if self.node.type == "init_declarator" and inner is not None else self.node


def variables(function: Node, data: bytes) -> tuple[Variable, ...]:
    """All variables of a function, in the order of their declarations, with their uses.

    ``data``: the text as it is written, of which the parser does not see all.
    """
    nodes = (n for n in find(function, *_DECLARE) if not _is_argument(n, function))
    found = [v for node in nodes for v in _declared(node, function)]
    for each in found:
        first = each.holder.children_by_field_name("declarator")[0]
        head = data[first_byte(each.holder, data) : first.start_byte]
        each.head = head.decode(errors="replace").strip()
    by_name: dict[str, list[Variable]] = {}
    for each in found:
        by_name.setdefault(each.name, []).append(each)
    names = {n.id for v in found if (n := declarator(v.node)) is not None}
    for use in find(function, *_NAMES):
        meant = _meant(by_name.get(text(use), ()), use) if use.id not in names else None
        if meant is not None:
            meant.uses.append(use)
    return tuple(sorted(found, key=lambda v: v.start))


def first_byte(node: Node, data: bytes) -> int:
    """Where a statement begins, with the attributes that the parser does not see."""
    before = node.prev_sibling
    if before is None:
        return node.start_byte
    between = data[before.end_byte : node.start_byte]
    return node.start_byte - len(between.lstrip()) if between.strip() else node.start_byte


def _is_argument(node: Node, function: Node) -> bool:
    """Whether the parser takes an argument for a parameter: ``int x(y * z);``."""
    above = node.parent.parent if node.parent is not None else None
    if above is None or above.type != "function_declarator":
        return False
    current = above.parent
    while current is not None and current != function:
        if current.type == "declaration":
            return True
        current = current.parent
    return False


def _meant(candidates: Iterable[Variable], use: Node) -> Variable | None:
    inside = [v for v in candidates if v.start <= use.start_byte < v.end]
    return max(inside, key=lambda v: v.start, default=None)


def _declared(holder: Node, function: Node) -> list[Variable]:
    found = []
    scope = _scope(holder, function)
    for node in holder.children_by_field_name("declarator"):
        plain = node.child_by_field_name("declarator") if node.type == "init_declarator" else node
        name = declarator(node)
        if name is None or plain is None or plain.type == "structured_binding_declarator":
            names = find(node, "identifier") if plain is not None else []
            inner = [n for n in names if plain is not None and n.end_byte <= plain.end_byte]
            found += [
                Variable(text(n), "binding", holder, node, plain.end_byte, scope.end_byte)
                for n in inner
                if plain is not None
            ]
            continue
        kind = _kind(holder, node, plain)
        found.append(Variable(text(name), kind, holder, node, plain.end_byte, scope.end_byte))
    return found


def _kind(holder: Node, node: Node, plain: Node) -> Kind:
    if holder.type.endswith("parameter_declaration"):
        return "parameter"
    first = holder.children_by_field_name("declarator")[0]
    head = set(WORD.findall(text(holder)[: first.start_byte - holder.start_byte]))
    if "__shared__" in head:
        return "shared"
    if head & {"constexpr", "static"}:
        return "constant"
    value = node.child_by_field_name("value")
    if value is not None and value.type == "lambda_expression":
        return "lambda"
    return "reference" if find(plain, "reference_declarator") else "value"


def _scope(node: Node, function: Node) -> Node:
    if node.type in ("for_range_loop",):
        return node
    current = node.parent
    while current is not None and current != function and current.type not in _SCOPES:
        current = current.parent
    return current if current is not None else function
