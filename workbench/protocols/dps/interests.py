"""What is asked for behind a DPS node's links, and by its own subscriptions: the sums that it tells its neighbors of.

Theory of operation
    Each subscription has a filter and its fuzzy hash, its needs; each neighbor has told the union of the filters behind
    it and the needs that they have in common. All these pairs are entries of two counting vectors. A neighbor is told
    the union and the intersection of all entries but its own, and to leave out one entry costs no more than some
    operations on long integers, however many entries there are.

This file is written in MicroPython's subset of Python.
"""

from workbench.protocols.dps.bloom import FUZZY_HASH_BITS, BitVector, CountingVector


class Interests:
    """The entries of one node: pairs of interests (BitVector) and needs (32 bytes)."""

    def __init__(self, length):
        self.length = length
        self._filters = CountingVector(length)
        self._needs = CountingVector(FUZZY_HASH_BITS)

    def add(self, pair):
        """One pair more."""
        interests, needs = pair
        self._filters.add(interests)
        self._needs.add(BitVector.from_bytes(needs))

    def remove(self, pair):
        """One pair less, which was added before."""
        interests, needs = pair
        self._filters.remove(interests)
        self._needs.remove(BitVector.from_bytes(needs))

    def all_but(self, pair):
        """(union, common needs) of all entries but this one; None leaves none out."""
        filters, needs = self._filters, self._needs
        if pair is not None:
            filters = filters.without(pair[0])
            needs = needs.without(BitVector.from_bytes(pair[1]))
        return filters.union(), needs.intersection().to_bytes()
