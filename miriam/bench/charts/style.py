"""What all charts share: colours, size, and a title that says what is simulated."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from miriam.bench.options import Options
from miriam.errors import MissingCapabilityError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# After Okabe and Ito: told apart with any colour vision. Miriam is always the green one.
_COLOURS = {
    "miriam": "#009E73",
    "sequential": "#7F7F7F",
    "multistream": "#D55E00",
    "gate": "#E69F00",
    "barrier": "#CC79A7",
    "partition": "#0072B2",
    "vacate": "#56B4E9",
    "tally": "#8C564B",
    "orion": "#B5A642",
    "miriam-measured": "#66C30A",
    "miriam-fixed": "#7FCFB4",
    "miriam-host": "#004D38",
    "multistream-equal": "#F4A582",
    "mps": "#000000",
    "miriam-grid": "#3B7A57",
}
_OTHER = "#444444"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as a PNG, and what it shows."""

    title: str
    png: bytes


def require_plot() -> None:
    """MissingCapabilityError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingCapabilityError(
            "charts", "matplotlib is not installed", "pip install 'miriam-gpu[plot]'"
        ) from error


def colour(policy: str) -> str:
    """The policy's colour in every chart."""
    return _COLOURS.get(policy, _OTHER)


class Labelled(Protocol):
    """What a chart's label is made from."""

    @property
    def device(self) -> str:
        """The device's name."""

    @property
    def simulated(self) -> bool:
        """Whether the figures are simulated."""

    @property
    def title(self) -> str:
        """What was run."""

    @property
    def options(self) -> Options | None:
        """How it was run."""


def label(result: Labelled) -> str:
    """Where the figures are from."""
    geometry = result.options.geometry if result.options else "ours"
    kernels = "" if geometry == "ours" else f", {geometry} geometry"
    return f"{'simulated' if result.simulated else 'measured'} ({result.device}){kernels}"


def new_figure(result: Labelled, width: float, height: float) -> Figure:
    """A figure of this size in inches, whose title says where its numbers are from."""
    require_plot()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{result.title}, {label(result)}", fontweight="bold")
    return figure


def png(figure: Figure) -> bytes:
    """The figure as a PNG; the same figure gives the same bytes."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150)
    return data.getvalue()
