"""What the statements of a random kernel can read and write, and random expressions of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

# Who reaches a statement for sure: all threads of the block, all of each warp, or any.
Agreed = Literal["block", "warp", "none"]


@dataclass(frozen=True, slots=True)
class Table:
    """An array that nobody writes while the kernel runs."""

    name: str
    count: int
    is_float: bool = False


@dataclass(slots=True)
class Scope:
    """Names by use: ``words`` are unsigned, ``numbers`` float; ``uniform`` the block agrees on.

    ``calls``: functions from an unsigned to an unsigned, by name.
    """

    words: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    uniform: list[str] = field(default_factory=list)
    set_words: list[str] = field(default_factory=list)
    set_numbers: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def inner(self) -> Scope:
        """A scope inside this one: what it adds is not seen outside."""
        return replace(
            self, **{name: list(getattr(self, name)) for name in self.__dataclass_fields__}
        )


class Values:
    """Random expressions: no undefined behaviour, and floats that stay finite."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def word(self, scope: Scope, depth: int = 2) -> str:
        """An unsigned that may differ from thread to thread."""
        if depth == 0 or self._random.random() < 0.15:
            return self._word_leaf(scope)
        word: Callable[[], str] = lambda: self.word(scope, depth - 1)  # noqa: E731
        random = self._random
        makers: list[Callable[[], str]] = [
            lambda: f"({word()} {random.choice('+-*^&|')} {word()})",
            lambda: f"({word()} {random.choice(['<<', '>>'])} ({word()} & 7u))",
            lambda: f"({word()} {random.choice('/%')} ({word()} | 1u))",
            lambda: f"({self.truth(scope, depth - 1)} ? {word()} : {word()})",
            lambda: f"{random.choice(['min', 'max', '__umulhi'])}({word()}, {word()})",
            lambda: f"(unsigned){random.choice(['__popc', '__brev'])}({word()})",
            lambda: f"(unsigned)__{random.choice(['clz', 'ffs'])}((int){word()})",
            lambda: f"__float_as_uint({self.number(scope, depth - 1)})",
            lambda: f"ROTATED({word()}, {random.randint(1, 31)})",
            lambda: f"twisted<{random.randint(1, 31)}>({word()})",
            lambda: f"picked<unsigned>({self.truth(scope, depth - 1)}, {word()}, {word()})",
            lambda: f"salted({word()})",
            lambda: f"salted({word()}, {word()})",
            lambda: f"tools::first_of({word()})",
            lambda: f"(unsigned)((int)({word()} & 0xffffu) - {random.randint(1, 99)})",
            lambda: f"(unsigned)(unsigned char){word()}",
            lambda: self._call(scope, word()),
            lambda: self._read(scope, word(), is_float=False),
        ]
        return random.choice(makers)()

    def number(self, scope: Scope, depth: int = 2) -> str:
        """A float; what multiplies is bounded."""
        random = self._random
        if depth == 0 or random.random() < 0.15:
            return self._number_leaf(scope)
        number: Callable[[], str] = lambda: self.number(scope, depth - 1)  # noqa: E731
        makers: list[Callable[[], str]] = [
            lambda: f"({number()} {random.choice('+-')} {number()})",
            lambda: f"({number()} * bounded({number()}))",
            lambda: f"({number()} / (fabsf({number()}) + 1.0f))",
            lambda: f"sqrtf(fabsf({number()}))",
            lambda: f"fmaf({number()}, {self._constant()}, {number()})",
            lambda: f"({self.truth(scope, depth - 1)} ? {number()} : {number()})",
            lambda: f"picked({self.truth(scope, depth - 1)}, {number()}, {number()})",
            lambda: f"((float)({self.word(scope, depth - 1)} & 255u) * 0.0078125f)",
            lambda: self._read(scope, self.word(scope, depth - 1), is_float=True),
        ]
        return random.choice(makers)()

    def uniform(self, scope: Scope, depth: int = 2) -> str:
        """An unsigned on which all threads of a block agree."""
        random = self._random
        if depth == 0 or random.random() < 0.3:
            return random.choice([*scope.uniform, *scope.uniform, f"{random.randint(0, 40)}u"])
        uniform: Callable[[], str] = lambda: self.uniform(scope, depth - 1)  # noqa: E731
        makers: list[Callable[[], str]] = [
            lambda: f"({uniform()} {random.choice('+-*^&|')} {uniform()})",
            lambda: f"({uniform()} {random.choice('/%')} ({uniform()} | 1u))",
            lambda: f"__umulhi({uniform()}, {uniform()})",
            lambda: "block_id()",
            lambda: self._read(scope, uniform(), is_float=False),
        ]
        return random.choice(makers)()

    def truth(self, scope: Scope, depth: int = 2) -> str:
        """A condition that may differ from thread to thread."""
        random = self._random
        compared = random.choice(["<", ">", "<=", ">=", "==", "!="])
        below = max(0, depth - 1)
        makers: list[Callable[[], str]] = [
            lambda: f"({self.word(scope, below)} {compared} {self.word(scope, below)})",
            lambda: (
                f"({self.number(scope, below)} {compared[0]} {self._constant()})"
                if compared[0] in "<>"
                else f"(({self.word(scope, below)} & {random.choice([1, 2, 4])}u) != 0u)"
            ),
            lambda: f"({self.word(scope, below)} % {random.randint(2, 7)}u == 0u)",
        ]
        if depth > 1:
            makers.append(
                lambda: (
                    f"({self.truth(scope, below)} {random.choice(['&&', '||'])} "
                    f"{self.truth(scope, below)})"
                )
            )
        return random.choice(makers)()

    def agreed(self, scope: Scope, level: Agreed) -> str:
        """A condition on which the block, or each warp of 32 threads in x, agrees."""
        random = self._random
        if level == "none":
            return self.truth(scope)
        if level == "warp":
            row = random.choice(["threadIdx.y", "threadIdx.z", "threadIdx.x / 32u"])
            return f"({row} {random.choice(['==', '!=', '<', '>='])} {random.randint(0, 2)}u)"
        small = random.randint(2, 5)
        return random.choice(
            [
                f"({self.uniform(scope)} % {small}u {random.choice(['==', '!='])} 1u)",
                f"({self.uniform(scope)} {random.choice(['<', '>'])} {self.uniform(scope)})",
            ]
        )

    def _call(self, scope: Scope, argument: str) -> str:
        return f"{self._random.choice(scope.calls)}({argument})" if scope.calls else argument

    def _read(self, scope: Scope, index: str, is_float: bool) -> str:
        tables = [t for t in scope.tables if t.is_float == is_float]
        if not tables:
            return self._constant() if is_float else index
        table = self._random.choice(tables)
        return f"{table.name}[{index} % {table.count}u]"

    def _word_leaf(self, scope: Scope) -> str:
        literal = f"{self._random.choice([1, 2, 3, 5, 31, 77, 255, 65537, 4294967291])}u"
        names = [*scope.words, *scope.set_words, *scope.set_words, *scope.uniform]
        return self._random.choice([*names, literal])

    def _number_leaf(self, scope: Scope) -> str:
        return self._random.choice([*scope.numbers, *scope.set_numbers, self._constant()])

    def _constant(self) -> str:
        return self._random.choice(["0.5f", "-0.25f", "0.9375f", "1.0f", "0.1f", "-0.7f"])
