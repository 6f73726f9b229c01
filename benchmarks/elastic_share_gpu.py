"""How much of a normal network's time alone lies in steps that run in their elastic form.

For pairs of our CUDA networks under policy `miriam`, in worlds of a GPU: each step's time alone is
measured, and the step counts as elastic where a session records its elastic form.

    python -m benchmarks.elastic_share_gpu OUT.json       needs a GPU, miriam-gpu[cuda,elastic]
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.pairs_rows import SHARES
from miriam import models
from miriam.coordinator import Mix, Task, policies
from miriam.devices.cuda.words import Layout
from miriam.kernels import GpuSpec

WORLDS = (None, 32, 16)
PAIRS = (
    ("resnet50", "squeezenet"),
    ("squeezenet", "alexnet"),
    ("squeezenet", "resnet50"),
    ("alexnet", "squeezenet"),
)


@dataclass(frozen=True, slots=True)
class Share:
    """A normal network beside a critical one in a world of ``sms``."""

    sms: int
    critical: str
    normal: str
    steps: int
    elastic_steps: int
    alone_us: float
    elastic_us: float


def share(gpu: GpuSpec, tasks: tuple[Task, Task], step_ns: tuple[tuple[int, ...], ...]) -> Share:
    """The share of ``tasks``: a critical and a normal one, whose steps take ``step_ns`` alone."""
    mix = Mix(gpu, tasks, step_ns)
    layout = Layout(mix, [policies.get("miriam").plan(mix)])
    words = [layout.step(1, 0, index) for index in range(len(step_ns[1]))]
    elastic = [
        ns for ns, word in zip(step_ns[1], words, strict=True) if word is not None and word.elastic
    ]
    return Share(
        sms=gpu.sms,
        critical=tasks[0].name,
        normal=tasks[1].name,
        steps=len(words),
        elastic_steps=len(elastic),
        alone_us=sum(step_ns[1]) / 1e3,
        elastic_us=sum(elastic) / 1e3,
    )


def main() -> None:
    """Measure, print a line per pair and world, and write the JSON."""
    from miriam.devices.cuda.about import about
    from miriam.devices.cuda.device import CudaDevice
    from miriam.devices.cuda.world import gpu

    found = gpu(0)
    names = sorted({name for pair in PAIRS for name in pair})
    programs = {name: models.load(name, found.arch) for name in names}
    rows = []
    for sms in WORLDS:
        world = found.whole() if sms is None else found.world(0, sms)
        device = CudaDevice(found, world, counting=False)
        step_ns = {
            name: tuple(step.original_ns for step in device.profile(program))
            for name, program in programs.items()
        }
        for critical, normal in PAIRS:
            tasks = (
                Task(critical, programs[critical], critical=True),
                Task(normal, programs[normal], in_flight=4),
            )
            rows.append(share(device.gpu, tasks, (step_ns[critical], step_ns[normal])))
            print(rows[-1], flush=True)
    report: dict[str, Any] = {"schema": SHARES, **asdict(about(0))}
    report["rows"] = [asdict(row) for row in rows]
    Path(sys.argv[1]).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
