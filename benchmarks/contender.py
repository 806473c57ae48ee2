"""The description of a contender: its name, what it models, and a function that plays the flood."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from networks import Network
from timing import Job, Result

FEWEST = 3


def always_available() -> str:
    """Return "": the contender is always available."""
    return ""


class Contender(NamedTuple):
    """A simulator that plays the flood.

    ``prepare(network, floods)`` returns the job whose time counts. ``event`` describes one event of the simulator, and
    ``models`` the parts of a radio that it models. ``receptions`` is the approximate number of receptions in a
    measurement. ``absent()`` returns one line on why the simulator cannot run here, or "".
    """

    name: str
    event: str
    models: str
    prepare: Callable[[Network, int], Job]
    receptions: int
    absent: Callable[[], str] = always_available

    def floods(self, network: Network, quick: bool = False) -> int:
        """Return the number of floods that make about ``receptions`` receptions, or a fifth of them if ``quick``.

        At least FEWEST floods are played, so that the creation of nodes does not dominate the time.
        """
        wanted = round(self.receptions / (5 if quick else 1) / network.arcs)
        return max(1 if quick else FEWEST, wanted)


def plain(flood: Callable[[Network, int], Result]) -> Callable[[Network, int], Job]:
    """Return the ``prepare`` of a flood that needs no preparation."""
    return lambda network, floods: partial(flood, network, floods)
