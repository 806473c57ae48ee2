"""Algorithms 3.1 and 3.2 as they are printed: to be watched while they lose queries and send events in circles.

What they say
    3.1, query     A node that has had this query quits. If part of it lies outside of Z, the strings that the node's
                   key is a prefix of, then for each of these strings the whole query goes to the neighbor with the
                   longest common prefix, if that is longer than the parent's, and else to the parent. *Else*, if it
                   overlaps Z, the node stores it where it meets its zone and sends the whole of it to all children.
    3.2, event     As 3.1 for the one string of the event, as long as the key is not a prefix of it; then down to the
                   child whose key is, and matched where there is none.

    So a query that a node can send on is not stored there (the else), a node that a further branch of it reaches quits,
    and the neighbor with the longest common prefix may think the same of this node.

How it is read where it leaves a choice
    A query for another tree is another query. Neighbors that are no children are asked for their keys whatever tree
    they are in, as printed; of equally long prefixes the neighbor with the lowest address counts. Z and the zone are
    the corrected ones (C1, C5). An event that returns to a node would do so for ever, and is dropped as "loop"; what
    had to wait at a node, or is sent another way as a neighbor does not answer, has not returned.

Cost
    Each string outside of Z is compared with each neighbor's key, so this mode takes key spaces of 16 bits at most.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq.wire import bits
from workbench.protocols.tinymq.zones import intersect, universe

WIDEST_KEY_SPACE = 16


def query_hops(overlay, place, box, mapping):
    """The neighbors that algorithm 3.1 sends a query on to; NOBODY among them: it is stored here."""
    own = universe(place.key, mapping.key_bits)
    strings = mapping.cells(box)
    outside = [string for string in strings if not _is_in(string, own)]
    if outside:
        hops = []
        for string in outside:
            hop = _hop_outside(overlay, place, bits(string, mapping.key_bits))
            if hop not in hops:
                hops.append(hop)
        return sorted(hops)
    hops = [child for child, _ in place.child_keys()]
    own_zone = place.regions(mapping.key_bits)[1]
    if any([_is_in(string, own_zone) for string in strings]):
        hops.append(NOBODY)
    return sorted(hops)


def event_hop(overlay, place, string, mapping):
    """The neighbor that algorithm 3.2 sends an event on to; NOBODY: it is matched here."""
    target = bits(string, mapping.key_bits)
    if not target.startswith(place.key):
        return _hop_outside(overlay, place, target)
    for child, key in place.child_keys():
        if target.startswith(key):
            return child
    return NOBODY


def _hop_outside(overlay, place, target):
    best, length = place.parent, -1
    candidates = []
    for address in sorted(overlay.neighbors):
        if address in place.children:
            continue
        for tree in sorted(overlay.neighbors[address].places):
            prefix = _common(target, overlay.neighbors[address].places[tree].key)
            if address == place.parent and tree == place.tree:
                length = max(length, prefix)
            else:
                candidates.append((-prefix, address))
    for prefix, address in sorted(candidates):
        if -prefix > length:
            return address
        break
    return best


def _common(one, other):
    """How many characters two texts begin with in common."""
    length = 0
    while length < len(one) and length < len(other) and one[length] == other[length]:
        length += 1
    return length


def _is_in(string, region):
    return bool(intersect(((string, string),), region))
