"""What is resident: launches, their blocks in cohorts, and SMs in groups.

Equal things are kept once: SMs that hold the same blocks form a `Group`, and the blocks of one
launch that started together in a group form a `Cohort`, so that an event costs as much on 8 SMs
as on 132.
"""

from __future__ import annotations

from typing import Protocol

from miriam.devices.sim.forms import Form

ENOUGH = 1.01
"""A resource asked for up to 1 % beyond what it has counts as not contended."""

ROUNDS = 4
"""Fixed-point rounds for the stretch of a contended resource."""

PHASES = 16
"""Where equal groups are looked for, blocks within 1/16 of their time count as equally far."""


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
        "fresh",
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
        self.fresh = True

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
        self.changed = False

    def fit(self, launch: Launch) -> int:
        """Blocks of ``launch`` that one of the SMs can still take."""
        threads, registers, shared_bytes = launch.threads, launch.registers, launch.shared_bytes
        # Most SMs are full, and this is asked more often than anything else.
        if self.registers < registers or self.threads < threads or self.shared_bytes < shared_bytes:
            return 0
        fits = self.threads // threads
        if self.slots < fits:
            fits = self.slots
        if registers and self.registers // registers < fits:
            fits = self.registers // registers
        if shared_bytes and self.shared_bytes // shared_bytes < fits:
            fits = self.shared_bytes // shared_bytes
        return fits

    def hold(self, launch: Launch, per_sm: int) -> None:
        """Take (or, negative, give back) the room of ``per_sm`` blocks on each SM."""
        self.threads -= launch.threads * per_sm
        self.registers -= launch.registers * per_sm
        self.shared_bytes -= launch.shared_bytes * per_sm
        self.slots -= per_sm

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
                longest = profile.issue_ns * issue
                if profile.memory_ns > longest:
                    longest = profile.memory_ns
                rate = cohort.per_sm / (profile.fixed_ns + longest)
                issue_share += rate * profile.issue_work
                l2_share += rate * profile.l2_work
                dram_share += rate * profile.dram_work
        self.stretch = issue
        self.l2_share = l2_share * len(self.sms)
        self.dram_share = dram_share * len(self.sms)

    def likeness(self, now_ns: float) -> tuple[object, ...]:
        """Equal for groups whose blocks are the same and about as far; sorts the cohorts."""
        self.cohorts.sort(key=lambda c: (c.launch.order, c.finish_ns))
        return (
            self.zone,
            *[
                (c.launch.order, c.per_sm, int(PHASES * (c.finish_ns - now_ns) / c.takes_ns))
                for c in self.cohorts
            ],
        )

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

    def __init__(
        self,
        launch: Launch,
        group: Group,
        per_sm: int,
        ids: list[tuple[int, int]],
        now_ns: float,
    ) -> None:
        """``ids``: first and count of its logical blocks, in order."""
        self.launch = launch
        self.group = group
        self.per_sm = per_sm
        self.ids = ids
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

    def absorb(self, other: Cohort, now_ns: float) -> None:
        """Join with the like cohort of another group; the work left is kept, spread evenly."""
        mine, others = len(self.group.sms), len(other.group.sms)
        self.finish_ns = (mine * self.finish_ns + others * other.finish_ns) / (mine + others)
        self.left = (self.finish_ns - now_ns) / self.takes_ns
        self.since_ns = now_ns
        self.ids += other.ids

    def twin(self, group: Group, keep: int) -> Cohort:
        """Split: this one keeps its first ``keep`` logical blocks, the twin has the rest."""
        twin = Cohort(self.launch, group, self.per_sm, [], self.began_ns)
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
