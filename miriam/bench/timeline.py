"""A run as a timeline that ui.perfetto.dev opens: the Chrome trace format, in JSON.

Tracks: each SM with the shards on it (as many lanes as launches shared it), each stream with its
requests, kernels and gates, each task with its requests from arrival to completion, and each
critical task with what its slow requests were delayed by. Flows lead from a request to its
kernel to the launch's first shard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from miriam.bench.delay import CAUSES, Explained
from miriam.coordinator import Task
from miriam.devices.observe import LaunchInfo, Observer

_SMS, _STREAMS, _REQUESTS, _DELAYS = 1, 2, 3, 4
_PROCESSES = {_SMS: "SMs", _STREAMS: "streams", _REQUESTS: "requests", _DELAYS: "slow because"}
_LANES = 100
"""Thread numbers per SM or task: one for each lane."""

_Key = tuple[int, int]


@dataclass(slots=True)
class _Presence:
    """A launch on one SM without a pause, and the logical blocks (first, count) that it ran."""

    began_ns: int
    ended_ns: int
    blocks: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Request:
    arrived_ns: int
    issued_ns: int | None = None
    ended_ns: int | None = None
    stream: int = 0


@dataclass(frozen=True, slots=True)
class _Span:
    """Something on a stream: a step, or what a gate held."""

    key: _Key
    name: str
    began_ns: int
    ended_ns: int


class Timeline(Observer):
    """Records a session of ``tasks`` on a GPU with ``sms`` SMs; ``encode`` writes it out."""

    def __init__(self, tasks: Sequence[Task], sms: int) -> None:
        self._tasks, self._sms = tuple(tasks), sms
        self._requests: dict[_Key, _Request] = {}
        self._streams: list[set[int]] = [set() for _ in tasks]
        self._spans: list[_Span] = []
        self._launches: dict[int, tuple[LaunchInfo, int]] = {}
        self._presence: dict[tuple[int, int], list[_Presence]] = defaultdict(list)
        self._words: list[tuple[_Key, int | None, int]] = []
        self._now_ns = 0

    def arrived(self, task: int, request: int, now_ns: int) -> None:
        """The request's slice begins."""
        self._requests[task, request] = _Request(now_ns)

    def issued(self, task: int, request: int, now_ns: int, begins_ns: int) -> None:
        """The request takes the first free stream of its task."""
        busy, known = self._streams[task], self._requests[task, request]
        known.issued_ns = now_ns
        known.stream = next(i for i in range(len(busy) + 1) if i not in busy)
        busy.add(known.stream)

    def finished(self, task: int, request: int, now_ns: int) -> None:
        """Its stream is free."""
        known = self._requests[task, request]
        known.ended_ns = self._now_ns = now_ns
        self._streams[task].discard(known.stream)

    def step(self, task: int, request: int, step: int, began_ns: int, ended_ns: int) -> None:
        """A kernel's slice on its stream."""
        self._spans.append(_Span((task, request), self._step(task, step), began_ns, ended_ns))
        self._now_ns = ended_ns

    def held(self, task: int, request: int, step: int, since_ns: int, until_ns: int) -> None:
        """A gate's slice on the stream."""
        self._spans.append(_Span((task, request), "held at a gate", since_ns, until_ns))

    def wrote(self, task: int, request: int, step: int | None, now_ns: int) -> None:
        """A mark on the stream of the critical request."""
        self._words.append(((task, request), step, now_ns))

    def launched(self, launch: LaunchInfo, now_ns: int) -> None:
        """Where a flow begins."""
        self._launches[launch.number] = launch, now_ns

    def ran(
        self,
        launch: int,
        sms: Sequence[int],
        blocks: Sequence[tuple[int, int]],
        began_ns: float,
        ended_ns: float,
    ) -> None:
        """Blocks are added to the launch's slice on each SM."""
        began, ended = round(began_ns), round(ended_ns)
        for sm, ranges in zip(sms, _dealt(blocks, len(sms)), strict=True):
            found = self._presence[sm, launch]
            if not found or found[-1].ended_ns < began:
                found.append(_Presence(began, ended))
            found[-1].began_ns = min(found[-1].began_ns, began)
            found[-1].ended_ns = max(found[-1].ended_ns, ended)
            found[-1].blocks += ranges

    def encode(self, device: str, explained: Iterable[Explained]) -> bytes:
        """The trace as JSON; ``explained`` are the finished critical requests."""
        events: list[dict[str, object]] = []
        for pid, name in _PROCESSES.items():
            events.append(_named("process_name", pid, 0, name))
            events.append({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0})
            events[-1]["args"] = {"sort_index": _DELAYS - pid}
        ends = self._on_sms(events)
        self._on_streams(events)
        places = self._on_requests(events)
        self._flows(events, places, ends)
        self._on_delays(events, explained)
        for event in [e for e in events if e["name"] == "thread_name"]:
            tid = event["tid"]
            events.append({**event, "name": "thread_sort_index", "args": {"sort_index": tid}})
        # Whoever reads slices one by one expects the outer one first.
        events.sort(key=lambda e: (_number(e.get("ts")), -_number(e.get("dur"))))
        document = {
            "displayTimeUnit": "ns",
            "otherData": {"schema": "miriam.trace/1", "device": device, "simulated": True},
            "traceEvents": events,
        }
        return msgspec.json.encode(document) + b"\n"

    def _step(self, task: int, step: int) -> str:
        return f"{step} {self._tasks[task].program.steps[step].name}"

    def _request(self, key: _Key) -> str:
        return f"{self._tasks[key[0]].name} #{key[1]}"

    def _stream(self, key: _Key) -> int:
        return _LANES * key[0] + self._requests[key].stream

    def _end_ns(self, request: _Request) -> int:
        return self._now_ns if request.ended_ns is None else request.ended_ns

    def _on_sms(self, events: list[dict[str, object]]) -> dict[int, tuple[int, int]]:
        """Slices on the SMs; for each launch the thread and time of its first one."""
        first: dict[int, tuple[int, int]] = {}
        by_sm: list[list[tuple[_Presence, int]]] = [[] for _ in range(self._sms)]
        for (sm, launch), found in self._presence.items():
            by_sm[sm] += [(presence, launch) for presence in found]
        for sm, here in enumerate(by_sm):
            here.sort(key=lambda pair: (pair[0].began_ns, pair[1]))
            lanes = _lanes([(p.began_ns, p.ended_ns) for p, _ in here])
            for lane in range(max(lanes, default=0) + 1):
                events.append(_named("thread_name", _SMS, _LANES * sm + lane, f"SM {sm}"))
            for (presence, number), lane in zip(here, lanes, strict=True):
                tid, info = _LANES * sm + lane, self._launches[number][0]
                key = info.task, info.request
                name = f"{self._request(key)} {self._step(info.task, info.step)}"
                event = _slice(_SMS, tid, name, presence.began_ns, presence.ended_ns)
                event["args"] = {
                    "task": self._tasks[info.task].name,
                    "request": info.request,
                    "step": info.step,
                    "launch": number,
                    "elastic": info.elastic,
                    "threads": info.threads,
                    "blocks": _joined(presence.blocks),
                }
                events.append(event)
                if number not in first or presence.began_ns < first[number][1]:
                    first[number] = tid, presence.began_ns
        return first

    def _on_streams(self, events: list[dict[str, object]]) -> None:
        threads = set()
        for key, request in self._requests.items():
            if request.issued_ns is not None:
                tid = self._stream(key)
                threads.add((tid, f"{self._tasks[key[0]].name} stream {request.stream}"))
                ends_ns = self._end_ns(request)
                events.append(_slice(_STREAMS, tid, self._request(key), request.issued_ns, ends_ns))
        events += [_named("thread_name", _STREAMS, tid, name) for tid, name in sorted(threads)]
        for span in self._spans:
            tid = self._stream(span.key)
            events.append(_slice(_STREAMS, tid, span.name, span.began_ns, span.ended_ns))
        for key, step, now_ns in self._words:
            name = "word: end" if step is None else f"word: step {step}"
            where = {"pid": _STREAMS, "tid": self._stream(key), "ts": now_ns / 1_000}
            events.append({"ph": "i", "s": "t", "name": name, **where})

    def _on_requests(self, events: list[dict[str, object]]) -> dict[_Key, int]:
        """Slices from arrival to completion; the thread of each."""
        places: dict[_Key, int] = {}
        for task, known in enumerate(self._tasks):
            keys = [key for key in self._requests if key[0] == task]
            spans = [(self._requests[k].arrived_ns, self._end_ns(self._requests[k])) for k in keys]
            lanes = _lanes(spans)
            for lane in range(max(lanes, default=0) + 1):
                tid = _LANES * task + lane
                events.append(_named("thread_name", _REQUESTS, tid, known.name))
            for key, span, lane in zip(keys, spans, lanes, strict=True):
                places[key] = _LANES * task + lane
                events.append(_slice(_REQUESTS, places[key], self._request(key), *span))
        return places

    def _flows(
        self,
        events: list[dict[str, object]],
        places: dict[_Key, int],
        first: dict[int, tuple[int, int]],
    ) -> None:
        for number, (tid, began_ns) in first.items():
            info, launched_ns = self._launches[number]
            key = info.task, info.request
            for phase, pid, thread, now_ns in (
                ("s", _REQUESTS, places[key], launched_ns),
                ("t", _STREAMS, self._stream(key), launched_ns),
                ("f", _SMS, tid, began_ns),
            ):
                flow: dict[str, object] = {"ph": phase, "bp": "e", "cat": "flow", "id": number}
                flow |= {"name": "launch", "pid": pid, "tid": thread, "ts": now_ns / 1_000}
                events.append(flow)

    def _on_delays(self, events: list[dict[str, object]], explained: Iterable[Explained]) -> None:
        slow = sorted((e for e in explained if e.slow), key=lambda e: (e.task, e.arrival_ns))
        for task, known in enumerate(self._tasks):
            mine = [e for e in slow if e.task == task]
            lanes = _lanes([(e.arrival_ns, e.finish_ns) for e in mine])
            for lane in sorted(set(lanes)):
                tid = _LANES * task + lane
                events.append(_named("thread_name", _DELAYS, tid, known.name))
            for found, lane in zip(mine, lanes, strict=True):
                events += self._explanation(found, _LANES * task + lane)

    def _explanation(self, found: Explained, tid: int) -> list[dict[str, object]]:
        """The request, and in it end to end: its time alone and each part of the delay."""
        name = f"{self._request((found.task, found.request))} +{found.delay_ns / 1e6:.3f} ms"
        whole = _slice(_DELAYS, tid, name, found.arrival_ns, found.finish_ns)
        whole["args"] = {
            "delay_us": found.delay_ns / 1_000,
            "parts_us": {f"{d.cause}: {d.by}": d.ns / 1_000 for d in found.delays},
        }
        now_ns = found.arrival_ns + found.solo_ns
        events = [whole, _slice(_DELAYS, tid, "alone", found.arrival_ns, now_ns)]
        losses = [d for d in found.delays if d.ns > 0]
        # What was gained elsewhere is taken off each loss, or they would not fit the request.
        scale = found.delay_ns / max(sum(d.ns for d in losses), 1)
        for delay in losses:
            ends_ns = min(now_ns + int(delay.ns * scale), found.finish_ns)
            title = f"{CAUSES[delay.cause]}: {delay.by}"
            events.append(_slice(_DELAYS, tid, title, now_ns, ends_ns))
            now_ns = ends_ns
        return events


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _slice(pid: int, tid: int, name: str, began_ns: int, ended_ns: int) -> dict[str, object]:
    duration = (ended_ns - began_ns) / 1_000
    where = {"pid": pid, "tid": tid, "ts": began_ns / 1_000, "dur": duration}
    return {"ph": "X", "name": name, **where}


def _number(value: object) -> float:
    return value if isinstance(value, float) else 0.0


def _lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each span, in order of begin, the first lane that is free by then."""
    free_ns: list[int] = []
    lanes = []
    for began_ns, ended_ns in spans:
        lane = next((i for i, free in enumerate(free_ns) if free <= began_ns), len(free_ns))
        free_ns[lane:] = [ended_ns, *free_ns[lane + 1 :]]
        lanes.append(lane)
    return lanes


def _dealt(blocks: Iterable[tuple[int, int]], hands: int) -> list[list[tuple[int, int]]]:
    """Ranges of blocks dealt out in order, to each hand the same number."""
    ranges = list(blocks)
    each = sum(count for _, count in ranges) // hands
    dealt: list[list[tuple[int, int]]] = []
    missing = 0
    for start, total in ranges:
        first, count = start, total
        while count:
            if not missing:
                dealt.append([])
                missing = each
            here = min(missing, count)
            dealt[-1].append((first, here))
            first, count, missing = first + here, count - here, missing - here
    return dealt


def _joined(blocks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same blocks in as few ranges (first, count) as possible."""
    joined: list[tuple[int, int]] = []
    for first, count in sorted(blocks):
        if joined and sum(joined[-1]) == first:
            joined[-1] = joined[-1][0], joined[-1][1] + count
        else:
            joined.append((first, count))
    return joined
