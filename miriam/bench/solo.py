"""Networks whose solo outputs come from the device that the benchmark runs on."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

from miriam.bench.networks import Networks
from miriam.coordinator import Task, policies
from miriam.devices.contract import Arrays, Device
from miriam.errors import ExecutionError
from miriam.kernels import Program

_LIMIT_NS = 60_000_000_000
_MOST_INPUTS = 64


@dataclass(slots=True)
class OnDevice:
    """``networks``, with what they give alone on ``device``: original kernels, nothing beside.

    Two kinds of device may differ in the last bits (``expf`` does); one and the same may not.
    """

    networks: Networks
    device: Device
    _outputs: dict[tuple[str, bytes], Arrays] = field(default_factory=dict)

    def program(self, network: str) -> Program:
        """The program of ``network``."""
        return self.networks.program(network)

    def weights(self, network: str) -> Arrays:
        """An array per weight buffer."""
        return self.networks.weights(network)

    def inputs(self, network: str, ordinal: int) -> Arrays:
        """An array per input buffer for a task's request number ``ordinal``."""
        return self.networks.inputs(network, ordinal)

    def expected(self, network: str, ordinal: int) -> Arrays:
        """The outputs for these inputs when the network runs alone on the device."""
        inputs = self.inputs(network, ordinal)
        key = network, b"".join(array.tobytes() for array in inputs.values())
        if key not in self._outputs:
            self._outputs[key] = self._alone(network, inputs)
        return self._outputs[key]

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
