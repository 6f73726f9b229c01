"""What a report says about the GPU that it was measured on."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version

from miriam import __version__
from miriam.devices.cuda.driver import driver_version
from miriam.devices.cuda.world import gpu

_PACKAGES = (
    *("cuda-bindings", "nvidia-cuda-nvrtc", "numpy"),
    *("torch", "torchvision", "nvidia-cudnn-cu13", "nvidia-cublas"),
)
_ASKED = ("driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem")


@dataclass(frozen=True, slots=True)
class About:
    """A GPU, its driver, the versions of what takes part, today, and clocks in MHz as they are."""

    gpu: str
    driver: dict[str, str | int]
    versions: dict[str, str]
    date: str
    clocks: dict[str, str]


def about(ordinal: int) -> About:
    """What there is to say about GPU number ``ordinal``; errors of ``world.gpu``."""
    asked = _asked(ordinal)
    return About(
        gpu=gpu(ordinal).name,
        driver={"name": asked.pop("driver_version"), "cuda": driver_version()},
        # Its own also where it was not installed, but put on the path.
        versions={
            "miriam-gpu": __version__,
            **{name: found for name in _PACKAGES if (found := _version(name))},
        },
        date=date.today().isoformat(),
        clocks=asked,
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _asked(ordinal: int) -> dict[str, str]:
    """What nvidia-smi answers, by what was asked; empty texts where it is not there."""
    program, answer = shutil.which("nvidia-smi"), ""
    if program is not None:
        query = f"--query-gpu={','.join(_ASKED)}"
        command = [program, f"--id={ordinal}", query, "--format=csv,noheader,nounits"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        answer = done.stdout
    found = [part.strip() for part in answer.split(",")]
    return dict(
        zip(_ASKED, found if len(found) == len(_ASKED) else [""] * len(_ASKED), strict=True)
    )
