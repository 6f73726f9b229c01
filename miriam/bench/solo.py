"""Networks whose solo outputs come from the device that the benchmark runs on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from miriam.bench.networks import Networks
from miriam.bench.pytorch import TorchModels, is_captured
from miriam.bench.workloads import WorkloadTask
from miriam.coordinator import Task, policies
from miriam.devices.contract import Arrays, Device
from miriam.errors import ExecutionError
from miriam.kernels import Program

_LIMIT_NS = 60_000_000_000
_MOST_INPUTS = 64


@dataclass(slots=True)
class OnDevice:
    """``networks`` and ``captures``, with what they give alone on ``device``: nothing beside.

    Two kinds of device may differ in the last bits (``expf`` does); one and the same may not.
    """

    networks: Networks
    device: Device
    captures: TorchModels
    _outputs: dict[tuple[str, int], tuple[Arrays, Arrays]] = field(default_factory=dict)

    def program(self, network: str) -> Program:
        """The program of ``network``."""
        source = self.captures if is_captured(network) else self.networks
        return source.program(network)

    def programs(self, tasks: Sequence[WorkloadTask]) -> list[Program]:
        """The program of each task; a captured one has no other user among them."""
        users: Counter[str] = Counter()
        found = []
        for task in tasks:
            if is_captured(task.network):
                copy = users[task.network]
                found.append(self.captures.program(task.network, task.in_flight, copy))
            else:
                found.append(self.networks.program(task.network))
            users[task.network] += 1
        return found

    def weights(self, network: str) -> Arrays:
        """An array per weight buffer; a capture has its weights inside."""
        return {} if is_captured(network) else self.networks.weights(network)

    def inputs(self, network: str, ordinal: int) -> Arrays:
        """An array per input buffer for a task's request number ``ordinal``."""
        source = self.captures if is_captured(network) else self.networks
        return source.inputs(network, ordinal)

    def expected(self, network: str, ordinal: int) -> Arrays:
        """The outputs for these inputs when the network runs alone on the device."""
        inputs = self.inputs(network, ordinal)
        # Not by what is in them: reading whole pictures would keep requests of a row waiting.
        key = network, id(inputs)
        if key not in self._outputs:
            self._outputs[key] = inputs, self._alone(network, inputs)
        return self._outputs[key][1]

    def prepare(self, network: str) -> None:
        """Run ``network`` alone on each of its inputs, so that nothing has to during a row."""
        for ordinal in range(_MOST_INPUTS):
            known = len(self._outputs)
            self.expected(network, ordinal)
            if len(self._outputs) == known:
                return

    def _alone(self, network: str, inputs: Arrays) -> Arrays:
        task = Task(network, self.program(network), weights=self.weights(network))
        with closing(self.device.open([task], policies.get("multistream"))) as session:
            session.submit(0, session.now_ns, inputs)
            done = session.advance(session.now_ns + _LIMIT_NS)
        if not done or done[0].outputs is None:
            raise ExecutionError(f"{network} alone on {self.device.name} gave no outputs")
        return done[0].outputs
