"""Which declaration a name in a function means: names that scopes hide are different names."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.syntax import declarator, find, text

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
    "catch_clause",
}
_DECLARATIONS = (
    "declaration",
    "parameter_declaration",
    "optional_parameter_declaration",
    "variadic_parameter_declaration",
    "for_range_loop",
    "init_statement",
    "condition_clause",
)


@dataclass(frozen=True, slots=True)
class Scopes:
    """For each name, the byte ranges in which a declaration of it holds."""

    ranges: dict[str, tuple[tuple[int, int], ...]]

    def key(self, name: str, at: int) -> str:
        """A name for what ``name`` at byte ``at`` means, the same for the same declaration."""
        inside = [r for r in self.ranges.get(name, ()) if r[0] <= at < r[1]]
        if not inside:
            return name
        start, _ = max(inside, key=lambda r: (r[0], -r[1]))
        return f"{name}@{start}"


def scopes(function: Node) -> Scopes:
    """The scopes of a function; what it does not declare keeps its plain name."""
    found: dict[str, set[tuple[int, int]]] = {}
    for node in find(function, *_DECLARATIONS):
        scope = _scope(node, function)
        for child in node.children_by_field_name("declarator"):
            name = declarator(child)
            names = [text(name)] if name is not None else []
            if name is None:
                names = [text(n) for n in find(child, "identifier")]
            for each in names:
                found.setdefault(each, set()).add((scope.start_byte, scope.end_byte))
    return Scopes({n: tuple(r) for n, r in found.items()})


def _scope(node: Node, function: Node) -> Node:
    if node.type == "for_range_loop":
        return node
    current = node.parent
    while current is not None and current != function and current.type not in _SCOPES:
        current = current.parent
    return current if current is not None else function
