"""Convolutions whose sums are made in parts: the same numbers, every slice in one part."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from benchmarks.conv_parts import figures, parts_of
from miriam import devices
from miriam.devices.host import Host
from miriam.kernels import Program, Resources
from miriam.models import load, tiles
from miriam.models.builder import Builder
from miriam.models.layers import conv
from miriam.models.measured import Needs
from miriam.models.tiles import TILES, Tile, ceil_div

CHANNELS, SIDE = 52, 13
PARTS = 5
NEEDS = Needs(Resources(64, 0))
Image = NDArray[np.float32]


@given(st.sampled_from(TILES), st.integers(1, 20_000))
def test_every_slice_is_in_one_part_and_no_part_is_empty(tile: Tile, depth: int) -> None:
    parts, share = tile.parts(depth)
    slices = ceil_div(depth, tile.slice)
    assert (parts - 1) * share < slices <= parts * share


def test_the_page_of_parts_compares_networks_and_leaves_them_as_they_are() -> None:
    def names() -> set[str]:
        return {step.name for step in load("alexnet").steps}

    used = names()
    assert "features.3.parts" in used
    with parts_of(inf):
        assert not any(name.endswith(".parts") for name in names())
    assert names() == used
    request, _, block = figures(devices.get("sim:orin"), load("cifarnet")).partition(" | ")
    assert float(request) > float(block.split()[0]) > 0


def network(outputs: int, *, accumulate: bool = False, first: int = 0) -> Program:
    """A 3x3 convolution, into the channels from ``first`` on, on top of a 1x1 one or not."""
    net = Builder("parts", "sm_87", lambda kernel: NEEDS)
    x = net.input(CHANNELS, SIDE, SIDE)
    out = net.output(first + outputs, SIDE, SIDE)
    part = out.part(first, outputs)
    if accumulate:
        conv(net, x, "before", outputs, kernel=1, relu=False, into=part)
    conv(net, x, "conv", outputs, kernel=3, padding=1, into=part, accumulate=accumulate)
    return net.build()


def convolved(x: Image, weight: Image, bias: Image) -> NDArray[np.float64]:
    """The same with numpy, in double precision."""
    pad = weight.shape[2] // 2
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad))).astype(np.float64)
    windows = sliding_window_view(padded, weight.shape[2:], (1, 2))
    found: NDArray[np.float64] = np.einsum("chwij,ocij->ohw", windows, weight.astype(np.float64))
    return found + bias[:, None, None]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("first", [0, 8])
@pytest.mark.parametrize(("outputs", "parts"), [(96, PARTS), (33, 1)])
def test_parts_sum_up_to_the_whole(
    monkeypatch: pytest.MonkeyPatch, outputs: int, parts: int, first: int, accumulate: bool
) -> None:
    """33 channels of 169 pixels can not be added up by fours, and are not made in parts."""
    tile = tiles.choose_tile(outputs, SIDE * SIDE)
    slices = ceil_div(9 * CHANNELS, tile.slice)
    monkeypatch.setattr(tiles, "PART_FLOP", 2 * tile.m * tile.n * tile.slice * slices / PARTS)
    program = network(outputs, accumulate=accumulate, first=first)
    steps = {step.name: step.kernel for step in program.steps}
    grid = steps.get("conv.parts", steps["conv"]).grid
    assert grid.z == parts
    random = np.random.default_rng(1)
    weights = {b.name: random.standard_normal(b.shape, np.float32) for b in program.named("weight")}
    x = random.standard_normal((CHANNELS, SIDE, SIDE), np.float32)
    request = Host().load(program, weights).request()
    request.write({"input": x})
    request.run_all()
    expected = convolved(x, weights["conv.weight"], weights["conv.bias"])
    if accumulate:
        expected += convolved(x, weights["before.weight"], weights["before.bias"])
    got = request.outputs()["output"][first:].astype(np.float64)
    assert np.abs(got - np.maximum(expected, 0)).max() < 1e-4 * np.abs(expected).max()
