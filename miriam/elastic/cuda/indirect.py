"""Rules about calls whose target the text does not name: they may reach a block index unseen."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.subject import Refusal, Subject
from miriam.elastic.cuda.syntax import WORD, called_name, declarator, find, text

_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration")
_TYPES = {"struct_specifier", "class_specifier", "union_specifier"}


def function_pointer(subject: Subject) -> Iterator[Refusal]:
    """A function is called through a pointer, a table or a template parameter."""
    kinds = {n for i in subject.data if _is_type(i) for n in i.names}
    defined = {f.name for f in subject.reached.functions}
    for item in subject.reached.functions:
        safe = kinds | _type_parameters(item)
        if item is not subject.reached.kernel:
            # Its callers are here, and what they pass is looked at by function_as_value.
            safe |= _value_parameters(item)
        declared = _declared_types(item)
        for call in find(item.node, "call_expression"):
            function, name = call.child_by_field_name("function"), called_name(call)
            plain = function is not None and function.type == "identifier"
            if not name and not _makes_value(function):
                yield _refusal("what is called is computed", call)
            elif plain and name in declared and name not in defined | safe:
                written = declared[name]
                if not (written & safe or "auto" in written):
                    yield _refusal(f"{name} is a pointer to a function", call)


def given_function(subject: Subject) -> Iterator[Refusal]:
    """This file passes a helper that reads a block index as a template argument."""
    kernel = subject.reached.kernel
    for name in sorted(subject.reached.given & subject.reached.virtual):
        detail = f"{name} reads a block index and is a template argument"
        yield Refusal("function-as-value", detail, kernel.node.start_byte)


def _refusal(detail: str, call: Node) -> Refusal:
    return Refusal("function-pointer", f"{detail}: it may read a block index", call.start_byte)


def _makes_value(function: Node | None) -> bool:
    """Whether the callee is a lambda on the spot, or the result of another call."""
    if function is not None and function.type == "parenthesized_expression":
        function = function.named_children[0] if function.named_children else None
    return function is not None and function.type in (
        "lambda_expression",
        "call_expression",
        "compound_literal_expression",
        "decltype",
        "dependent_type",
        "template_type",
    )


def _is_type(item: Item) -> bool:
    kind = item.core.child_by_field_name("type")
    return item.core.type in _TYPES or (kind is not None and kind.type in _TYPES)


def _type_parameters(item: Item) -> set[str]:
    return {
        text(name)
        for parameters in find(item.node, "template_parameter_list")
        for node in parameters.named_children
        if "type_parameter" in node.type or node.type.startswith("template_template")
        for name in find(node, "type_identifier")
    }


def _value_parameters(item: Item) -> set[str]:
    return {
        text(name)
        for parameters in find(item.node, "template_parameter_list")
        for node in parameters.named_children
        for child in node.children_by_field_name("declarator")
        if (name := declarator(child)) is not None
    }


def _declared_types(item: Item) -> dict[str, set[str]]:
    """The variables, parameters and template values of a function: the words of their types."""
    found: dict[str, set[str]] = {}
    for node in find(item.node, "declaration", *_PARAMETERS):
        for child in node.children_by_field_name("declarator"):
            name = declarator(child)
            if name is None:
                continue
            head = text(node)[: child.start_byte - node.start_byte]
            value = child.child_by_field_name("value")
            if value is not None and value.type == "lambda_expression":
                head += " auto"
            if find(child, "function_declarator"):
                head = ""
            found.setdefault(text(name), set()).update(WORD.findall(head))
    return found
