"""Our networks against the same ones in PyTorch, layer by layer, on the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.cbook import get_sample_data
from numpy.typing import NDArray
from safetensors.numpy import save_file

from miriam.devices.host import Host
from miriam.kernels import Program
from miriam.models import NAMES, example_input, load, photograph, weights, weights_from_file
from miriam.models.parameters import random_state
from tests.models_torch import layer_results, network

TOLERANCE = 1e-4
IMAGES = ("alexnet", "squeezenet", "cifarnet", "resnet50")

# A step of each network that changes its result when it runs twice, because it works in place.
IN_PLACE = {
    "alexnet": "softmax",
    "squeezenet": "softmax",
    "resnet50": "layer4.2.conv3",
    "cifarnet": "softmax",
    "gru": "gru.1",
    "lstm": "lstm.1",
    "gru-large": "gru.31",
    "lstm-large": "lstm.31",
}

Arrays = dict[str, NDArray[np.float32]]


@pytest.fixture(scope="module")
def picture() -> Path:
    return Path(get_sample_data("grace_hopper.jpg", asfileobj=False))


def assert_close(layer: str, got: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    error = np.abs(got - expected).max() / np.abs(expected).max()
    assert error <= TOLERANCE, f"{layer}: {error:.2e}"


def host_layers(program: Program, given: Arrays, inputs: Arrays) -> Arrays:
    """Each layer's buffer as it is after the layer's last step; a block run twice must show."""
    request = Host().load(program, given).request()
    request.write(inputs)
    results: Arrays = {}
    for index, step in enumerate(program.steps):
        request.run(index)
        results[step.layer] = request.read(step.output).astype(np.float32)
    assert all((runs == 1).all() for runs in request.runs())
    (in_place,) = (i for i, s in enumerate(program.steps) if s.name == IN_PLACE[program.name])
    before = request.read(program.steps[in_place].output)
    request.run(in_place, [0])
    assert not np.array_equal(before, request.read(program.steps[in_place].output))
    return results


def compare(name: str, got: Arrays, expected: Arrays) -> None:
    assert set(got) <= set(expected)
    for layer, values in got.items():
        assert_close(f"{name} {layer}", values, expected[layer].reshape(values.shape))


@pytest.mark.parametrize("name", IMAGES)
def test_image_networks_agree_with_torch_layer_by_layer(name: str, picture: Path) -> None:
    inputs = photograph(name, picture)
    expected = layer_results(network(name, random_state(name)), inputs["input"])
    got = host_layers(load(name), weights(name), inputs)
    compare(name, got, expected)
    assert got["softmax"].sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in IMAGES])
def test_recurrent_networks_agree_with_torch_step_by_step(name: str) -> None:
    inputs = example_input(name, seed=3)
    expected = layer_results(network(name, random_state(name)), inputs["input"])
    got = host_layers(load(name), weights(name), inputs)
    kind = name.partition("-")[0]
    states = expected[kind]
    for t, state in enumerate(states):
        assert_close(f"{name} step {t}", got[f"{kind}.{t}"][t, : state.size], state)
    assert_close(f"{name} fc", got["fc"], expected["fc"])


def test_norms_matter_when_activations_are_large() -> None:
    # At the usual scale a response norm is so close to 1 that a wrong one would pass.
    loud = {k: v * 300 if k.startswith("conv1") else v for k, v in random_state("cifarnet").items()}
    inputs = example_input("cifarnet")
    expected = layer_results(network("cifarnet", loud), inputs["input"])
    assert expected["norm1"].max() < 0.5 * expected["relu1"].max()
    compare("cifarnet", host_layers(load("cifarnet"), loud, inputs), expected)


def test_a_weights_file_gives_what_torch_makes_of_it(tmp_path: Path) -> None:
    state = random_state("resnet50", seed=5)
    file = tmp_path / "resnet50.safetensors"
    save_file(state, file)
    read = weights_from_file("resnet50", file)
    made = weights("resnet50", seed=5)
    assert list(read) == [b.name for b in load("resnet50").named("weight")]
    for name, values in read.items():
        np.testing.assert_array_equal(values, made[name])
