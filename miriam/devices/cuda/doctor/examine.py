"""The whole examination of one GPU, or of a world of it."""

from __future__ import annotations

from miriam.devices.cuda.device import CudaDevice
from miriam.devices.cuda.doctor.costs import measure_costs
from miriam.devices.cuda.doctor.levels import check_features, check_levels, check_worlds
from miriam.devices.cuda.doctor.report import GpuReport
from miriam.devices.cuda.doctor.subject import Subject, synthetic
from miriam.devices.cuda.doctor.traps import check_lockstep, check_traps
from miriam.devices.cuda.driver import driver_version
from miriam.devices.cuda.world import gpu


def examine(ordinal: int, sms: int | None = None, *, lockstep: bool = True) -> GpuReport:
    """Try and measure everything on GPU number ``ordinal``, in a world of ``sms`` SMs or whole.

    ``lockstep``: that test starts processes of its own and takes most of the time.
    MissingCapabilityError without the GPU, DeviceError where it fails on the way. Other work on
    the GPU, and in this process, spoils the times.
    """
    found = gpu(ordinal)
    world = found.whole() if sms is None else found.world(0, sms)
    device = CudaDevice(found, world, counting=False)
    subject = Subject(device, synthetic(found.arch, world.sms))
    levels = tuple(check_levels(subject))
    features = tuple(check_features(subject))
    costs = tuple(measure_costs(subject))
    traps = check_traps(subject)
    waiting, rows = check_lockstep(ordinal, world.sms) if lockstep else ((), ())
    subject.settle()
    subject.close()
    found.whole().enter()
    worlds, disjoint = check_worlds(found, device.controls)
    version = driver_version()
    return GpuReport(
        name=found.name,
        arch=found.arch,
        driver=f"{version // 1000}.{version % 1000 // 10}",
        sms=world.sms,
        levels=levels,
        worlds=worlds,
        costs=costs,
        findings=(*disjoint, *features, *traps, *waiting),
        lockstep=rows,
    )
