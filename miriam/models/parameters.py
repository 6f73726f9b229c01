"""Weights: random ones from a seed, or a ``.safetensors`` file with torch's names."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miriam.errors import MissingCapabilityError, UsageError
from miriam.kernels import Buffer
from miriam.models.zoo import build, network

Tensors = Mapping[str, NDArray[np.generic]]

_NORM_EPSILON = 1e-5  # torch's default, and torchvision's


def weights(name: str, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random weights of the network ``name``, one fp32 array per weight buffer.

    The scales keep activations in range through all layers (He et al., arXiv 1502.01852).
    """
    return _fitted(name, random_state(name, seed), f"seed {seed}")


def weights_from_file(name: str, path: str | Path) -> dict[str, NDArray[np.float32]]:
    """The weights of the network ``name`` from a ``.safetensors`` file with torch's names.

    Batch norms are folded into their convolutions. UsageError for an unreadable file and for a
    tensor that is missing or has another shape; MissingCapabilityError without safetensors.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingCapabilityError(
            "reading weights", "safetensors is not installed", "pip install miriam-gpu[models]"
        ) from error
    try:
        state = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UsageError("weights file", f"a .safetensors file ({error})", str(path)) from error
    return _fitted(name, state, str(path))


def random_state(name: str, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random tensors as torch's ``state_dict`` has them: batch norms are not folded yet."""
    random = np.random.default_rng(seed)
    state: dict[str, NDArray[np.float32]] = {}
    for buffer in _weight_buffers(name):
        conv, _, kind = buffer.name.rpartition(".")
        norm = network(name).norm_of(conv)
        size = buffer.shape[0]
        if len(buffer.shape) > 1:
            fan_in = prod(buffer.shape[1:])
            gain = 1.0 if "weight_" in kind else 2.0  # recurrent gates saturate with more
            state[buffer.name] = random.standard_normal(buffer.shape, np.float32)
            state[buffer.name] *= np.float32(np.sqrt(gain / fan_in))
        elif norm is None:
            state[buffer.name] = np.float32(0.1) * random.standard_normal(size, np.float32)
        else:
            # The last norm of a residual block is small, or the sums would grow block by block.
            largest = 0.5 if norm.endswith("bn3") else 1.25
            state[f"{norm}.weight"] = random.uniform(0.5 * largest, largest, size).astype("f4")
            state[f"{norm}.bias"] = random.uniform(-0.2, 0.2, size).astype("f4")
            state[f"{norm}.running_mean"] = random.uniform(-0.2, 0.2, size).astype("f4")
            state[f"{norm}.running_var"] = random.uniform(0.5, 1.5, size).astype("f4")
    return state


def _weight_buffers(name: str) -> tuple[Buffer, ...]:
    return build(name).named("weight")


def _fitted(name: str, state: Tensors, origin: str) -> dict[str, NDArray[np.float32]]:
    """An array per weight buffer, from a ``state_dict``."""
    shapes = {buffer.name: buffer.shape for buffer in _weight_buffers(name)}
    fitted: dict[str, NDArray[np.float32]] = {}
    for tensor, shape in shapes.items():
        layer, _, kind = tensor.rpartition(".")
        norm = network(name).norm_of(layer)
        if norm is None or f"{norm}.running_var" not in state:
            fitted[tensor] = _take(state, tensor, shape, origin)
        elif kind == "weight":
            scale, shift = _folded(state, norm, shape[0], origin)
            kernel = _take(state, tensor, shape, origin)
            fitted[tensor] = (kernel * scale[:, None, None, None]).astype(np.float32)
            fitted[f"{layer}.bias"] = shift.astype(np.float32)
    return {tensor: fitted[tensor] for tensor in shapes}


def _folded(
    state: Tensors, norm: str, channels: int, origin: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale and shift per channel that a batch norm amounts to when it infers."""
    gamma, beta, mean, variance = (
        _take(state, f"{norm}.{kind}", (channels,), origin).astype(np.float64)
        for kind in ("weight", "bias", "running_mean", "running_var")
    )
    scale = gamma / np.sqrt(variance + _NORM_EPSILON)
    return scale, beta - mean * scale


def _take(state: Tensors, tensor: str, shape: tuple[int, ...], origin: str) -> NDArray[np.float32]:
    if tensor not in state:
        some = ", ".join(sorted(state)[:8])
        raise UsageError(
            f"weights from {origin}", f"a tensor {tensor} of shape {shape}", f"{some}, ..."
        )
    if state[tensor].shape != shape:
        raise UsageError(f"weights from {origin}: {tensor}", f"shape {shape}", state[tensor].shape)
    return np.ascontiguousarray(state[tensor], dtype=np.float32)
