"""What stands in the way on the GPU: lockstep, too few connections, the default stream, loading."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

from miriam.devices.cuda.doctor.costs import SHORT
from miriam.devices.cuda.doctor.lockstep import lockstep
from miriam.devices.cuda.doctor.report import Finding, LockstepRow
from miriam.devices.cuda.doctor.subject import Subject, elapsed_us
from miriam.devices.cuda.driver import ask, driver
from miriam.devices.cuda.patience import drain
from miriam.errors import DeviceError

_LEGACY_STREAM = 1  # CU_STREAM_LEGACY
_LONG_ROUNDS = 1_000_000


def check_traps(subject: Subject) -> tuple[Finding, ...]:
    """What was found in the subject's world, lockstep apart."""
    findings = [_loading(), _concurrency(subject)]
    if subject.device.world.green is None:
        findings.append(_default_stream(subject))
    return tuple(findings)


def check_lockstep(ordinal: int, sms: int) -> tuple[tuple[Finding, ...], tuple[LockstepRow, ...]]:
    """Whether a critical graph waits for normal ones, and the rows behind the finding."""
    try:
        rows = lockstep(ordinal, sms, os.environ)
    except DeviceError as error:
        why = "whether a critical graph waits for others could not be measured"
        return (Finding("lockstep", "missing", str(error), why),), ()
    setting = int(os.environ["CUDA_DEVICE_MAX_CONNECTIONS"])
    return (lockstep_finding(rows, setting),), rows


def _loading() -> Finding:
    mode = ask(driver.cuModuleGetLoadingMode())
    lazy = mode == driver.CUmoduleLoadingMode.CU_MODULE_LAZY_LOADING
    return Finding(
        "module loading",
        "trap" if lazy else "ok",
        "lazy" if lazy else "eager",
        "loading a kernel waits for running ones, and a shut gate may be what they wait for",
        "set CUDA_MODULE_LOADING=EAGER before anything uses CUDA" if lazy else "",
    )


def _concurrency(subject: Subject) -> Finding:
    """How many streams run at once: kernels of one block on 32 streams, against one alone."""
    world = subject.device.world
    streams = [world.stream(0) for _ in range(32)]
    one_us = _together_us(subject, streams[:1])
    waves = _together_us(subject, streams) / one_us
    for stream in streams:
        ask(driver.cuStreamDestroy(stream))
    few = waves > 4.5
    return Finding(
        "streams at once",
        "trap" if few else "ok",
        f"kernels on 32 streams take {waves:.1f} times as long as on one",
        "streams that share a hardware queue wait for each other",
        "set CUDA_DEVICE_MAX_CONNECTIONS=32 before the process starts" if few else "",
    )


def _together_us(subject: Subject, streams: Sequence[Any]) -> float:
    first, last = (ask(driver.cuEventCreate(0)) for _ in range(2))
    main = subject.lane.stream
    taken_us = 0.0
    for _ in range(2):  # the first one does not count
        joins = []
        ask(driver.cuEventRecord(first, main))
        for stream in streams:
            ask(driver.cuStreamWaitEvent(stream, first, 0))
            _long(subject, stream)
            join = ask(driver.cuEventCreate(0))
            ask(driver.cuEventRecord(join, stream))
            ask(driver.cuStreamWaitEvent(main, join, 0))
            joins.append(join)
        ask(driver.cuEventRecord(last, main))
        subject.settle()
        taken_us = elapsed_us(first, last)
        for join in joins:
            ask(driver.cuEventDestroy(join))
    for event in (first, last):
        ask(driver.cuEventDestroy(event))
    return taken_us


def _long(subject: Subject, stream: Any) -> None:
    """Submit one block that runs for some milliseconds."""
    step = subject.program.steps[SHORT]
    arguments = [*subject.lane.buffers.arguments(step)[:2], ctypes.c_int(_LONG_ROUNDS)]
    original = subject.device.kernels.original(step)
    original.launch(stream, (1, 1, 1), (32, 1, 1), arguments)


def _default_stream(subject: Subject) -> Finding:
    """Whether a kernel on the legacy default stream waits for our streams and blocking ones."""
    blocking = ask(driver.cuStreamCreate(0))
    ours, theirs = (_waits(subject, stream) for stream in (subject.lane.stream, blocking))
    ask(driver.cuStreamDestroy(blocking))
    return Finding(
        "legacy default stream",
        "trap" if ours else "note",
        f"waits for our streams: {_yes(ours)}; for streams without NON_BLOCKING: {_yes(theirs)}",
        "a program's own work on it runs one after the other with all blocking streams",
        "create streams with cudaStreamNonBlocking, or compile with --default-stream per-thread",
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _waits(subject: Subject, stream: Any) -> bool:
    """Whether a kernel on the legacy default stream ends after one that ``stream`` runs."""
    base, long_ended, other_ended = (ask(driver.cuEventCreate(0)) for _ in range(3))
    ask(driver.cuEventRecord(base, stream))
    _long(subject, stream)
    ask(driver.cuEventRecord(long_ended, stream))
    step = subject.program.steps[SHORT]
    arguments = [*subject.lane.buffers.arguments(step)[:2], ctypes.c_int(1)]
    legacy = driver.CUstream(_LEGACY_STREAM)
    subject.device.kernels.original(step).launch(legacy, (1, 1, 1), (32, 1, 1), arguments)
    ask(driver.cuEventRecord(other_ended, legacy))
    drain(stream)
    drain(legacy)
    waited = elapsed_us(base, other_ended) >= elapsed_us(base, long_ended)
    for event in (base, long_ended, other_ended):
        ask(driver.cuEventDestroy(event))
    return waited


def lockstep_finding(rows: Sequence[LockstepRow], connections: int) -> Finding:
    """What the rows say about the setting ``connections``, and which one would be better."""
    why = "a critical graph that waits for normal ones has their latency"
    by_setting = {c: [r for r in rows if r.connections == c] for c in {r.connections for r in rows}}
    if not by_setting.get(connections):
        return Finding("lockstep", "missing", "no critical request met a normal one", why)
    worst = max(by_setting[connections], key=lambda row: row.ratio)
    value = (
        f"x{worst.ratio:.2f} beside {worst.streams} streams ({worst.kind}, {worst.sms} SMs),"
        f" first kernel after {max(r.start_us for r in by_setting[connections]):.0f} us"
    )
    if not any(row.locked for row in by_setting[connections]):
        return Finding("lockstep", "ok", value, why)
    free = [c for c, found in by_setting.items() if not any(row.locked for row in found)]
    advice = (
        f"set CUDA_DEVICE_MAX_CONNECTIONS={max(free)}"
        if free
        else "no number of connections helps here: use fewer normal streams"
    )
    return Finding("lockstep", "trap", value, why, advice)
