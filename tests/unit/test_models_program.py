"""The networks' programs: shapes, launches, costs, resources; nothing runs here."""

from __future__ import annotations

import pytest

from miriam.errors import UnknownNameError
from miriam.kernels import ARCHITECTURES, Pointer, Resources, Variant, resident_blocks
from miriam.models import NAMES, load
from miriam.models.builder import variants
from miriam.models.measured import STAND_INS, Needs, lookup, table
from miriam.models.resources import fault, kernels, measure
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
    used = {kernel.name for kernel in kernels()}
    assert set(table().needs) | set(STAND_INS) == set(ARCHITECTURES)
    for arch, measured in table().needs.items():
        assert set(measured) == used, arch
        assert {needs.original.local_bytes for needs in measured.values()} == {0}, arch


def test_kernels_run_on_a_half_and_a_quarter_of_their_threads_without_a_spill() -> None:
    missing = []
    for arch, measured in table().needs.items():
        for kernel in kernels():
            needs = measured[kernel.name]
            assert {*needs.folded, *needs.without} == {2, 4}, (arch, kernel.name)
            missing += [(arch, kernel.name, fold) for fold in needs.without]
            for form in variants(kernel.threads, needs)[1:]:
                taken = form.threads * form.resources.registers
                assert form.resources.local_bytes == 0, (arch, kernel.name)
                assert taken <= kernel.threads * needs.original.registers, (arch, kernel.name)
    # The claim loop alone takes more registers than 128 threads of the first, which have 10 each.
    assert missing == [
        ("sm_90", "relu_in_place", 2),
        ("sm_110", "relu_in_place", 2),
        ("sm_110", "relu_in_place", 4),
        ("sm_110", "gru_cell", 2),
    ]


def test_xavier_takes_turings_figures() -> None:
    assert lookup("sm_72", "relu_in_place") == lookup("sm_75", "relu_in_place")


def test_the_table_is_what_the_compiler_says_today() -> None:
    first = {kernel.source: kernel for kernel in reversed(kernels())}
    for kernel in first.values():  # all of them would take minutes
        today, known = measure(kernel, "sm_87"), lookup("sm_87", kernel.name)
        assert (today.original, today.elastic) == (known.original, known.elastic)
        # A few registers come and go with every change of the generator.
        assert today.folded.keys() == known.folded.keys()


def test_folded_forms_are_variants_with_their_threads() -> None:
    half, quarter = Resources(44, 1_032), Resources(70, 1_032)
    needs = Needs(Resources(40, 1_024), None, {4: quarter, 2: half})
    assert variants(129, needs) == (
        Variant(129, Resources(40, 1_024)),
        Variant(65, half, 2),
        Variant(33, quarter, 4),
    )
    for step in load("resnet50").steps:
        assert [v.fold for v in step.kernel.variants] == [1, 2, 4]


@pytest.mark.parametrize(
    ("local_bytes", "registers", "why"),
    [(8, 40, "spills 8 bytes per thread"), (0, 81, "5184 registers, the original's 5120")],
)
def test_a_fold_that_costs_more_than_the_original_is_named(
    local_bytes: int, registers: int, why: str
) -> None:
    whole = Variant(128, Resources(40, 0))
    assert why in fault(Variant(64, Resources(registers, 0, local_bytes), 2), whole)
    assert fault(Variant(64, Resources(80, 0), 2), whole) == ""


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
