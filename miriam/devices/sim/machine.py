"""The SMs: which blocks are resident where, and how fast each one progresses.

Blocks are placed as the hardware's left-over policy does: launches in order of stream priority,
then of arrival; a launch that still has blocks to place holds back those behind it; a resident
block is never taken away. A block goes to the SM with the most room for its kernel (Gilman et
al., "Demystifying the placement policies of the NVIDIA GPU thread block scheduler", 2020).

Equal things are kept once: SMs that hold the same blocks form a `Group`, and the blocks of one
launch that started together in a group form a `Cohort`, so that an event costs as much on 8 SMs
as on 132.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from itertools import pairwise
from typing import Protocol

from miriam.devices.sim.forms import Form
from miriam.devices.sim.model import GpuModel

ENOUGH = 1.01
"""A resource asked for up to 1 % beyond what it has counts as not contended."""

ROUNDS = 4
"""Fixed-point rounds for the stretch of a contended resource."""

FEW_GROUPS = 6
"""Up to this many groups it costs less to keep equal ones apart than to look for them."""


class BlockSource(Protocol):
    """Where a launch's blocks get their work from."""

    def room(self) -> int:
        """How many more physical blocks may start now."""

    def take(self, blocks: int, zone: int) -> tuple[int, int]:
        """First and count (<= ``blocks``) of the logical blocks that start now in ``zone``."""

    def done(self, first: int, count: int) -> None:
        """These logical blocks have run."""

    def left(self, blocks: int) -> None:
        """These physical blocks have gone and their places are free."""


class Launch:
    """One kernel launch: its place in the queue, its needs, and its blocks still to place."""

    __slots__ = (
        "alone_ns",
        "dram_share",
        "issue_share",
        "l2_share",
        "order",
        "pending",
        "persistent",
        "profile",
        "registers",
        "shared_bytes",
        "source",
        "threads",
        "warps",
        "zones",
    )

    def __init__(
        self,
        order: tuple[int, int],
        zones: int,
        form: Form,
        source: BlockSource,
        blocks: int,
        *,
        persistent: bool,
    ) -> None:
        self.order = order
        self.zones = zones
        self.threads = form.taken.threads
        self.warps = form.taken.warps
        self.registers = form.taken.registers
        self.shared_bytes = form.taken.shared_bytes
        self.profile = form.profile
        self.alone_ns = form.profile.block_ns(1.0, 1.0, 1.0)
        self.issue_share = form.profile.issue_work / self.alone_ns
        self.l2_share = form.profile.l2_work / self.alone_ns
        self.dram_share = form.profile.dram_work / self.alone_ns
        self.source = source
        self.pending = blocks
        self.persistent = persistent

    def __lt__(self, other: Launch) -> bool:
        return self.order < other.order


class Group:
    """SMs that hold the same blocks; the free resources are those of one SM."""

    __slots__ = (
        "changed",
        "cohorts",
        "dram_share",
        "l2_share",
        "registers",
        "shared_bytes",
        "slots",
        "sms",
        "stretch",
        "threads",
        "zone",
    )

    def __init__(self, sms: list[int], zone: int) -> None:
        self.sms = sms
        self.zone = zone
        self.threads = self.registers = self.shared_bytes = self.slots = 0
        self.cohorts: list[Cohort] = []
        self.stretch = 1.0
        self.l2_share = self.dram_share = 0.0
        self.changed = True

    def fit(self, launch: Launch) -> int:
        """Blocks of ``launch`` that one of the SMs can still take."""
        fits = self.threads // launch.threads
        if self.slots < fits:
            fits = self.slots
        if launch.registers and self.registers // launch.registers < fits:
            fits = self.registers // launch.registers
        if launch.shared_bytes and self.shared_bytes // launch.shared_bytes < fits:
            fits = self.shared_bytes // launch.shared_bytes
        return fits

    def hold(self, launch: Launch, per_sm: int) -> None:
        """Take (or, negative, give back) the room of ``per_sm`` blocks on each SM."""
        self.threads -= launch.threads * per_sm
        self.registers -= launch.registers * per_sm
        self.shared_bytes -= launch.shared_bytes * per_sm
        self.slots -= per_sm
        self.changed = True

    def contend(self) -> None:
        """How far the SM's issue slots stretch its blocks, and what they then ask of memory."""
        issue = 1.0
        issue_share = l2_share = dram_share = 0.0
        for cohort in self.cohorts:
            launch, per_sm = cohort.launch, cohort.per_sm
            issue_share += per_sm * launch.issue_share
            l2_share += per_sm * launch.l2_share
            dram_share += per_sm * launch.dram_share
        for _ in range(ROUNDS):
            if issue_share <= ENOUGH:
                break
            issue *= issue_share
            issue_share = l2_share = dram_share = 0.0
            for cohort in self.cohorts:
                profile = cohort.launch.profile
                rate = cohort.per_sm / profile.block_ns(issue, 1.0, 1.0)
                issue_share += rate * profile.issue_work
                l2_share += rate * profile.l2_work
                dram_share += rate * profile.dram_work
        self.stretch = issue
        self.l2_share = l2_share * len(self.sms)
        self.dram_share = dram_share * len(self.sms)

    def same_room(self, other: Group) -> None:
        """Copy the free resources of ``other``."""
        self.threads, self.registers = other.threads, other.registers
        self.shared_bytes, self.slots = other.shared_bytes, other.slots
        self.stretch = other.stretch


class Cohort:
    """Blocks of one launch that started together on every SM of a group."""

    __slots__ = (
        "began_ns",
        "finish_ns",
        "group",
        "ids",
        "launch",
        "left",
        "per_sm",
        "since_ns",
        "takes_ns",
    )

    def __init__(self, launch: Launch, group: Group, per_sm: int, now_ns: float) -> None:
        self.launch = launch
        self.group = group
        self.per_sm = per_sm
        self.ids: list[tuple[int, int]] = []
        self.left = 1.0
        self.takes_ns = launch.alone_ns
        self.began_ns = self.since_ns = now_ns
        self.finish_ns = now_ns + self.takes_ns

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.per_sm * len(self.group.sms)

    def restart(self, ids: tuple[int, int], now_ns: float) -> None:
        """The same places take the next logical blocks."""
        self.ids = [ids]
        self.left = 1.0
        self.began_ns = self.since_ns = now_ns
        self.finish_ns = now_ns + self.takes_ns

    def retime(self, takes_ns: float, now_ns: float) -> None:
        """From now on a whole block takes ``takes_ns``."""
        self.left -= (now_ns - self.since_ns) / self.takes_ns
        self.since_ns = now_ns
        self.takes_ns = takes_ns
        self.finish_ns = now_ns + self.left * takes_ns

    def twin(self, group: Group, keep: int) -> Cohort:
        """Split: this one keeps its first ``keep`` logical blocks, the twin has the rest."""
        twin = Cohort(self.launch, group, self.per_sm, self.began_ns)
        twin.left, twin.takes_ns = self.left, self.takes_ns
        twin.since_ns, twin.finish_ns = self.since_ns, self.finish_ns
        kept: list[tuple[int, int]] = []
        for first, count in self.ids:
            here = min(keep, count)
            keep -= here
            if here:
                kept.append((first, here))
            if here < count:
                twin.ids.append((first + here, count - here))
        self.ids = kept
        return twin


class Machine:
    """All SMs of a GPU and the launches that want them."""

    def __init__(self, model: GpuModel, cuts: Iterable[int] = ()) -> None:
        """``cuts``: the SM numbers at which a grant's or a task's range of SMs may begin."""
        limits = model.spec.limits
        self._max_warps = limits.warps
        bounds = sorted({0, model.spec.sms, *cuts})
        self._bounds = bounds
        self._groups: list[Group] = []
        for i, (first, end) in enumerate(pairwise(bounds)):
            group = Group(list(range(first, end)), 1 << i)
            group.threads, group.registers = limits.threads, limits.registers
            group.shared_bytes, group.slots = limits.shared_bytes, limits.blocks
            self._groups.append(group)
        self._cohorts: list[Cohort] = []
        self._queue: list[Launch] = []
        self._stretched = False
        self._now_ns = 0.0
        self._warps = self._busy_sms = 0
        self._warp_ns = self._busy_ns = 0.0

    def zones(self, sms: tuple[int, int] | None) -> int:
        """The mask of a half-open range of SMs (its ends are among the cuts), None for all."""
        first, end = sms or (self._bounds[0], self._bounds[-1])
        return sum(1 << i for i, b in enumerate(self._bounds[:-1]) if first <= b < end)

    def enqueue(self, launch: Launch) -> None:
        """Hand a launch to the block scheduler; `settle` places its blocks."""
        insort(self._queue, launch)

    def next_ns(self) -> float:
        """When the next blocks finish; infinity when none is resident."""
        return min([c.finish_ns for c in self._cohorts], default=float("inf"))

    def occupancy(self) -> tuple[float, float]:
        """Warp-ns resident as a share of the busy SMs' limit, and the mean number of busy SMs."""
        share = self._warp_ns / (self._busy_ns * self._max_warps) if self._busy_ns else 0.0
        return share, self._busy_ns / self._now_ns if self._now_ns else 0.0

    def advance(self, now_ns: float) -> None:
        """Let time pass until ``now_ns``; blocks that are done by then finish."""
        passed_ns = now_ns - self._now_ns
        self._now_ns = now_ns
        self._warp_ns += self._warps * passed_ns
        self._busy_ns += self._busy_sms * passed_ns
        due = [c for c in self._cohorts if c.finish_ns <= now_ns]
        for cohort in due:
            self._finish(cohort)

    def settle(self) -> None:
        """Place what can be placed and set every block's rate."""
        if self._queue:
            self._dispatch()
        if any([g.changed for g in self._groups]):
            self._merge()
            self._rates()

    def _finish(self, cohort: Cohort) -> None:
        launch, group, blocks = cohort.launch, cohort.group, cohort.blocks
        for first, count in cohort.ids:
            launch.source.done(first, count)
        first = count = 0
        if launch.persistent:
            first, count = launch.source.take(blocks, group.zone)
            if count == blocks:
                cohort.restart((first, count), self._now_ns)
                return
        self._cohorts.remove(cohort)
        group.cohorts.remove(cohort)
        group.hold(launch, -cohort.per_sm)
        self._warps -= launch.warps * blocks
        if not group.cohorts:
            self._busy_sms -= len(group.sms)
        if count:
            self._stay(group, launch, cohort.per_sm, first, count)
        launch.source.left(blocks - count)

    def _stay(self, group: Group, launch: Launch, per_sm: int, first: int, count: int) -> None:
        """Of the places that a cohort had in ``group``, ``count`` take the next blocks."""
        whole, rest = divmod(count, per_sm)
        for sms, here in ((whole, per_sm), (1, rest)):
            if sms and here:
                tail = self._split(group, sms) if sms < len(group.sms) else group
                self._start(group, launch, here, (first, sms * here))
                first += sms * here
                group = tail

    def _start(self, group: Group, launch: Launch, per_sm: int, ids: tuple[int, int]) -> None:
        if not group.cohorts:
            self._busy_sms += len(group.sms)
        cohort = Cohort(launch, group, per_sm, self._now_ns)
        cohort.ids.append(ids)
        group.cohorts.append(cohort)
        group.hold(launch, per_sm)
        self._cohorts.append(cohort)
        self._warps += launch.warps * cohort.blocks

    def _split(self, group: Group, keep: int) -> Group:
        """Part a group in two: it keeps its first ``keep`` SMs, the new one has the rest."""
        other = Group(group.sms[keep:], group.zone)
        other.same_room(group)
        for cohort in group.cohorts:
            twin = cohort.twin(other, cohort.per_sm * keep)
            other.cohorts.append(twin)
            self._cohorts.append(twin)
        group.sms = group.sms[:keep]
        group.changed = True
        self._groups.append(other)
        return other

    def _merge(self) -> None:
        """Join groups that hold the same blocks with the same work left, once it pays."""
        if len(self._groups) <= FEW_GROUPS:
            return
        seen: dict[tuple[object, ...], Group] = {}
        for group in self._groups:
            key = (
                group.zone,
                *[
                    (c.launch.order, c.per_sm, c.began_ns, round(c.finish_ns, 3))
                    for c in group.cohorts
                ],
            )
            twin = seen.setdefault(key, group)
            if twin is not group:
                for mine, other in zip(twin.cohorts, group.cohorts, strict=True):
                    mine.ids += other.ids
                    self._cohorts.remove(other)
                twin.sms = twin.sms + group.sms
                twin.changed = True
        if len(seen) < len(self._groups):
            self._groups = list(seen.values())

    def _dispatch(self) -> None:
        blocked = 0
        waiting = []
        for launch in self._queue:
            zones = launch.zones & ~blocked
            launch.pending = min(launch.pending, launch.source.room())
            if zones and launch.pending:
                self._place(launch, zones)
            if launch.pending:
                blocked |= launch.zones
                waiting.append(launch)
        self._queue = waiting

    def _place(self, launch: Launch, zones: int) -> None:
        fits = [[g.fit(launch), -i] for i, g in enumerate(self._groups) if g.zone & zones]
        fits = [f for f in fits if f[0]]
        layers: dict[int, int] = {}
        while launch.pending and fits:
            fits.sort(reverse=True)
            fit, minus = fits[0]
            group = self._groups[-minus]
            if launch.pending < len(group.sms):
                layers[len(self._groups)] = layers.get(-minus, 0)
                self._split(group, launch.pending)
                deep = 1
            else:
                second = fits[1][0] if len(fits) > 1 else 0
                deep = max(1, min(fit - second, launch.pending // len(group.sms)))
            launch.pending -= deep * len(group.sms)
            layers[-minus] = layers.get(-minus, 0) + deep
            fits[0][0] -= deep
            if not fits[0][0]:
                del fits[0]
        for i, deep in layers.items():
            group = self._groups[i]
            if deep:
                ids = launch.source.take(deep * len(group.sms), group.zone)
                self._start(group, launch, deep, ids)

    def _rates(self) -> None:
        for group in self._groups:
            if group.changed:
                group.contend()
        l2, dram = self._memory_stretch()
        stretched = l2 > 1.0 or dram > 1.0
        for group in self._groups:
            if group.changed or stretched or self._stretched:
                group.changed = False
                for cohort in group.cohorts:
                    takes_ns = cohort.launch.profile.block_ns(group.stretch, l2, dram)
                    if takes_ns != cohort.takes_ns:
                        cohort.retime(takes_ns, self._now_ns)
        self._stretched = stretched

    def _memory_stretch(self) -> tuple[float, float]:
        """How much L2 and DRAM stretch what needs them, so that neither gives more than it has."""
        l2_share = sum([g.l2_share for g in self._groups])
        dram_share = sum([g.dram_share for g in self._groups])
        l2 = dram = 1.0
        for _ in range(ROUNDS):
            if l2_share <= ENOUGH and dram_share <= ENOUGH:
                break
            l2, dram = max(1.0, l2 * l2_share), max(1.0, dram * dram_share)
            l2_share = dram_share = 0.0
            for cohort in self._cohorts:
                profile = cohort.launch.profile
                rate = cohort.blocks / profile.block_ns(cohort.group.stretch, l2, dram)
                l2_share += rate * profile.l2_work
                dram_share += rate * profile.dram_work
        return l2, dram
