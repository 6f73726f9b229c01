"""Random well-formed kernels: one per seed, with a launch that fits it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.scope import Scope, Table, Values
from tests.fuzz.statements import Leaving, Place, Statements, Tile, Traits

PRELUDE = Path(__file__).parent / "prelude.cu"
_ATOMICS = ("atomicAdd", "atomicXor", "atomicMax", "atomicMin", "atomicOr", "atomicAnd")
_PARAMS = struct.Struct("<IfiiIfB3x")
_GRIDS = ((7, 1, 1), (13, 1, 1), (5, 3, 1), (3, 1, 3), (1, 4, 2), (3, 2, 3), (2, 1, 1), (1, 1, 5))
_BLOCKS = ((33, 1, 1), (48, 1, 1), (64, 1, 1), (7, 5, 1), (5, 3, 2), (1, 9, 3), (16, 2, 1))
_ROWS = ((32, 1, 1), (64, 1, 1), (32, 2, 1), (32, 3, 1), (96, 1, 1), (32, 1, 2))


@dataclass(frozen=True, slots=True)
class Generated:
    """A kernel's text and its table of a launch file."""

    seed: int
    name: str
    text: str
    launch: str


def file_of(kernels: Sequence[Generated]) -> tuple[str, str]:
    """One CUDA C++ text with the kernels, and the launch file for it."""
    texts = [PRELUDE.read_text(encoding="utf-8"), *(k.text for k in kernels)]
    return "\n".join(texts), "\n".join(k.launch for k in kernels)


def generate(seed: int) -> Generated:
    """The kernel of ``seed``, always the same."""
    return _Kernel(seed).made()


@dataclass(frozen=True, slots=True)
class _Parameter:
    written: str
    argument: str


class _Kernel:
    def __init__(self, seed: int) -> None:
        random = self._random = Random(f"kernel {seed}")
        self._seed, self._values = seed, Values(random)
        self._leaving: Leaving = random.choice(
            ["nobody", "nobody", "nobody", "block", "thread", "thread", "warp"]
        )
        self._has_rows = self._leaving == "warp" or random.random() < 0.4
        self._grid = random.choice(_GRIDS)
        self._block = random.choice(_ROWS if self._has_rows else _BLOCKS)
        self._threads = self._block[0] * self._block[1] * self._block[2]
        self._blocks = self._grid[0] * self._grid[1] * self._grid[2]
        self._parameters: list[_Parameter] = []
        self._template: list[tuple[str, str]] = []  # parameters, and what they are given
        self._before: list[str] = []  # declarations in front of the kernel
        self._scope = Scope(
            words=["tid", "bid", "threadIdx.x", "threadIdx.y"],
            uniform=["blockIdx.x", "blockIdx.y", "gridDim.x", "gridDim.z", "bid", "blockDim.y"],
            numbers=[],
            tables=[Table("PRIMES", 8)],
        )
        self._bins: list[str] = []
        self._shared_bytes = 0
        self._top: list[str] = []

    def made(self) -> Generated:
        random, seed = self._random, self._seed
        name = f"k{seed}"
        self._inputs()
        self._helpers()
        self._scalars()
        tiles = self._tiles() if random.random() < 0.65 else []
        traits = self._finish_parameters(bool(tiles))
        body = Statements(random, self._values, traits, tiles)
        self._opening(body, tiles, traits)
        if random.random() < 0.5:
            body.several(self._scope, Place("block"), 4)
        for _ in range(random.randint(1, 3)):
            body.meeting(self._scope, Place("block"))
            body.several(self._scope, Place("block"), 4)
        self._closing(body, traits)
        random.shuffle(self._parameters)
        return self._assembled(name, body.lines)

    # --- parameters

    def _add(self, written: str, argument: str) -> None:
        self._parameters.append(_Parameter(written, argument))

    def _inputs(self) -> None:
        random, restrict = self._random, self._random.choice([" __restrict__", ""])
        if random.random() < 0.8:
            count = random.randint(20, 90)
            self._add(
                f"const unsigned*{restrict} in",
                f'{{array = "uint32", count = {count + 4}, fill = "random", min = 0, '
                "max = 4294967295}",
            )
            self._scope.tables.append(Table("in", count))
            if random.random() < 0.3:
                self._top.append(f"in {random.choice(['+= 3', '= in + 2'])};")
        if random.random() < 0.7:
            count = random.randint(20, 90)
            self._add(
                f"{random.choice(['const float*', 'float const*'])}{restrict} weights",
                f'{{array = "float32", count = {count}, fill = "random"}}',
            )
            self._scope.tables.append(Table("weights", count, is_float=True))

    def _scalars(self) -> None:
        random, scope = self._random, self._scope
        if random.random() < 0.7:
            self._add("unsigned n", f'{{scalar = "uint32", value = {random.randint(1, 4000)}}}')
            scope.uniform.append("n")
            if random.random() < 0.4:
                change = random.choice(["n = n * 3u + blockIdx.x;", "n /= 2u;", "n ^= block_id();"])
                self._top.append(change)
        if random.random() < 0.5:
            const = random.choice(["const ", ""])
            self._add(f"{const}int k", f'{{scalar = "int32", value = {random.randint(-50, 50)}}}')
            scope.uniform.append("(unsigned)k")
        if random.random() < 0.5:
            self._add("float a", f'{{scalar = "float32", value = {random.uniform(-1, 1):.6f}}}')
            scope.numbers.append("a")
            if random.random() < 0.3:
                self._top.append("a = a * 0.5f + (float)(blockIdx.x & 3u) * 0.125f;")
        if random.random() < 0.4:
            self._struct()
        if random.random() < 0.3:
            self._template.append(("unsigned R", f"{random.randint(1, 9)}"))
            scope.uniform.append("R")
        if random.random() < 0.2:
            self._template.append(("typename T", "unsigned"))
            self._top.append(f"const T typed = (T)(bid + {random.randint(1, 9)}u);")
            scope.uniform.append("typed")

    def _struct(self) -> None:
        random = self._random
        packed = _PARAMS.pack(
            *(random.randint(0, 99), 0.25, random.randint(-9, 9), random.randint(0, 9)),
            *(random.randint(0, 2**32 - 1), -0.5, random.randint(0, 255)),
        )
        written = random.choice(["Params p", "const Params p", "const __grid_constant__ Params p"])
        self._add(written, f'{{struct = "{packed.hex()}"}}')
        uniform = ["p.count", "(unsigned)p.flag", "(unsigned)p.steps[1]", "p.pair.word"]
        self._scope.uniform += uniform
        self._scope.words += ["p.mixed(bid)", "p.mixed(tid)"]
        self._scope.numbers += ["p.scale", "p.pair.number"]
        if written == "Params p" and random.random() < 0.5:
            self._top.append("p.count += bid;")

    # --- helpers of this kernel alone

    def _helpers(self) -> None:
        for number in range(self._random.choice([0, 0, 1, 1, 2])):
            self._helper(f"helper{self._seed}_{number}")

    def _helper(self, name: str) -> None:
        random = self._random
        scope = Scope(
            words=["x", "tid", "bid", "threadIdx.z", "blockIdx.x"],
            uniform=["gridDim.x", "blockIdx.y"],
            set_words=["x", "y"],
            set_numbers=["z"],
            tables=[Table("PRIMES", 8)],
            calls=[c for c in self._scope.calls],
        )
        traits = Traits(self._threads, in_place="y")
        body = Statements(random, self._values, traits, [])
        body.several(scope, Place("none"), 3)
        kind = random.choice(["", "__forceinline__ ", "inline ", "static ", "__noinline__ "])
        head = f"unsigned {name}(unsigned x, unsigned y"
        if random.random() < 0.3:
            self._before.append(f"__device__ {kind}{head} = 9u);")
            head += ")"
        else:
            head += " = 5u)"
        lines = [f"__device__ {kind}{head} {{", "  float z = (float)(x & 15u) * 0.1f;", "  WHERE;"]
        lines += ["  (void)tid, (void)bid;", *body.lines]
        self._before += [*lines, f"  return {self._values.word(scope, 1)} ^ y ^ x;", "}"]
        self._scope.calls.append(name)

    # --- memory

    def _tiles(self) -> list[Tile]:
        random, made = self._random, list[Tile]()
        dynamic = f"dynamic{self._seed}"
        for kind in random.sample(["static", "plane", "floats", "dynamic", "raw", "global"], 2):
            if kind == "static":
                self._top.append(f"__shared__ unsigned tile[{self._threads}];")
                made.append(Tile("tile"))
            elif kind == "plane":
                columns = self._block[0]
                rows = self._threads // columns
                self._top.append(f"__shared__ unsigned plane[{rows}][{columns + 1}];")
                made.append(Tile("plane", columns=columns))
            elif kind == "floats":
                self._top.append(f"__shared__ float floats[{self._threads} + 1];")
                made.append(Tile("floats", is_float=True))
            elif kind == "global":
                count = self._blocks * self._threads
                self._add("unsigned* scratch", f'{{array = "uint32", count = {count}}}')
                made.append(Tile(f"(scratch + bid * {self._threads}u)"))
            elif not self._shared_bytes:
                self._shared_bytes = self._threads * 4
                if kind == "dynamic":
                    self._top.append(f"extern __shared__ unsigned {dynamic}[];")
                    made.append(Tile(dynamic))
                else:
                    self._top.append(f"extern __shared__ __align__(16) unsigned char {dynamic}[];")
                    self._top.append(f"float* raw = reinterpret_cast<float*>({dynamic});")
                    made.append(Tile("raw", is_float=True))
        return made

    def _finish_parameters(self, has_tiles: bool) -> Traits:
        random, total = self._random, self._blocks * self._threads
        self._add(
            random.choice(["unsigned* out", "unsigned* __restrict__ out"]),
            f'{{array = "uint32", count = {total}, fill = "random"}}',
        )
        self._add("float* numbers", f'{{array = "float32", count = {total}}}')
        for number in range(random.choice([0, 0, 1, 2])):
            self._add(f"unsigned* bins{number}", '{array = "uint32", count = 13, fill = "random"}')
            self._bins.append(f"bins{number} {random.choice(_ATOMICS)}")
        if random.random() < 0.2:
            self._before.append(f"__device__ unsigned tally{self._seed}[13];")
            self._bins.append(f"tally{self._seed} atomicAdd")
        return Traits(
            threads=self._threads,
            leaving=self._leaving,
            has_rows=self._has_rows,
            barriers=has_tiles or random.random() < 0.2,
            in_place=random.choice(["out[gid]", "out[bid * threads() + tid]", "*mine"]),
            bins=tuple(self._bins),
        )

    # --- the statements around the random ones

    def _opening(self, body: Statements, tiles: Sequence[Tile], traits: Traits) -> None:
        random = self._random
        if random.random() < 0.5:
            body.line("WHERE;")
        else:
            body.line("const unsigned tid = thread_id();")
            flat = self._grid[1] == self._grid[2] == 1
            spelled = ["block_id()", "LINEAR(blockIdx, gridDim)", *(["blockIdx.x"] if flat else [])]
            body.line(f"const unsigned bid = {random.choice(spelled)};")
        gid = random.choice(
            ["global_id()", "bid * threads() + tid", f"bid * {self._threads}u + tid"]
        )
        body.line(f"const unsigned gid = {gid};")
        if traits.in_place == "*mine":
            body.line("unsigned* mine = out + gid;")
        for text in self._top:
            body.line(text)
        self._scope.words += ["gid", "gid"]
        if traits.leaving != "nobody" or random.random() < 0.5:
            self._add(
                "unsigned* ran", f'{{array = "uint32", count = {self._blocks}, fill = "zeros"}}'
            )
            body.line(
                f"if (tid == {random.choice([0, self._threads - 1])}u) atomicAdd(&ran[bid], 1u);"
            )
        if traits.leaving in ("thread", "warp"):
            for tile in tiles:
                first = "0.5f" if tile.is_float else "gid * 3u"
                body.line(f"{tile.slot('tid')} = {first};")
        if traits.leaving == "thread" and random.random() < 0.5:
            limit = self._blocks * self._threads - random.randint(1, self._threads)
            body.line(f"if (gid >= {limit}u) return;")
        body.line(
            f"unsigned first = {random.choice(['gid', traits.in_place, 'bid'])}, second = 7u;"
        )
        body.line("float value = 0.25f, other = (float)(gid % 9u) * 0.0625f;")
        self._scope.set_words += ["first", "second"]
        self._scope.set_numbers += ["value", "other"]

    def _closing(self, body: Statements, traits: Traits) -> None:
        mine = traits.in_place
        body.line(f"{mine} = {mine} * 5u + (first ^ second);")
        body.line("numbers[gid] = value + other;")

    def _assembled(self, name: str, lines: Sequence[str]) -> Generated:
        random = self._random
        space = random.choice(["", "", "outer", "outer::inner"])
        head = random.choice(["", "static "]) if self._template or space else ""
        if not self._template and not space and random.random() < 0.3:
            head = 'extern "C" '
        bounds = random.choice(
            ["", f"__launch_bounds__({self._threads}) ", f"__launch_bounds__({self._threads}, 2) "]
        )
        result = random.choice([f"{bounds}void", f"void {bounds}".rstrip()])
        parameters = ", ".join(p.written for p in self._parameters)
        text = [f"// Seed {self._seed}.", *(f"namespace {s} {{" for s in space.split("::") if s)]
        text += self._before
        if self._template:
            text.append(f"template <{', '.join(t for t, _ in self._template)}>")
        text += [f"{head}__global__ {result} {name}({parameters}) {{", *lines, "}"]
        text += ["}" for s in space.split("::") if s]
        full = f"{space}::{name}" if space else name
        if self._template:
            full += f"<{', '.join(given for _, given in self._template)}>"
        launch = [
            f'[kernel."{full}"]',
            f"grid = {list(self._grid)}",
            f"block = {list(self._block)}",
            f"shared_bytes = {self._shared_bytes}",
            "args = [",
            *(f"  {p.argument}," for p in self._parameters),
            "]\n",
        ]
        return Generated(self._seed, full, "\n".join([*text, ""]), "\n".join(launch))
