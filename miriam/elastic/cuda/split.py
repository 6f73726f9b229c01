"""The edits that split a body into regions."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from miriam.elastic.cuda.fission import Fission
from miriam.elastic.cuda.regions import Region, returns
from miriam.elastic.cuda.render import Edit, one_line
from miriam.elastic.cuda.syntax import arguments, called_name, declarator, find, text
from miriam.elastic.cuda.text import Text
from miriam.elastic.cuda.variables import Variable

_HEAD = "[&](const int miriam_n, const uint3 threadIdx) {"
_DROPPED = {"const", "constexpr", "register", "volatile"}
_VOTES = {
    "__syncthreads_or": "miriam_or",
    "__syncthreads_and": "miriam_and",
    "__syncthreads_count": "miriam_count",
}


class Split:
    """Writes the edits of one body; ``edits``: what changes inside it anyway."""

    def __init__(self, made: Fission, source: Text, edits: Sequence[Edit]) -> None:
        self._made, self._source, self._edits = made, source, list(edits)
        self._given = "miriam_living" if made.leaves else "miriam_threads"

    def edits(self) -> list[Edit]:
        """All edits of the body, those that were given included."""
        self._votes = {
            call.id: f"miriam_vote_{i}"
            for i, call in enumerate(c for r in self._made.regions.found for c in r.votes)
        }
        for call in self._made.votes:
            self._replace(call, self._votes.get(call.id) or self._vote(call))
        for _, decides in self._made.decisions:
            self._wrap(decides, "miriam_agreed", "return ")
        for part in self._made.updates:
            self._wrap(part, "miriam_each", "")
        for region in self._made.regions.found:
            self._region(region)
        self._opening()
        return self._edits

    def _opening(self) -> None:
        body = self._made.outline.body
        lines = (
            ["MiriamLiving<MiriamIndex> miriam_living(miriam_threads);"]
            if self._made.leaves
            else []
        )
        copied = (v for v in self._made.regions.expanded if v.kind == "parameter")
        for each in sorted(copied, key=lambda v: v.start):
            value = f"{_HEAD} return {each.name}; }}"
            lines.append(f"auto {_copy(each)} = miriam_values(miriam_threads, {value});")
        if lines:
            at = body.start_byte + 1
            self._insert(at, "".join(f"\n  {line}" for line in lines))

    def _region(self, region: Region) -> None:
        margin = " " * self._column(region.start)
        before = [text(h) for h in region.hoisted]
        for node in region.hoisted:
            self._replace(node, "")
        before += [f"const int {self._votes[c.id]} = {self._vote(c)};" for c in region.votes]
        for unit in region.units:
            self._leave(unit)
        if region.made is not None:
            self._value(region, region.made, before, margin)
            return
        for unit in region.units:
            before += self._declaration(unit, region)
        opened = "{ " if region.alone else ""
        inside = self._names(region.start, region.end)
        head = f"miriam_each({self._given}, {_HEAD}"
        lines = [*before, head, *(f"  {line}" for line in inside)]
        self._insert(region.start, opened + f"\n{margin}".join(lines) + f"\n{margin}  ")
        self._insert(region.end, f" }});{self._check(region)}{' }' if region.alone else ''}", True)

    def _check(self, region: Region) -> str:
        """After a region in which threads return: go on only while some have not."""
        last = self._made.outline.body.named_children[-1]
        if not region.leaves or region.units[-1] == last:
            return ""
        return " if (!miriam_living.any()) return;"

    def _leave(self, unit: Node) -> None:
        for found in returns(unit):
            self._replace(found, "return miriam_living.end(miriam_n);")

    def _value(self, region: Region, made: Variable, before: list[str], margin: str) -> None:
        """A declaration whose type only its value tells."""
        value = made.value
        assert value is not None  # `auto` and references have one
        inside = self._names(region.start, region.end, made)
        head = f"auto {_copy(made)} = miriam_values({self._given}, {_HEAD}"
        address = "&(" if made.kind == "reference" else ""
        lines = [*before, head, *(f"  {line}" for line in inside), f"  return {address}"]
        opening = f"\n{margin}".join(lines)
        written = one_line(self._source, value.start_byte, value.end_byte, self._edits)
        ending = f"{')' if address else ''}; }});"
        whole = region.units[-1]
        self._replace(whole, f"{opening}{written}{ending}")

    def _declaration(self, unit: Node, region: Region) -> list[str]:
        """Turn a declaration's copied variables into assignments; their arrays."""
        declared = list(self._made.scalars.declared(unit))
        copied = [v for v in declared if v in self._made.regions.expanded]
        if not copied or unit not in region.units:
            return []
        done = []
        for each in declared:
            if each in copied:
                done.append(self._assignment(each))
            else:
                end = each.node.end_byte
                plain = one_line(self._source, each.node.start_byte, end, self._edits)
                done.append(f"{each.head} {plain};")
        self._replace(unit, " ".join(d for d in done if d))
        return [self._array(v) for v in copied]

    def _array(self, variable: Variable) -> str:
        """``T miriam_x[N][4];`` for ``const T x[4] = ...;``."""
        plain = variable.plain
        pointer = variable.is_pointer
        dropped = _DROPPED - {"const"} if pointer or find(plain, "pointer_declarator") else _DROPPED
        head = " ".join(w for w in variable.head.split() if w not in dropped)
        named = _name_node(plain)
        before = text(plain)[: named.start_byte - plain.start_byte]
        if pointer:
            stars = before.rstrip()
            cut = stars.rfind("*") + 1
            before = stars[:cut]  # `* const`, `* __restrict__`
        after = text(plain)[named.end_byte - plain.start_byte :]
        return f"{head} {before}{_copy(variable)}[MiriamIndex::fold]{after};"

    def _assignment(self, variable: Variable) -> str:
        value = variable.value
        if value is None:
            return ""
        written = one_line(self._source, value.start_byte, value.end_byte, self._edits)
        if variable.is_array:
            plain, named = variable.plain, _name_node(variable.plain)
            first = text(plain)[: named.start_byte - plain.start_byte]
            after = text(plain)[named.end_byte - plain.start_byte :]
            given = f"{variable.head} {first}miriam_first{after} = {written};"
            return f"{{ {given} miriam_copy({variable.name}, miriam_first); }}"
        if value.type == "argument_list":
            head = " ".join(w for w in variable.head.split() if w not in _DROPPED)
            single = len(arguments_of(value)) == 1
            written = f"({head}){written}" if single else f"{head}{written}"
        return f"{variable.name} = {written};"

    def _wrap(self, node: Node, function: str, first: str) -> None:
        """Make ``node`` an expression in which each logical thread computes it on its own."""
        inside = " ".join(self._names(node.start_byte, node.end_byte))
        self._insert(node.start_byte, f"{function}({self._given}, {_HEAD} {inside} {first}")
        self._insert(node.end_byte, "; })", True)

    def _vote(self, call: Node) -> str:
        given = arguments(call)
        condition = one_line(self._source, given[0].start_byte, given[0].end_byte, self._edits)
        inside = " ".join(self._names(call.start_byte, call.end_byte))
        function = _VOTES[called_name(call)]
        return f"{function}({self._given}, {_HEAD} {inside} return ({condition}) != 0; }})"

    def _names(self, start: int, end: int, made: Variable | None = None) -> list[str]:
        """What the names of variables that cross regions mean between two bytes."""
        regions = self._made.regions
        spans, used = [(start, end)], set[Variable]()
        while spans:
            first, last = spans.pop()
            for each in self._made.variables:
                inside = any(first <= u.start_byte < last for u in each.uses)
                home = start <= each.holder.start_byte < end
                if each in regions.expanded and each.holder.type == "declaration":
                    inside |= home
                if not inside or each in used or each is made:
                    continue
                if each in regions.expanded:
                    used.add(each)
                elif each in regions.remade and not home:
                    used.add(each)
                    spans.append((each.node.start_byte, each.node.end_byte))
        return [self._means(v) for v in sorted(used, key=lambda v: v.start)]

    def _means(self, variable: Variable) -> str:
        if variable in self._made.regions.remade:
            node = variable.node
            written = one_line(self._source, node.start_byte, node.end_byte, self._edits)
            return f"{variable.head} {written};"
        star = "*" if variable.kind == "reference" else ""
        return f"auto& {variable.name} = {star}{_copy(variable)}[miriam_n];"

    def _replace(self, node: Node, written: str) -> None:
        """Put ``written`` in the place of ``node`` and of all edits inside it."""
        self._edits = [
            e for e in self._edits if not (node.start_byte <= e.start and e.end <= node.end_byte)
        ]
        self._edits.append(Edit(node.start_byte, node.end_byte, written))

    def _insert(self, at: int, written: str, after: bool = False) -> None:
        same = [e for e in self._edits if e.start == e.end == at]
        for each in same:
            self._edits.remove(each)
            written = each.text + written if after else written + each.text
        self._edits.append(Edit(at, at, written))

    def _column(self, at: int) -> int:
        return at - self._source.starts[self._source.row(at)]


def arguments_of(node: Node) -> list[Node]:
    """The expressions in an argument list."""
    return [c for c in node.named_children if c.type != "comment"]


def _copy(variable: Variable) -> str:
    return f"miriam_all_{variable.name}"


def _name_node(plain: Node) -> Node:
    found = declarator(plain)
    return found if found is not None else plain
