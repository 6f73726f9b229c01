"""What lanes and gates submit, seen without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("cuda.bindings")

from miriam.coordinator import Task
from miriam.devices.cuda import graphs, lane
from miriam.devices.cuda.buffers import Buffers
from miriam.devices.cuda.code import Function
from miriam.devices.cuda.driver import _runs, ask, connections, driver
from miriam.devices.cuda.graphs import Controls, Place, record_step
from miriam.devices.cuda.lane import Lane
from miriam.devices.cuda.words import StepWords
from miriam.devices.cuda.world import World
from miriam.errors import DeviceError, UsageError
from tests.kernels.programs import stirred

WIDTH, WORD = 40, 9


class Said:
    """An announcement that keeps what is said."""

    steps: Sequence[int] = (0,)

    def __init__(self) -> None:
        self.words: list[str] = []

    def begin(self, stream: Any) -> None:
        self.words.append("begin")

    def before(self, number: int, stream: Any) -> None:
        raise AssertionError("nothing is recorded here")

    def end(self, stream: Any) -> None:
        self.words.append("end")


def test_a_request_that_fails_to_start_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "driver", SimpleNamespace(cuEventRecord=lambda *of: None))
    monkeypatch.setattr(lane, "event", lambda owner: "event")
    monkeypatch.setattr(lane, "ask", lambda result: result)

    def copy_in(inputs: object, stream: object) -> None:
        raise KeyboardInterrupt

    world = SimpleNamespace(enter=lambda: None, stream=lambda priority, owner: "stream")
    buffers = SimpleNamespace(copy_in=copy_in)
    task = Task("critical", stirred(blocks=1, rounds=1), critical=True)
    made = Lane(task, cast(World, world), 0, cast(Buffers, buffers), "side")
    said = made.announcement = Said()
    with pytest.raises(KeyboardInterrupt):
        made.start({})
    assert said.words == ["begin", "end"]


@pytest.mark.parametrize("slots", [1, 2])
def test_a_kernel_looks_at_all_rows_behind_waits_for_several(
    monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    submitted: list[object] = []
    monkeypatch.setattr(graphs, "add_wait", lambda stream, words: submitted.append(list(words)))
    gate = SimpleNamespace(launch=lambda *of: submitted.append("gate"))
    original = SimpleNamespace(submit=lambda *of: submitted.append("original"))
    step = stirred(blocks=4, rounds=1).steps[0]
    controls = Controls(
        gate=cast(Function, gate),
        again=cast(Function, gate),
        rows=4_096,
        width=WIDTH,
        slots=slots,
        abort=1,
        late=1,
        limit_ns=1,
        confined=False,
        waits=1,
        in_memory=True,
    )
    place = Place(step, 1_000, original, StepWords(WORD, (64,), elastic=False))
    buffers = SimpleNamespace(arguments=lambda step: [])
    of = SimpleNamespace(stream="stream", side="side", number=0, buffers=buffers)
    record_step(cast(Lane, of), place, controls)
    words = [4_096 + 4 * (WIDTH * slot + WORD) for slot in range(slots)]
    assert submitted == [words, *["gate"] * (slots > 1), "original"]


def test_a_launch_that_failed_ends_the_process_and_says_where_to_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("miriam.devices.cuda.driver._text", lambda status: "failure")
    text = r"CUDA_ERROR_LAUNCH_FAILED: failure; this process .* start a new one\. .*docs/bench\.md"
    with pytest.raises(DeviceError, match=text):
        ask((driver.CUresult.CUDA_ERROR_LAUNCH_FAILED,))


def test_more_hardware_queues_than_there_are_do_not_count() -> None:
    """A wait in memory blocks its queue, and has no time limit."""
    assert [connections(setting) for setting in ("8", "32", "64")] == [8, 32, 32]


@pytest.mark.parametrize(
    ("count", "active", "runs"),
    [((driver.CUresult.CUDA_ERROR_NOT_INITIALIZED, None), 1, False)]
    + [((driver.CUresult.CUDA_SUCCESS, 2), active, bool(active)) for active in (0, 1)],
)
def test_whether_cuda_runs_already(
    monkeypatch: pytest.MonkeyPatch, count: tuple[Any, Any], active: int, runs: bool
) -> None:
    """Then it has read how many hardware queues it was asked for."""
    ok = driver.CUresult.CUDA_SUCCESS
    calls = SimpleNamespace(
        cuDeviceGetCount=lambda: count,
        cuDeviceGet=lambda number: (ok, number),
        cuDevicePrimaryCtxGetState=lambda handle: (ok, 0, active if handle == 1 else 0),
    )
    monkeypatch.setattr("miriam.devices.cuda.driver.driver", calls)
    assert _runs() == runs


@pytest.mark.parametrize("setting", ["", "0", "-1", "many"])
def test_a_number_of_queues_is_one(setting: str) -> None:
    text = "CUDA_DEVICE_MAX_CONNECTIONS: a number from 1 to 32, got .*; unset it"
    with pytest.raises(UsageError, match=text):
        connections(setting)
