"""The six networks of the paper's benchmark, in CUDA C++ of our own (fp32, batch 1)."""

from miriam.models.inputs import example_input, photograph
from miriam.models.parameters import weights, weights_from_file
from miriam.models.tango import TANGO_NAMES
from miriam.models.zoo import NAMES, load

__all__ = [
    "NAMES",
    "TANGO_NAMES",
    "example_input",
    "load",
    "photograph",
    "weights",
    "weights_from_file",
]
