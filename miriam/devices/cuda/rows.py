"""How a critical request writes its row of the control words: by fills and by copies.

A fill is done by the front end of the GPU and waits for nobody. A copy from the host's memory waits
for the copies of inputs before it: 600 KB of a normal request's take tens of microseconds. Neither
needs a place on an SM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.words import SM_WORDS


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a critical task in the host's memory: those before ``steps``, and the idle one.

    ``lines``: a view of them, which begin at ``address``.
    """

    steps: tuple[int, ...]
    lines: NDArray[np.uint32]
    address: int

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return int(self.lines[0].nbytes)


class RowWrites:
    """What a lane says in its row at ``row``."""

    def __init__(self, table: Table, row: int) -> None:
        self.steps: Sequence[int] = table.steps
        self._table, self._row = table, row
        self._width = table.lines.shape[1] - SM_WORDS

    def begin(self, stream: Any) -> None:
        """Stop what may not go on beside the first step.

        By a fill where that is everything. What may go on is not stopped first: it would lose a
        block's time with every request.
        """
        # Read now and not when the graph was recorded: the plan may have changed.
        if self._table.lines[0][SM_WORDS:].any():
            self._copy(0, stream)
        else:
            self._fill(0, stream)

    def before(self, number: int, stream: Any) -> None:
        """The row of ``steps[number]``, as it will be when the copy is made."""
        self._copy(number, stream)

    def end(self, stream: Any) -> None:
        """The row of a request that does not run."""
        self._copy(len(self.steps), stream)

    def _fill(self, value: int, stream: Any) -> None:
        ask(driver.cuMemsetD32Async(self._row + 4 * SM_WORDS, value, self._width, stream))

    def _copy(self, line: int, stream: Any) -> None:
        size = self._table.row_bytes
        ask(driver.cuMemcpyHtoDAsync(self._row, self._table.address + size * line, size, stream))
