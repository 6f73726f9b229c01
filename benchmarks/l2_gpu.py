"""What it brings that a critical network's weights have a part of L2: pairs with and without it.

    python -m benchmarks.l2_gpu > docs/results/l2.md       needs a GPU, miriam-gpu[cuda,elastic]

Both in turn, twice, each time in all worlds; each row beside its own measurements alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import nan

from miriam.bench import InProcess, Options, RowFigures
from miriam.bench.execute import Unobserved, workshop
from miriam.bench.studies import run
from miriam.devices.cuda import l2
from miriam.devices.cuda.about import about

Value = Callable[[RowFigures], float]
"""A figure of a row, nan where there is none."""

SHARES = {"off": 0.0, "on": l2.SHARE}
ROUNDS = 2
OPTIONS = Options(
    benchmark="pairs",
    device="cuda:0",
    policies=("gate", "sequential"),
    seconds=0.25,
    seed=1,
    workloads=("squeezenet+resnet50", "squeezenet+alexnet"),
    in_flight=2,
    gaps_us=(4_000.0,),
    worlds=(0, 32),
)

HEAD = """\
# Critical weights that stay in L2

SqueezeNet, critical, beside a network that streams its weights through L2, on {gpu} with driver
{driver} ({date}). *off*: as everywhere else in CUDA; *on*: SqueezeNet's weights, 5 MB, may stay in
a part of L2 that is set aside for them (`miriam/devices/cuda/l2.py`). Service of the critical
network from its first kernel on over that alone, p50 and p99, and *H*, the normal network's rate
over its rate alone; both rounds, in the order in which they were measured: off, on, off, on.
Outputs of all rows: {verified}. `{command}`

| world | pair | policy | p50 off | on | p99 off | on | H off | on |
|---|---|---|---|---|---|---|---|---|"""


def measured(share: float) -> tuple[RowFigures, ...]:
    """All rows with so much of L2 for critical weights; of sessions opened from now on."""
    l2.SHARE = share
    return tuple(run(OPTIONS, InProcess(workshop(OPTIONS.seed), Unobserved())).rows)


def lines(rounds: Sequence[Mapping[str, Sequence[RowFigures]]]) -> Iterator[str]:
    """A line per world, pair and policy."""
    for index, row in enumerate(rounds[0]["off"]):
        cells = [row.point.world or OPTIONS.device, row.workload, row.policy]
        for value in (_over(50), _over(99), _rate):
            cells += [
                ", ".join(f"{value(each[name][index]):.2f}" for each in rounds) for name in SHARES
            ]
        yield f"| {' | '.join(cells)} |"


def _over(percent: float) -> Value:
    def value(row: RowFigures) -> float:
        task = row.critical[0]
        here, alone = task.service.percentile(percent), task.solo_service.percentile(percent)
        return here / alone if here and alone else nan

    return value


def _rate(row: RowFigures) -> float:
    rate = row.normal[0].relative_rate
    return nan if rate is None else rate


def main() -> None:
    """Measure, and print the page."""
    rounds = [{name: measured(share) for name, share in SHARES.items()} for _ in range(ROUNDS)]
    rows = [row for each in rounds for found in each.values() for row in found]
    here = about(0)
    print(
        HEAD.format(
            gpu=here.gpu,
            driver=here.driver["name"],
            date=here.date,
            verified="verified" if all(row.verified for row in rows) else "not all right",
            command="python -m benchmarks.l2_gpu",
        )
    )
    print("\n".join(lines(rounds)))


if __name__ == "__main__":
    main()
