"""A kernel as the rules look at it, and what a rule answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from miriam.elastic.cuda.calls import Reach
from miriam.elastic.cuda.parse import Item
from miriam.elastic.cuda.signature import Signature


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that a kernel breaks: its stable name, why, and the byte of the text where."""

    reason: str
    detail: str
    at: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel, what it reaches, and its head."""

    reached: Reach
    signature: Signature

    @property
    def items(self) -> tuple[Item, ...]:
        """The kernel and all that it reaches."""
        return (self.reached.kernel, *self.reached.items)

    @property
    def data(self) -> Iterator[Item]:
        """The types, constants and variables that it reaches."""
        return (i for i in self.reached.items if i.kind == "data")

    def word(self, item: Item, word: str) -> int:
        """The byte where ``word`` stands first in ``item``."""
        source = self.reached.unit.text.data
        start, end = item.node.start_byte, item.node.end_byte
        found = source.find(word.encode(), start, end)
        return found if found >= 0 else start


def nodes(item: Item, *types: str) -> Iterator[Node]:
    """The nodes of these types in an item, in source order."""
    stack = [item.node]
    while stack:
        current = stack.pop()
        if current.type in types:
            yield current
        stack.extend(reversed(current.children))
