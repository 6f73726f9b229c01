"""Worlds: the whole GPU or some of its SMs, as a context with streams of its own.

SMs are confined by green contexts (CUDA driver API, "Green Contexts"). The device is split once
into groups of SMs, which contexts share: a split can not be split again. A part is there as long as
its session, in which no other green context that overlaps with it has work
(`World.may_run_at_once`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from miriam.coordinator.split import Range
from miriam.devices.cuda.code import Function
from miriam.devices.cuda.driver import ask, driver, start
from miriam.devices.cuda.memory import Memory, download
from miriam.devices.cuda.patience import drain
from miriam.errors import DeviceError, MissingCapabilityError, UsageError
from miriam.kernels import ARCHITECTURES, GpuSpec

_MOST_SMS = 1_024
_LAUNCHES = 3


@dataclass(eq=False)
class Gpu:
    """A physical GPU: its primary context, and its SMs in groups.

    ``known_ids``: the hardware's numbers of ranges of SMs, as far as `World.ids` found them.
    """

    ordinal: int
    handle: Any
    primary: Any
    name: str
    arch: str
    sms: int
    dram_gbps: float
    _groups: list[Any] | None = None
    _worlds: dict[Range, World] = field(default_factory=dict)
    known_ids: dict[Range, tuple[int, ...]] = field(default_factory=dict)

    @property
    def groups(self) -> list[Any]:
        """Its SMs in the smallest groups that its kind can confine; split when first asked for."""
        if self._groups is None:
            self._groups = _groups(self)
        return self._groups

    @property
    def group_sms(self) -> int:
        """SMs of a group: they can be confined together only."""
        return int(self.groups[0].sm.smCount) if self.groups else self.sms

    def whole(self) -> World:
        """All SMs, in the primary context."""
        return World(self, self.primary, None, self.sms, (0, self.sms))

    def world(self, first: int, stop: int) -> World:
        """SMs ``first`` to ``stop - 1``: whole groups, without what is behind the last one.

        The numbers are not the hardware's: ``World.ids`` has those. UsageError for other ranges,
        MissingCapabilityError where SMs can not be confined.
        """
        place = self.place(first, stop)
        if place not in self._worlds:
            self._worlds[place] = self._confined(place, is_part=False)
        return self._worlds[place]

    def part(self, first: int, stop: int) -> World:
        """As `world`, but the caller's own, to be closed."""
        return self._confined(self.place(first, stop), is_part=True)

    def place(self, first: int, stop: int) -> Range:
        """The SMs that `world` takes."""
        what, size = f"SMs {first} to {stop} of {self.name}", self.group_sms
        if not self.groups:
            raise MissingCapabilityError(what, "they can not be confined", "use all of them")
        end = len(self.groups) * size
        last = end if stop == self.sms else stop
        if first % size or last % size or not 0 <= first < last <= end:
            raise UsageError(what, f"whole groups of {size}, up to {end}", stop - first)
        return first, last

    def _confined(self, place: Range, *, is_part: bool) -> World:
        taken = self.groups[slice(*(sm // self.group_sms for sm in place))]
        description = ask(driver.cuDevResourceGenerateDesc(taken, len(taken)))
        flags = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
        green = ask(driver.cuGreenCtxCreate(description, self.handle, flags))
        with ExitStack() as undone:
            undone.callback(lambda: ask(driver.cuGreenCtxDestroy(green)))
            context = ask(driver.cuCtxFromGreenCtx(green))
            undone.pop_all()
        sms = sum(group.sm.smCount for group in taken)
        return World(self, context, green, sms, place, is_part)

    def spec(self, world: World) -> GpuSpec:
        """What policies plan for."""
        confined = world.sms < self.sms
        name = f"{self.name}:{world.sms}" if confined else self.name
        return GpuSpec(name, self.arch, world.sms, self.dram_gbps, self.group_sms)


@dataclass(eq=False)
class World:
    """Some SMs of a GPU: the context whose kernels run on them.

    ``sms``: how many they are. ``range``: which of the device's groups of SMs, as SM numbers.
    ``is_part``: whether its context is given back when it is closed.
    """

    gpu: Gpu
    context: Any
    green: Any
    sms: int
    range: Range
    is_part: bool = False

    def enter(self) -> None:
        """Make this context the calling thread's."""
        ask(driver.cuCtxSetCurrent(self.context))

    def part(self, first: int, stop: int) -> World:
        """SMs ``first`` to ``stop - 1`` of this world, as ``Gpu.world`` takes them; to be closed.

        Itself where these are all of its own.
        """
        if (first, stop) == (0, self.sms):
            return self
        return self.gpu.part(*self._place((first, stop)))

    def _place(self, sms: Range) -> Range:
        """Where these of its SMs are on the GPU; errors as `Gpu.world` has them."""
        first, stop = (self.range[0] + sm for sm in sms)
        if stop > self.range[1]:
            what = f"SMs {sms[0]} to {sms[1]} of a world"
            raise UsageError(what, f"of its {self.sms}", sms[1])
        return self.gpu.place(first, stop)

    def close(self) -> None:
        """Give a part back, of which nothing is left; nothing to do for a device's world."""
        if self.is_part:
            ask(driver.cuGreenCtxDestroy(self.green))

    def ids(self, where: Function) -> tuple[int, ...]:
        """The hardware's numbers of its SMs, found by ``where``, the kernel miriam_where."""
        known = self.gpu.known_ids
        if self.range not in known:
            before = ask(driver.cuCtxGetCurrent())
            self.enter()
            try:
                known[self.range] = self._found(where)
            finally:
                ask(driver.cuCtxSetCurrent(before))
        return known[self.range]

    def _found(self, where: Function) -> tuple[int, ...]:
        """Where the blocks of ``where`` are seen, in a few launches: on all SMs, if they may."""
        with ExitStack() as owned:
            stream, memory = self.stream(0, owned), Memory()
            owned.callback(memory.free)
            seen = memory.device(4 * _MOST_SMS)
            arguments = [ctypes.c_void_p(seen), ctypes.c_ulonglong(20_000)]
            for _ in range(_LAUNCHES):
                where.launch(stream, (4 * self.sms, 1, 1), (512, 1, 1), arguments)
            drain(stream)
            return tuple(map(int, np.flatnonzero(download(seen, _MOST_SMS, "uint32"))))

    def ids_of(self, first: int, stop: int, where: Function) -> tuple[int, ...]:
        """The hardware's numbers of the SMs ``first`` to ``stop - 1`` of this world.

        Of the whole GPU, those that `part` takes. Of some of its SMs they are counted in the order
        of these numbers, as a context of a part would overlap with the world's own.
        """
        if self.green is not None:
            self._place((first, stop))
            return self._all_ids(where)[first:stop]
        upper = self._first_ids(stop, where)
        lower = self._first_ids(first, where) if first else ()
        return tuple(sm for sm in upper if sm not in lower)

    def _first_ids(self, stop: int, where: Function) -> tuple[int, ...]:
        if stop >= self.sms:
            return self._all_ids(where)
        known = self.gpu.known_ids.get(self.gpu.place(0, stop))
        if known is not None:
            return known
        with closing(self.part(0, stop)) as part:
            return part._all_ids(where)

    def _all_ids(self, where: Function) -> tuple[int, ...]:
        """As `ids`; DeviceError where blocks do not come to all of its SMs."""
        found = self.ids(where)
        if len(found) != self.sms:
            raise DeviceError(f"blocks were seen on {len(found)} of {self.sms} SMs")
        return found

    def may_run_at_once(self, ranges: Iterable[Range | None]) -> bool:
        """Whether kernels may run on these ``ranges`` of its SMs at once; None is all of them.

        Not where different green contexts have SMs in common: as a precaution, since processes with
        such ones now and then ended with CUDA_ERROR_LAUNCH_FAILED (docs/bench.md, "A fault in
        worlds of some SMs"). Errors for ranges as `Gpu.world` has them.
        """
        whole = (0, self.sms)
        asked = {whole if sms is None else sms for sms in ranges}
        taken = {self._place(sms) for sms in asked - {whole}}
        if self.green is not None and whole in asked:
            taken.add(self.range)
        return all(before[1] <= after[0] for before, after in pairwise(sorted(taken)))

    def stream(self, priority: int, owner: ExitStack | None = None) -> Any:
        """A new stream, which ``owner`` destroys if there is one.

        A smaller priority is more urgent, beyond the device's range it is clamped.
        """
        made = self._new_stream(priority)
        if owner is not None:
            owner.callback(lambda: ask(driver.cuStreamDestroy(made)))
        return made

    def _new_stream(self, priority: int) -> Any:
        least, greatest = ask(driver.cuCtxGetStreamPriorityRange())
        priority = max(greatest, min(least, priority))
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        if self.green is None:
            return ask(driver.cuStreamCreateWithPriority(flags, priority))
        return ask(driver.cuGreenCtxStreamCreate(self.green, flags, priority))


@cache
def gpu(ordinal: int) -> Gpu:
    """The GPU number ``ordinal``; MissingCapabilityError without it or with an unknown kind.

    The same one each time, so that equal worlds are one context.
    """
    start()
    count = ask(driver.cuDeviceGetCount())
    what = f"device cuda:{ordinal}"
    if not 0 <= ordinal < count:
        raise MissingCapabilityError(
            what, f"this machine has {count} GPUs", f"use cuda:0 to cuda:{count - 1}"
        )
    handle = ask(driver.cuDeviceGet(ordinal))
    names = driver.CUdevice_attribute

    def attribute(name: str) -> int:
        return int(
            ask(driver.cuDeviceGetAttribute(getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), handle))
        )

    major, minor = (attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
    arch = f"sm_{major}{minor}"
    if arch not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise MissingCapabilityError(what, f"the limits of {arch} are not known", f"known: {known}")
    primary = ask(driver.cuDevicePrimaryCtxRetain(handle))
    ask(driver.cuCtxSetCurrent(primary))
    # Two transfers per clock; kHz and bits.
    gbps = 2 * attribute("MEMORY_CLOCK_RATE") * attribute("GLOBAL_MEMORY_BUS_WIDTH") / 8 / 1e6
    return Gpu(
        ordinal=ordinal,
        handle=handle,
        primary=primary,
        name=ask(driver.cuDeviceGetName(64, handle)).split(b"\0")[0].decode(),
        arch=arch,
        sms=attribute("MULTIPROCESSOR_COUNT"),
        dram_gbps=gbps,
    )


def _groups(found: Gpu) -> list[Any]:
    major = int(found.arch.removeprefix("sm_")) // 10
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    got = driver.cuDeviceGetDevResource(found.handle, kind)
    if got[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED:
        return []
    whole = ask(got)
    least = 8 if major >= 9 else 4 if major == 8 else 2
    if found.sms < least:
        return []
    most = found.sms // least
    split = ask(driver.cuDevSmResourceSplitByCount(most, whole, 0, least))
    return list(split[0][: split[1]])
