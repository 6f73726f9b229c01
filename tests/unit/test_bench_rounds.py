"""Benchmarks on a real device run in rounds."""

from __future__ import annotations

from bench_fakes import MS, FakeDevice, FakeNetworks, Silent, asked

from miriam.bench import Cell, Closed, Machine, Workload, WorkloadTask, Workshop, run_cells
from miriam.bench.rounds import ROUNDS, InRounds

PAIR = Workload(
    "W",
    (
        WorkloadTask("c", "c", Closed(), critical=True),
        WorkloadTask("n", "n", Closed(2), in_flight=2),
    ),
)


def test_rounds_measure_alone_before_and_after_and_add_up() -> None:
    device = FakeDevice({"c": 2 * MS, "n": 3 * MS}, name="cuda:0", simulated=False)
    workshop = Workshop(lambda machine, compute: device, lambda arch: FakeNetworks())
    observer = Silent()
    options = asked("gate", "sequential", seconds=0.4)
    cells = [Cell(Machine(device.name), PAIR)]
    result = run_cells(options, "MDTB", cells, InRounds(workshop, observer))
    gate, sequential = result.rows
    assert (gate.verified, sequential.verified) == (True, True)
    assert observer.rows == ["W gate", "W sequential"]
    # Rounds of 100 ms, 2 + 3 + 3 ms a turn, the first request of each not waiting for a turn.
    assert sequential.critical[0].latency.count == ROUNDS * 13
    assert sequential.critical[0].rate_hz == 130
    assert gate.critical[0].latency.count == ROUNDS * 7
    assert sequential.critical[0].solo_latency.percentile(50) == 2 * MS
    assert gate.drift == 0
    # Two tasks alone in each round and once more in the end, besides two rows in each round and
    # the solo outputs of two networks for two inputs.
    assert len(device.sessions) == 2 * (ROUNDS + 1) + 2 * ROUNDS + 4
