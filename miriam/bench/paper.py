"""The paper's evaluation in the simulator, beside the paper's numbers, as a Markdown page.

Numbers of the paper and the causes of disagreements are in ``paper.toml``; everything else is run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from miriam.bench import html_parts, overheads, overheads_table, studies
from miriam.bench.execute import Executor, workshop
from miriam.bench.metrics import BenchResult, RowFigures
from miriam.bench.options import GEOMETRIES, Options
from miriam.bench.overheads import NAME as OVERHEADS
from miriam.bench.overheads import OverheadsReport, measure
from miriam.bench.pruning import NAME as SHRINK
from miriam.bench.pruning import PAIRS, ShrinkReport, explore

DATA = Path(__file__).with_suffix(".toml")
GPUS = ("rtx2060", "xavier")
POLICIES = ("sequential", "multistream", "barrier", "gate", "miriam")
FACTORS = (0.7, 1.3)
PARAMETERS = {
    "bandwidth": "DRAM and L2 bandwidth",
    "issue": "issue rate of an SM",
    "launch": "costs of launching and coordinating",
}
# Naive kernels are slower by an order of magnitude, so that the same number of requests takes so.
_SECONDS = {
    ("mdtb", "ours"): 1.0,
    ("mdtb", "tango"): 4.0,
    ("lgsvl", "ours"): 4.0,
    ("lgsvl", "tango"): 10.0,
    ("alexnets", "ours"): 0.05,
    ("alexnets", "tango"): 0.5,
    ("pairs", "ours"): 0.2,
    ("growth", "ours"): 0.5,
    ("robust", "ours"): 0.1,
    ("robust", "tango"): 1.0,
}
_POLICIES = {"alexnets": ("sequential", "multistream", "miriam")}
# Of the pairs, those of Fig. 2: one critical network beside several others.
_WORKLOADS = {
    "robust": ("A",),
    "pairs": ("resnet50+alexnet", "resnet50+squeezenet", "resnet50+cifarnet"),
}


class Claim(msgspec.Struct):
    """A number of the paper, and where the simulator's is."""

    text: str
    gpu: str
    workload: str
    policy: str
    figure: str
    paper: str


class Cause(msgspec.Struct):
    """Why simulator and paper disagree."""

    title: str
    text: str


class Data(msgspec.Struct):
    """What is known beforehand."""

    claim: list[Claim]
    cause: list[Cause]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the project says of MDTB A, and whether a result bears it out."""

    text: str
    holds: Callable[[Mapping[str, RowFigures]], bool]


def _over(row: RowFigures) -> float:
    return row.critical[0].overhead(50) or 0.0


def _rate(row: RowFigures) -> float:
    return row.normal[0].relative_rate or 0.0


CONCLUSIONS = (
    Conclusion(
        "Multi-stream slows the critical network more than Miriam does",
        lambda rows: _over(rows["multistream"]) > _over(rows["miriam"]),
    ),
    Conclusion(
        "Miriam's critical latency is at most 1.28 x alone",
        lambda rows: _over(rows["miriam"]) <= 1.28,
    ),
    Conclusion(
        "Miriam completes more requests per second than Sequential",
        lambda rows: rows["miriam"].throughput_rps > rows["sequential"].throughput_rps,
    ),
    Conclusion(
        "Miriam's normal rate is at least twice the gate's",
        lambda rows: _rate(rows["miriam"]) >= 2 * _rate(rows["gate"]),
    ),
)
_Results = Mapping[tuple[str, str, str], BenchResult]
_Robust = Mapping[tuple[str, str], Sequence[BenchResult]]
SETTINGS: tuple[tuple[tuple[str, float], ...], ...] = (
    (),
    *(((parameter, factor),) for parameter in PARAMETERS for factor in FACTORS),
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that was run: by study, GPU and geometry, and MDTB A under each of SETTINGS."""

    results: _Results
    robust: _Robust
    shrinking: ShrinkReport
    overheads: OverheadsReport


def evaluate(executor: Executor, seed: int) -> Evaluation:
    """Run everything."""
    main = [
        (study, gpu, geometry)
        for gpu in GPUS
        for geometry in GEOMETRIES
        for study in (("mdtb", "lgsvl", "alexnets") if gpu == GPUS[0] else ("mdtb",))
    ]
    main += [(study, GPUS[0], "ours") for study in ("pairs", "growth")]
    return Evaluation(
        results={key: studies.run(_options(*key, seed), executor) for key in main},
        robust={
            (gpu, geometry): [
                studies.run(_options("robust", gpu, geometry, seed, scaled), executor)
                for scaled in SETTINGS
            ]
            for gpu in GPUS
            for geometry in GEOMETRIES
        },
        shrinking=explore(_single(SHRINK, PAIRS, ("miriam",), seed), workshop(seed)),
        overheads=measure(
            _single(OVERHEADS, overheads.PAIRS, overheads.POLICIES, seed), workshop(seed)
        ),
    )


def page(found: Evaluation, made: str) -> str:
    """The page; ``made`` says by what command, version and date."""
    data = msgspec.convert(tomllib.loads(DATA.read_text(encoding="utf-8")), Data)
    parts = [
        _head(made),
        _claims(data.claim, found.results),
        _causes(data.cause),
        _robust(found.robust),
        _pruned(found.shrinking),
        _overheads(found.overheads),
    ]
    return "\n\n".join(parts) + "\n"


def figures(found: Evaluation) -> bytes:
    """Every chart and table of the evaluation as one HTML page.

    MissingCapabilityError if matplotlib is not installed.
    """
    sections = [html_parts.section(result) for result in found.results.values()]
    sections += [html_parts.shrinking(found.shrinking), html_parts.overheads(found.overheads)]
    return html_parts.document("The paper's evaluation, simulated", sections)


def _options(
    study: str, gpu: str, geometry: str, seed: int, scaled: tuple[tuple[str, float], ...] = ()
) -> Options:
    robust = study == "robust"
    name = "mdtb" if robust else study
    return Options(
        benchmark=name,
        device=f"sim:{gpu}",
        policies=_POLICIES.get(study, POLICIES),
        seconds=_SECONDS[study, geometry],
        seed=seed,
        workloads=_WORKLOADS.get(study) or studies.get(name).WORKLOADS,
        geometry=geometry,
        gaps_us=(0.0,) if study == "pairs" else (),
        worlds=(0,) if study == "pairs" else (),
        scaled=scaled,
    )


def _single(
    benchmark: str, workloads: tuple[str, ...], chosen: tuple[str, ...], seed: int
) -> Options:
    """What is asked of a study that has a report of its own."""
    return Options(
        benchmark=benchmark,
        device=f"sim:{GPUS[0]}",
        policies=chosen,
        seconds=1.0,
        seed=seed,
        workloads=workloads,
    )


def _head(made: str) -> str:
    return (
        "# The paper's evaluation, simulated\n\n"
        "**Every figure of ours on this page is simulated**, by the block-level model that "
        "`docs/architecture.md` describes; no GPU was involved. The paper's figures are those of "
        "arXiv 2307.04339, measured on an RTX 2060 and a Jetson AGX Xavier.\n\n"
        f"{made}\n\n"
        "*tango*: networks with the grids and blocks of the public Tango suite, the paper's kind "
        "of kernels. *ours*: the tiled kernels that this project ships. Latency is the critical "
        "task's median time from its first kernel on, over Sequential's, as the paper quotes it; "
        "*response* is from arrival, over the same network alone. Throughput is requests per "
        "second of all tasks over Sequential's. Normal tasks have four requests in flight."
    )


def _claims(claims: Sequence[Claim], results: _Results) -> str:
    lines = [
        "## Beside every number of the paper\n",
        "| figure | GPU | paper | tango | ours | response, tango | response, ours |",
        "|---|---|---|---|---|---|---|",
    ]
    for claim in claims:
        found = [_found(claim, results, geometry) for geometry in ("tango", "ours")]
        cells = [claim.text, claim.gpu, claim.paper, *(value for value, _ in found)]
        lines.append(f"| {' | '.join([*cells, *(response for _, response in found)])} |")
    return "\n".join(lines)


def _found(claim: Claim, results: _Results, geometry: str) -> tuple[str, str]:
    """The simulator's figure and, for a latency, the response."""
    study = {"given": "lgsvl", "alexnets": "alexnets"}.get(claim.workload, "mdtb")
    result = results[study, claim.gpu, geometry]
    row = _row(result, claim.workload, claim.policy)
    if claim.figure == "latency":
        return _times(result.latency_vs_sequential(row)), _times(row.critical[0].overhead(50))
    if claim.figure == "throughput":
        return _times(result.throughput_vs_sequential(row)), ""
    layers = row.deep.layers if row.deep else ()
    total = sum(layer.ms for layer in layers)
    mean = sum(layer.ms * layer.achieved_occupancy for layer in layers) / total
    return f"{100 * mean:.1f} %", ""


def _row(result: BenchResult, workload: str, policy: str) -> RowFigures:
    return next(r for r in result.rows if (r.workload, r.policy) == (workload, policy))


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _causes(causes: Sequence[Cause]) -> str:
    return "\n\n".join(
        ["## Why they differ", *(f"**{cause.title}.** {cause.text.strip()}" for cause in causes)]
    )


def _robust(found: _Robust) -> str:
    """Conclusions about MDTB A, with each parameter of the model 30 % lower and higher."""
    names = [f"{parameter} x {factor}" for parameter in PARAMETERS for factor in FACTORS]
    lines = [
        "## Do the conclusions hang on the model's parameters?\n",
        "MDTB A with each parameter 30 % lower and higher: "
        + "; ".join(f"*{name}*: {what}" for name, what in PARAMETERS.items())
        + ". Each cell: in how many of the seven settings (the model as it is, and "
        f"{len(names)} changes) the sentence holds, and where it does not.\n",
        f"| sentence | {' | '.join(f'{gpu}, {geometry}' for gpu, geometry in found)} |",
        "|---|" + "---|" * len(found),
    ]
    columns = [
        [{row.policy: row for row in result.rows} for result in results]
        for results in found.values()
    ]
    for conclusion in CONCLUSIONS:
        cells = []
        for column in columns:
            verdicts = [conclusion.holds(rows) for rows in column]
            fails = [
                name
                for name, holds in zip(["as it is", *names], verdicts, strict=True)
                if not holds
            ]
            tail = f" (not: {', '.join(fails)})" if 0 < len(fails) < len(verdicts) else ""
            cells.append(f"{sum(verdicts)}/{len(verdicts)}{tail}")
        lines.append(f"| {conclusion.text} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _pruned(report: ShrinkReport) -> str:
    """Fig. 10: what the rules remove, and what that loses."""
    lines = [
        "## Shrinking the design space (our kernels, rtx2060)\n",
        "The paper reports 84-95.2 % of the candidates pruned per model, 80 % of them by the "
        "hardware limits alone, and no best candidate lost.\n",
        "| normal beside critical | candidates | Eq. 2 blocks | Eq. 2 threads | Eq. 4 | all rules "
        "| best kept, of the kernels tried |",
        "|---|---|---|---|---|---|---|",
    ]
    for pair in report.pairs:
        removed = " | ".join(f"{100 * share:.1f} %" for share in pair.removed.values())
        lines.append(
            f"| {pair.normal} beside {pair.critical} | {pair.candidates} | {removed} | "
            f"{100 * pair.removed_jointly:.1f} % | {_kept(report, pair.critical, pair.normal)} |"
        )
    return "\n".join(lines)


def _overheads(report: OverheadsReport) -> str:
    """What decisions and launches cost by themselves."""
    lines = [
        "## Overheads (our kernels, rtx2060)\n",
        "The paper reports less than 0.35 ms for the selection of shards, per network, and a "
        "launch delay of critical kernels under 15 us in over 80 % of cases. "
        f"{overheads_table.note(report)}\n",
        f"| {' | '.join(overheads_table.HEADINGS)} |",
        "|---" * len(overheads_table.HEADINGS) + "|",
    ]
    lines += [f"| {' | '.join(overheads_table.cells(row))} |" for row in report.rows]
    return "\n".join(lines)


def _kept(report: ShrinkReport, critical: str, normal: str) -> str:
    """Of how many kernels that were tried the best harmless schedule is kept, within 10 %."""
    tried = [
        row
        for pair in report.pairs
        if (pair.critical, pair.normal) == (critical, normal)
        for row in pair.tried
        if row.best
    ]
    return f"{sum(row.lost <= 0.1 for row in tried)} of {len(tried)}"
