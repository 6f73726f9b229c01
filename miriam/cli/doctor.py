"""``miriam doctor``: what this machine offers, what it costs, and what stands in the way."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer
from rich.console import Console

from miriam import __version__
from miriam.errors import MiriamError, UsageError


def doctor(
    device: Annotated[
        str, typer.Option(help="cuda:<GPU>, or cuda:<GPU>:<SMs> for a world.")
    ] = "cuda:0",
    json: Annotated[str | None, typer.Option(help="Write the report here; - is stdout.")] = None,
) -> None:
    """Examine this machine and its GPU: levels, worlds, measured costs, traps.

    Exits 3 where no GPU can be used, after saying what is there.
    """
    from miriam.bench import output
    from miriam.devices.cuda.doctor.machine import machine_findings
    from miriam.devices.cuda.doctor.report import DoctorReport, GpuReport, encode
    from miriam.devices.cuda.doctor.table import show

    ordinal, sms = _parsed(device)
    if json is not None:
        output.require_target("--json", json)
    failure: MiriamError | None = None
    gpu: GpuReport | None = None
    machine = machine_findings()
    with Console(stderr=True).status("measuring"):
        try:
            from miriam.devices.cuda.doctor.examine import examine

            gpu = examine(ordinal, sms)
        except MiriamError as error:
            failure = error
    report = DoctorReport(
        miriam=__version__,
        device=device,
        date=date.today().isoformat(),
        machine=machine,
        gpu=gpu,
        error=str(failure or ""),
    )
    if json is not None:
        output.write("--json", json, encode(report))
    show(report, Console(stderr=json == output.STANDARD_OUTPUT))
    if failure is not None:
        raise failure


def _parsed(device: str) -> tuple[int, int | None]:
    kind, *numbers = device.split(":")
    if kind != "cuda" or len(numbers) > 2 or not all(n.isdecimal() for n in numbers):
        raise UsageError("--device", "cuda, cuda:<GPU> or cuda:<GPU>:<SMs>", device)
    ordinal, sms = (*map(int, numbers), None, None)[:2]
    return ordinal or 0, sms
