"""Keys, universes, zones and regions: the arithmetic of TinyMQ's key space.

Theory of operation
    A *key* is a text of 0 and 1; the root's is empty. A child's key is its parent's followed by 0^j 1, so a key ends in
    1 and tells its parent's. The *universe* of a node is the set of all k-bit strings that its key is a prefix of: an
    interval of the integers below 2^k. Its *zone*, what it stores, is its universe without its children's. A *region*
    is a tuple of such intervals (lowest, highest), ascending and apart: the part of the key space that a message has
    still to be brought to. A key of more than k bits has no universe: such a node holds no zone and only relays.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.tinymq.rules import last_string

ROOT_KEY = ""


def child_key(key, slot):
    """The key of the child in a slot: 0, 1, 2, ..."""
    return key + "0" * slot + "1"


def parent_key(key):
    """The key of the parent of a node that is not a root."""
    return key[:-1].rstrip("0")


def slot_of(key):
    """Which of its parent's slots a child's key is."""
    return len(key) - len(parent_key(key)) - 1


def free_slot(taken):
    """The first slot that is not taken: the shortest key."""
    slot = 0
    while slot in taken:
        slot += 1
    return slot


def everything(key_bits):
    """The whole key space as a region."""
    return ((0, (1 << key_bits) - 1),)


def universe(key, key_bits):
    """The region of the k-bit strings that the key is a prefix of; empty for a key of more than k bits."""
    free_bits = key_bits - len(key)
    if free_bits < 0:
        return ()
    low = (int(key, 2) if key else 0) << free_bits
    return ((low, last_string(low, len(key), key_bits)),)


def zone(key, child_keys, key_bits):
    """The region that a node stores: its universe without its children's."""
    region = universe(key, key_bits)
    for child in child_keys:
        region = subtract(region, universe(child, key_bits))
    return region


def intersect(region, other):
    """What lies in both regions."""
    common = []
    for low, high in region:
        for other_low, other_high in other:
            if low <= other_high and other_low <= high:
                common.append((max(low, other_low), min(high, other_high)))
    return tuple(sorted(common))


def subtract(region, other):
    """What lies in the region and not in the other."""
    for other_low, other_high in other:
        rest = []
        for low, high in region:
            if high < other_low or other_high < low:
                rest.append((low, high))
                continue
            if low < other_low:
                rest.append((low, other_low - 1))
            if other_high < high:
                rest.append((other_high + 1, high))
        region = tuple(rest)
    return region


def union(region, other):
    """What lies in one of two regions, or in both."""
    return tuple(sorted(region + subtract(other, region)))
