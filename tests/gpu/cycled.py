"""Opens many sessions of a tenth of a second in a small world, one policy after the other.

``python -m tests.gpu.cycled SESSIONS [POLICY,...]``; what a benchmark does, without its figures.
Six processes at once find what one does not (docs/bench.md, "A fault in worlds of some SMs").
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing

from miriam import devices, models
from miriam.coordinator import Task
from miriam.coordinator.policies import get
from tests.gpu.support import Loop

NETWORKS = ("squeezenet", "alexnet")
POLICIES = ("multistream", "partition", "vacate", "miriam", "gate", "multistream-equal")
SESSION_S = 0.1


def main(sessions: int, policies: Sequence[str]) -> None:
    """Open so many sessions, each loaded until it is closed."""
    device = devices.get("cuda:0:32")
    pictures = [models.example_input(name, 0) for name in NETWORKS]
    tasks = [
        Task(
            name,
            models.load(name, device.gpu.arch),
            critical=number == 0,
            in_flight=1 + number,
            weights=models.weights(name, 0),
        )
        for number, name in enumerate(NETWORKS)
    ]
    for number in range(sessions):
        policy = policies[number % len(policies)]
        print(number, policy, flush=True)
        with closing(device.open(tasks, get(policy))) as session:
            Loop(session, tasks, lambda task, _: pictures[task]).run(SESSION_S)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2].split(",") if sys.argv[2:] else POLICIES)
