"""How far the threads of a block agree on making each call.

A name has one level per function, the highest that anything assigns to it; levels flow through
calls both ways until nothing changes. Whatever is not understood varies. Inside a function,
control and values are those among the threads that made the call together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.calls import Reach
from miriam.elastic.cuda.levels import Facts, Level, Levels, start
from miriam.elastic.cuda.memory import base
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.syntax import arguments, called_name, declarator, find, text

_LOOPS = {"for_statement", "for_range_loop", "while_statement", "do_statement"}
_EXCHANGES = {"swap", "exchange"}
_JUMPS = {"return_statement", "break_statement", "continue_statement"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call, the function that it stands in, and who agrees on making it."""

    node: Node
    function: Item
    level: Level


def calls(reached: Reach) -> list[Call]:
    """Every call that the kernel and its helpers make, in source order."""
    return _solved(reached, None)[1]


def agreement(reached: Reach) -> Levels:
    """What the threads agree on of which the kernel has not returned yet, at each moment."""
    return _solved(reached, reached.kernel)[0]


def _solved(reached: Reach, leaving: Item | None) -> tuple[Levels, list[Call]]:
    """The levels, and the calls with theirs; who returns from ``leaving`` counts no longer."""
    levels = start(reached)
    found: dict[tuple[int, int], Call] = {}
    while levels.changed:
        levels.changed = False
        for facts in levels.facts:
            for call in _Walk(levels, facts, leaves=facts.item is leaving).function():
                found[call.node.start_byte, call.node.end_byte] = call
    return levels, [found[at] for at in sorted(found)]


class _Walk:
    """One pass over one function; ``leaves``: whoever returns from it takes no further part."""

    def __init__(self, levels: Levels, facts: Facts, leaves: bool = False) -> None:
        self._levels, self._facts, self._leaves = levels, facts, leaves
        self._loops: list[Node] = []
        self._calls: list[Call] = []
        self._in_lambda = False
        self._after = Level.BLOCK  # what the returns so far have added

    def function(self) -> list[Call]:
        """The calls in the function, with levels as far as they are known now."""
        body = self._facts.item.body
        if body is None:
            return []
        if find(body, "goto_statement"):
            self._after = Level.VARYING
        self._statement(body, Level.BLOCK)
        return self._calls

    def _value(self, node: Node | None) -> Level:
        return self._levels.value(self._facts, node)

    def _here(self, control: Level) -> Level:
        jumps = (self._facts.jumps.get(n.id, Level.BLOCK) for n in self._loops)
        return max((control, self._after, *jumps))

    def _statement(self, node: Node, control: Level) -> None:
        control, kind = self._here(control), node.type
        if kind in ("if_statement", "switch_statement"):
            self._branch(node, control)
        elif kind in _LOOPS:
            self._loop(node, control)
        elif kind in _JUMPS:
            self._jump(node, control)
        elif kind == "declaration":
            self._declaration(node, control)
        elif kind.endswith(("_statement", "_clause")):
            for child in node.named_children:
                self._statement(child, control)
        elif kind != "comment":
            self._expression(node, control)

    def _branch(self, node: Node, control: Level) -> None:
        condition = node.child_by_field_name("condition")
        level = max(control, self._condition(condition, control))
        if node.type == "switch_statement":
            self._loops.append(node)
        for child in node.named_children:
            if child != condition:
                self._statement(child, level)
        if node.type == "switch_statement":
            self._loops.pop()

    def _loop(self, node: Node, control: Level) -> None:
        initializer, update = (node.child_by_field_name(f) for f in ("initializer", "update"))
        if initializer is not None:
            self._statement(initializer, control)
        self._loops.append(node)
        condition = node.child_by_field_name("condition") or node.child_by_field_name("right")
        level = max(self._here(control), self._condition(condition, self._here(control)))
        # Those who go round once more are those for whom the condition held before.
        self._jumps_to(node, level)
        declared = node.child_by_field_name("declarator")
        if node.type == "for_range_loop" and declared is not None:
            self._assign(declared, level)
        body = node.child_by_field_name("body")
        if body is not None:
            self._statement(body, level)
        if update is not None:
            self._expression(update, self._here(level))
        self._loops.pop()

    def _condition(self, node: Node | None, control: Level) -> Level:
        if node is None:
            return Level.BLOCK
        level = Level.BLOCK
        for child in node.named_children if node.type == "condition_clause" else [node]:
            if child.type in ("declaration", "init_statement"):
                self._statement(child, control)
                level = max([level, *(self._value(n) for n in find(child, "identifier"))])
            else:
                self._expression(child, control)
                level = max(level, self._value(child))
        return level

    def _jump(self, node: Node, control: Level) -> None:
        facts, levels = self._facts, self._levels
        for child in node.named_children:
            self._expression(child, control)
            if not self._in_lambda:
                facts.result = levels.raised(facts.result, max(self._value(child), control))
        left = self._loops[-1:]
        if node.type == "return_statement" and self._in_lambda:
            left = self._loops
        elif node.type == "return_statement" and self._leaves:
            left = []
        elif node.type == "return_statement":
            left = self._loops
            self._after = max(self._after, control)
        elif node.type == "continue_statement":
            left = [n for n in self._loops if n.type != "switch_statement"][-1:]
        for loop in left:
            self._jumps_to(loop, control)

    def _jumps_to(self, loop: Node, level: Level) -> None:
        old = self._facts.jumps.get(loop.id, Level.BLOCK)
        self._facts.jumps[loop.id] = self._levels.raised(old, level)

    def _declaration(self, node: Node, control: Level) -> None:
        for child in node.children_by_field_name("declarator"):
            level = control
            if child.type == "init_declarator":
                name = child.child_by_field_name("declarator")
                for part in (c for c in child.named_children if c != name):
                    self._expression(part, control)
                    level = max(level, self._value(part))
            elif find(child, "function_declarator"):
                level = Level.VARYING  # `int x(y);`, which the parser takes for a function
            self._assign(child, level)

    def _assign(self, target: Node, level: Level) -> None:
        """What ``target`` declares or stores to differs from now on as ``level`` says."""
        if target.type == "init_declarator":
            target = target.child_by_field_name("declarator") or target
        name = declarator(target)
        if name is None and base(target) in self._facts.pointers:
            return
        names = [text(name)] if name is not None else [base(target)]
        if not names[0] or (name is None and target.type == "structured_binding_declarator"):
            names = [text(n) for n in find(target, "identifier")]
        for each in names:
            key = self._facts.scopes.key(each, target.start_byte)
            old = self._facts.values.get(key, Level.BLOCK)
            self._facts.values[key] = self._levels.raised(old, level)

    def _expression(self, node: Node, control: Level) -> None:
        """Note the assignments and calls in an expression."""
        stack = [(node, control)]
        while stack:
            current, within = stack.pop()
            if current.type == "lambda_expression":
                self._lambda(current)
                continue
            if current.type in ("assignment_expression", "update_expression"):
                self._store(current, within)
            elif current.type == "call_expression":
                self._call(current, within)
            elif current.type == "gnu_asm_output_operand":
                self._assign(current.child_by_field_name("value") or current, Level.VARYING)
            stack += self._parts(current, within)

    def _parts(self, node: Node, control: Level) -> Iterable[tuple[Node, Level]]:
        """The parts of an expression, each with the control under which it is evaluated."""
        kids = node.named_children
        if node.type == "conditional_expression" and kids:
            level = max(control, self._value(kids[0]))
            return [(kids[0], control), *((c, level) for c in kids[1:])]
        operator = node.child_by_field_name("operator")
        lazy = operator is not None and text(operator) in ("&&", "||", "and", "or")
        if node.type == "binary_expression" and lazy and len(kids) == 2:
            return [(kids[0], control), (kids[1], max(control, self._value(kids[0])))]
        return [(c, control) for c in kids]

    def _store(self, node: Node, control: Level) -> None:
        target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if target is not None:
            value = self._value(node.child_by_field_name("right"))
            inner = max((self._value(c) for c in target.named_children), default=Level.BLOCK)
            plain = target.type == "identifier"
            self._assign(target, max(control, value, Level.BLOCK if plain else inner))

    def _call(self, call: Node, control: Level) -> None:
        reached = max(self._facts.entry, control)
        self._calls.append(Call(call, self._facts.item, reached))
        name, given = called_name(call), arguments(call)
        levels = [self._value(a) for a in given]
        callees = self._levels.by_name.get(name, [])
        if not callees and name in self._facts.scopes.ranges:
            callees = self._levels.passed
        for facts in callees:
            facts.entry = self._levels.raised(facts.entry, reached)
            for parameter, level in zip(facts.parameters, levels, strict=False):
                old = facts.values.get(parameter, Level.BLOCK)
                facts.values[parameter] = self._levels.raised(old, level)
        # What is passed by reference or address comes back changed.
        inside = [f.values.get(p, Level.BLOCK) for f in callees for p in f.parameters]
        back = max([control, *levels, *inside, *(f.result for f in callees)])
        if not callees:
            back = max(back, self._value(call))
            self._change_owner(call, max([control, *levels]))
        for index, argument in enumerate(given):
            if callees and all(f.by_value[index : index + 1] == (True,) for f in callees):
                continue
            inner = argument.child_by_field_name("argument")
            address = argument.type == "pointer_expression" and inner is not None
            by_name = argument.type == "identifier" and (callees or name in _EXCHANGES)
            if address or by_name:
                self._assign(inner if address and inner is not None else argument, back)

    def _change_owner(self, call: Node, level: Level) -> None:
        """A method, or a call operator, may store what it is given in its object."""
        name, function = called_name(call), call.child_by_field_name("function")
        if function is None or name in self._levels.reading:
            return
        owner = function.child_by_field_name("argument")
        if owner is not None or name in self._facts.scopes.ranges:
            self._assign(owner or function, level)

    def _lambda(self, node: Node) -> None:
        """Its calls are made under a control that is not known here."""
        inner = _Walk(self._levels, self._facts)
        inner._in_lambda = True
        body = node.child_by_field_name("body")
        for parameter in find(node, "parameter_declaration", "optional_parameter_declaration"):
            found = parameter.child_by_field_name("declarator")
            if found is not None:
                self._assign(found, Level.VARYING)
        if body is not None:
            inner._statement(body, Level.VARYING)
        self._calls += inner._calls
