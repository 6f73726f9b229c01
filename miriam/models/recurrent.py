"""GRU and LSTM over a sequence with a dense head, as in the Tango suite and a large form.

Tango predicts the next value of a series from 2 steps with hidden size 100; the large form runs
32 steps with hidden size 512. A step's input is as wide as the hidden state, as in the inner
layers of a stack. Cho et al., arXiv 1406.1078; Hochreiter and Schmidhuber, 1997.
"""

from __future__ import annotations

from miriam.models.builder import Builder
from miriam.models.layers import dense, gru, lstm


def define_gru(net: Builder, hidden: int, steps: int, outputs: int) -> None:
    """A (steps, hidden) sequence in, ``outputs`` values out."""
    last = gru(net, net.input(steps, hidden), "gru", hidden)
    dense(net, last, "fc", outputs, into=net.output(outputs))


def define_lstm(net: Builder, hidden: int, steps: int, outputs: int) -> None:
    """A (steps, hidden) sequence in, ``outputs`` values out."""
    last = lstm(net, net.input(steps, hidden), "lstm", hidden)
    dense(net, last, "fc", outputs, into=net.output(outputs))
