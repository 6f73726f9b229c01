"""The networks' programs: shapes, launches, costs, resources; nothing runs here."""

from __future__ import annotations

from pathlib import Path

import pytest

from miriam.compile import compile_cubin
from miriam.errors import UnknownNameError
from miriam.kernels import ARCHITECTURES, Pointer, Resources, resident_blocks
from miriam.models import NAMES, load
from miriam.models.builder import estimated_variants
from miriam.models.measured import STAND_INS, lookup, table
from miriam.models.resources import kernels
from miriam.models.tiles import TILES, choose_tile

IMAGES_224 = ("alexnet", "squeezenet", "resnet50")
# Multiply-adds of convolutions and dense layers, in units of 1e9, without padding.
KNOWN_GMAC = {"alexnet": 0.714, "squeezenet": 0.349, "resnet50": 4.089, "cifarnet": 0.0123}


def test_names_are_the_eight_networks() -> None:
    assert set(NAMES) == {
        *("alexnet", "squeezenet", "resnet50", "cifarnet"),
        *("gru", "lstm", "gru-large", "lstm-large"),
    }


def test_an_unknown_network_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'resnet50'\? known: alexnet, "):
        load("resnet5")


def test_an_unknown_architecture_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"architecture: unknown name.*sm_87"):
        load("gru", "sm_60")


@pytest.mark.parametrize("name", NAMES)
def test_buffers_have_one_input_and_one_output(name: str) -> None:
    program = load(name)
    assert [b.name for b in program.named("input")] == ["input"]
    assert [b.name for b in program.named("output")] == ["output"]
    assert {s.output for s in program.steps} <= {
        b.name for b in program.buffers if b.role in ("scratch", "output")
    }
    assert len({s.name for s in program.steps}) == len(program.steps)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("alexnet", 61_100_840), ("squeezenet", 1_235_496), ("resnet50", 25_557_032 - 26_560)],
)
def test_parameters_are_as_many_as_torchvision_has(name: str, parameters: int) -> None:
    # Folding a batch norm leaves one bias of its two vectors: 26,560 channels in all.
    assert sum(b.size for b in load(name).named("weight")) == parameters


@pytest.mark.parametrize("name", KNOWN_GMAC)
def test_costs_sum_to_the_known_products_and_little_padding(name: str) -> None:
    steps = load(name).steps
    products = [s for s in steps if s.kernel.name.startswith(("conv2d", "dense"))]
    issued = sum(s.cost.flop * s.kernel.blocks for s in products) / 2e9
    assert KNOWN_GMAC[name] <= issued <= 1.25 * KNOWN_GMAC[name]


@pytest.mark.parametrize("name", NAMES)
def test_bytes_cover_what_a_step_must_move(name: str) -> None:
    program = load(name)
    for step in program.steps:
        weights = {a.buffer for a in step.args if isinstance(a, Pointer)}
        weight_bytes = sum(b.bytes for b in program.named("weight") if b.name in weights)
        first_cell = step.name in ("gru.0", "lstm.0")
        if not first_cell:
            assert step.cost.dram_bytes * step.kernel.blocks >= 0.99 * weight_bytes
        assert step.cost.l2_bytes >= 0.49 * step.cost.dram_bytes > 0
        assert step.cost.flop > 0


@pytest.mark.parametrize("name", IMAGES_224)
def test_convolutions_have_blocks_for_the_sms_of_an_edge_gpu(name: str) -> None:
    for step in load(name).steps:
        if step.kernel.name.startswith("conv2d"):
            assert 18 <= step.kernel.blocks <= 800, step.name


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", NAMES)
def test_every_form_of_every_kernel_fits_one_sm(name: str, arch: str) -> None:
    for step in load(name, arch).steps:
        for variant in step.kernel.variants:
            assert resident_blocks(step.kernel, variant, ARCHITECTURES[arch]) >= 1


def test_every_kernel_was_measured_on_every_architecture_and_none_spills() -> None:
    used = {kernel for names in kernels().values() for kernel in names}
    assert set(table().resources) | set(STAND_INS) == set(ARCHITECTURES)
    for arch, measured in table().resources.items():
        assert set(measured) == used, arch
        assert {r.local_bytes for r in measured.values()} == {0}, arch


def test_xavier_takes_turings_figures() -> None:
    assert lookup("sm_72", "relu_in_place") == lookup("sm_75", "relu_in_place")


def test_the_table_is_what_the_compiler_says_today() -> None:
    for path, names in kernels().items():
        some = names[:2]  # every convolution would take half a minute
        measured = compile_cubin(Path(path), some, "sm_87").resources
        assert measured == {name: lookup("sm_87", name) for name in some}


def test_elastic_blocks_are_estimates_with_whole_warps() -> None:
    forms = estimated_variants(128, Resources(40, 1_024))
    assert [(v.threads, v.fold, v.estimated) for v in forms] == [
        (128, 1, False),
        (64, 2, True),
        (32, 4, True),
    ]
    assert [v.resources for v in forms] == [
        Resources(40, 1_024),
        Resources(44, 1_024),
        Resources(70, 1_024),
    ]
    assert [v.threads for v in estimated_variants(64, Resources(40, 0))] == [64, 32]
    assert estimated_variants(256, Resources(200, 0))[2].resources.registers == 255


@pytest.mark.parametrize(
    ("channels", "pixels", "size"),
    [(256, 3136, (64, 64)), (16, 3025, (16, 64)), (512, 49, (32, 32)), (64, 64, (16, 32))],
)
def test_small_outputs_get_small_tiles(channels: int, pixels: int, size: tuple[int, int]) -> None:
    tile = choose_tile(channels, pixels)
    assert (tile.m, tile.n) == size


def test_a_tile_covers_its_output() -> None:
    for tile in TILES:
        assert tile.blocks(tile.m, tile.n) == 1
        assert tile.blocks(tile.m + 1, tile.n + 1) == 4
        assert tile.padding(tile.m, tile.n) == 1.0
