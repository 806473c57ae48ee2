"""Phrases and sentences that the explanations of several protocols share; `analysis/explain.py` combines them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.analysis.expected import Pairs
from workbench.columns import take_rows


def seconds(time_us: int) -> str:
    """Return a time in seconds as text: "12.5 s"."""
    return f"{time_us / 1e6:.6g} s"


def more(count: int) -> str:
    """Return the end of a sentence that describes the first of ``count`` similar cases: " (and 3 more like it)" for 4.

    Returns "" if ``count`` is 1.
    """
    return f" (and {count - 1:,} more like it)" if count > 1 else ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 reading", "2 readings"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def beyond(missing: Pairs, hops: np.ndarray, most: int, limit: str) -> Iterator[str]:
    """Yield a sentence if the path of a missing reading has more than ``most`` hops.

    The sentence names the first of these readings and counts the others. ``missing``: pairs of a subscription and a
    reading that was not delivered. ``hops``: length of each pair's path. ``limit``: the first words of the sentence,
    which name the limit ``most``: "A flood's ttl of 5 hops".
    """
    too_far = np.flatnonzero(hops > most)
    if len(too_far):
        first_pair = too_far[0]
        yield (
            f"{limit} is shorter than the path: the shortest path between node {missing.publisher[first_pair]} "
            f"and node {missing.subscriber[first_pair]} has {hops[first_pair]} hops{more(len(too_far))}."
        )


def unheard(missing: Pairs, message: str) -> Iterator[str]:
    """Yield a sentence if missing readings had a path from publisher to subscriber, but not in the opposite direction.

    The sentence names the first such publisher and subscriber. ``message``: name, with article, of the subscriber's
    message that cannot reach the publisher, such as "an interest".
    """
    one_directional = take_rows(missing, (missing.hops >= 0) & (missing.hops_back < 0))
    if len(one_directional.subscriber):
        publisher, subscriber = one_directional.publisher[0], one_directional.subscriber[0]
        yield (
            f"A path leads from node {publisher} to node {subscriber}, but none leads back, so {message} of node "
            f"{subscriber} cannot reach node {publisher}{more(len(one_directional.subscriber))}."
        )
