"""Inner loops of Tango's kernels: instructions, loads and fp64 per turn.

Counted in the SASS for sm_75 (nvcc 13.0.88 -O3, nvdisasm) and divided by the turns that one pass
of an unrolled loop makes. A turn is a multiply-add unless said otherwise. Rows of taps are too
short for the unrolled part, so that what is around a row weighs more the shorter the row is.
"""

from __future__ import annotations

from miriam.models.tango.pipes import UNIFORM, Loop

_ROW_INSTRUCTIONS = 18
"""Around a row of taps: addresses, bounds, the branches of the remainder loop."""


def taps(side: int, sectors: float) -> Loop:
    """AlexNet's and ResNet's convolution: an input and a weight; 24 instructions for 4 taps."""
    return Loop(6 + _ROW_INSTRUCTIONS / side, (sectors, UNIFORM))


def rgb(instructions: float, sectors: float) -> Loop:
    """Their first layers, unrolled over rows: 121 for 33 (AlexNet), 51 for 12 (ResNet)."""
    return Loop(instructions, (sectors, UNIFORM))


DENSE = Loop(56 / 16, (UNIFORM, UNIFORM))
"""AlexNet's and ResNet's dense layers, one thread a block: 56 instructions for 16."""


def maximum(side: int, sectors: float) -> Loop:
    """AlexNet's and ResNet's pooling: a turn is a tap, 19 instructions for 4."""
    return Loop(4.75 + _ROW_INSTRUCTIONS / side, (sectors,))


def neighbour_power(sectors: float) -> Loop:
    """AlexNet's normalisation: a turn is a neighbour's square by fp64 ``pow`` (82 fp64 of 130
    instructions) and the 45 around it."""
    return Loop(175, (sectors,), fp64=92)


def batch_norm(sectors: float) -> Loop:
    """ResNet's: fp64 root and division per element; a turn is an element."""
    return Loop(60, (sectors, UNIFORM, UNIFORM, sectors), fp64=20)


def elementwise(reads: int, sectors: float) -> Loop:
    """ResNet's scale, ReLU and sum: a turn is an element, its store counts as a load."""
    return Loop(8 + 4 * reads, (sectors,) * (reads + 1))


def fp64_dot(sectors: float) -> Loop:
    """1x1 convolutions and dense layers in fp64: 58 instructions for 16."""
    return Loop(58 / 16, (sectors, UNIFORM), fp64=1)


def fp64_taps(instructions: float, sectors: float) -> Loop:
    """Convolutions in fp64 with a check per tap, a DFMA and a DADD each: SqueezeNet's 3x3 27
    instructions, CifarNet's 5x5 91 for 5; first layers 195 for 21 and 143 for 15."""
    return Loop(instructions, (sectors, UNIFORM), fp64=2)


def fp64_pool(sectors: float) -> Loop:
    """Pooling in fp64: a turn is a tap, 12 instructions."""
    return Loop(12, (sectors,), fp64=1)


def gru_gates(sectors: float) -> Loop:
    """Two gates' products share the state: 175 instructions for 64."""
    return Loop(175 / 64, (sectors, UNIFORM / 2), fp64=0)


def gru_state(sectors: float) -> Loop:
    """The candidate's: gate and state are both loaded for each product."""
    return Loop(175 / 64 + 2, (sectors, UNIFORM, UNIFORM))


def lstm_gates(sectors: float) -> Loop:
    """Four gates' products, unrolled: a weight each, a state for all four."""
    return Loop(2.4, (sectors, UNIFORM / 4), fp64=1)
