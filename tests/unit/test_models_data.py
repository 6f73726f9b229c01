"""Weights and inputs of the networks: seeds, files and photographs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from miriam.errors import UnknownNameError, UsageError
from miriam.models import NAMES, example_input, load, photograph, weights, weights_from_file
from miriam.models.parameters import random_state


@pytest.mark.parametrize("name", [n for n in NAMES if n != "alexnet"])
def test_weights_and_inputs_fit_the_program(name: str) -> None:
    program = load(name)
    arrays = {**weights(name), **example_input(name)}
    shapes = {b.name: b.shape for b in (*program.named("weight"), *program.named("input"))}
    assert {k: v.shape for k, v in arrays.items()} == shapes
    assert {v.dtype for v in arrays.values()} == {np.dtype(np.float32)}


def test_a_seed_gives_the_same_arrays_again() -> None:
    first, again, other = weights("gru", 1), weights("gru", 1), weights("gru", 2)
    np.testing.assert_array_equal(first["fc.weight"], again["fc.weight"])
    assert not np.array_equal(first["fc.weight"], other["fc.weight"])
    assert np.array_equal(example_input("gru", 4)["input"], example_input("gru", 4)["input"])
    assert not np.array_equal(example_input("gru", 4)["input"], example_input("gru", 5)["input"])


def test_unknown_networks_are_named() -> None:
    for ask in (weights, example_input):
        with pytest.raises(UnknownNameError, match="known: alexnet"):
            ask("vgg16")


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    state = random_state("gru")
    del state["fc.bias"]
    save_file(state, tmp_path / "gru.safetensors")
    with pytest.raises(UsageError, match=r"a tensor fc.bias of shape \(1,\), got .*fc.weight"):
        weights_from_file("gru", tmp_path / "gru.safetensors")


def test_a_tensor_of_another_shape_is_named(tmp_path: Path) -> None:
    state = random_state("gru") | {"fc.bias": np.zeros(7, np.float32)}
    save_file(state, tmp_path / "gru.safetensors")
    with pytest.raises(UsageError, match=r"fc.bias: shape \(1,\), got \(7,\)"):
        weights_from_file("gru", tmp_path / "gru.safetensors")


def test_half_precision_files_become_fp32(tmp_path: Path) -> None:
    state = {k: v.astype(np.float16) for k, v in random_state("gru").items()}
    save_file(state, tmp_path / "gru.safetensors")
    read = weights_from_file("gru", tmp_path / "gru.safetensors")
    np.testing.assert_array_equal(read["fc.weight"], state["fc.weight"].astype(np.float32))


@pytest.mark.parametrize("content", [None, b"no tensors here"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"weights file: a \.safetensors file"):
        weights_from_file("gru", path)


def test_a_photograph_is_resized_cropped_and_normalised(tmp_path: Path) -> None:
    path = tmp_path / "grey.png"
    Image.new("L", (300, 600), 128).save(path)
    image = photograph("alexnet", path)["input"]
    assert (image.shape, image.dtype) == ((3, 224, 224), np.dtype(np.float32))
    assert image[0] == pytest.approx((128 / 255 - 0.485) / 0.229)
    assert photograph("cifarnet", path)["input"].shape == (3, 32, 32)


def test_what_is_no_photograph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a network that takes an image, got 'gru'"):
        photograph("gru", tmp_path / "none.png")
    (tmp_path / "text.png").write_text("hello")
    for name in ("none.png", "text.png"):
        with pytest.raises(UsageError, match="photograph: a readable image file"):
            photograph("alexnet", tmp_path / name)
