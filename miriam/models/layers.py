"""Layers as steps: each function adds the launch of one of our kernels to a program.

Images are (channels, height, width). ``name`` is the torch module that owns the weights,
``layer`` the one that the step completes (``name`` itself unless an activation is fused).
"""

from __future__ import annotations

from miriam.kernels import Dim3
from miriam.models import costs
from miriam.models.builder import Builder, Launch, View
from miriam.models.tiles import ceil_div, choose_tile

_WARPS = 4
_CELL_UNITS = 4


def conv(
    net: Builder,
    x: View,
    name: str,
    channels: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    layer: str = "",
    relu: bool = True,
    into: View | None = None,
    accumulate: bool = False,
) -> View:
    """Convolution with bias, and ReLU unless told otherwise.

    ``into`` is where the result goes, a channel slice for example (default: a buffer of its
    own called after the layer); ``accumulate`` adds to what is there, before the ReLU. A long sum
    is made in parts by one step, and added up by a second one.
    """
    depth, height, width = x.shape
    rows, columns = (_windows(side, kernel, stride, padding) for side in (height, width))
    layer = layer or name
    out = into or net.scratch(layer, channels, rows, columns)
    pixels = rows * columns
    tile = choose_tile(channels, pixels)
    parts, share = tile.parts(depth * kernel * kernel)
    if out.size % 4 or out.offset % 4:
        # What adds the parts up does so by fours.
        parts, share = 1, parts * share
    vector = "true" if depth * kernel * kernel % 4 == 0 else "false"
    launch = Launch(
        f"conv2d<{kernel}, {stride}, {tile.m}, {tile.n}, {tile.thread_m}, {vector}>",
        "conv.cu",
        Dim3(ceil_div(pixels, tile.n), ceil_div(channels, tile.m), parts),
        128,
        costs.conv(x, out, tile, kernel, stride, parts, accumulate),
    )
    weight = net.weight(f"{name}.weight", channels, depth, kernel, kernel)
    bias = net.weight(f"{name}.bias", channels)
    sizes = (depth, height, width, channels, columns, pixels, padding)
    views = (x, weight, bias)
    if parts == 1:
        args = (*views, out, *sizes, share, int(relu), int(accumulate))
        return net.step(name, layer, launch, args, out)
    sums = net.workspace(parts * out.size)
    net.step(f"{name}.parts", layer, launch, (*views, sums, *sizes, share, 0, 0), sums)
    return _sum_parts(net, sums, parts, out, name, layer, relu, accumulate)


def _sum_parts(
    net: Builder,
    sums: View,
    parts: int,
    out: View,
    name: str,
    layer: str,
    relu: bool,
    accumulate: bool,
) -> View:
    """What ``parts`` arrays sum up to; a multiple of 4 elements each."""
    quads = out.size // 4
    blocks = ceil_div(quads, 128)
    cost = costs.sum_parts(out, parts, accumulate, blocks)
    launch = Launch("sum_parts", "pointwise.cu", Dim3(blocks), 128, cost)
    args = (sums, out, quads, parts, int(relu), int(accumulate))
    return net.step(name, layer, launch, args, out)


def max_pool(
    net: Builder,
    x: View,
    name: str,
    kernel: int,
    stride: int,
    padding: int = 0,
    ceil_mode: bool = False,
) -> View:
    """Largest value of each window; ``ceil_mode`` as in torch."""
    channels, height, width = x.shape
    rows, columns = (_windows(side, kernel, stride, padding, ceil_mode) for side in (height, width))
    out = net.scratch(name, channels, rows, columns)
    launch = _per_output(f"max_pool<{kernel}, {stride}>", x, out, kernel * kernel)
    return net.step(
        name, name, launch, (x, out, channels, height, width, rows, columns, padding), out
    )


def average_pool(net: Builder, x: View, name: str, kernel: int, stride: int) -> View:
    """Mean of each window over the values inside the image, in ``ceil_mode``."""
    channels, height, width = x.shape
    rows, columns = (_windows(side, kernel, stride, 0, True) for side in (height, width))
    out = net.scratch(name, channels, rows, columns)
    launch = _per_output(f"average_pool<{kernel}, {stride}>", x, out, kernel * kernel)
    return net.step(name, name, launch, (x, out, channels, height, width, rows, columns), out)


def global_average_pool(net: Builder, x: View, name: str, into: View | None = None) -> View:
    """Mean of each channel, as a vector."""
    channels, height, width = x.shape
    out = into or net.scratch(name, channels)
    blocks = ceil_div(channels, 8)
    cost = costs.pool(x, out, height * width, blocks)
    launch = Launch("global_average_pool", "pool.cu", Dim3(blocks), 256, cost)
    return net.step(name, name, launch, (x, out, channels, height * width), out)


def local_response_norm(net: Builder, x: View, name: str, size: int, alpha: float) -> View:
    """Normalisation across ``size`` channels with exponent 3/4 (Krizhevsky et al., 2012)."""
    channels, height, width = x.shape
    out = net.scratch(name, *x.shape)
    blocks = ceil_div(x.size, 256)
    cost = costs.local_response_norm(x, size, blocks)
    launch = Launch(f"local_response_norm<{size}>", "pointwise.cu", Dim3(blocks), 256, cost)
    return net.step(name, name, launch, (x, out, channels, height * width, alpha), out)


def relu(net: Builder, x: View, name: str) -> View:
    """ReLU in place; the number of elements is a multiple of 4."""
    blocks = ceil_div(x.size // 4, 128)
    launch = Launch("relu_in_place", "pointwise.cu", Dim3(blocks), 128, costs.relu(x, blocks))
    return net.step(name, name, launch, (x, x.size // 4), x)


def softmax(net: Builder, x: View, name: str) -> View:
    """Softmax of a vector in place."""
    launch = Launch("softmax_in_place", "pointwise.cu", Dim3(1), 256, costs.softmax(x))
    return net.step(name, name, launch, (x, x.size), x)


def dense(
    net: Builder,
    x: View,
    name: str,
    outputs: int,
    layer: str = "",
    relu: bool = False,
    into: View | None = None,
) -> View:
    """Fully connected layer on one flat input; its length is a multiple of 4."""
    weight = net.weight(f"{name}.weight", outputs, x.size)
    bias = net.weight(f"{name}.bias", outputs)
    out = into or net.scratch(layer or name, outputs)
    vector = View(x.buffer, (1, x.size), x.offset)
    return _products(net, vector, weight, bias, out, name, layer or name, relu)


def gru(net: Builder, x: View, name: str, hidden: int) -> View:
    """One GRU layer over the (steps, features) sequence ``x``; the last hidden state."""
    return _recurrent(net, x, name, hidden, "gru_cell", 3, ())


def lstm(net: Builder, x: View, name: str, hidden: int) -> View:
    """One LSTM layer over the (steps, features) sequence ``x``; the last hidden state."""
    cell = net.scratch(f"{name}.cell", hidden)
    return _recurrent(net, x, name, hidden, "lstm_cell", 4, (cell,))


def _recurrent(
    net: Builder,
    x: View,
    name: str,
    hidden: int,
    kernel: str,
    gates: int,
    state: tuple[View, ...],
) -> View:
    """All steps' products with the input first, then a cell per step (see recurrent.cu)."""
    steps, features = x.shape
    weights = [
        net.weight(f"{name}.weight_{kind}_l0", gates * hidden, columns)
        for kind, columns in (("ih", features), ("hh", hidden))
    ]
    biases = [net.weight(f"{name}.bias_{kind}_l0", gates * hidden) for kind in ("ih", "hh")]
    rows = net.scratch(name, steps, gates * hidden)
    _products(net, x, weights[0], biases[0], rows, f"{name}.input", f"{name}.input", False)
    for t in range(steps):
        cost = costs.cell(hidden, gates, 1 + len(state), _CELL_UNITS, t == 0)
        launch = Launch(kernel, "recurrent.cu", Dim3(hidden // _CELL_UNITS), 128, cost)
        row, last = rows.part(t, 1), rows.part(max(t - 1, 0), 1)
        views = (weights[1], biases[1], last, row, *state)
        net.step(f"{name}.{t}", f"{name}.{t}", launch, (*views, hidden, int(t == 0)), row)
    return View(rows.buffer, (hidden,), rows.part(steps - 1, 1).offset)


def _products(
    net: Builder, x: View, weight: View, bias: View, out: View, name: str, layer: str, relu: bool
) -> View:
    """``x`` (count, inputs) times ``weight`` (outputs, inputs) transposed, plus ``bias``."""
    count, inputs = x.shape
    outputs = weight.shape[0]
    columns = next(c for c in (8, 2, 1) if count % c == 0)
    rows = _WARPS if columns == 1 else 2 * _WARPS
    launch = Launch(
        f"dense<{columns}>",
        "dense.cu",
        Dim3(ceil_div(outputs, rows), count // columns),
        128,
        costs.dense(inputs, outputs, count, rows, columns),
    )
    return net.step(name, layer, launch, (x, weight, bias, out, inputs, outputs, int(relu)), out)


def _per_output(kernel: str, x: View, out: View, taps: int) -> Launch:
    blocks = ceil_div(out.size, 256)
    return Launch(kernel, "pool.cu", Dim3(blocks), 256, costs.pool(x, out, taps, blocks))


def _windows(side: int, kernel: int, stride: int, padding: int, ceil_mode: bool = False) -> int:
    """Positions of a window along one side, as torch counts them."""
    room = side + 2 * padding - kernel
    if not ceil_mode:
        return room // stride + 1
    count = ceil_div(room, stride) + 1
    # The last window must start inside the image or its left padding.
    return count - 1 if (count - 1) * stride >= side + padding else count
