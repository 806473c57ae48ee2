"""Keys, universes, zones and regions: the arithmetic of TinyMQ's key space.

Theory of operation
    A *key* is a string of the characters 0 and 1; the root's key is empty. A child's key is its parent's key, j zeros
    and a 1. So every key but the root's ends in 1, and the parent's key follows from it. The *universe* of a node is
    the set of all k-bit strings that begin with its key: an interval of the integers below 2^k. Its *zone*, which it
    stores, is its universe without the universes of its children. A *region* is a tuple of such intervals (lowest,
    highest), ascending and disjoint. A message carries the region that it has not reached yet. The universe of a
    key of more than k bits is empty: a node with such a key has no zone and only relays.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.tinymq.rules import last_string

ROOT_KEY = ""


def child_key(key, slot):
    """Return the key of the child with the number ``slot`` (0, 1, 2, ...); ``key``: the key of its parent."""
    return key + "0" * slot + "1"


def parent_key(key):
    """Return the key of a node's parent; ``key``: the key of the node, which is not a root."""
    return key[:-1].rstrip("0")


def slot_of(key):
    """Return a child's slot, its number at the parent: the count of zeros between the parent's key and the final 1."""
    return len(key) - len(parent_key(key)) - 1


def free_slot(taken):
    """Return the lowest slot (a child's number at its parent) that is not in ``taken``, the slots of the children.

    A lower slot makes a shorter key.
    """
    slot = 0
    while slot in taken:
        slot += 1
    return slot


def whole_key_space(key_bits):
    """Return ((lowest, highest),), the interval of all strings of ``key_bits`` bits, as integers."""
    return ((0, (1 << key_bits) - 1),)


def universe(key, key_bits):
    """Return ((lowest, highest),), the interval of the strings of ``key_bits`` bits that begin with the key.

    The strings are integers. If the key has more than ``key_bits`` bits, the result is ().
    """
    free_bits = key_bits - len(key)
    if free_bits < 0:
        return ()
    lowest_string = (int(key, 2) if key else 0) << free_bits
    return ((lowest_string, last_string(lowest_string, len(key), key_bits)),)


def zone(key, child_keys, key_bits):
    """Return the zone of the node with the key ``key``, as intervals of strings ((lowest, highest), ...).

    A zone contains the strings of ``key_bits`` bits that begin with the node's key, but not with a child's key.
    ``child_keys``: the keys of the children.
    """
    region = universe(key, key_bits)
    for key_of_child in child_keys:
        region = subtract(region, universe(key_of_child, key_bits))
    return region


def intersect(region, other):
    """Return the strings that lie in both regions, as a tuple of ascending, disjoint intervals."""
    common_intervals = []
    for low, high in region:
        for other_low, other_high in other:
            if low <= other_high and other_low <= high:
                common_intervals.append((max(low, other_low), min(high, other_high)))
    return tuple(sorted(common_intervals))


def subtract(region, other):
    """Return the strings that lie in ``region`` and not in ``other``, as a tuple of ascending, disjoint intervals."""
    for other_low, other_high in other:
        remaining_intervals = []
        for low, high in region:
            if high < other_low or other_high < low:
                remaining_intervals.append((low, high))
                continue
            if low < other_low:
                remaining_intervals.append((low, other_low - 1))
            if other_high < high:
                remaining_intervals.append((other_high + 1, high))
        region = tuple(remaining_intervals)
    return region


def union(region, other):
    """Return the strings that lie in at least one of two regions, as a tuple of ascending, disjoint intervals."""
    return tuple(sorted(region + subtract(other, region)))
