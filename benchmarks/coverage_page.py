"""Writes docs/results/coverage.md from what ``miriam coverage --json`` said of public code.

    python -m benchmarks.coverage_page gather tango=TANGO.json darknet=DARKNET.json \
        polybench=POLYBENCH.json llm.c=LLMC.json > docs/results/data/coverage.json
    python -m benchmarks.coverage_page page docs/results/data/coverage.json > \
        docs/results/coverage.md

The data have names, counts and reasons, and nothing of the code.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

# Repository, commit, folder or macro.
SOURCES = {
    "tango": ("hnts03/gpu_bench_cuda_11.3", "ce96174f", "Tango/GPU"),
    "darknet": ("pjreddie/darknet", "f6afaabc", "all, with `-D GPU`"),
    "polybench": ("sgrauerg/polybenchGpu", "5584aaa7", "CUDA, common"),
    "llm.c": ("karpathy/llm.c", "f1e2ace6", "all"),
}
AXES = ("grid", "block", "yield")
FOLDS = ("2", "4")
TOOLS = ("pcpp", "tree-sitter", "tree-sitter-cuda", "nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm")
ABSENT = "not-implemented"
HEAD = """# Elastic kernels on public code

How many kernels that others wrote become elastic: in grid (slices, persistent blocks), in block
(fewer threads per logical block) and in yield (stopping and resuming between logical blocks)? None
of this code is part of Miriam.

    miriam coverage DIR [-D GPU] --arch {archs} --json FILE

{made}
"""
MADE = (
    "Made on {date} with {tools}, on a machine without a GPU. `python -m benchmarks.coverage_page` "
    "writes this page from `docs/results/data/coverage.json`."
)
COMPILED = """
A kernel in a header counts once, however often it is included.

## Compiled

All forms of every elastic kernel, with NVRTC. Growth is in registers per thread, from the original
to the persistent form, compiled alike. A spill is local memory that a form needs and the original
does not. `-fmad=false`: kernels whose forms would not all keep the original's mix of
floating-point instructions, and which are therefore compiled without contraction.
"""
FEWER = """
## On fewer threads

The yield form with 2 and with 4 logical threads on a physical one, for a block of 256 threads where
it depends on the block. Median and most: registers of a block over those of the original's block.
`-fmad=false`: kernels that have to be compiled without contraction where a step changes between
values of N. For llm.c this was not compiled.
"""
NOT_COMPILED = "\nWhat was not compiled, and why, or what else is to be said:\n"
DARKNET = """
darknet's `BLOCK`, the block size of six kernels, is only defined where `GPU` is: without `-D GPU`
they become elastic, but nothing can compile them.
"""
REFUSED = "\n## What was refused, and why\n"
# What the rule means for the kernel; the reason itself is the report's.
WHY = {
    ("llm.c", "matmul_backward_bias_kernel8"): "a shuffle over the full warp stands in loops whose "
    "bounds depend on `threadIdx.x` and `threadIdx.z`. All 32 lanes get there together only for "
    "some shapes of the block, and the text does not say which one it is launched with",
    ("llm.c", "matmul_backward_bias_kernel9"): "as in `matmul_backward_bias_kernel8`",
    ("llm.c", "softmax_forward_kernel7"): "threads with `tid >= C` return before a shuffle over "
    "the full warp: the original is only right where C is no less than the block",
    ("llm.c", "softmax_forward_online_kernel8"): "the same early return, before `__syncwarp()` "
    "and shuffles",
    ("llm.c", "trimul_global"): "a device function that reads `blockIdx` is a template argument: "
    "as a value it can not be handed the logical block",
}
# Where only the block axis is refused, the same for every kernel.
WHY_BLOCK = {
    "cooperative-groups": "their objects know the physical block",
    "barrier-in-helper": "a helper with a barrier has no body in the file, or several overloads",
    "barrier-not-uniform": "by the text, not all threads of a block may come to a barrier",
}


def gather(reports: Mapping[str, Path]) -> dict[str, Any]:
    """The figures of the reports by the name of their source."""
    return {
        "date": date.today().isoformat(),
        "tools": {tool: version(tool) for tool in ("miriam-gpu", *TOOLS)},
        "sources": {name: figures(json.loads(p.read_text())) for name, p in reports.items()},
    }


def figures(report: Mapping[str, Any]) -> dict[str, Any]:
    """Counts, refusals and what was compiled."""
    found = report["found"]
    axes = [a for a in AXES if any(k[a]["reason"] != ABSENT for k in found)]
    refused = [
        {"kernel": k["name"], "file": Path(k["path"]).name, "axes": why, "reason": reason}
        for k in found
        for reason in dict.fromkeys(k[a]["reason"] for a in axes if not k[a]["ok"])
        if (why := [a for a in axes if k[a]["reason"] == reason])
    ]
    compiled = report["compiled"] or {}
    return {
        "kernels": len(found),
        "elastic": {axis: sum(k[axis]["ok"] for k in found) for axis in axes},
        "refused": refused,
        "compiled": {arch: needs(found, arch) for arch in compiled},
        "folded": {arch: block(found, arch) for arch in compiled},
        "spills": [spill for arch in compiled for spill in spills(found, arch)],
        "notes": [
            {"kernel": k["name"], "file": Path(k["path"]).name, "note": note}
            for k in found
            for note in (text.replace(f"{report['folder']}/", "") for text in k["notes"])
        ],
    }


def needs(found: list[Mapping[str, Any]], arch: str) -> dict[str, Any]:
    """What the kernels came to on ``arch``."""
    kernels = [k for k in found if arch in (k["resources"] or {})]
    forms = [k["resources"][arch] for k in kernels]
    growth = [f["persistent"]["registers"] - f["original"]["registers"] for f in forms]
    return {
        "compiled": len(forms),
        "of": sum(k["grid"]["ok"] for k in found),
        "growth_median": median(growth) if growth else None,
        "growth_most": max(growth, default=None),
        "spills": len({spill["kernel"] for spill in spills(found, arch)}),
        "without_fmad": sum(not k["fmad"][arch] for k in kernels),
    }


def block(found: list[Mapping[str, Any]], arch: str) -> dict[str, Any]:
    """What the folded yield forms came to on ``arch``, by N."""
    kernels = [k for k in found if arch in (k["block"].get("resources") or {})]
    return {
        "compiled": len(kernels),
        "of": sum(k["block"]["ok"] for k in found),
        "without_fmad": sum(not k["block"]["fmad"][arch] for k in kernels),
        "folds": {n: _fold(kernels, arch, n) for n in FOLDS},
    }


def _fold(kernels: list[Mapping[str, Any]], arch: str, n: str) -> dict[str, Any]:
    pairs = [(k["resources"][arch]["original"], k["block"]["resources"][arch][n]) for k in kernels]
    shares = [f["registers"] / int(n) / o["registers"] for o, f in pairs]
    return {
        "block_registers_median": round(median(shares), 2) if shares else None,
        "block_registers_most": round(max(shares), 2) if shares else None,
        "spills": sum(f["spill_bytes"] > o["spill_bytes"] for o, f in pairs),
    }


def spills(found: list[Mapping[str, Any]], arch: str) -> Iterator[dict[str, Any]]:
    """The forms that need more local memory than the original, in bytes per thread."""
    for kernel in found:
        forms = (kernel["resources"] or {}).get(arch, {})
        for form, needed in forms.items():
            before, after = forms["original"]["spill_bytes"], needed["spill_bytes"]
            if after > before:
                place = {"kernel": kernel["name"], "arch": arch, "form": form}
                yield {**place, "before": before, "after": after}


def page(data: Mapping[str, Any]) -> Iterator[str]:
    """The page, piece by piece."""
    sources = data["sources"]
    archs = list(next(iter(sources.values()))["compiled"])
    tools = ", ".join(f"{tool} {number}" for tool, number in data["tools"].items())
    made = textwrap.fill(MADE.format(date=data["date"], tools=tools), 100, break_on_hyphens=False)
    yield HEAD.format(archs=",".join(archs), made=made)
    axes = [a for a in AXES if any(a in s["elastic"] for s in sources.values())]
    yield table("Repository", "Commit", "Folder", "Kernels", *(a.capitalize() for a in axes))
    for name, source in sources.items():
        shares = (share(source["elastic"].get(axis), source["kernels"]) for axis in axes)
        yield row(*SOURCES[name], source["kernels"], *shares)
    yield COMPILED
    heads = ("Architecture", "Compiled", "Growth, median", "Growth, most", "Spills")
    yield table("Source", *heads, "`-fmad=false`")
    for name, source in sources.items():
        for arch, c in source["compiled"].items():
            done = f"{c['compiled']} of {c['of']}"
            numbers = (f"{c['growth_median']:g}", c["growth_most"], c["spills"], c["without_fmad"])
            yield row(name, arch, done, *numbers)
    yield ""
    for name, source in sources.items():
        for x in source["spills"]:
            bytes_ = f"{x['before']} to {x['after']} bytes per thread"
            yield f"- spill: {name}, `{x['kernel']}`, {x['form']} on {x['arch']}: {bytes_}"
    yield from fewer_threads(data)
    notes: dict[tuple[str, str], list[str]] = {}
    for name, source in sources.items():
        for note in source["notes"]:
            notes.setdefault((name, note["note"]), []).append(f"`{note['kernel']}`")
    if notes:
        yield NOT_COMPILED
    for (name, note), kernels in notes.items():
        yield f"- {name}, {', '.join(kernels)}: {note}"
    yield DARKNET
    yield REFUSED
    yield table("Source", "Kernel", "File", "Axes", "Reason", "Why")
    for name, source in sources.items():
        for r in source["refused"]:
            only_block = r["axes"] == ["block"]
            known = WHY_BLOCK.get(r["reason"], "") if only_block else ""
            why = WHY.get((name, r["kernel"]), known)
            kernel, file, reason = (f"`{r[key]}`" for key in ("kernel", "file", "reason"))
            yield row(name, kernel, file, ", ".join(r["axes"]), reason, why)


def fewer_threads(data: Mapping[str, Any]) -> Iterator[str]:
    """What the folded forms need, where that was compiled."""
    found = {n: s["folded"] for n, s in data["sources"].items() if "folded" in s}
    if not any(c["compiled"] for archs in found.values() for c in archs.values()):
        return
    yield FEWER
    heads = (f"{n}:1 {what}" for n in FOLDS for what in ("median", "most", "spills"))
    yield table("Source", "Architecture", "Compiled", *heads, "`-fmad=false`")
    for name, archs in found.items():
        for arch, c in archs.items():
            keys = ("block_registers_median", "block_registers_most", "spills")
            numbers = (c["folds"][n][key] for n in FOLDS for key in keys)
            yield row(name, arch, f"{c['compiled']} of {c['of']}", *numbers, c["without_fmad"])


def share(count: int | None, of: int) -> str:
    """A count, and what part it is where that is not all."""
    if count is None:
        return "-"
    return f"{count}" if count == of else f"{count} ({count / of:.1%})"


def table(*heads: str) -> str:
    """The head of a table."""
    return f"{row(*heads)}\n|{'---|' * len(heads)}"


def row(*cells: object) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "gather":
        named = dict(argument.split("=", 1) for argument in arguments)
        gathered = gather({name: Path(path) for name, path in named.items()})
        print(json.dumps(gathered, indent=1))
    else:
        print("\n".join(page(json.loads(Path(arguments[0]).read_text()))))
