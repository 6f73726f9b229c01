"""On how many threads the block forms of a kernel are run, and in which forms."""

from __future__ import annotations

from random import Random

from miriam.check.launchfile import KernelLaunch
from miriam.elastic import ElasticKernel
from miriam.errors import UsageError

# The wrappers do not depend on the fold: compiling one of them for each is enough.
_FORMS = {2: ("slice", "persistent", "yield"), 3: ("slice",), 4: ("persistent",), 5: ("yield",)}


def folded_forms(
    kernel: ElasticKernel, launch: KernelLaunch
) -> tuple[dict[str, str], dict[str, int]]:
    """The entries to compile, by fold and form (``block/2 slice``), and the threads of each fold.

    Folds of 2 to 5, where warps stay whole; a kernel that runs on any number of threads also
    runs on one and on an odd number of them.
    """
    entries, threads = dict[str, str](), dict[str, int]()
    if not kernel.block.ok:
        return entries, threads
    for fold, forms in _FORMS.items():
        try:
            threads[f"block/{fold}"] = kernel.physical_threads(launch.block.size, fold)
        except UsageError:
            continue
        for form in forms:
            asked = 0 if kernel.any_threads else fold
            entries[f"block/{fold} {form}"] = kernel.entry(form, launch.name, asked, launch.block)
    if kernel.any_threads and not kernel.whole_warps:
        odd = Random(launch.name).randrange(1, launch.block.size + 1, 2)
        for name, count in (("block/all", 1), ("block/odd", odd)):
            threads[name] = count
            entries[f"{name} slice"] = kernel.entry("slice", launch.name, 0)
            entries[f"{name} persistent"] = kernel.entry("persistent", launch.name, 0)
    return entries, threads
