"""What the benchmark asks of whoever supplies its networks."""

from __future__ import annotations

from typing import Protocol

from miriam.devices.contract import Arrays
from miriam.kernels import Program


class Networks(Protocol):
    """Programs by name with their weights and inputs, and the outputs that they give alone."""

    def program(self, network: str) -> Program:
        """The program of ``network``."""

    def weights(self, network: str) -> Arrays:
        """An array per weight buffer."""

    def inputs(self, network: str, ordinal: int) -> Arrays:
        """An array per input buffer for a task's request number ``ordinal``.

        Requests with the same arrays get one and the same mapping.
        """

    def expected(self, network: str, ordinal: int) -> Arrays:
        """The outputs for these inputs when the network runs alone."""
