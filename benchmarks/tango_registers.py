"""Writes miriam/models/tango/folded.py from a checkout of the Tango suite, with nvcc.

python -m benchmarks.tango_registers gpu_bench_cuda_11.3/Tango/GPU miriam/models/tango/folded.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from miriam.compile import read_resources
from miriam.elastic import Elasticized, elasticize
from miriam.kernels import Dim3, Resources
from miriam.models.tango import TANGO_NAMES, load_tango
from miriam.models.tango.registers import ARCHITECTURES, FOLDS

FILES = {
    "an": "AlexNet/an_kernel.cu",
    "cn": "CifarNet/CN_cuda.cu",
    "gru": "GRU/gru_kernel.cu",
    "lstm": "LSTM/lstm.cu",
    "rn": "ResNet/rn_kernel.cu",
    "sn": "SqueezeNet/SN.cu",
}
HEAD = '''"""Registers of the yield forms of Tango's kernels, by kernel and fold.

Made by ``python -m benchmarks.tango_registers`` with nvcc {version} -O3, as the originals' in
registers.py, and for the same architectures; 0 for a folded form that spills.
"""

from __future__ import annotations

YIELD_ROWS: dict[tuple[str, int], tuple[int, ...]] = {{'''


def compiled(text: str, folder: Path, arch: str) -> Mapping[str, Resources]:
    """What nvcc makes of the kernels of ``text``, by symbol."""
    with tempfile.TemporaryDirectory() as place:
        source, cubin = Path(place, "made.cu"), Path(place, "made.cubin")
        source.write_text(text)
        tool = ["nvcc", "-O3", f"-arch={arch}", f"-I{folder}", "-cubin", "-w"]
        subprocess.run([*tool, "-o", str(cubin), str(source)], check=True)
        return read_resources(cubin.read_bytes(), arch)


def asking(made: Elasticized, entries: Iterable[str]) -> str:
    """The elastic text, with ``entries`` asked for."""
    used = dict.fromkeys(entries)
    asked = "\n".join(f"void* asked_{i} = (void*){entry};" for i, entry in enumerate(used))
    return f"{made.source}\n{asked}\n"


def symbol(entry: str) -> str:
    """How the mangled name of ``entry`` begins: of ``k__yield<2>`` with _Z8k__yieldILi2E."""
    name, bracket, first = entry.rstrip(">").partition("<")
    return f"_Z{len(name)}{name}" + (f"ILi{first.partition(',')[0]}E" if bracket else "")


def blocks() -> Mapping[str, Dim3]:
    """The block with which each kernel is launched; of several, the last."""
    steps = [step for network in TANGO_NAMES for step in load_tango(network, "sm_87").steps]
    return {step.kernel.name: step.kernel.block for step in steps}


def rows(path: Path, prefix: str) -> Iterator[tuple[str, int, list[int]]]:
    """The registers of each kernel of a file with each fold, by architecture."""
    made = elasticize(path, include_dirs=(path.parent,))
    used = {n.partition(".")[2]: b for n, b in blocks().items() if n.startswith(f"{prefix}.")}
    entries = {
        (name, fold): made.kernel(name).entry("yield", None, fold, block)
        for name, block in used.items()
        for fold in FOLDS
        if fold == 1 or made.kernel(name).block.ok
    }
    found = [compiled(asking(made, entries.values()), path.parent, a) for a in ARCHITECTURES]
    for (name, fold), entry in entries.items():
        needs = [next(r for s, r in f.items() if s.startswith(symbol(entry))) for f in found]
        whole = [
            next(r for s, r in f.items() if s.startswith(symbol(entries[name, 1]))) for f in found
        ]
        spilled = [n.local_bytes > w.local_bytes for n, w in zip(needs, whole, strict=True)]
        yield name, fold, [0 if s else n.registers for s, n in zip(spilled, needs, strict=True)]


def main() -> None:
    """Compile every kernel of the table for every architecture."""
    root, target = Path(sys.argv[1]), Path(sys.argv[2])
    told = subprocess.run(["nvcc", "--version"], check=True, capture_output=True, text=True).stdout
    version = re.search(r"V([\d.]+)", told)
    lines = [HEAD.format(version=version[1] if version else "")]
    for prefix, file in FILES.items():
        for name, fold, found in rows(root / file, prefix):
            lines.append(f'    ("{prefix}.{name}", {fold}): {tuple(found)},')
    target.write_text("\n".join([*lines, "}", ""]))


if __name__ == "__main__":
    main()
