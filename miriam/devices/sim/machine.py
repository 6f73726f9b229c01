"""The SMs: which blocks are resident where, and how fast each one progresses.

Blocks are placed as the hardware's left-over policy does (Amert et al., "GPU scheduling on the
NVIDIA TX2", RTSS 2017): launches in order of stream priority, then of arrival; a launch that
still has blocks to place holds back those behind it; a resident block is never taken away. A
block goes to the SM with the most room for its kernel (Gilman et al., "Demystifying the
placement policies of the NVIDIA GPU thread block scheduler for concurrent kernels", 2020).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from operator import attrgetter, itemgetter

from miriam.devices.observe import Look, Observer, heard
from miriam.devices.sim.look import look
from miriam.devices.sim.model import GpuModel
from miriam.devices.sim.residents import ENOUGH, ROUNDS, Cohort, Group, Launch

FEW_GROUPS = 6
"""Up to this many groups, equal ones are not looked for."""

LOOKS = 8
"""With more groups, equal ones are looked for each time that so many changes have passed."""

SAME_DEMAND = 0.02
"""Memory is shared out anew when what is asked of it has changed by this share."""


class Machine:
    """All SMs of a GPU and the launches that want them."""

    def __init__(
        self, model: GpuModel, cuts: Iterable[int] = (), observers: Sequence[Observer] = ()
    ) -> None:
        """``cuts``: the SM numbers at which a grant's or a task's range of SMs may begin."""
        limits = model.spec.limits
        self._limits, self._ran = limits, heard(observers, "ran")
        bounds = sorted({0, model.spec.sms, *cuts})
        self._bounds = bounds
        self._masks: dict[tuple[int, int] | None, int] = {}
        self._groups: list[Group] = []
        for i, (first, end) in enumerate(pairwise(bounds)):
            group = Group(list(range(first, end)), 1 << i)
            group.threads, group.registers = limits.threads, limits.registers
            group.shared_bytes, group.slots = limits.shared_bytes, limits.blocks
            self._groups.append(group)
        self._cohorts: dict[Cohort, None] = {}
        self._queue: list[Launch] = []
        self._changed: list[Group] = []
        self._end_slack = model.end_slack
        self._due: list[Cohort] = []
        self._due_ns = inf
        self._stale = False
        self._looks = 0
        self._asked = self._shared_out = (0.0, 0.0)
        self._stretch = (1.0, 1.0)
        self._now_ns = 0.0
        self._warps = self._busy_sms = 0
        self._warp_ns = self._busy_ns = 0.0

    def zones(self, sms: tuple[int, int] | None) -> int:
        """The mask of a half-open range of SMs (its ends are among the cuts), None for all."""
        mask = self._masks.get(sms)
        if mask is None:
            first, end = sms or (self._bounds[0], self._bounds[-1])
            mask = sum(1 << i for i, b in enumerate(self._bounds[:-1]) if first <= b < end)
            self._masks[sms] = mask
        return mask

    def enqueue(self, launch: Launch) -> None:
        """Hand a launch to the block scheduler; `settle` places its blocks."""
        insort(self._queue, launch)

    def next_ns(self) -> float:
        """When the next blocks finish, infinity when none is resident; for `advance` to follow."""
        if self._stale:
            self._find_due()
            self._stale = False
        # Whole ns are rounded up, so what ends within this one may already lie in the past.
        return max(self._due_ns, self._now_ns)

    def _find_due(self) -> None:
        """The cohorts that end next, together, and when."""
        cohorts, slack = self._cohorts, self._end_slack
        due: list[Cohort] = []
        self._due, self._due_ns = due, inf
        if not cohorts:
            return
        first = min(cohorts, key=attrgetter("finish_ns"))
        early_ns = last_ns = first.finish_ns
        latest_ns = early_ns + slack * first.takes_ns
        cut_ns = inf
        for cohort in cohorts:
            ends_ns = cohort.finish_ns
            if ends_ns <= latest_ns:
                if ends_ns - early_ns <= slack * cohort.takes_ns:
                    due.append(cohort)
                    last_ns = max(last_ns, ends_ns)
                else:
                    # Those too short to wait for the others must not end in the past.
                    cut_ns = min(cut_ns, ends_ns)
        self._due_ns = min((early_ns + last_ns) / 2, cut_ns)

    def occupancy(self) -> tuple[float, float]:
        """Warp-ns resident as a share of the busy SMs' limit, and the mean number of busy SMs."""
        share = self._warp_ns / (self._busy_ns * self._limits.warps) if self._busy_ns else 0.0
        return share, self._busy_ns / self._now_ns if self._now_ns else 0.0

    def look(self, number: int) -> Look:
        """How the launch with this number (the second part of its order) stands."""
        return look(number, self._groups, self._queue, self._stretch, self._limits)

    def advance(self, now_ns: float) -> None:
        """Let time pass until ``now_ns``; blocks that are done by then finish."""
        passed_ns = now_ns - self._now_ns
        self._now_ns = now_ns
        self._warp_ns += self._warps * passed_ns
        self._busy_ns += self._busy_sms * passed_ns
        if now_ns >= self._due_ns:
            self._stale = True
            for cohort in self._due:
                self._finish(cohort)

    def settle(self) -> None:
        """Place what can be placed and set every block's rate."""
        if self._queue:
            self._dispatch()
        if self._changed:
            self._stale = True
            self._looks += 1
            if self._looks >= LOOKS and len(self._groups) > FEW_GROUPS:
                self._looks = 0
                self._merge()
            self._rates()

    def _touch(self, group: Group) -> None:
        if not group.changed:
            group.changed = True
            self._changed.append(group)

    def _finish(self, cohort: Cohort) -> None:
        launch, group = cohort.launch, cohort.group
        blocks = cohort.per_sm * len(group.sms)
        for first, count in cohort.ids:
            launch.source.done(first, count)
        for ran in self._ran:
            ran(launch.order[1], group.sms, cohort.ids, cohort.began_ns, self._now_ns)
        first = count = 0
        if launch.persistent:
            first, count = launch.source.take(blocks, group.zone)
            if count == blocks:
                cohort.restart((first, count), self._now_ns)
                return
        del self._cohorts[cohort]
        group.cohorts.remove(cohort)
        group.hold(launch, -cohort.per_sm)
        self._touch(group)
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
        cohort = Cohort(launch, group, per_sm, [ids], self._now_ns)
        group.cohorts.append(cohort)
        group.hold(launch, per_sm)
        self._touch(group)
        self._cohorts[cohort] = None
        self._warps += launch.warps * cohort.blocks

    def _split(self, group: Group, keep: int) -> Group:
        """Part a group in two: it keeps its first ``keep`` SMs, the new one has the rest."""
        other = Group(group.sms[keep:], group.zone)
        other.same_room(group)
        for cohort in group.cohorts:
            twin = cohort.twin(other, cohort.per_sm * keep)
            other.cohorts.append(twin)
            self._cohorts[twin] = None
        group.sms = group.sms[:keep]
        self._groups.append(other)
        self._touch(group)
        self._touch(other)
        return other

    def _merge(self) -> None:
        """Join groups that hold the same blocks with about the same work left."""
        seen: dict[tuple[object, ...], Group] = {}
        for group in self._groups:
            twin = seen.setdefault(group.likeness(self._now_ns), group)
            if twin is not group:
                for mine, other in zip(twin.cohorts, group.cohorts, strict=True):
                    mine.absorb(other, self._now_ns)
                    del self._cohorts[other]
                twin.sms += group.sms
                self._touch(twin)
                l2_share, dram_share = self._asked
                self._asked = l2_share - group.l2_share, dram_share - group.dram_share
        self._groups = list(seen.values())
        self._changed = [g for g in self._groups if g.changed]

    def _dispatch(self) -> None:
        blocked = 0
        waiting = []
        for launch in self._queue:
            zones = launch.zones & ~blocked
            if launch.persistent:
                # Of an original kernel, no block is taken back.
                launch.pending = min(launch.pending, launch.source.room())
            # What found no room before finds it only where something has left since.
            groups = self._groups if launch.fresh else self._changed
            if zones and launch.pending and groups:
                self._place(launch, zones, groups)
                launch.fresh = False
            if launch.pending:
                blocked |= launch.zones
                waiting.append(launch)
        self._queue = waiting

    def _place(self, launch: Launch, zones: int, groups: Sequence[Group]) -> None:
        """Put blocks one after the other where most room is, until none is left or none fits."""
        fits = [(fit, g) for g in groups if g.zone & zones and (fit := g.fit(launch))]
        fits.sort(key=itemgetter(0), reverse=True)
        if not fits:
            return
        level, reached, launch.pending = _fill(fits, launch.pending)
        for fit, group in fits[:reached]:
            deep = fit - level
            if level and launch.pending:
                if launch.pending < len(group.sms):
                    rest = self._split(group, launch.pending)
                    if deep:
                        self._take(launch, rest, deep)
                launch.pending -= len(group.sms)
                deep += 1
            if deep:
                self._take(launch, group, deep)

    def _take(self, launch: Launch, group: Group, per_sm: int) -> None:
        places = per_sm * len(group.sms)
        first, count = launch.source.take(places, group.zone)
        if count == places:
            self._start(group, launch, per_sm, (first, count))
            return
        # A persistent block that gets no logical one leaves; others that begin now may be why.
        if count:
            self._stay(group, launch, per_sm, first, count)
        launch.source.left(places - count)

    def _rates(self) -> None:
        asked_l2, asked_dram = self._asked
        for group in self._changed:
            asked_l2 -= group.l2_share
            asked_dram -= group.dram_share
            group.contend()
            asked_l2 += group.l2_share
            asked_dram += group.dram_share
        self._asked = asked_l2, asked_dram
        touched = self._groups if self._share_memory() else self._changed
        l2, dram = self._stretch
        for group in touched:
            stretch = group.stretch
            for cohort in group.cohorts:
                # BlockProfile.block_ns, written out: a call would take as long as all of it.
                profile = cohort.launch.profile
                longest = profile.issue_ns * stretch
                if profile.l2_ns * l2 > longest:
                    longest = profile.l2_ns * l2
                if profile.dram_ns * dram > longest:
                    longest = profile.dram_ns * dram
                takes_ns = profile.fixed_ns + longest
                if takes_ns != cohort.takes_ns:
                    cohort.retime(takes_ns, self._now_ns)
        for group in self._changed:
            group.changed = False
        self._changed.clear()

    def _share_memory(self) -> bool:
        """Stretch what needs L2 and DRAM so that neither gives more than it has; True if new."""
        l2_share, dram_share = self._asked
        if l2_share <= ENOUGH and dram_share <= ENOUGH:
            known = self._stretch == (1.0, 1.0)
            self._stretch, self._shared_out = (1.0, 1.0), (0.0, 0.0)
            return not known
        if all(
            abs(now - before) <= SAME_DEMAND * now
            for now, before in zip(self._asked, self._shared_out, strict=True)
        ):
            return False
        self._shared_out = self._asked
        needs = [
            (len(g.sms) * c.per_sm, p.fixed_ns, p.issue_ns * g.stretch, p.l2_ns, p.dram_ns, p)
            for g in self._groups
            for c in g.cohorts
            for p in (c.launch.profile,)
        ]
        l2 = dram = 1.0
        for _ in range(ROUNDS):
            l2, dram = max(1.0, l2 * l2_share), max(1.0, dram * dram_share)
            l2_share = dram_share = 0.0
            for blocks, fixed_ns, longest, l2_ns, dram_ns, profile in needs:
                if l2_ns * l2 > longest:
                    longest = l2_ns * l2
                if dram_ns * dram > longest:
                    longest = dram_ns * dram
                rate = blocks / (fixed_ns + longest)
                l2_share += rate * profile.l2_work
                dram_share += rate * profile.dram_work
            if l2_share <= ENOUGH and dram_share <= ENOUGH:
                break
        self._stretch = (l2, dram)
        return True


def _fill(fits: Sequence[tuple[int, Group]], blocks: int) -> tuple[int, int, int]:
    """How far ``blocks`` fill the groups, most room first: the room then left in those reached,
    how many are reached, and the blocks that remain (less than one more for each SM, or no room).
    """
    level = fits[0][0] if fits else 0
    width = reached = 0
    while level:
        while reached < len(fits) and fits[reached][0] == level:
            width += len(fits[reached][1].sms)
            reached += 1
        lower = fits[reached][0] if reached < len(fits) else 0
        deep = min(level - lower, blocks // width)
        level -= deep
        blocks -= deep * width
        if level > lower:
            break
    return level, reached, blocks
