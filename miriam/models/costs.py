"""What a logical block of each kernel family asks of the machine (see ``kernels.Cost``).

Common to all: FLOP are issued ones, the padding of tiles included, an FMA is two; L2 bytes are
what the block's loads and stores move when its own re-reads within a few hundred instructions
hit L1; DRAM bytes are weights, inputs and outputs of the step once, shared out over its blocks.
Blocks at the border of a grid are counted as the average block.
"""

from __future__ import annotations

from miriam.kernels import Cost
from miriam.models.builder import View
from miriam.models.tiles import Tile, ceil_div

# Instructions of expf, tanhf, a division or a root, in FLOP: a round figure for short kernels.
_FUNCTION_FLOP = 10


def conv(
    x: View, out: View, tile: Tile, kernel: int, stride: int, parts: int, accumulate: bool
) -> Cost:
    """Every slice of k is a full tile product; the last of several ``parts`` may have fewer.

    L2: the tile's rows of weights, its patch of the input and its outputs. Taps of one channel
    that fall on the same input element are a few instructions apart, so L1 serves all but one;
    a patch is whole input rows between its first and last pixel, as sectors would have it.
    """
    channels, height, width = x.shape
    out_channels, out_height, out_width = out.shape
    pixels = out_height * out_width
    depth = channels * kernel * kernel
    blocks = tile.blocks(out_channels, pixels) * parts
    flop = 2.0 * tile.m * tile.n * ceil_div(depth, tile.slice) * tile.slice / parts
    covered = min(tile.n, pixels)
    out_rows = (covered - 1) / out_width + 1
    rows = min(height, out_rows * min(kernel, stride) + max(kernel - stride, 0))
    columns = min(width, (min(covered, out_width) - 1) * stride + kernel)
    patch_bytes = 4 * channels * rows * columns
    weight_bytes = 4 * out_channels * (depth + 1)
    moved_bytes = (2 if accumulate and parts == 1 else parts) * out.bytes
    tile_bytes = weight_bytes / ceil_div(out_channels, tile.m) + patch_bytes
    l2_bytes = tile_bytes / parts + moved_bytes / blocks
    return Cost(flop, l2_bytes, (weight_bytes + x.bytes + moved_bytes) / blocks)


def sum_parts(out: View, parts: int, accumulate: bool, blocks: int) -> Cost:
    """Each part is read once, and the output written; where it accumulates, read as well.

    All of it counts as DRAM traffic, too much for an L2 that holds the parts.
    """
    moved_bytes = (parts + 1 + accumulate) * out.bytes / blocks
    return Cost((parts + accumulate) * out.size / blocks, moved_bytes, moved_bytes)


def dense(inputs: int, outputs: int, count: int, rows: int, columns: int) -> Cost:
    """A block reads ``rows`` rows of weights once and ``columns`` vectors once (L1 shares them)."""
    blocks = ceil_div(outputs, rows) * (count // columns)
    l2_bytes = 4 * (rows * (inputs + 1) + columns * (inputs + rows))
    once_bytes = 4 * (outputs * (inputs + 1) + count * (inputs + outputs))
    return Cost(2.0 * rows * columns * inputs, l2_bytes, once_bytes / blocks)


def pool(x: View, out: View, taps: int, blocks: int) -> Cost:
    """One operation per tap; overlapping windows of a block are served by L1."""
    moved_bytes = (x.bytes + out.bytes) / blocks
    return Cost(taps * out.size / blocks, moved_bytes, moved_bytes)


def relu(data: View, blocks: int) -> Cost:
    """Each element is read, compared and written."""
    return Cost(data.size / blocks, 2 * data.bytes / blocks, 2 * data.bytes / blocks)


def local_response_norm(data: View, size: int, blocks: int) -> Cost:
    """Neighbouring channels are other blocks' elements: ``size`` reads each come from L2."""
    flop = (2 * size + 3 * _FUNCTION_FLOP) * data.size / blocks
    return Cost(flop, (size + 1) * data.bytes / blocks, 2 * data.bytes / blocks)


def softmax(data: View) -> Cost:
    """One block, three passes over a vector that fits L1, so L2 sees one read and one write."""
    return Cost(3.0 * _FUNCTION_FLOP * data.size, 2 * data.bytes, 2 * data.bytes)


def cell(hidden: int, gates: int, states: int, units: int, first: bool) -> Cost:
    """``units`` hidden units: their rows of every gate, the last state once, then the gates.

    ``states`` arrays of one value per unit are read and written (hidden, cell). The first step
    has no last state, and so neither product nor weights to read.
    """
    blocks = hidden // units
    own_bytes = 4 * units * (2 * gates + 2 * states)
    flop = units * gates * 2.0 * _FUNCTION_FLOP
    if first:
        return Cost(flop, own_bytes, own_bytes)
    row_bytes = 4 * units * gates * hidden
    l2_bytes = own_bytes + row_bytes + 4 * hidden
    return Cost(
        flop + 2 * units * gates * hidden, l2_bytes, own_bytes + row_bytes + 4 * hidden / blocks
    )
