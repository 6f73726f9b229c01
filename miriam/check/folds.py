"""On how many threads the block forms of a kernel are run, and in which forms."""

from __future__ import annotations

from contextlib import suppress
from itertools import cycle
from random import Random

from miriam.check.launchfile import KernelLaunch
from miriam.elastic import ElasticKernel
from miriam.errors import UsageError

_FOLDS = (2, 3, 4)
_FORMS = ("slice", "persistent", "yield")


def folded_forms(
    kernel: ElasticKernel, launch: KernelLaunch
) -> tuple[dict[str, str], dict[str, int]]:
    """The entries to compile, by fold and form (``block/2 slice``), and the threads of each fold.

    Folds of 2, 3 and 4, where warps stay whole; a kernel that runs on any number of threads also
    runs on one and on an odd number of them.
    """
    entries, threads = dict[str, str](), dict[str, int]()
    if not kernel.block.ok:
        return entries, threads
    for fold in _FOLDS:
        with suppress(UsageError):
            threads[f"block/{fold}"] = kernel.physical_threads(launch.block.size, fold)
    # The wrappers do not depend on the fold: each is compiled for one of them.
    turns = cycle(list(threads)) if threads else iter(())
    for form, name in zip(_FORMS, turns, strict=False):
        fold = 0 if kernel.any_threads else int(name.rpartition("/")[2])
        entries[f"{name} {form}"] = kernel.entry(form, launch.name, fold, launch.block)
    if kernel.any_threads and not kernel.whole_warps:
        odd = Random(launch.name).randrange(1, launch.block.size + 1, 2)
        threads |= {"block/all": 1, "block/odd": odd}
    if kernel.any_threads:
        for name in threads:
            for form in _FORMS:
                entries[f"{name} {form}"] = kernel.entry(form, launch.name, 0)
    return entries, threads
