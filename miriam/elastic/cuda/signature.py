"""A kernel's head taken apart: template parameters, parameters, what to forward."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.render import Edit, one_line
from miriam.elastic.cuda.syntax import declarator, find, text
from miriam.elastic.cuda.text import Text

_BOUNDS = "__launch_bounds__"
_ABSTRACT = {None, "abstract_pointer_declarator"}


@dataclass(frozen=True, slots=True)
class Signature:
    """The pieces that an elastic form's head is put together from.

    ``template``: ``template <int N>`` or empty. ``arguments``: ``<N>`` or empty. ``head``: what
    stands before the name. ``tail``: what stands between parameters and body. ``taken``: the
    parameters as the body takes them. ``given``: as the wrapper takes them. ``forwarded``: what
    the wrapper hands on. ``problem``: why it can not be forwarded, or empty.
    """

    template: str
    parameters: tuple[str, ...]
    arguments: str
    head: str
    tail: str
    taken: tuple[str, ...]
    given: tuple[str, ...]
    forwarded: tuple[str, ...]
    problem: str = ""


def kernel_signature(source: Text, kernel: Item) -> Signature:
    """Take the head of ``kernel`` apart."""
    signature, body = kernel.signature, kernel.body
    assert signature is not None and body is not None  # what makes an item a kernel
    parameters = kernel.node.child_by_field_name("parameters")
    templated = kernel.node.type == "template_declaration" and parameters is not None
    begin = parameters.end_byte if templated and parameters is not None else kernel.start
    names, problem = _template_names(kernel)
    taken, given, forwarded = [], [], []
    for index, parameter in enumerate(_parameters(signature)):
        name = _parameter_name(parameter)
        plain = one_line(source, parameter.start_byte, _before_default(parameter))
        if name is None:
            if _declares(parameter) not in _ABSTRACT:
                problem = problem or f"parameter {index + 1} has no name to forward it by"
            name = f"miriam_{index}"
            plain = f"{plain} {name}"
        default = one_line(source, _before_default(parameter), parameter.end_byte)
        given.append(f"{plain} {default}".strip())
        taken.append(_as_taken(source, parameter, plain))
        pack = parameter.type == "variadic_parameter_declaration"
        forwarded.append(f"{name}..." if pack else name)
    return Signature(
        template=one_line(source, kernel.node.start_byte, begin) if templated else "",
        parameters=tuple(names),
        arguments=f"<{', '.join(names)}>" if names else "",
        head=one_line(source, begin, signature.start_byte),
        tail=one_line(source, _end_of_parameters(signature), body.start_byte),
        taken=tuple(taken),
        given=tuple(given),
        forwarded=tuple(forwarded),
        problem=problem,
    )


def loop_bounds(specifiers: str) -> str:
    """``specifiers`` as a loop form has them: launch bounds that leave the blocks per SM open.

    The header's macro then says for how many resident blocks the form is compiled.
    """
    _, comma, end = _bounds(specifiers)
    if end < 0 or comma >= 0:
        return specifiers
    return specifiers.replace(_BOUNDS, "MIRIAM_LOOP_BOUNDS", 1)


def block_bounds(specifiers: str) -> str:
    """``specifiers`` as a block form has them: launch bounds for its own number of threads."""
    begin, comma, end = _bounds(specifiers)
    if end < 0:
        return specifiers
    opened = specifiers.index("(", begin) + 1
    threads = specifiers[opened : comma if comma >= 0 else end].strip()
    folded = f"MIRIAM_FOLDED_BOUNDS(({threads}), miriam_fold)"
    return f"{specifiers[:begin]}{folded}{specifiers[end + 1 :]}"


def _bounds(specifiers: str) -> tuple[int, int, int]:
    """Where launch bounds begin, their first comma is and they end; -1 for what is not there."""
    begin, comma, depth = specifiers.find(_BOUNDS), -1, 0
    if begin < 0:
        return -1, -1, -1
    for at in range(begin + len(_BOUNDS), len(specifiers)):
        character = specifiers[at]
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 1 and comma < 0:
            comma = at
        if not depth and character == ")":
            return begin, comma, at
    return begin, comma, -1


def _parameters(signature: Node) -> list[Node]:
    found = signature.child_by_field_name("parameters")
    kept = [c for c in found.named_children if c.type != "comment"] if found else []
    return [] if len(kept) == 1 and text(kept[0]) == "void" else kept


def _end_of_parameters(signature: Node) -> int:
    found = signature.child_by_field_name("parameters")
    return found.end_byte if found else signature.end_byte


def _declares(parameter: Node) -> str | None:
    found = parameter.child_by_field_name("declarator")
    return found.type if found is not None else None


def _parameter_name(parameter: Node) -> str | None:
    found = parameter.child_by_field_name("declarator")
    name = declarator(found) if found is not None else None
    return text(name) if name is not None else None


def _before_default(parameter: Node) -> int:
    """Where the parameter's declaration ends and `` = default`` begins."""
    if parameter.child_by_field_name("default_value") is None:
        return parameter.end_byte
    return next(c.start_byte for c in parameter.children if c.type == "=")


def _as_taken(source: Text, parameter: Node, plain: str) -> str:
    """A ``__grid_constant__`` parameter becomes a reference, so that nothing copies it."""
    marks = [n for n in find(parameter, "type_qualifier") if text(n) == "__grid_constant__"]
    found = parameter.child_by_field_name("declarator")
    if not marks or found is None:
        return plain
    edits = [Edit(m.start_byte, m.end_byte, "") for m in marks]
    edits.append(Edit(found.start_byte, found.start_byte, "&"))
    return one_line(source, parameter.start_byte, _before_default(parameter), edits)


def _template_names(kernel: Item) -> tuple[list[str], str]:
    """The template's arguments as its own parameters, and why that can not be written."""
    if kernel.node.type != "template_declaration":
        return [], ""
    parameters = kernel.node.child_by_field_name("parameters")
    names: list[str] = []
    problem = ""
    for child in parameters.named_children if parameters else ():
        if child.type == "comment":
            continue
        name = _template_name(child)
        pack = child.type.startswith("variadic")
        if name is not None:
            names.append(f"{name}..." if pack else name)
        elif child.child_by_field_name("default_value") is None and (
            child.child_by_field_name("default_type") is None
        ):
            problem = "a template parameter has no name to forward it by"
    if not names and not problem:
        problem = "a specialization of a kernel template"
    return names, problem


def _template_name(parameter: Node) -> str | None:
    for field in ("name", "declarator"):
        found = parameter.child_by_field_name(field)
        if found is not None:
            name = declarator(found)
            return text(name) if name is not None else None
    if parameter.type in ("type_parameter_declaration", "variadic_type_parameter_declaration"):
        names = [c for c in parameter.named_children if c.type == "type_identifier"]
        return text(names[-1]) if names else None
    return None
