"""One call of a helper, as the text that takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.memory import base
from miriam.elastic.cuda.names import is_pure
from miriam.elastic.cuda.parse import Item, Unit
from miriam.elastic.cuda.subject import Refusal
from miriam.elastic.cuda.syntax import WORD, arguments, called_name, callee, declarator, find, text
from miriam.elastic.cuda.variables import Variable, variables

_STATEMENTS = {"expression_statement", "declaration", "if_statement", "switch_statement"}
_LAZY = {"conditional_expression", "lambda_expression", "for_statement", "while_statement"}


@dataclass(frozen=True, slots=True)
class Inlining:
    """What takes the place of the bytes from ``start`` to ``end``.

    ``parts``: bytes, the row of the text that their first line comes from, and whether the
    following lines come from the following rows.
    """

    start: int
    end: int
    parts: tuple[tuple[bytes, int, bool], ...]


class _No(Exception):
    """The call can not be replaced; the message says why."""


def inlining(
    unit: Unit,
    kernel: Item,
    call: Node,
    helpers: Sequence[Item],
    number: int,
    taken: set[tuple[str, str]],
) -> Inlining | Refusal:
    """The text for ``call`` in ``kernel`` to one of ``helpers``, overloads of one name.

    ``taken``: the helpers with shared memory that each kernel has in place already.
    """
    try:
        return _Call(unit, kernel, call, helpers, number, taken).made()
    except _No as error:
        detail = f"{called_name(call)}: {error}"
        return Refusal("barrier-in-helper", detail, call.start_byte)


class _Call:
    def __init__(
        self,
        unit: Unit,
        kernel: Item,
        call: Node,
        helpers: Sequence[Item],
        number: int,
        taken: set[tuple[str, str]],
    ) -> None:
        self._unit, self._kernel, self._call = unit, kernel, call
        self._number, self._taken = number, taken
        defined = [h for h in helpers if h.body is not None]
        if len(defined) != 1:
            raise _No("it has no body here, or several overloads")
        self._helper = defined[0]
        self._declared = [h for h in helpers if h.body is None]
        self._mine = variables(self._helper.core, unit.text.data)
        self._outer = variables(kernel.core, unit.text.data)
        self._names: dict[str, str] = {}

    def made(self) -> Inlining:
        statement = self._statement()
        body = self._body()
        value = self._value(body)
        before = self._parameters()
        inner = self._inner(body, value)
        row = self._unit.text.row(statement.start_byte)
        opening = "".join(f"{line}\n" for line in before)
        result = self._fresh(self._helper.name)
        if value is not None:
            opening += f"{self._result_type()} {result};\n"
        wrapped = statement.parent is None or statement.parent.type not in (
            "compound_statement",
            "case_statement",
        )
        data = self._unit.text.data
        if value is None:
            rest = b""
        else:
            start, end = statement.start_byte, statement.end_byte
            rest = data[start : self._call.start_byte] + result.encode()
            rest += data[self._call.end_byte : end]
        first = ("{\n" if wrapped else "\n") + opening + "{" + self._using() + "\n"
        end_row = self._unit.text.row(max(statement.end_byte - 1, statement.start_byte))
        return Inlining(
            statement.start_byte,
            statement.end_byte,
            (
                (first.encode(), row, False),
                (inner, self._unit.text.row(body.start_byte + 1), True),
                (b"\n}\n", end_row, False),
                (rest, row, True),
                (b"\n}" if wrapped else b"", end_row, False),
            ),
        )

    def _statement(self) -> Node:
        """The statement before which the helper can run."""
        node, above = self._call, self._call.parent
        while above is not None and above.type not in _STATEMENTS:
            operator = above.child_by_field_name("operator")
            lazy = operator is not None and text(operator) in ("&&", "||")
            if above.type in _LAZY or (lazy and above.named_children[0] != node):
                raise _No("it may not be called where it stands")
            if above.type in ("do_statement", "for_range_loop", "return_statement"):
                raise _No("it is called in a loop's condition")
            node, above = above, above.parent
        if above is None:
            raise _No("it is called outside a statement")
        condition = above.child_by_field_name("condition")
        if above.type in ("if_statement", "switch_statement") and condition != node:
            raise _No("it is called outside a statement")
        outer = above.parent.type if above.parent is not None else ""
        if outer in ("else_clause", "for_statement") and above.type != "expression_statement":
            raise _No("it is called in a condition after else")
        self._check_order(above, condition)
        return above

    def _check_order(self, statement: Node, condition: Node | None) -> None:
        """Nothing else in the statement may have an effect that the helper could see."""
        whole = condition if condition is not None else statement
        inside = {n.id for n in find(self._call, "call_expression", "assignment_expression")}
        assigned = [n for n in find(whole, "assignment_expression") if n.id not in inside]
        moved = find(whole, "update_expression")
        top = statement.named_children[0] if statement.named_children else None
        if moved or any(n != top for n in assigned):
            raise _No("something else is assigned in the same statement")
        for other in find(whole, "call_expression"):
            above = other.parent
            around = other.start_byte <= self._call.start_byte < other.end_byte
            if other.id in inside or (around and is_pure(called_name(other))):
                continue
            if not is_pure(called_name(other)) and above is not None:
                raise _No(f"{called_name(other)} is called in the same statement")

    def _body(self) -> Node:
        body = self._helper.body
        assert body is not None  # a helper without one was refused
        if find(body, "static_assert_declaration", "goto_statement"):
            raise _No("its text can not be moved")
        shared = any(v.kind == "shared" for v in self._mine)
        key = (self._kernel.qualified, text(self._call.child_by_field_name("function") or body))
        if shared and key in self._taken:
            raise _No("its shared memory would be there twice")
        self._taken.add(key)
        hidden = self._hidden(body)
        if hidden:
            raise _No(f"{hidden} means something else where it is called")
        return body

    def _hidden(self, body: Node) -> str:
        """A name of the helper that a variable of the kernel hides."""
        own = {u.id for v in self._mine for u in v.uses}
        at = self._call.start_byte
        outer = {v.name for v in self._outer if v.start <= at < v.end}
        declared = {v.name for v in self._mine}
        for name in find(body, "identifier", "type_identifier"):
            if name.id not in own and text(name) in outer and text(name) not in declared:
                return text(name)
        return ""

    def _value(self, body: Node) -> Node | None:
        """What the helper returns, at its end; None for nothing."""
        found = [n for n in find(body, "return_statement") if not _in_lambda(n, body)]
        kids = [c for c in body.named_children if c.type != "comment"]
        if len(found) > 1 or (found and (not kids or found[0] != kids[-1])):
            raise _No("it returns before its end")
        return found[0].named_children[0] if found and found[0].named_children else None

    def _parameters(self) -> list[str]:
        """Declarations of the parameters, under fresh names, from the arguments."""
        lines = self._template()
        given = arguments(self._call)
        mine = [v for v in self._mine if v.kind == "parameter" and self._is_own(v)]
        nodes = self._parameter_nodes(self._helper)
        if len(mine) != len(nodes) or len(given) > len(mine):
            raise _No("a parameter has no name")
        for index, variable in enumerate(mine):
            value = text(given[index]) if index < len(given) else self._default(index)
            plain = given[index] if index < len(given) else None
            if plain is not None and self._stands_for(variable, plain):
                self._names[variable.name] = text(plain)
                continue
            node = variable.node
            if variable.is_array or find(node, "reference_declarator", "function_declarator"):
                raise _No(f"its parameter {variable.name} is a reference or an array")
            fresh = self._fresh(variable.name)
            self._names[variable.name] = fresh
            name = declarator(node)
            assert name is not None  # parameters() keeps those with a name
            before = text(node)[: name.start_byte - node.start_byte]
            head = self._typed(f"{variable.head} {before}")
            lines.append(f"{head}{fresh} = {value};")
        return lines

    def _stands_for(self, variable: Variable, given: Node) -> bool:
        """Whether a variable of the kernel can take the parameter's place."""
        if given.type != "identifier" or any(
            v.name == text(given)
            for v in self._mine
            if v is not variable and not (v.kind == "parameter" and self._is_own(v))
        ):
            return False
        if find(variable.node, "reference_declarator"):
            return True
        changed = any(_is_target(u) for u in variable.uses)
        return (
            (variable.is_pointer or variable.is_array)
            and not changed
            and ("void" not in variable.words)
        )

    def _default(self, index: int) -> str:
        for item in (self._helper, *self._declared):
            nodes = self._parameter_nodes(item)
            value = (
                nodes[index].child_by_field_name("default_value") if index < len(nodes) else None
            )
            if value is not None:
                return text(value)
        raise _No("it is called with too few arguments")

    def _template(self) -> list[str]:
        """Template parameters as aliases and constants."""
        if self._helper.node.type != "template_declaration":
            return []
        lines, names = [], list(_template_parameters(self._helper.node))
        function = callee(self._call)
        given = _given(function) if function is not None else []
        for index, (name, kind) in enumerate(names):
            if index < len(given):
                value = given[index]
            elif kind is None:
                value = self._deduced(name)
            else:
                raise _No(f"its template argument {name} is not given")
            if kind is None:
                fresh = self._fresh(name)
                lines.append(f"using {fresh} = {value};")
                self._names[name] = fresh
            else:
                self._names[name] = f"({value})" if not WORD.fullmatch(value) else value
        return lines

    def _deduced(self, name: str) -> str:
        """The type that the template parameter ``name`` stands for, from a variable's type."""
        given, known = arguments(self._call), self._outer
        at = self._call.start_byte
        for node, argument in zip(self._parameter_nodes(self._helper), given, strict=False):
            head = node.child_by_field_name("type")
            if head is None or text(head) != name:
                continue
            visible = [v for v in known if v.name == base(argument) and v.start <= at < v.end]
            found = max(visible, key=lambda v: v.start, default=None)
            inner = node.child_by_field_name("declarator")
            pointed = inner is not None and bool(find(inner, "pointer_declarator"))
            if found is None or "auto" in found.words or not pointed:
                continue
            if not (found.is_pointer or found.is_array) or _casts(argument):
                continue
            dropped = {"const", "__shared__", "volatile", "extern", "static", "__restrict__"}
            words = [w for w in found.head.split() if w not in dropped]
            if words and all(WORD.fullmatch(w) for w in words):
                return " ".join(words)
        raise _No(f"its template argument {name} is not given")

    def _result_type(self) -> str:
        core, signature = self._helper.core, self._helper.signature
        kind = core.child_by_field_name("type")
        found = core.child_by_field_name("declarator")
        if kind is None or signature is None or found is None:
            raise _No("its result has no type")
        written, begin = text(core), core.start_byte
        stars = written[found.start_byte - begin : signature.start_byte - begin]
        if text(kind) == "auto" or "&" in stars:
            raise _No("the type of its result is not written")
        constant = "*" in stars and "const" in WORD.findall(written[: kind.start_byte - begin])
        const = "const " if constant else ""
        return self._typed(f"{const}{text(kind)} {stars}".strip())

    def _inner(self, body: Node, value: Node | None) -> bytes:
        """The helper's statements with the kernel's names, and its result stored."""
        edits: list[tuple[int, int, str]] = []
        own = {u.id: v for v in self._mine for u in v.uses}
        for name in find(body, "identifier", "type_identifier"):
            variable = own.get(name.id)
            fits = variable is None or (variable.kind == "parameter" and self._is_own(variable))
            if text(name) in self._names and fits:
                edits.append((name.start_byte, name.end_byte, self._names[text(name)]))
        returned = find(body, "return_statement")
        last = [r for r in returned if not _in_lambda(r, body)]
        if last and value is not None:
            result = self._fresh(self._helper.name)
            edits.append((last[0].start_byte, value.start_byte, f"{result} = "))
        elif last:
            edits.append((last[0].start_byte, last[0].end_byte, ""))
        data, at, pieces = self._unit.text.data, body.start_byte + 1, []
        for start, end, written in sorted(edits):
            pieces += [data[at:start], written.encode()]
            at = end
        return b"".join([*pieces, data[at : body.end_byte - 1]])

    def _typed(self, written: str) -> str:
        return WORD.sub(lambda m: self._names.get(m[0], m[0]), written)

    def _using(self) -> str:
        """The helper's namespaces, where the kernel is not in them."""
        scope = self._helper.scope
        inside = self._kernel.scope[: len(scope)] == scope
        return "" if inside or not scope else f" using namespace {'::'.join(scope)};"

    def _fresh(self, name: str) -> str:
        fresh = f"{name}_in{self._number}"
        return f"{fresh}_" if fresh in self._kernel.words | self._helper.words else fresh

    def _is_own(self, variable: Variable) -> bool:
        """Whether a parameter is the helper's, not that of a lambda in it."""
        signature = self._helper.signature
        holder = variable.holder.parent
        found = signature.child_by_field_name("parameters") if signature is not None else None
        return holder is not None and holder == found

    def _parameter_nodes(self, item: Item) -> list[Node]:
        signature = item.signature
        found = signature.child_by_field_name("parameters") if signature is not None else None
        kept = [c for c in found.named_children if c.type != "comment"] if found else []
        if any(c.type == "variadic_parameter_declaration" for c in kept):
            raise _No("it takes any number of parameters")
        return [] if len(kept) == 1 and text(kept[0]) == "void" else kept


def _template_parameters(node: Node) -> list[tuple[str, Node | None]]:
    """Names of template parameters; None for types, the type's node for values."""
    found: list[tuple[str, Node | None]] = []
    parameters = node.child_by_field_name("parameters")
    for child in parameters.named_children if parameters is not None else ():
        if child.type == "type_parameter_declaration":
            names = [c for c in child.named_children if c.type == "type_identifier"]
            found.append((text(names[-1]) if names else "", None))
        elif child.type == "parameter_declaration":
            inner = child.child_by_field_name("declarator")
            name = declarator(inner) if inner is not None else None
            found.append((text(name) if name is not None else "", child))
        elif child.type != "comment":
            raise _No("its template parameters are not understood")
    return found


def _given(function: Node) -> list[str]:
    """The template arguments that a call writes."""
    current: Node | None = function
    while current is not None and current.type == "qualified_identifier":
        current = current.child_by_field_name("name")
    found = current.child_by_field_name("arguments") if current is not None else None
    return [text(c) for c in found.named_children if c.type != "comment"] if found else []


def _is_target(use: Node) -> bool:
    above = use.parent
    if above is None:
        return False
    if above.type == "assignment_expression":
        return above.child_by_field_name("left") == use
    return above.type in ("update_expression", "pointer_expression") and text(above)[0] in "+-&"


def _casts(node: Node) -> bool:
    return bool(find(node, "cast_expression", "call_expression", "subscript_expression"))


def _in_lambda(node: Node, top: Node) -> bool:
    current = node.parent
    while current is not None and current != top:
        if current.type == "lambda_expression":
            return True
        current = current.parent
    return False
