"""Routing by keys: which part of a message goes to which neighbor.

Theory of operation
    A query or event for a tree the node is not in goes to the neighbor nearest to that tree's root. Within the tree it
    is split. What lies outside of the node's universe goes to the parent, or by a *shortcut*: to a neighbor of the same
    tree whose key is longer than the parent's and a prefix of the target, the longest first. What lies within goes to
    the children whose universes it meets; the rest is the node's own, and this is a rendezvous node of it. Every string
    of the message's box thus comes to exactly one node of the tree. What is in a universe never leaves it again, and
    outside of one each hop goes up or into a universe that holds the target: so there are no loops.

    A notification to a key goes the same way, to the one node that has the key.

    What a node believes of its neighbors' places may be old: a child has joined elsewhere, and the info that said so
    was lost. So a frame within the tree says for what its sender takes the receiver: for its parent (UP), or for a node
    whose universe holds the target (DOWN). A receiver that is not that does not acknowledge the frame and sends its
    info (`is_astray`). The sender has the message still, and sends it where it belongs by then (`leads_to`). Without
    this a message that went down to a child that was one no more came up again elsewhere and went down once more, in
    circles.

Cost
    For each message the neighbors, children and intervals, each against the others: some hundred comparisons.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq.wire import UP, Notification
from workbench.protocols.tinymq.zones import child_key, intersect, parent_key, subtract, universe


def fragments(overlay, place, box, region, mapping, shortcuts):
    """[(neighbor, its part of the region)], where NOBODY stands for this node; parts without a string are left out."""
    own, _, below = place.regions(mapping.key_bits)
    inside = intersect(region, own)
    outside = subtract(region, own)
    parts = []
    for child, child_universe in below:
        _part(parts, mapping, box, child, intersect(inside, child_universe))
        inside = subtract(inside, child_universe)
    _part(parts, mapping, box, NOBODY, inside)
    if outside and shortcuts:
        for neighbor, key in _shortcuts(overlay, place):
            reach = universe(key, mapping.key_bits)
            if _part(parts, mapping, box, neighbor, intersect(outside, reach)):
                outside = subtract(outside, reach)
    if place.parent != NOBODY:
        _part(parts, mapping, box, place.parent, outside)
    return parts


def _part(parts, mapping, box, neighbor, region):
    clipped = mapping.clip(box, region)
    if clipped:
        parts.append((neighbor, clipped))
    return bool(clipped)


def _shortcuts(overlay, place):
    """[(neighbor, key)] that may be nearer to what is outside than the parent, the longest keys first."""
    longer_than = len(parent_key(place.key))
    shortcuts = [
        (-len(key), address, key)
        for address, key in overlay.neighbors_in(place.tree)
        if len(key) > longer_than and address not in place.children and not key.startswith(place.key)
    ]
    return [(address, key) for _, address, key in sorted(shortcuts)]


def hop_to_key(overlay, place, key, shortcuts):
    """The neighbor by which a message comes to the node with a key, NOBODY if this is it, None if nobody has it."""
    if key == place.key:
        return NOBODY
    if key.startswith(place.key):
        for child, child_key in place.child_keys():
            if key.startswith(child_key):
                return child
        return None
    if shortcuts:
        for neighbor, neighbor_key in _shortcuts(overlay, place):
            if key.startswith(neighbor_key):
                return neighbor
    return place.parent if place.parent != NOBODY else None


def tree_of(message):
    """The tree in which a query, an event or a notification is routed."""
    return message.sink_tree if isinstance(message, Notification) else message.tree


def is_astray(overlay, message, way, sender, key_bits):
    """Whether a sender takes this node for what it is not; ``way``: UP or DOWN."""
    place = overlay.places.get(tree_of(message))
    if place is None:
        return True
    if way == UP:
        return place.parent == sender
    return place.key is None or not _is_within(message, place.key, key_bits)


def leads_to(overlay, message, way, neighbor, key_bits):
    """Whether a message that went UP or DOWN to a neighbor would still do so."""
    place = overlay.place(tree_of(message))
    if place is None:
        return False
    if way == UP:
        return place.parent == neighbor
    slot = place.children.get(neighbor)
    key = overlay.key_of(neighbor, place.tree) if slot is None else child_key(place.key, slot)
    return key is not None and _is_within(message, key, key_bits)


def _is_within(message, key, key_bits):
    """Whether a node with this key, or one below it, is where the message goes."""
    if isinstance(message, Notification):
        return message.sink_key.startswith(key)
    return not subtract(message.region, universe(key, key_bits))
