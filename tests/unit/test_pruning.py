"""Design-space shrinking as a benchmark, and the page beside the paper's numbers."""

import tomllib
from dataclasses import replace
from functools import cache
from io import StringIO

import msgspec
from rich.console import Console

from miriam.bench import Options, paper, pruning, studies
from miriam.bench.charts import shrink
from miriam.bench.execute import workshop
from miriam.bench.pruning_table import show
from miriam.coordinator import policies


@cache
def report() -> pruning.ShrinkReport:
    options = Options(
        benchmark="shrink",
        device="sim:xavier",
        policies=("miriam",),
        seconds=1,
        seed=1,
        workloads=("gru+cifarnet",),
    )
    return pruning.explore(options, workshop(1))


def test_shares_and_choices_agree_with_each_other() -> None:
    (pair,) = report().pairs
    assert list(pair.removed) == ["blocks", "threads", "overhead"]
    assert max(pair.removed.values()) <= pair.removed_jointly <= 1
    assert pair.full_space_log10 > 10
    for tried in pair.tried:
        assert 0 <= tried.kept <= tried.candidates
        assert tried.best is not None and tried.best.stretch <= pruning.ALLOWED
        if tried.best_kept is not None:
            assert tried.best_kept.blocks_per_us <= tried.best.blocks_per_us
        assert 0 <= tried.lost <= 1


def test_a_space_that_no_float_holds_is_shown_and_encoded() -> None:
    found = report()
    large = replace(found, pairs=(replace(found.pairs[0], full_space_log10=400.35),))
    text = StringIO()
    show(large, Console(file=text, width=120))
    assert " 2.2e+400 " in text.getvalue()
    assert b'"full_space_log10": 400.35' in pruning.encode(large)


def test_the_same_bytes_and_a_chart() -> None:
    first = report()
    assert pruning.encode(first) == pruning.encode(report.__wrapped__())
    assert shrink.charts(first)[0].png.startswith(b"\x89PNG")


def test_every_claim_of_the_paper_names_something_that_is_run() -> None:
    data = msgspec.convert(tomllib.loads(paper.DATA.read_text()), paper.Data)
    known = {name for study in studies.NAMES for name in studies.get(study).WORKLOADS}
    for claim in data.claim:
        assert claim.gpu in paper.GPUS
        assert claim.workload in known
        assert claim.policy in policies.names()
        assert claim.figure in ("latency", "throughput", "occupancy")
    assert all(len(cause.text) > 100 for cause in data.cause)
