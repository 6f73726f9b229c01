"""Weights: normal tasks that have work share the GPU's time in the ratio of their weights.

Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) with time alone as the measure: of a
GPU that runs several requests at once, a request's own time says more about its neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def next_in_share(served: Mapping[int, float], ready: Collection[int]) -> int | None:
    """The task of ``ready`` to start next, None while all of them are ahead of their share.

    ``served``: for each task that has work, waiting or running, the time that its started
    requests take alone / its weight. A task that is ahead of any of them waits for it.
    """
    first = min(ready, key=lambda task: (served[task], task), default=None)
    return first if first is not None and served[first] <= min(served.values()) else None
