"""Random delays of broadcasts for a whole network: the draws of `workbench.draws`, computed for all nodes at once.

Theory of operation
    All nodes that a flood reaches need draw number ``counter`` at about the same time. Once an eighth of them have
    requested it, numpy computes it for all nodes at once, at a tenth of the cost for each. The numbers are the same
    either way. A draw that few nodes request is computed separately for each.
"""

from __future__ import annotations

import numpy as np

from workbench import draws
from workbench.array_draws import mix64

_COLUMNS = 8  # columns stored: nodes differ by some floods, not by hundreds
_SHARE = 8
_MEMORY = 1000  # counters for which the number of requests is stored


class Delays:
    """The random delays of all nodes, in µs in [``shortest``, ``longest``]; ``keys`` has each node's key for draws."""

    def __init__(self, keys: list[int], shortest: int, longest: int) -> None:
        self.shortest = shortest
        self.width = longest - shortest + 1
        self._keys = keys
        self._columns: dict[int, list[int]] = {}
        self._requests: dict[int, int] = {}

    def draw(self, i: int, counter: int) -> int:
        """Return the delay in µs that draw number ``counter`` of node ``i`` gives."""
        column = self._columns.get(counter)
        if column is not None:
            return column[i]
        requests = self._requests[counter] = self._requests.get(counter, 0) + 1
        if requests * _SHARE > len(self._keys):
            self._fill(counter)
        elif len(self._requests) > _MEMORY:
            self._requests.clear()
        return self.shortest + draws.below(self._keys[i], counter, self.width)

    def _fill(self, counter: int) -> None:
        keys = np.array(self._keys, np.uint64)
        mixed = mix64(keys + np.uint64((counter + 1) * draws.GOLDEN & 0xFFFFFFFFFFFFFFFF))
        delays = ((mixed >> np.uint64(32)) * np.uint64(self.width)) >> np.uint64(32)
        self._columns[counter] = (delays + np.uint64(self.shortest)).tolist()
        self._requests.clear()
        if len(self._columns) > _COLUMNS:
            del self._columns[next(iter(self._columns))]


def node_keys(key: int, addresses: tuple[int, ...]) -> list[int]:
    """Return ``draws.make_key(*numbers, address)`` for each address; ``key`` is ``draws.make_key(*numbers)``."""
    words = np.array(addresses, np.uint64) + np.uint64(draws.GOLDEN)
    return mix64(np.uint64(key) ^ mix64(words)).tolist()
