"""The tango variants: launches as in the public suite, costs of naive kernels, simulator only."""

from __future__ import annotations

from math import prod

import pytest

from miriam import models
from miriam.devices.host import Host
from miriam.errors import UnknownNameError, UsageError
from miriam.kernels import ARCHITECTURES, Program, Step, resident_blocks
from miriam.models import TANGO_NAMES
from miriam.models.tango.folded import YIELD_ROWS
from miriam.models.tango.pipes import UNIFORM, Loop, strided

ARCH = "sm_75"


def steps(name: str) -> dict[str, Step]:
    return {step.name: step for step in models.load(f"{name}-tango", ARCH).steps}


def geometry(step: Step) -> tuple[int, int, int]:
    kernel = step.kernel
    assert kernel.grid.size == kernel.grid.x and kernel.block.z == 1
    return kernel.grid.x, kernel.block.x, kernel.block.y


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", TANGO_NAMES)
def test_every_network_fits_every_architecture(name: str, arch: str) -> None:
    program = models.load(name, arch)
    for step in program.steps:
        for variant in step.kernel.variants:
            assert resident_blocks(step.kernel, variant, ARCHITECTURES[arch]) >= 1
        cost = step.cost
        assert min(cost.flop, cost.l2_bytes, cost.dram_bytes) > 0


@pytest.mark.parametrize(
    "name, launches, kernels",
    [("alexnet", 22, 7), ("squeezenet", 30, 30), ("resnet50", 227, 14), ("cifarnet", 8, 8)],
)
def test_launches_and_kernels_are_counted_as_in_the_suite(
    name: str, launches: int, kernels: int
) -> None:
    found = steps(name)
    assert len(found) == launches
    assert len({step.kernel.name for step in found.values()}) == kernels


def test_alexnet_has_a_block_per_channel_and_a_thread_per_pixel() -> None:
    found = steps("alexnet")
    assert [geometry(found[f"conv1.{i}"]) for i in range(4)] == [
        (96, 32, 32),
        (96, 32, 23),
        (96, 23, 32),
        (96, 23, 23),
    ]
    assert geometry(found["conv2.0"]) == geometry(found["conv2.1"]) == (128, 27, 27)
    assert geometry(found["conv3.0"]) == (384, 13, 13)
    assert geometry(found["pool5"]) == (256, 6, 6)


@pytest.mark.parametrize(
    "name, layer, blocks",
    [("alexnet", "fc6", 4096), ("alexnet", "fc8", 1000), ("resnet50", "fc", 1000)],
)
def test_dense_layers_have_blocks_of_one_thread(name: str, layer: str, blocks: int) -> None:
    assert geometry(steps(name)[layer]) == (blocks, 1, 1)


@pytest.mark.parametrize("name", ["cifarnet", "gru", "lstm"])
def test_small_networks_fill_one_sm_at_most(name: str) -> None:
    assert all(step.kernel.blocks == 1 for step in steps(name).values())


def test_squeezenet_has_a_block_per_column() -> None:
    found = steps("squeezenet")
    assert geometry(found["conv1"]) == (111, 111, 1)
    assert geometry(found["fire4.expand3"]) == (55, 55, 1)
    assert geometry(found["fire9.squeeze"]) == (13, 13, 1)
    assert geometry(found["average"]) == (1, 1000, 1)


def test_resnet_launches_what_others_fuse() -> None:
    found = steps("resnet50")
    assert geometry(found["2.0.a"]) == (64, 32, 32)
    assert geometry(found["3.0.shortcut"]) == (512, 28, 28)
    assert geometry(found["5.2.c.bn"]) == (2048, 7, 7)
    kinds = [name.rpartition(".")[2] for name in found]
    assert [kinds.count(kind) for kind in ("bn", "scale", "relu", "sum")] == [53, 53, 49, 16]


@pytest.mark.parametrize("name, weights", [("alexnet", 60.9e6), ("resnet50", 25.5e6)])
def test_weights_are_those_of_the_architecture(name: str, weights: float) -> None:
    program = models.load(f"{name}-tango", ARCH)
    found = sum(prod(buffer.shape) for buffer in program.named("weight"))
    assert found == pytest.approx(weights, rel=0.01)


def test_a_naive_multiply_add_costs_many_tiled_ones() -> None:
    """AlexNet's third convolution: 150 million multiply-adds."""
    step = steps("alexnet")["conv3.0"]
    tiled = 2 * 384 * 169 * 256 * 9
    assert 10 < step.cost.flop * step.kernel.blocks / tiled < 60


def test_the_slowest_pipe_decides() -> None:
    assert Loop(4).flop("sm_75") == 2 * 64
    assert Loop(4, (UNIFORM,)).flop("sm_75") == 2 * 2 * 64
    assert Loop(4, (32.0,)).flop("sm_75") == 2 * Loop(4, (32.0,)).flop("sm_72")
    assert Loop(4, fp64=1).flop("sm_75") == 16 * 2 * 64
    assert Loop(4, fp64=1).flop("sm_72") == 2 * 64


def test_sectors_follow_the_stride() -> None:
    assert strided((32, 1), 4) == 4
    assert strided((32, 1), 32) == 32
    assert strided((1, 1), 4) == 1
    assert strided((32, 32), 4, 128) == 4
    # Rows side by side in a warp, an image 128 bytes wide: a sector for each.
    assert strided((32, 32), 128, 4) == 32


def test_elastic_blocks_save_warps_and_registers() -> None:
    kernel = steps("alexnet")["conv2.0"].kernel
    assert [(v.threads, v.fold) for v in kernel.variants] == [(729, 1), (365, 2), (183, 4)]
    assert kernel.elastic is not None
    assert kernel.elastic.registers == YIELD_ROWS["an.execute3DconvolutionCuda", 1][0]
    for name in TANGO_NAMES:
        for arch in ARCHITECTURES:
            for step in models.load(name, arch).steps:
                original, *folded = step.kernel.variants
                for form in folded:
                    taken = form.threads * form.resources.registers
                    assert taken <= original.threads * original.resources.registers
                    assert -(-form.threads // 32) < -(-original.threads // 32)
    assert len(steps("alexnet")["fc6"].kernel.variants) == 1


def test_the_host_refuses_what_has_no_source() -> None:
    program: Program = models.load("gru-tango", ARCH)
    with pytest.raises(UsageError, match=r"cell\.0\.gates: a kernel with source.*simulator only"):
        Host(workers=1).load(program, {})


def test_weights_and_inputs_of_a_variant_are_refused() -> None:
    for ask in (models.weights, models.example_input):
        with pytest.raises(UsageError, match=r"alexnet-tango.*simulator"):
            ask("alexnet-tango")


def test_unknown_names_list_the_variants() -> None:
    with pytest.raises(UnknownNameError, match="alexnet-tango"):
        models.load("alexnet-tangoo", ARCH)
    with pytest.raises(UnknownNameError, match="sm_72"):
        models.load("gru-tango", "sm_61")
