"""The description of a contender: a simulator that plays the same flood, so that its speed can be compared."""

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
        """Return the number of floods in a measurement, so that there are about ``receptions`` receptions.

        There are at least FEWEST floods, so that the creation of nodes does not dominate the time. With ``quick``,
        there are a fifth of the receptions, and at least one flood.
        """
        wanted = round(self.receptions / (5 if quick else 1) / network.arcs)
        return max(1 if quick else FEWEST, wanted)


def without_preparation(flood: Callable[[Network, int], Result]) -> Callable[[Network, int], Job]:
    """Return the function `Contender.prepare` for a flood without preparation.

    The prepared job calls ``flood(network, floods)``.
    """
    return lambda network, floods: partial(flood, network, floods)
