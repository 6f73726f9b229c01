"""Tasks and requests on a device: the mix file, and the driver that feeds a session."""

from miriam.runtime.driver import (
    Driver,
    Fate,
    Following,
    Offer,
    Record,
    Request,
    Rules,
    Served,
)
from miriam.runtime.mix import ArrivalsEntry, MixFile, TaskEntry, read

__all__ = [
    "ArrivalsEntry",
    "Driver",
    "Fate",
    "Following",
    "MixFile",
    "Offer",
    "Record",
    "Request",
    "Rules",
    "Served",
    "TaskEntry",
    "read",
]
