"""Whether a use of a variable may change it, or lets something else refer to it."""

from __future__ import annotations

from tree_sitter import Node

from miriam.elastic.cuda.calls import Reach
from miriam.elastic.cuda.names import ATOMIC, is_collective, is_pure
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.syntax import called_name, find, text
from miriam.elastic.cuda.variables import Variable

_CHANGES = {"swap", "exchange", "memcpy", "memset"}
_THROUGH = {"cast_expression", "parenthesized_expression", "conditional_expression"}
_PARTS = {"subscript_expression", "field_expression"}


class Writes:
    """What the uses of a kernel's variables do to them."""

    def __init__(self, reached: Reach) -> None:
        self._references: dict[str, list[tuple[bool, ...]]] = {}
        for function in reached.functions:
            self._references.setdefault(function.name, []).append(_references(function))

    def is_write(self, use: Node, variable: Variable) -> bool:
        """Whether ``use`` may change ``variable``, at once or later."""
        node, above = use, use.parent
        while above is not None:
            if above.type in _PARTS:
                if above.child_by_field_name("argument") != node or variable.is_pointer:
                    return False  # what a pointer leads to changes, if anything
                if _is_called(above):
                    return True
            elif above.type == "pointer_expression":
                return _is_address(above)
            elif above.type not in _THROUGH:
                return self._is_changed(node, above, variable)
            node, above = above, above.parent
        return False

    def _is_changed(self, node: Node, above: Node, variable: Variable) -> bool:
        if above.type == "assignment_expression":
            return above.child_by_field_name("left") == node
        if above.type in ("update_expression", "gnu_asm_output_operand"):
            return True
        if above.type == "lambda_capture_specifier":
            return "&" in text(above)
        if above.type == "argument_list":
            return self._is_passed(node, above, variable)
        return _binds_reference(node, above)

    def _is_passed(self, node: Node, given: Node, variable: Variable) -> bool:
        """Whether a function may change its argument ``node``."""
        call = given.parent
        if call is None or call.type != "call_expression":
            return variable.is_array  # the arguments of a constructor
        name = called_name(call)
        if name in self._references:
            at = [c for c in given.named_children if c.type != "comment"].index(node)
            return variable.is_array or any(
                at >= len(flags) or flags[at] for flags in self._references[name]
            )
        if variable.is_array or name in _CHANGES:
            return True
        pure = is_pure(name) or ATOMIC.fullmatch(name) or is_collective(name, member=False)
        return not pure


def escapes(use: Node, variable: Variable) -> bool:
    """Whether ``use`` lets something refer to ``variable`` after its statement has ended."""
    node, above = use, use.parent
    while above is not None and (
        above.type in _THROUGH
        or (above.type in _PARTS and above.child_by_field_name("argument") == node)
    ):
        node, above = above, above.parent
    if above is None:
        return False
    if above.type == "pointer_expression":
        return _is_address(above)
    if _binds_reference(node, above):
        return True
    return variable.may_decay and above.type in (
        *("init_declarator", "assignment_expression", "binary_expression", "initializer_list"),
        "argument_list",
    )


def _references(function: Item) -> tuple[bool, ...]:
    """Which parameters are references, or may be any number of them."""
    signature = function.signature
    found = signature.child_by_field_name("parameters") if signature else None
    return tuple(
        n.type == "variadic_parameter_declaration"
        or bool(find(n, "reference_declarator", "abstract_reference_declarator"))
        for n in (found.named_children if found else ())
        if n.type != "comment"
    )


def _is_address(node: Node) -> bool:
    operator = node.child_by_field_name("operator")
    return operator is not None and text(operator) == "&"


def _binds_reference(node: Node, above: Node) -> bool:
    field = {"init_declarator": "value", "for_range_loop": "right"}.get(above.type)
    if field is None or above.child_by_field_name(field) != node:
        return False
    inner = above.child_by_field_name("declarator")
    return inner is not None and bool(find(inner, "reference_declarator"))


def _is_called(field: Node) -> bool:
    above = field.parent
    called = above.child_by_field_name("function") if above is not None else None
    return above is not None and above.type == "call_expression" and called == field
