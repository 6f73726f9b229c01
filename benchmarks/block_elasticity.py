"""Writes docs/results/block-elasticity.md: MDTB in the simulator with and without elastic blocks.

python -m benchmarks.block_elasticity > docs/results/block-elasticity.md
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date

from miriam import __version__, models
from miriam.bench import Job, JobRecord, Options, Processes, RowFigures, execute, studies
from miriam.bench.progress import step_times
from miriam.bench.studies import mdtb
from miriam.coordinator import Mix, Task, policies
from miriam.devices.sim import SimDevice, preset

GPUS = ("rtx2060", "xavier", "orin")
POLICIES = ("miriam", "miriam-grid")
SECONDS = {"ours": 1.0, "tango": 4.0}
SEED = 1
HEAD = """# What elastic blocks bring, simulated

**Every figure on this page is simulated**, by the block-level model that `docs/architecture.md`
describes; no GPU was involved.

Made by `python -m benchmarks.block_elasticity` with Miriam {version} on {date}, seed {seed}.

`miriam` may grant a normal step blocks of the original's threads, of a half or of a quarter;
`miriam-grid` grants blocks of the original's size and is the same in all else. The folded forms
have the registers and shared bytes that the compiler reports. *overhead*: critical latency over
the same percentile alone (p99 of n requests); *H*: the normal network's rate over its rate alone;
*h*: the same while a critical request is running. *ours*: the kernels that this project ships,
{ours} s of each row; *tango*: the grids and blocks of the public Tango suite, {tango} s.
"""
GRANTS = """
## What is granted

Of all pairs of a critical and a normal step, how many get a grant with blocks of all threads, of a
half and of a quarter, and how many none.

| kernels | GPU | workload | closed | all | half | quarter |
|---|---|---|---|---|---|---|
"""
READING = """
## Reading

- Elastic blocks act only where the threads of a block are what limits a grant. The second line of
  Eq. 2 leaves a normal block at least half of an SM's threads, and our kernels have 128 or 256: it
  never binds there. What binds is the policy's own rule beside critical steps bound by DRAM, an
  eighth of an SM's threads (128 on rtx2060, 192 on orin, 256 on xavier), for the pooling,
  normalisation and softmax kernels with 256.
- That is enough in A, where it concerns six of CifarNet's twelve steps: H grows from 0.098 to 0.174
  on rtx2060 and from 0.083 to 0.131 on orin, and the critical median from 1.00x to 1.03x and from
  1.06x to 1.07x. On xavier no block is too large, and nothing changes.
- In B, C and D with our kernels the figures are the same with and without.
- Tango's blocks have up to 1,024 threads. In B on rtx2060 the critical network takes 216 ms and is
  asked for every 100 ms, so that it is always running; AlexNet's first layer then hardly finds room
  and the network stands still (H 0.000); with folded blocks it moves a little (0.037). On xavier B
  has the same H and a lower p99. Elsewhere nothing changes.
- Where requests come faster than the critical network can serve them (tango B on rtx2060 and orin)
  they queue, alone too; a ratio below 1 means nothing there.
- A quarter of the threads is hardly ever granted: the score prefers the most threads that fit.
- The model gives a folded block the rate of its warps. That a thread with the work of several has
  more independent instructions in flight is not in it; a GPU has to tell what that is worth.

So with this policy and these networks the elastic grid does most of the work, and elastic blocks
help in a few places.
"""


class Quiet(execute.Unobserved):
    """Sees which job is done."""

    def finished(self, job: Job, record: JobRecord) -> None:
        """A job is done."""
        print(job.machine.name, job.workload, job.policy, file=sys.stderr)


def options(gpu: str, geometry: str) -> Options:
    """MDTB under both policies."""
    return Options(
        benchmark="mdtb",
        device=f"sim:{gpu}",
        policies=POLICIES,
        seconds=SECONDS[geometry],
        seed=SEED,
        workloads=mdtb.WORKLOADS,
        geometry=geometry,
    )


def figures(row: RowFigures) -> str:
    """Critical overhead, H and h of a row."""
    critical, normal = row.critical[0], row.normal[0]
    values = (critical.overhead(50), critical.overhead(99))
    rates = (normal.relative_rate, normal.relative_rate_beside)
    p50, p99 = ("-" if v is None else f"{v:.2f}x" for v in values)
    whole, beside = ("-" if v is None else f"{v:.3f}" for v in rates)
    return f"{p50} | {p99} ({critical.latency.count}) | {whole} | {beside}"


def compared() -> Iterator[str]:
    """A line per geometry, GPU and workload."""
    executor = Processes(SEED, execute.cores(), Quiet())
    for geometry in SECONDS:
        yield f"\n## {geometry}\n"
        heads = [f"{p}: overhead p50 | p99 (n) | H | h" for p in POLICIES]
        yield f"| GPU | workload | {' | '.join(heads)} |"
        yield f"|{'---|' * (2 + 4 * len(heads))}"
        for gpu in GPUS:
            result = studies.run(options(gpu, geometry), executor)
            rows = {(row.workload, row.policy): row for row in result.rows}
            for name in mdtb.WORKLOADS:
                cells = " | ".join(figures(rows[name, policy]) for policy in POLICIES)
                yield f"| {gpu} | {name} | {cells} |"


def granted(gpu: str, geometry: str, name: str) -> str:
    """How many pairs of steps are granted which blocks."""
    device = SimDevice(preset(gpu))
    work = mdtb.workload(name, options(gpu, geometry))
    tasks = tuple(
        Task(t.name, models.load(t.network, device.gpu.arch), critical=t.critical)
        for t in work.tasks
    )
    alone_ns = tuple(step_times(device, task.program) for task in tasks)
    plan = policies.get("miriam").plan(Mix(device.gpu, tasks, alone_ns))
    counts: Counter[int] = Counter()
    for (_, normal), table in plan.grants.items():
        for row in table:
            for step, grant in zip(tasks[normal].program.steps, row, strict=True):
                kernel = step.kernel
                form = kernel.variant(grant.threads or kernel.threads)
                counts[form.fold if grant.blocks else 0] += 1
    return " | ".join(str(counts[fold]) for fold in (0, 1, 2, 4))


def main() -> None:
    """Print the page."""
    words = {"version": __version__, "date": date.today().isoformat(), "seed": SEED}
    seconds = {geometry: f"{value:g}" for geometry, value in SECONDS.items()}
    print(HEAD.format(**words, **seconds), end="")
    for line in compared():
        print(line, flush=True)
    print(GRANTS, end="")
    for geometry in SECONDS:
        for gpu in GPUS:
            for name in mdtb.WORKLOADS:
                print(f"| {geometry} | {gpu} | {name} | {granted(gpu, geometry, name)} |")
    print(READING, end="")


if __name__ == "__main__":
    main()
