"""LAUNCH.toml: what it says is what runs, and what is wrong in it is named with its place."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from miriam.check.launchfile import Alias, Array, Value, read_launches
from miriam.check.values import filled
from miriam.errors import UsageError
from miriam.kernels import Dim3

HEAD = '[kernel."blur<4>"]\ngrid = [4, 1, 1]\nblock = [64, 1, 1]\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "launch.toml"
    path.write_text(text)
    return path


def test_every_kind_of_argument(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        HEAD + "shared_bytes = 272\n"
        'args = [{array = "float32", count = 256, fill = "random", min = 0, max = 2.5},\n'
        '        {array = "int8", count = 3}, {same_as = 0}, {scalar = "int32", value = -250},\n'
        '        {scalar = "float64", value = 1}, {struct = "00 ff 10"}]\n'
        "[kernel.add]\ngrid = [2, 3, 4]\nblock = [8, 2, 1]\nargs = []\n",
    )
    blur, add = read_launches(path)
    assert (blur.name, blur.grid, blur.block) == ("blur<4>", Dim3(4), Dim3(64))
    assert blur.shared_bytes == 272
    assert blur.args == (
        Array("float32", 256, "random", (0.0, 2.5)),
        Array("int8", 3),
        Alias(0),
        Value(struct.pack("<i", -250), "int"),
        Value(struct.pack("<d", 1.0), "float"),
        Value(b"\x00\xff\x10", "struct"),
    )
    assert (add.name, add.grid, add.block, add.args) == ("add", Dim3(2, 3, 4), Dim3(8, 2), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{path}: kernel: a table per kernel, got {{}}"),
        ("[kernel", "{path}:1:8: valid TOML, got '[kernel'"),
        ("[kernels.a]", "{path}: key: unknown name, got 'kernels'; did you mean 'kernel'?"),
        ("kernel = 3", "{path}: kernel: a table per kernel, got 3"),
        (
            "[kernel.a]\ngrid = [1, 1, 1]",
            "{path}: kernel.a: the key 'block' is required, got ['grid']",
        ),
        (HEAD, "{path}: kernel.\"blur<4>\": the key 'args' is required, got ['block', 'grid']"),
        ("[kernel.a]\ngrid = [1]", "{path}: kernel.a.grid: an array of length 3, got [1]"),
        (HEAD + "args = 3", '{path}: kernel."blur<4>".args: an array, got 3'),
        (HEAD + "args = []\nblok = 1", "{path}: kernel.\"blur<4>\" key: unknown name, got 'blok'"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read_launches(path)
    assert str(caught.value).startswith(message.format(path=path))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("{}", ": exactly one of the keys array, scalar, struct, same_as, got []"),
        ("3", ": a table, got 3"),
        ('{array = "f4", count = 1}', ".array: unknown name, got 'f4'"),
        ('{array = "float32"}', ".count: required for an array, got None"),
        ('{array = "int8", count = 0}', ".count: from 1 to 1073741824, got 0"),
        ('{array = "int8", count = true}', ".count: a whole number, got True"),
        ('{array = "int8", count = 1, fill = "ones"}', ".fill: unknown name, got 'ones'"),
        ('{array = "int8", count = 1, value = 1}', ".value: not used where the argument is"),
        ('{array = "int8", count = 1, min = 1, max = 2}', ".min: only where fill is 'random'"),
        ('{array = "int8", count = 1, fill = "random", min = 1}', ".max: min and max, or neither"),
        (
            '{array = "int8", count = 1, fill = "random", min = -129, max = 1}',
            ".min: a finite value of int8, got -129",
        ),
        (
            '{array = "int8", count = 1, fill = "random", min = 3, max = 1}',
            ".min: not above max, 1, got 3",
        ),
        ('{scalar = "int32"}', ".value: required for a scalar, got None"),
        ('{scalar = "int32", value = 1.5}', ".value: a value of int32, got 1.5"),
        ('{scalar = "uint8", value = -1}', ".value: a value of uint8, got -1"),
        ('{scalar = "float16", value = 1e5}', ".value: a value of float16, got 100000.0"),
        ('{struct = "0"}', ".struct: bytes as pairs of hexadecimal digits, got '0'"),
        ("{same_as = 0}", ".same_as: the index of an earlier array argument, got 0"),
        ("{count = 3}", ": exactly one of the keys"),
        ('{arry = "int8"}', " key: unknown name, got 'arry'; did you mean 'array'?"),
    ],
)
def test_what_is_wrong_with_an_argument_is_named(
    tmp_path: Path, argument: str, message: str
) -> None:
    path = written(tmp_path, f"{HEAD}args = [{argument}]")
    with pytest.raises(UsageError) as caught:
        read_launches(path)
    assert str(caught.value).startswith(f'{path}: kernel."blur<4>".args[0]{message}')


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("grid = [0, 1, 1]", "grid[0]: from 1 to 2147483647, got 0"),
        ("grid = [1, 65536, 1]", "grid[1]: from 1 to 65535, got 65536"),
        ("grid = [1000, 1000, 2]", "grid: at most 1000000 blocks, got [1000, 1000, 2]"),
        ("block = [1024, 2, 1]", "block: at most 1024 threads, got [1024, 2, 1]"),
        ("block = [1, 1, 65]", "block[2]: from 1 to 64, got 65"),
        ("shared_bytes = -1", "shared_bytes: from 0 to 233472, got -1"),
    ],
)
def test_extents_have_the_limits_of_cuda(tmp_path: Path, line: str, message: str) -> None:
    lines = {"grid": "grid = [1, 1, 1]", "block": "block = [1, 1, 1]", line.split()[0]: line}
    path = written(tmp_path, "\n".join(["[kernel.a]", *lines.values(), "args = []"]))
    with pytest.raises(UsageError) as caught:
        read_launches(path)
    assert str(caught.value) == f"{path}: kernel.a.{message}"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"launch file: a readable text file, got '.*none\.toml'"):
        read_launches(tmp_path / "none.toml")


def test_random_integers_include_negatives_and_both_bounds() -> None:
    default = filled("int32", 2_000, "random", None, (1, 0))
    assert (default.min(), default.max()) == (-100, 100)
    assert filled("uint16", 2_000, "random", None, (1, 0)).min() == 0
    asked = filled("int8", 200, "random", (-1, 1), (1, 0))
    assert set(asked.tolist()) == {-1, 0, 1}


def test_random_floats_stay_within_bounds_and_a_seed_fixes_them() -> None:
    values = filled("float32", 1_000, "random", (2.0, 3.0), (7, 1))
    assert values.dtype == np.float32
    assert 2.0 <= float(values.min()) < 2.1 < 2.9 < float(values.max()) <= 3.0
    np.testing.assert_array_equal(values, filled("float32", 1_000, "random", (2.0, 3.0), (7, 1)))
    assert (values != filled("float32", 1_000, "random", (2.0, 3.0), (8, 1))).any()


def test_arange_counts_from_zero_in_every_type() -> None:
    assert filled("float16", 4, "arange", None, ()).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert filled("uint8", 258, "arange", None, ())[-2:].tolist() == [0, 1]
