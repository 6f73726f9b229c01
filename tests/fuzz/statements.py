"""Random statements, each legal where it stands: no races, no barrier that some miss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Literal

from tests.fuzz.scope import Agreed, Scope, Values

# Who leaves early: nobody, single threads, whole warps, or whole blocks.
Leaving = Literal["nobody", "thread", "warp", "block"]
_AGREED_BY: dict[Leaving, Agreed] = {"thread": "none", "warp": "warp", "block": "block"}
_STRENGTH: dict[Agreed, int] = {"none": 0, "warp": 1, "block": 2}
_DEEPEST = 4


@dataclass(slots=True)
class Tile:
    """Memory with a slot per thread of the block; ``dirty``: others may still read it."""

    name: str
    columns: int = 0
    is_float: bool = False
    dirty: bool = False

    def slot(self, index: str) -> str:
        """The slot of the thread ``index``."""
        if self.columns:
            return f"{self.name}[{index} / {self.columns}u][{index} % {self.columns}u]"
        return f"{self.name}[{index}]"


@dataclass(frozen=True, slots=True)
class Traits:
    """What the statements of a kernel may do."""

    threads: int
    leaving: Leaving = "nobody"
    has_rows: bool = False  # the block's x extent is a multiple of 32
    barriers: bool = False
    in_place: str = "mine"  # an element that only this thread touches
    bins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands: who reaches it, and who agrees on leaving the innermost loop."""

    reached: Agreed
    loop: Agreed | None = None
    depth: int = 0


class Statements:
    """Writes statements; names are numbered, so that none hides another."""

    def __init__(
        self, random: Random, values: Values, traits: Traits, tiles: list[Tile], margin: int = 1
    ) -> None:
        self.lines: list[str] = []
        self._random, self._values, self._traits, self._tiles = random, values, traits, tiles
        self._margin = margin
        self._numbers = count()

    def line(self, text: str) -> None:
        """Write one line."""
        self.lines.append("  " * self._margin + text)

    def several(self, scope: Scope, place: Place, most: int) -> None:
        """One to ``most`` statements."""
        for _ in range(self._random.randint(1, most)):
            self._one(scope, place)

    def meeting(self, scope: Scope, place: Place) -> None:
        """A statement in which threads wait for each other, if any is allowed here."""
        found = self._meetings(place)
        if found:
            self._random.choices([m for _, m in found], [w for w, _ in found])[0](scope, place)

    def _one(self, scope: Scope, place: Place) -> None:
        makers: list[tuple[int, Callable[[Scope, Place], None]]] = [
            (4, self._assign_word),
            (3, self._assign_number),
            (2, self._declare),
            (1, self._update_in_place),
        ]
        if self._traits.bins:
            makers.append((1, self._atomic))
        if place.depth < _DEEPEST:
            makers += [
                (3, self._if),
                (3, self._loop),
                (1, self._switch),
                (1, self._local_array),
                (1, self._lambda),
                (1, self._braces),
            ]
        if place.loop is not None and _STRENGTH[place.reached] >= _STRENGTH[place.loop]:
            makers.append((2, self._jump))
        makers += self._meetings(place)
        if self._may_leave(place):
            makers.append((1, self._leave))
        weights = [w for w, _ in makers]
        self._random.choices([m for _, m in makers], weights)[0](scope, place)

    def _meetings(self, place: Place) -> list[tuple[int, Callable[[Scope, Place], None]]]:
        """Statements in which threads wait for each other."""
        traits, found = self._traits, list[tuple[int, Callable[[Scope, Place], None]]]()
        if traits.barriers and place.reached == "block":
            found.append((2, self._barrier))
            found += [(9, self._exchange)] if self._tiles else []
            if traits.leaving in ("nobody", "block"):
                found += [(2, self._vote), (3, self._total)]
                found += [(2, self._reduce)] if self._tiles else []
        if traits.has_rows and place.reached != "none" and traits.leaving != "thread":
            found += [(3, self._shuffle), (2, self._masked)]
        return found

    # --- what one thread does for itself

    def _assign_word(self, scope: Scope, place: Place) -> None:
        target, value = self._random.choice(scope.set_words), self._values.word(scope)
        operator = self._random.choice(["=", "=", "+=", "^=", "-=", "*=", "|="])
        if self._random.random() < 0.1:
            self.line(self._random.choice([f"++{target};", f"{target}--;"]))
        else:
            self.line(f"{target} {operator} {value};")

    def _assign_number(self, scope: Scope, place: Place) -> None:
        target, value = self._random.choice(scope.set_numbers), self._values.number(scope)
        operator = self._random.choice(["=", "+=", "-="])
        self.line(f"{target} {operator} bounded({value});")

    def _declare(self, scope: Scope, place: Place) -> None:
        if place.reached == "block" and self._random.random() < 0.4:
            name = self._name("agreed")
            self.line(f"const unsigned {name} = {self._values.uniform(scope)};")
            scope.uniform.append(name)
        elif self._random.random() < 0.5:
            name = self._name("word")
            self.line(f"unsigned {name} = {self._values.word(scope)};")
            scope.set_words.append(name)
        else:
            name = self._name("number")
            kind = self._random.choice(["float", "auto"])
            self.line(f"{kind} {name} = bounded({self._values.number(scope)});")
            scope.set_numbers.append(name)

    def _update_in_place(self, scope: Scope, place: Place) -> None:
        mine = self._traits.in_place
        self.line(f"{mine} = {mine} * 5u + {self._values.word(scope, 2)};")

    def _atomic(self, scope: Scope, place: Place) -> None:
        # One operation per array: only then does the order not matter.
        index = self._random.randrange(len(self._traits.bins))
        array, operation = self._traits.bins[index].split()
        at, value = self._values.word(scope, 2), self._values.word(scope, 2)
        self.line(f"{operation}(&{array}[{at} % 13u], {value});")

    def _local_array(self, scope: Scope, place: Place) -> None:
        name, size = self._name("local"), self._random.randint(2, 6)
        first = self._values.word(scope, 1)
        self.line(f"unsigned {name}[{size}] = {{{first}, 3u}};")
        index = self._name("i")
        self.line(f"for (int {index} = 0; {index} < {size}; ++{index}) {{")
        inner = scope.inner()
        inner.words.append(f"(unsigned){index}")
        with self._inside():
            self.line(f"{name}[{index}] += {self._values.word(inner, 2)};")
        self.line("}")
        if self._random.random() < 0.5:
            each, target = self._name("each"), self._random.choice(scope.set_words)
            self.line(f"for (unsigned {each} : {name}) {target} ^= {each};")
        scope.words.append(f"{name}[{self._values.word(scope, 1)} % {size}u]")

    def _lambda(self, scope: Scope, place: Place) -> None:
        name, argument = self._name("f"), self._name("x")
        captured = self._random.choice(scope.set_words)
        captures = self._random.choice(["=", "&", captured, f"&{captured}", ""])
        inner = scope.inner()
        if captures not in ("=", "&"):
            inner = Scope(calls=[])
            inner.words = [argument, "blockIdx.x", "gridDim.y", "threadIdx.x"]
            inner.words += [captured] if captures else []
        inner.words.append(argument)
        value = self._values.word(inner, 2)
        self.line(f"auto {name} = [{captures}](unsigned {argument}) {{")
        with self._inside():
            if self._random.random() < 0.5:
                self.line(f"if ({self._values.truth(inner, 1)}) return {argument};")
            self.line(f"return {value};")
        self.line("};")
        scope.calls.append(name)

    # --- who goes where

    def _braces(self, scope: Scope, place: Place) -> None:
        self.line("{")
        self._nested(scope, place, 3)
        self.line("}")

    def _agreement(self, place: Place) -> Agreed:
        """How far the threads that come here agree on the next decision."""
        able: list[Agreed] = ["none"]
        if self._traits.has_rows and place.reached != "none":
            able.append("warp")
        if place.reached == "block":
            able += ["block", "block"]
        return self._random.choice(able)

    def _if(self, scope: Scope, place: Place) -> None:
        agreed = self._agreement(place)
        self.line(f"if ({self._values.agreed(scope, agreed)}) {{")
        inside = replace(place, reached=_weaker(place.reached, agreed))
        self._nested(scope, inside, 3)
        if self._random.random() < 0.4:
            self.line("} else {")
            self._nested(scope, inside, 3)
        self.line("}")

    def _switch(self, scope: Scope, place: Place) -> None:
        agreed: Agreed = "none"
        if place.reached == "block" and self._random.random() < 0.5:
            agreed = "block"
        value = self._values.uniform(scope) if agreed == "block" else self._values.word(scope, 2)
        inside = Place(_weaker(place.reached, agreed), None, place.depth)
        self.line(f"switch ({value} % 4u) {{")
        for label in ("case 0u", "case 2u", "default"):
            self.line(f"  {label}: {{")
            self._margin += 1
            self._nested(scope, inside, 2)
            self._margin -= 1
            falls = label == "case 0u" and self._random.random() < 0.3
            self.line("  }" if falls else "  } break;")
        self.line("}")

    def _loop(self, scope: Scope, place: Place) -> None:
        agreed = self._agreement(place)
        trips = self._trips(scope, agreed)
        name = self._name("i")
        inside = Place(_weaker(place.reached, agreed), agreed, place.depth)
        inner = scope.inner()
        (inner.uniform if agreed == "block" else inner.words).append(name)
        for tile in self._tiles:
            tile.dirty = True
        kind = self._random.choice(["for", "for", "down", "while", "do"])
        if kind == "for":
            self.line(f"for (unsigned {name} = 0; {name} < {trips}; ++{name}) {{")
        elif kind == "down":
            self.line(f"for (unsigned {name} = {trips}; {name}-- > 0u;) {{")
        else:
            self.line(f"unsigned {name} = 0;")
            self.line("do {" if kind == "do" else f"while ({name} < {trips}) {{")
            self.line(f"  ++{name};")
        self._nested(inner, inside, 4)
        # What is compared has to be one value in all turns.
        self.line(f"}} while ({name} < {self._random.randint(1, 3)}u);" if kind == "do" else "}")

    def _trips(self, scope: Scope, agreed: Agreed) -> str:
        most = self._random.randint(1, 4)
        if agreed == "block":
            fixed = [w for w in scope.uniform if w not in scope.set_words]
            return self._random.choice([f"{most}u", f"1u + {self._random.choice(fixed)} % {most}u"])
        if agreed == "warp":
            return self._random.choice(["threadIdx.y + 1u", "threadIdx.x / 32u"])
        return self._random.choice([f"tid % {most + 1}u", f"(tid ^ bid) % {most + 1}u"])

    def _jump(self, scope: Scope, place: Place) -> None:
        assert place.loop is not None
        jump = self._random.choice(["break", "continue"])
        self.line(f"if ({self._values.agreed(scope, place.loop)}) {jump};")

    def _may_leave(self, place: Place) -> bool:
        leaving = self._traits.leaving
        return leaving != "nobody" and _STRENGTH[place.reached] >= _STRENGTH[_AGREED_BY[leaving]]

    def _leave(self, scope: Scope, place: Place) -> None:
        condition = self._values.agreed(scope, _AGREED_BY[self._traits.leaving])
        self.line(f"if ({condition}) {{")
        with self._inside():
            if self._random.random() < 0.5:
                self._update_in_place(scope, place)
            self.line("return;")
        self.line("}")

    # --- threads that wait for each other

    def _barrier(self, scope: Scope, place: Place) -> None:
        self.line("__syncthreads();")
        for tile in self._tiles:
            tile.dirty = False

    def _exchange(self, scope: Scope, place: Place) -> None:
        tile = self._random.choice(self._tiles)
        by = f"{self._random.randint(1, self._traits.threads)}u"
        values, targets = (
            (self._values.number, scope.set_numbers)
            if tile.is_float
            else (self._values.word, scope.set_words)
        )
        value, target = values(scope, 2), self._random.choice(targets)
        value = f"bounded({value})" if tile.is_float else value
        taken = "=" if tile.is_float else self._random.choice(["=", "+=", "^="])
        if self._random.random() < 0.25 and not tile.columns:
            self.line(f"{target} {taken} tools::neighbour_of({tile.name}, {value}, {by});")
        else:
            if tile.dirty or self._random.random() < 0.1:
                self.line("__syncthreads();")
            if self._random.random() < 0.25 and not tile.columns and not tile.is_float:
                self.line(f"{target} {taken} neighbour({tile.name}, tid, {by}, {value});")
            else:
                self.line(f"{tile.slot('tid')} = {value};")
                self.line("__syncthreads();")
                at = tile.slot(f"((tid + {by}) % {self._traits.threads}u)")
                self.line(f"{target} {taken} {at};")
        tile.dirty = True

    def _reduce(self, scope: Scope, place: Place) -> None:
        words = [t for t in self._tiles if not t.is_float]
        if not words:
            return self._barrier(scope, place)
        tile, width, half = self._random.choice(words), self._name("width"), self._name("half")
        self.line("__syncthreads();")
        self.line(f"{tile.slot('tid')} = {self._values.word(scope, 2)};")
        self.line("__syncthreads();")
        self.line(f"for (unsigned {width} = {self._traits.threads}u; {width} > 1u;) {{")
        with self._inside():
            self.line(f"const unsigned {half} = ({width} + 1u) / 2u;")
            other = tile.slot(f"(tid + {half})")
            self.line(f"if (tid + {half} < {width}) {tile.slot('tid')} += {other};")
            self.line("__syncthreads();")
            self.line(f"{width} = {half};")
        self.line("}")
        self.line(f"{self._random.choice(scope.set_words)} ^= {tile.slot('0u')};")
        tile.dirty = True

    def _vote(self, scope: Scope, place: Place) -> None:
        name = self._name("vote")
        kind = self._random.choice(["or", "and", "count"])
        condition = self._values.truth(scope)
        self.line(f"const unsigned {name} = (unsigned)__syncthreads_{kind}({condition});")
        scope.uniform.append(name)

    def _total(self, scope: Scope, place: Place) -> None:
        name = self._name("total")
        self.line(f"__shared__ unsigned {name};")
        if place.depth:  # it may stand in a loop
            self.line("__syncthreads();")
        self.line(f"if (tid == {self._random.randrange(self._traits.threads)}u) {name} = bid;")
        self.line("__syncthreads();")
        self.line(f"atomicAdd(&{name}, {self._values.word(scope, 2)});")
        self.line("__syncthreads();")
        self.line(f"{self._random.choice(scope.set_words)} += {name};")
        if place.depth == 0:
            scope.words.append(name)

    def _shuffle(self, scope: Scope, place: Place) -> None:
        target = self._random.choice(scope.set_words)
        kind, by = self._random.choice([("", "tid"), ("_up", "3u"), ("_down", "5u"), ("_xor", "9")])
        value = self._values.word(scope, 2)
        if kind == "":
            by = f"(int)({self._values.word(scope, 1)} & 31u)"
        got = f"__shfl{kind}_sync(0xffffffffu, {value}, {by})"
        operator = self._random.choice(["=", "+=", "^="])
        self.line(f"{target} {operator} {got};")
        if self._random.random() < 0.3:
            number = self._random.choice(scope.set_numbers)
            self.line(f"{number} = __shfl_xor_sync(0xffffffffu, {number}, 4);")

    def _masked(self, scope: Scope, place: Place) -> None:
        mask, taken = self._name("mask"), self._name("taken")
        target = self._random.choice(scope.set_words)
        self.line(f"const bool {taken} = {self._values.truth(scope)};")
        self.line(f"const unsigned {mask} = __ballot_sync(0xffffffffu, {taken});")
        if self._random.random() < 0.5:
            self.line(f"{target} ^= {mask};")
            return
        self.line(f"if ({taken}) {{")
        self.line(f"  {target} += __shfl_sync({mask}, {target}, __ffs((int){mask}) - 1);")
        self.line("}")

    # ---

    def _name(self, stem: str) -> str:
        return f"{stem}{next(self._numbers)}"

    def _nested(self, scope: Scope, place: Place, most: int) -> None:
        place = replace(place, depth=place.depth + 1)
        with self._inside():
            self.several(scope.inner(), place, most)
        for tile in self._tiles:
            tile.dirty = True

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self._margin += 1
        yield
        self._margin -= 1


def _weaker(one: Agreed, other: Agreed) -> Agreed:
    return min(one, other, key=_STRENGTH.__getitem__)
