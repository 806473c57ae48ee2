"""What a contender is: a name, what it does, and a way to play the flood."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from networks import Network
from timing import Job, Result

FEWEST = 3


def never() -> str:
    """What is always there is never absent."""
    return ""


class Contender(NamedTuple):
    """One that plays the flood.

    ``prepare(network, floods)`` gives the job whose time counts. ``event`` says what one event of its own is,
    ``models`` what it models of a radio. ``receptions`` is about how many a measurement should make; a rate needs no
    more. ``absent`` says in a line why it cannot play here, or nothing.
    """

    name: str
    event: str
    models: str
    prepare: Callable[[Network, int], Job]
    receptions: int
    absent: Callable[[], str] = never

    def floods(self, network: Network, quick: bool = False) -> int:
        """How many floods of that network make about as many receptions as wanted, a fifth of it if ``quick``.

        There are at least FEWEST, so that nobody's time is mostly that of making the nodes.
        """
        wanted = round(self.receptions / (5 if quick else 1) / network.arcs)
        return max(1 if quick else FEWEST, wanted)


def plain(flood: Callable[[Network, int], Result]) -> Callable[[Network, int], Job]:
    """The ``prepare`` of a flood that needs no preparation."""
    return lambda network, floods: partial(flood, network, floods)
