"""A kernel with its arguments on the host: each run starts from the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from miriam.check.launchfile import Alias, Array, KernelLaunch, Value
from miriam.check.values import filled, first_difference
from miriam.devices.host import Host, HostKernel, Schedule
from miriam.elastic.launch import Control, launch_bytes
from miriam.errors import ExecutionError
from miriam.kernels import Buffer, Dim3

# The arrays in the order of the arguments, then the file's __device__ variables.
State = tuple[NDArray[np.generic], ...]

_WORDS = "miriam words"
_RUNS = "miriam runs"
_BEYOND = 64  # numbers that the grid does not have, counted too
_GUARD_BYTES = 1 << 30
_POISON = 0xFF


@dataclass(frozen=True, slots=True)
class Range:
    """Logical blocks ``start`` to ``start + count - 1``."""

    start: int
    count: int


class Subject:
    """A kernel in its original and elastic forms, and its arguments."""

    def __init__(
        self,
        host: Host,
        launch: KernelLaunch,
        forms: Mapping[str, HostKernel],
        seed: int,
        folds: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """``forms``: ``original``, ``slice``, ``persistent``, ``yield``, and those of ``folds``.

        ``folds``: by name, the threads of a physical block; its forms are ``block/2 slice`` and
        the like.
        """
        self.folds = folds
        self._host, self._launch, self._forms = host, launch, forms
        self._arrays = [(i, a) for i, a in enumerate(launch.args) if isinstance(a, Array)]
        buffers = [Buffer(str(i), (a.count,), "scratch", a.dtype) for i, a in self._arrays]
        words = Buffer(_WORDS, (2,), "scratch", "uint32")
        runs = Buffer(_RUNS, (launch.grid.size + _BEYOND,), "scratch", "uint32")
        self._memory = host.memory([*buffers, words, runs], _GUARD_BYTES)
        self._initial = {i: _initial(a, (seed, i)) for i, a in self._arrays}
        self._variables = forms["original"].data
        self._variables_initial = self._variables.copy()
        self._arguments = [self._argument(i, a) for i, a in enumerate(launch.args)]

    @property
    def blocks(self) -> int:
        """Number of logical blocks."""
        return self._launch.grid.size

    def forms_of(self, fold: str) -> tuple[str, ...]:
        """The forms that there are of ``fold``."""
        return tuple(f.partition(" ")[2] for f in self._forms if f.partition(" ")[0] == fold)

    @property
    def words(self) -> NDArray[np.uint32]:
        """Counter and quota of the yield form, in place."""
        return self._memory.view(_WORDS).view(np.uint32)

    def run(self, work: Callable[[], None]) -> State:
        """The arrays after ``work``, which starts from their initial values.

        ExecutionError also where something was written beside an array.
        """
        for index, _ in self._arrays:
            np.copyto(self._memory.view(str(index)), self._initial[index])
        np.copyto(self._variables, self._variables_initial)
        self._memory.view(_RUNS).fill(0)
        work()
        beside = self._memory.overrun()
        if beside is not None:
            raise ExecutionError(f"a block wrote out of the bounds of argument {beside}")
        arrays = (self._memory.view(str(i)).copy() for i, _ in self._arrays)
        return (*arrays, self._variables.copy())

    def poison_outputs(self, state: State) -> None:
        """Start the arrays that are only written from poison: what is left out then shows.

        ``state``: what the original leaves. Such an array is one that it changes, of which it
        leaves the same from poison, poison where it changes nothing, and all other arrays as
        before.
        """
        for position, (index, _) in enumerate(self._arrays):
            before = self._initial[index]
            if first_difference(before, state[position]) is None:
                continue
            self._initial[index] = _poisoned(before)
            try:
                tried = self.run(self.original)
            except ExecutionError:
                tried = None
            if tried is None or not _is_written_only(position, before, state, tried):
                self._initial[index] = before

    def changed(self, state: State) -> bool:
        """Whether ``state`` differs from the initial values in any byte."""
        before = (*self._initial.values(), self._variables_initial)
        return self.difference(before, state) is not None

    def difference(self, wanted: State, got: State) -> str | None:
        """The first element that differs: its argument, its index and both values."""
        for (index, _), left, right in zip(self._arrays, wanted, got, strict=False):
            found = first_difference(left, right)
            if found is not None:
                element, should, is_ = found
                return f"argument {index}, element {element}: {should!s} became {is_!s}"
        if (wanted[-1] != got[-1]).any():
            return "a __device__ variable"
        return None

    def miscounted(self) -> str | None:
        """The first logical block that the elastic work of the last ``run`` did not run once.

        Without it a block that ran twice shows only where that changes what it leaves.
        """
        runs = self._memory.view(_RUNS)
        (wrong,) = np.nonzero(runs != (np.arange(runs.size) < self.blocks))
        if not wrong.size:
            return None
        number = int(wrong[0])
        if number >= self.blocks:
            return f"logical block {number} ran, of {self.blocks}"
        return f"logical block {number} ran {runs[number]} times"

    def original(
        self, blocks: Sequence[int] | None = None, *, schedule: Schedule = "shuffled", seed: int = 0
    ) -> None:
        """Run the original kernel."""
        workers = self._host.workers if schedule == "shuffled" else 1
        launch = self._launch
        self._run("original", launch.grid, launch.block, [], blocks, workers, schedule, seed)

    def slice(self, part: Range, seed: int, fold: str = "") -> None:
        """Run ``part`` with the slice form; on the threads of ``fold`` if one is named."""
        self._elastic("slice", part, self._control(), part.count, "shuffled", seed, fold)

    def persistent(self, part: Range, physical: int, seed: int, fold: str = "") -> None:
        """Run ``part`` on ``physical`` racing blocks."""
        self._elastic("persistent", part, self._control(), physical, "together", seed, fold)

    def resume(self, part: Range, physical: int, seed: int, fold: str = "") -> None:
        """Run ``part`` on racing blocks that claim from ``words`` until they have to leave."""
        at = self._memory.address(_WORDS)
        self._elastic("yield", part, self._control(at, at + 4), physical, "together", seed, fold)

    def _elastic(
        self,
        form: str,
        part: Range,
        control: Control,
        physical: int,
        schedule: Schedule,
        seed: int,
        fold: str,
    ) -> None:
        launch = self._launch
        given = launch_bytes(launch.grid, part.start, part.count, control, block=launch.block)
        workers = self._host.workers if schedule == "shuffled" else 1
        name = f"{fold} {form}" if fold else form
        block = Dim3(self.folds[fold]) if fold else launch.block
        self._run(name, Dim3(physical), block, [given], None, workers, schedule, seed)

    def _run(
        self,
        form: str,
        grid: Dim3,
        block: Dim3,
        first: list[bytes],
        blocks: Sequence[int] | None,
        workers: int,
        schedule: Schedule,
        seed: int,
    ) -> None:
        self._forms[form].launch(
            grid,
            block,
            [*first, *self._arguments],
            shared_bytes=self._launch.shared_bytes,
            blocks=blocks,
            workers=workers,
            seed=seed,
            schedule=schedule,
        )

    def _control(self, counter: int = 0, quota: int = 0) -> Control:
        return Control(counter, quota, runs=self._memory.address(_RUNS))

    def _argument(self, index: int, argument: Array | Value | Alias) -> bytes:
        if isinstance(argument, Value):
            return argument.data
        at = argument.of if isinstance(argument, Alias) else index
        return self._memory.address(str(at)).to_bytes(8, "little")


def _is_written_only(
    position: int, before: NDArray[np.generic], state: State, tried: State
) -> bool:
    for at, (wanted, got) in enumerate(zip(state, tried, strict=True)):
        same = _bytes(wanted) == _bytes(got)
        if at == position:
            same |= (_bytes(wanted) == _bytes(before)) & (_bytes(got) == _POISON)
        if not same.all():
            return False
    return True


def _bytes(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return array.view(np.uint8)


def _initial(array: Array, seed: Sequence[int]) -> NDArray[np.generic]:
    if array.fill is None:
        return _poisoned(np.empty(array.count, array.dtype))
    return filled(array.dtype, array.count, array.fill, array.bounds, seed)


def _poisoned(like: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.full(like.nbytes, _POISON, np.uint8).view(like.dtype)
