"""Random delays of broadcasts, computed for all nodes of a network at once.

Theory of operation
    Each node has a sequence of random delays, numbered by a counter (`workbench.draws`). During a flood, all nodes need
    the delay with the same number at about the same time. At first, each delay is computed separately. As soon as more
    than an eighth of the nodes have requested delay n, numpy computes delay n of all nodes at once, at a tenth of the
    cost for each. Both computations give the same delays.
"""

from __future__ import annotations

import numpy as np

from workbench import draws
from workbench.array_draws import mix64

_COLUMNS = 8  # columns stored: nodes differ by some floods, not by hundreds
_SHARE = 8
_MEMORY = 1000  # counters for which the number of requests is stored


class Delays:
    """The random delays of all nodes: integers in [``shortest``, ``longest``] µs.

    ``keys``: for each node, the 64-bit key that determines its random draws.
    """

    def __init__(self, keys: list[int], shortest: int, longest: int) -> None:
        self.shortest = shortest
        self.width = longest - shortest + 1
        self._keys = keys
        self._columns: dict[int, list[int]] = {}
        self._requests: dict[int, int] = {}

    def draw(self, i: int, counter: int) -> int:
        """Return delay number ``counter`` of node ``i``, in µs; the same arguments always give the same delay."""
        delays_of_counter = self._columns.get(counter)
        if delays_of_counter is not None:
            return delays_of_counter[i]
        requests = self._requests[counter] = self._requests.get(counter, 0) + 1
        if requests * _SHARE > len(self._keys):
            self._fill_column(counter)
        elif len(self._requests) > _MEMORY:
            self._requests.clear()
        return self.shortest + draws.below(self._keys[i], counter, self.width)

    def _fill_column(self, counter: int) -> None:
        keys = np.array(self._keys, np.uint64)
        random_bits = mix64(keys + np.uint64((counter + 1) * draws.GOLDEN & 0xFFFFFFFFFFFFFFFF))
        delays = ((random_bits >> np.uint64(32)) * np.uint64(self.width)) >> np.uint64(32)
        self._columns[counter] = (delays + np.uint64(self.shortest)).tolist()
        self._requests.clear()
        if len(self._columns) > _COLUMNS:
            del self._columns[next(iter(self._columns))]


def node_keys(key: int, addresses: tuple[int, ...]) -> list[int]:
    """Return for each address the 64-bit key that determines the node's random draws.

    If ``key`` is ``draws.make_key(*numbers)``, a node's key is ``draws.make_key(*numbers, address)``.
    """
    address_words = np.array(addresses, np.uint64) + np.uint64(draws.GOLDEN)
    return mix64(np.uint64(key) ^ mix64(address_words)).tolist()
