"""The cache: nothing is made twice, nothing damaged is used, and what changed is made again."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from miriam.compile import Cache, Job, cache_folder, compile_cubin, compile_many, compiler
from miriam.compile.nvrtc import build
from miriam.errors import SourceError, UnknownNameError, UsageError

KERNEL = '#include "part.cuh"\nextern "C" __global__ void fill(float* x) { x[0] = kValue; }\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIRIAM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The source of every compilation from now on."""
    seen: list[str] = []

    def spy(text: str, *others: Sequence[str]) -> tuple[bytes, list[str], str]:
        seen.append(text)
        return build(text, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler, "build", spy)
    return seen


def source(folder: Path, value: int = 1) -> Path:
    (folder / "part.cuh").write_text(f"constexpr float kValue = {value};\n")
    path = folder / "kernel.cu"
    path.write_text(KERNEL)
    return path


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = cache.fetch(("a", b"b"), lambda: b"made", ".so")
    again = cache.fetch(("a", b"b"), lambda: b"other", ".so")
    assert first == again
    assert again.content == b"made"
    assert again.path.read_bytes().startswith(b"made")
    assert again.path.suffix == ".so"


def test_of_many_only_the_absent_are_made_and_equal_ones_once(tmp_path: Path) -> None:
    cache, asked = Cache(tmp_path), list[tuple[int, ...]]()

    def make(absent: Sequence[int]) -> list[bytes]:
        asked.append(tuple(absent))
        return [b"made %d" % i for i in absent]

    cache.fetch(("b",), lambda: b"there")
    keys = [("a",), ("b",), ("c",), ("a",)]
    found = cache.fetch_many(keys, make)
    assert [e.content for e in found] == [b"made 3", b"there", b"made 2", b"made 3"]
    assert cache.fetch_many(keys, make) == found
    assert asked == [(3, 2)]


def test_parts_do_not_run_into_each_other(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.fetch(("ab", "c"), lambda: b"1").path != cache.fetch(("a", "bc"), bytes).path


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign"])
def test_a_damaged_entry_is_made_again(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    path = cache.fetch(("a",), lambda: b"content").path
    good = path.read_bytes()
    flipped = bytes([good[0] ^ 1]) + good[1:]
    bad = {"empty": b"", "cut": good[:20], "flipped": flipped, "foreign": b"x" * 99}[damage]
    path.write_bytes(bad)
    assert cache.fetch(("a",), lambda: b"content").content == b"content"
    assert path.read_bytes() == good


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> bytes:
        raise SourceError("a.cu", 1, "wrong")

    with pytest.raises(SourceError):
        Cache(tmp_path).fetch(("a",), fail)
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_leave_one_whole_entry(tmp_path: Path) -> None:
    content = bytes(100_000)
    with ThreadPoolExecutor(8) as pool:
        made = pool.map(lambda _: Cache(tmp_path).fetch(("a",), lambda: content), range(32))
    assert {entry.content for entry in made} == {content}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_takes_no_files_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cache directory: writable, got .*set MIRIAM_CACHE_DIR"):
        Cache(tmp_path / "file" / "folder").fetch(("a",), bytes)


def test_the_home_folder_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MIRIAM_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("cubin") == tmp_path / ".cache" / "miriam" / "cubin"


def test_a_source_is_compiled_once(tmp_path: Path, compilations: list[str]) -> None:
    path = source(tmp_path)
    first = compile_cubin(path, ["fill"], "sm_90")
    assert compile_cubin(path, ["fill"], "sm_90") == first
    assert len(compilations) == 1


def test_a_damaged_cubin_is_compiled_again(
    tmp_path: Path, own_cache: Path, compilations: list[str]
) -> None:
    path = source(tmp_path)
    first = compile_cubin(path, ["fill"], "sm_90")
    (entry,) = (own_cache / "cubin").iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    assert compile_cubin(path, ["fill"], "sm_90") == first
    assert len(compilations) == 2


def test_every_option_is_part_of_the_address(tmp_path: Path, compilations: list[str]) -> None:
    path = source(tmp_path)
    compile_cubin(path, ["fill"], "sm_90")
    compile_cubin(path, ["fill"], "sm_87")
    compile_cubin(path, ["fill"], "sm_90", fmad=True)
    compile_cubin(path, ["fill"], "sm_90", defines=["X"])
    compile_cubin(path, ["fill"], "sm_90", include_dirs=[tmp_path])
    assert len(compilations) == 5


def test_a_changed_header_is_compiled_again(tmp_path: Path) -> None:
    made = [compile_cubin(source(tmp_path, value), ["fill"], "sm_90").cubin for value in (1, 2, 1)]
    assert made[0] == made[2] != made[1]


def test_a_changed_header_of_a_header_is_compiled_again(tmp_path: Path) -> None:
    path = source(tmp_path)
    (tmp_path / "part.cuh").write_text("#include \\\n  <inner.cuh>\n")
    made = []
    for value in (1, 2):
        (tmp_path / "inner.cuh").write_text(f"constexpr float kValue = {value};\n")
        made.append(compile_cubin(path, ["fill"], "sm_90", include_dirs=[tmp_path]).cubin)
    assert made[0] != made[1]


def test_a_header_that_now_comes_first_is_compiled_again(tmp_path: Path) -> None:
    path = source(tmp_path, 1)
    path.write_text(KERNEL.replace('"part.cuh"', "<part.cuh>"))
    first = tmp_path / "first"
    first.mkdir()
    folders = [first, tmp_path]
    before = compile_cubin(path, ["fill"], "sm_90", include_dirs=folders).cubin
    (first / "part.cuh").write_text("constexpr float kValue = 2;\n")
    assert compile_cubin(path, ["fill"], "sm_90", include_dirs=folders).cubin != before


def test_an_include_named_by_a_macro_is_never_cached(
    tmp_path: Path, compilations: list[str]
) -> None:
    path = source(tmp_path)
    path.write_text('#define PART "part.cuh"\n' + KERNEL.replace('"part.cuh"', "PART"))
    for _ in range(2):
        compile_cubin(path, ["fill"], "sm_90")
    assert len(compilations) == 2


def test_many_give_what_one_by_one_gives_in_order(tmp_path: Path) -> None:
    text = 'extern "C" __global__ void fill(float* x) { x[0] = VALUE; }\n'
    jobs = [
        Job(text, "kernel.cu", ("fill",), arch, defines=(f"VALUE={value}",))
        for value in range(4)
        for arch in ("sm_75", "sm_90")
    ]
    at_once = compile_many(jobs, workers=2)
    (tmp_path / "cache").rename(tmp_path / "used")
    assert at_once == compile_many(jobs, workers=1)
    assert len({made.cubin for made in at_once if not isinstance(made, Exception)}) == len(jobs)


def test_a_failed_job_has_its_error_for_a_result() -> None:
    text = 'extern "C" __global__ void k(float* x) { x[0] = VALUE; }\n'
    jobs = [
        Job(text, "k.cu", ("k",), "sm_90", defines=("VALUE=1",)),
        Job(text, "k.cu", ("k",), "sm_90"),
        Job(text, "k.cu", ("k",), "sm_1"),
        Job(text, "k.cu", ("none",), "sm_90", defines=("VALUE=1",)),
    ]
    made, *errors = compile_many(jobs)
    assert not isinstance(made, Exception)
    assert [type(error) for error in errors] == [SourceError, UnknownNameError, UsageError]
