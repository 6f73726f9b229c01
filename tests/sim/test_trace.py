"""The timeline and who delayed whom: sums, slices that nest, every block once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from miriam import models
from miriam.bench.delay import Explained
from miriam.bench.explain import Delays
from miriam.bench.timeline import Timeline
from miriam.coordinator import Task, policies
from miriam.devices.contract import Completion
from miriam.devices.observe import Look, Observer
from miriam.devices.sim import SimDevice, preset
from tests.sim.programs import POLICIES

WINDOW_NS = 12_000_000
DEVICE = SimDevice(preset("orin"))


@cache
def tasks() -> tuple[Task, ...]:
    return (
        Task("detector", models.load("squeezenet"), critical=True),
        Task("other", models.load("cifarnet"), critical=True, priority=1),
        Task("scene", models.load("alexnet"), in_flight=2),
        Task("signs", models.load("cifarnet")),
    )


@cache
def observed(policy: str) -> tuple[tuple[Explained, ...], Any, tuple[Completion, ...]]:
    """Explanations, the decoded trace, and the completions of one run."""
    delays, timeline = Delays(DEVICE, tasks()), Timeline(tasks(), DEVICE.gpu.sms)
    session = DEVICE.open(tasks(), policies.get(policy), (delays, timeline))
    for task, times in ((0, (0, 2_000_000, 2_100_000, 5_000_000)), (1, (400_000, 4_000_000))):
        for time in times:
            session.submit(task, time)
    for task in (2, 2, 3):
        session.submit(task, 0)
    done: list[Completion] = []
    while session.now_ns < WINDOW_NS:
        for completion in session.advance(WINDOW_NS):
            done.append(completion)
            if completion.task > 1:
                session.submit(completion.task, session.now_ns)
    explained = tuple(delays.explained)
    return explained, json.loads(timeline.encode("sim:orin", explained)), tuple(done)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_parts_sum_to_the_delay(policy: str) -> None:
    explained, _, done = observed(policy)
    critical = [c for c in done if c.task < 2]
    assert [(e.task, e.request) for e in explained] == [(c.task, c.request) for c in critical]
    for found, completion in zip(explained, critical, strict=True):
        assert found.delay_ns == completion.finish_ns - completion.arrival_ns - found.solo_ns
        assert abs(sum(delay.ns for delay in found.delays) - found.delay_ns) <= 20
        # What no cause explains: a twentieth of the delay, or a thousandth of a fast request.
        rest_ns = sum(delay.ns for delay in found.delays if delay.cause == "rest")
        assert abs(rest_ns) <= max(found.delay_ns / 20, found.solo_ns / 1_000)


def test_the_cause_is_what_the_policy_does() -> None:
    def largest(policy: str) -> str:
        explained, _, _ = observed(policy)
        sums: dict[str, int] = defaultdict(int)
        for found in explained:
            for delay in found.delays:
                sums[delay.cause] += delay.ns
        return max(sums, key=lambda cause: sums[cause])

    assert largest("sequential") == "queue"
    assert largest("multistream") in ("places", "issue")


def test_the_second_of_two_waits_for_the_first() -> None:
    explained, _, _ = observed("multistream")
    third = next(e for e in explained if (e.task, e.request) == (0, 2))
    waited = next(d for d in third.delays if d.cause == "queue")
    assert waited.by == "detector"
    assert waited.ns > 300_000


def test_a_request_that_nothing_delays_has_no_parts() -> None:
    delays = Delays(DEVICE, tasks()[:1])
    session = DEVICE.open(tasks()[:1], policies.get("miriam"), (delays,))
    session.submit(0, 0)
    session.advance(WINDOW_NS)
    (found,) = delays.explained
    assert (found.delay_ns, found.slow, found.delays) == (0, False, ())


@pytest.mark.parametrize("policy", ["miriam", "multistream"])
def test_every_logical_block_is_on_one_sm_once(policy: str) -> None:
    _, trace, done = observed(policy)
    runs: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["pid"] == 1 and event["ph"] == "X":
            args = event["args"]
            blocks = [first + i for first, count in args["blocks"] for i in range(count)]
            runs[args["task"], args["request"], args["step"]] += blocks
    for completion in done:
        task = tasks()[completion.task]
        for index, step in enumerate(task.program.steps):
            found = sorted(runs[task.name, completion.request, index])
            assert found == list(range(step.kernel.blocks))


@pytest.mark.parametrize("policy", ["miriam", "multistream"])
def test_slices_of_a_track_nest(policy: str) -> None:
    _, trace, _ = observed(policy)
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            began = round(event["ts"] * 1_000)
            span = began, began + round(event["dur"] * 1_000)
            tracks[event["pid"], event["tid"]].append(span)
    assert {pid for pid, _ in tracks} == {1, 2, 3, 4}
    for spans in tracks.values():
        around: list[int] = []
        for began, ended in spans:
            while around and around[-1] <= began:
                around.pop()
            assert not around or ended <= around[-1]
            around.append(ended)


def test_flows_lead_from_a_request_to_its_kernel_to_a_shard() -> None:
    _, trace, _ = observed("miriam")
    flows: dict[int, list[tuple[str, int]]] = defaultdict(list)
    names: dict[tuple[int, int], set[str]] = defaultdict(set)
    for event in trace["traceEvents"]:
        if event["ph"] in "stf":
            flows[event["id"]].append((event["ph"], event["pid"]))
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[event["pid"], event["tid"]].add(event["args"]["name"])
    assert len(flows) > 100
    for chain in flows.values():
        assert chain == [("s", 3), ("t", 2), ("f", 1)]
    assert all(len(found) == 1 for found in names.values())
    assert {f"SM {i}" for i in range(16)} <= set.union(*names.values())


class _Clock(Observer):
    def __init__(self) -> None:
        self.times_ns: list[int] = []

    def passed(self, now_ns: int, look: Callable[[int], Look]) -> None:
        self.times_ns.append(now_ns)


@pytest.mark.parametrize("policy", ["multistream", "vacate"])
def test_time_never_goes_back(policy: str) -> None:
    clock = _Clock()
    session = DEVICE.open(tasks(), policies.get(policy), (clock,))
    for task in (0, 1, 2, 2, 3):
        session.submit(task, 0)
    while session.now_ns < WINDOW_NS:
        for completion in session.advance(WINDOW_NS):
            session.submit(completion.task, session.now_ns)
    assert len(clock.times_ns) > 1_000
    assert clock.times_ns == sorted(clock.times_ns)
