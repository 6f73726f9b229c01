"""What a kernel reaches, by name, and which functions read the indices that become virtual."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from miriam.elastic.cuda.names import BARRIERS
from miriam.elastic.cuda.parse import Item, Unit
from miriam.elastic.cuda.syntax import find, last_name, text, words

GRID_INDICES = ("blockIdx", "gridDim")


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """A kernel and the declarations that its text names, transitively, in source order.

    ``virtual`` names the functions that read ``indices``, themselves or through others: they
    take them as parameters in the elastic form. ``given``: the words in the template arguments
    that this file gives the kernel.
    """

    unit: Unit
    kernel: Item
    items: tuple[Item, ...]
    indices: tuple[str, ...]
    virtual: frozenset[str]
    given: frozenset[str]

    @property
    def functions(self) -> tuple[Item, ...]:
        """The helper functions with a body that the kernel reaches, and the kernel."""
        helpers = [i for i in self.items if i.kind == "device" and i.body is not None]
        return (*helpers, self.kernel)


class Names:
    """The items of a unit by the names that they declare."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._by_name: dict[str, list[Item]] = {}
        for item in unit.items:
            if item.kind in ("device", "data"):
                for name in item.names:
                    self._by_name.setdefault(name, []).append(item)
        self._operators = [
            i for i in unit.items if i.kind == "device" and i.name.startswith("operator")
        ]

    def reach(self, kernel: Item, indices: tuple[str, ...] = GRID_INDICES) -> Reach:
        """What ``kernel`` reaches; ``indices`` become parameters of whatever reads them."""
        seen: set[Item] = set()
        known: set[str] = set()
        given = self._instance_words(kernel)
        todo = set(kernel.words | given)
        while todo:
            known |= todo
            found = {i for word in todo for i in self._by_name.get(word, ())} - seen
            found |= {o for o in self._operators if _parameter_types(o) & known} - seen
            seen |= found
            todo = {w for i in found for w in i.words} - known
        items = tuple(sorted(seen, key=lambda i: i.start))
        return Reach(self._unit, kernel, items, indices, _virtual(items, indices), given)

    def _instance_words(self, kernel: Item) -> frozenset[str]:
        """The words in the template arguments that this file gives ``kernel``.

        A launcher that is a template hands its own arguments on: those given to it count too.
        """
        if kernel.node.type != "template_declaration":
            return frozenset()
        todo, names, result = {kernel.name}, {kernel.name}, set[str]()
        while todo:
            wanted, todo = todo, set()
            for item in self._unit.items:
                given = list(_template_arguments(item, wanted)) if item.words & wanted else []
                result.update(*given)
                if given and item.kind == "host" and item.name not in names:
                    todo.add(item.name)
            names |= todo
        return frozenset(result)


def _template_arguments(item: Item, names: set[str]) -> Iterator[frozenset[str]]:
    for node in find(item.node, "template_function", "template_type"):
        if last_name(node) in names:
            yield words(node)


def with_barriers(reached: Reach) -> Reach:
    """``reached`` with the helpers that meet at a barrier, themselves or through others, virtual.

    They get the indices as well, which tells them apart from their originals.
    """
    more = _virtual(reached.items, tuple(BARRIERS))
    return replace(reached, virtual=reached.virtual | more)


def _parameter_types(item: Item) -> frozenset[str]:
    signature = item.signature
    parameters = signature.child_by_field_name("parameters") if signature else None
    if parameters is None:
        return frozenset()
    return frozenset(text(n) for n in find(parameters, "type_identifier"))


def _virtual(items: Iterable[Item], words: tuple[str, ...]) -> frozenset[str]:
    functions = [i for i in items if i.kind == "device"]
    found: set[str] = set()
    wanted = set(words)
    while wanted:
        wanted = {f.name for f in functions if f.words & wanted} - found
        found |= wanted
    return frozenset(found)
