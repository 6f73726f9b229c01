"""Inputs for the networks: random ones, or a photograph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from miriam.errors import MissingCapabilityError, UsageError
from miriam.kernels import Buffer
from miriam.models.zoo import build

# ImageNet's channel means and deviations, and resize 256 before crop 224, as torchvision has it.
_MEAN = np.array((0.485, 0.456, 0.406), np.float32)
_DEVIATION = np.array((0.229, 0.224, 0.225), np.float32)
_RESIZE_OVER_CROP = 256 / 224


def example_input(name: str, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """A random input of the network ``name``, normally distributed, by buffer name."""
    random = np.random.default_rng(seed)
    buffer = _input(name)
    return {buffer.name: random.standard_normal(buffer.shape, np.float32)}


def photograph(name: str, path: str | Path) -> dict[str, NDArray[np.float32]]:
    """An image file as input of the image network ``name``, by buffer name.

    The shorter side is resized, the middle cropped, colours normalised, as torchvision does it.
    UsageError for a network without images or an unreadable file; MissingCapabilityError without
    Pillow.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise MissingCapabilityError(
            "reading a photograph", "Pillow is not installed", "pip install miriam-gpu[models]"
        ) from error
    buffer = _input(name)
    if len(buffer.shape) != 3:
        raise UsageError("model", "a network that takes an image", name)
    side = buffer.shape[1]
    try:
        with Image.open(path) as file:
            image = file.convert("RGB")
    except (OSError, UnidentifiedImageError) as error:
        raise UsageError("photograph", f"a readable image file ({error})", str(path)) from error
    scale = round(side * _RESIZE_OVER_CROP) / min(image.size)
    width, height = (round(length * scale) for length in image.size)
    left, top = (width - side) // 2, (height - side) // 2
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    cropped = resized.crop((left, top, left + side, top + side))
    pixels = (np.asarray(cropped, np.float32) / 255 - _MEAN) / _DEVIATION
    return {buffer.name: np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32)}


def _input(name: str) -> Buffer:
    (buffer,) = build(name).named("input")
    return buffer
