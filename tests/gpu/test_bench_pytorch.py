"""PyTorch models as networks of the benchmark, on the GPU: captured, run in pairs, checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from miriam.bench import Options, studies
from miriam.bench.execute import Unobserved, workshop
from miriam.bench.pytorch import MODELS, TorchModels
from miriam.bench.rounds import InRounds
from miriam.bench.solo import OnDevice
from miriam.bench.zoo import DISTINCT_INPUTS, Zoo
from miriam.devices.cuda.device import CudaDevice

ASKED = Options(
    benchmark="pairs",
    device="cuda:0",
    policies=("gate", "multistream", "miriam"),
    seconds=0.4,
    seed=1,
    workloads=("torch:resnet18+torch:vgg16@4",),
    in_flight=2,
    gaps_us=(0.0, 4_000.0),
    worlds=(0,),
)


@pytest.fixture(autouse=True)
def with_torch(device: CudaDevice) -> None:
    """PyTorch that sees the same GPU, and keeps graphs."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    if not hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph"):
        pytest.skip("PyTorch before 2.8 does not give its graphs away")


@pytest.mark.parametrize("batch", ["", "@4"])
@pytest.mark.parametrize("model", MODELS)
def test_outputs_are_finite_and_tell_inputs_apart(
    device: CudaDevice, model: str, batch: str
) -> None:
    network = f"torch:{model}{batch}"
    alone = OnDevice(Zoo(device.gpu.arch, 1), device, TorchModels(device, 1))
    found = [alone.expected(network, ordinal)["y"] for ordinal in range(DISTINCT_INPUTS)]
    assert all(np.isfinite(scores).all() for scores in found)
    # All scores of a picture, and all pictures of a batch.
    rows = {scores.tobytes() for output in found for scores in output}
    assert len(rows) == DISTINCT_INPUTS * int(batch[1:] or 1)


@pytest.mark.parametrize("name", ["cuda:0", "cuda:0:32"])
@pytest.mark.parametrize(
    "pair",
    [
        "torch:resnet18+torch:vgg16@4",
        "torch:squeezenet+torch:squeezenet",
        "torch:resnet50+alexnet",
        "alexnet+torch:resnet50@8",
    ],
)
def test_pairs_are_right_bit_for_bit(name: str, pair: str) -> None:
    options = replace(ASKED, device=name, workloads=(pair,))
    result = studies.run(options, InRounds(workshop(1), Unobserved()))
    assert len(result.rows) == 6
    for row in result.rows:
        assert row.verified, row.faults[:3]
        assert row.critical[0].latency.count > 5
        assert row.critical[0].solo_latency.count > 5
