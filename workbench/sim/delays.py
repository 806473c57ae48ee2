"""The random delays of broadcasts, for a whole network: the numbers of `workbench.draws`, a column at a time.

Theory of operation
    Draw number ``counter`` is wanted at about the same time by all nodes that a flood reaches. Once an eighth of them
    has asked for it, those of all nodes are made together, with numpy, at a tenth of the cost for each. The numbers
    are the same, so nobody can tell; a node that sends alone is answered alone.
"""

from __future__ import annotations

import numpy as np

from workbench import draws
from workbench.array_draws import mix64

_COLUMNS = 8  # how many are kept: nodes differ by some floods, not by hundreds
_SHARE = 8
_MEMORY = 1000  # counters of which it is known how many nodes asked for them


class Delays:
    """Delays in µs from ``shortest`` to ``longest``, both included; ``keys`` has a key for each node."""

    def __init__(self, keys: list[int], shortest: int, longest: int) -> None:
        self.shortest = shortest
        self.width = longest - shortest + 1
        self._keys = keys
        self._columns: dict[int, list[int]] = {}
        self._asked: dict[int, int] = {}

    def draw(self, i: int, counter: int) -> int:
        """The delay of node ``i``'s draw number ``counter``."""
        column = self._columns.get(counter)
        if column is not None:
            return column[i]
        asked = self._asked[counter] = self._asked.get(counter, 0) + 1
        if asked * _SHARE > len(self._keys):
            self._fill(counter)
        elif len(self._asked) > _MEMORY:
            self._asked.clear()
        return self.shortest + draws.below(self._keys[i], counter, self.width)

    def _fill(self, counter: int) -> None:
        keys = np.array(self._keys, np.uint64)
        mixed = mix64(keys + np.uint64((counter + 1) * draws.GOLDEN & 0xFFFFFFFFFFFFFFFF))
        delays = ((mixed >> np.uint64(32)) * np.uint64(self.width)) >> np.uint64(32)
        self._columns[counter] = (delays + np.uint64(self.shortest)).tolist()
        self._asked.clear()
        if len(self._columns) > _COLUMNS:
            del self._columns[next(iter(self._columns))]


def node_keys(key: int, addresses: tuple[int, ...]) -> list[int]:
    """``draws.make_key(..., address)`` for each address, ``key`` being that of what comes before it."""
    words = np.array(addresses, np.uint64) + np.uint64(draws.GOLDEN)
    return mix64(np.uint64(key) ^ mix64(words)).tolist()
