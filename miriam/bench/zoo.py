"""The benchmark's networks from the model zoo, with solo outputs from the host."""

from __future__ import annotations

from miriam import models
from miriam.devices.contract import Arrays
from miriam.devices.host import Host, HostProgram
from miriam.kernels import Program

DISTINCT_INPUTS = 4


class Zoo:
    """The networks of ``miriam.models`` for one architecture, run alone on the host.

    Weights and inputs come from ``seed``; requests take turns over four distinct inputs, so
    that four solo runs of a network serve every request. ``workers``: threads that compute, by
    default one per core.
    """

    def __init__(self, arch: str, seed: int, workers: int | None = None) -> None:
        self._arch, self._seed, self._workers = arch, seed, workers
        self._programs: dict[str, Program] = {}
        self._weights: dict[str, Arrays] = {}
        self._inputs: dict[tuple[str, int], Arrays] = {}
        self._outputs: dict[tuple[str, int], Arrays] = {}
        self._host_programs: dict[str, HostProgram] = {}

    def program(self, network: str) -> Program:
        """The program of ``network``; UnknownNameError lists the known ones."""
        if network not in self._programs:
            self._programs[network] = models.load(network, self._arch)
        return self._programs[network]

    def weights(self, network: str) -> Arrays:
        """An array per weight buffer, drawn from the seed."""
        if network not in self._weights:
            self._weights[network] = models.weights(network, self._seed)
        return self._weights[network]

    def inputs(self, network: str, ordinal: int) -> Arrays:
        """An array per input buffer; request ``ordinal`` + 4 has the same."""
        key = network, ordinal % DISTINCT_INPUTS
        if key not in self._inputs:
            self._inputs[key] = models.example_input(network, self._seed + key[1])
            for array in self._inputs[key].values():
                array.setflags(write=False)
        return self._inputs[key]

    def expected(self, network: str, ordinal: int) -> Arrays:
        """The outputs of a solo run on the host; MissingCapabilityError without g++."""
        key = network, ordinal % DISTINCT_INPUTS
        if key not in self._outputs:
            request = self._compiled(network).request()
            request.write(self.inputs(*key))
            request.run_all()
            self._outputs[key] = request.outputs()
        return self._outputs[key]

    def _compiled(self, network: str) -> HostProgram:
        if network not in self._host_programs:
            program, weights = self.program(network), self.weights(network)
            self._host_programs[network] = Host(workers=self._workers).load(program, weights)
        return self._host_programs[network]
