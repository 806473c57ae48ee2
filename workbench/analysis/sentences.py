"""Words and sentences that the explanations of several protocols share; `analysis/explain.py` puts them together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.analysis.expected import Pairs
from workbench.columns import take_rows


def seconds(time_us: int) -> str:
    """Return a time as people write it: "12.5 s"."""
    return f"{time_us / 1e6:.6g} s"


def more(count: int) -> str:
    """Return how many others there are like the first of ``count``: " (and 3 more like it)", or "" for one alone."""
    return f" (and {count - 1:,} more like it)" if count > 1 else ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 reading", "2 readings"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def beyond(missing: Pairs, hops: np.ndarray, most: int, limit: str) -> Iterator[str]:
    """Yield a sentence on the first pair whose path (``hops``) has more than ``most`` hops, which ``limit`` allows."""
    far = np.flatnonzero(hops > most)
    if len(far):
        first = far[0]
        yield (
            f"{limit} is shorter than the path: the shortest path between node {missing.publisher[first]} and node "
            f"{missing.subscriber[first]} has {hops[first]} hops{more(len(far))}."
        )


def unheard(missing: Pairs, message: str) -> Iterator[str]:
    """Yield a sentence on the first subscriber that hears its publisher and is not heard by it.

    ``message``: the message of the subscriber that cannot come there, with its article.
    """
    deaf = take_rows(missing, (missing.hops >= 0) & (missing.hops_back < 0))
    if len(deaf.subscriber):
        publisher, subscriber = deaf.publisher[0], deaf.subscriber[0]
        yield (
            f"Arcs lead from node {publisher} to node {subscriber} and none back, so {message} of node {subscriber} "
            f"cannot come to it{more(len(deaf.subscriber))}."
        )
