"""Routing by keys: functions that choose the next hop of each part of a message.

Theory of operation
    If the node is not in a message's tree, a query or event goes to the neighbor nearest to that tree's root. Within
    the tree it is split. A node's *universe* has all strings that begin with its key. The part outside of the universe
    goes to the parent, or by a *shortcut*: to a neighbor of the same tree whose key is longer than the parent's and a
    prefix of the target; the longest such key is tried first. The part inside the universe goes to the children whose
    universes it overlaps. The rest is in the node's own zone: this node is a rendezvous node of the message. Every
    string of the message's box thus reaches exactly one node of the tree. A part inside a node's universe is sent down,
    so it never leaves that universe. A part outside goes up, or into the universe of a neighbor that holds the target.
    So no loops arise.

    A notification to a key is routed by the same rules to the one node that has the key.

    A node's knowledge of its neighbors' positions may be outdated: a child has joined elsewhere, and the info that
    announced it was lost. So a frame within the tree has a *direction*, the role in which the sender addresses the
    receiver: its parent (UP), or a node whose universe holds the target (DOWN). A receiver without that role does not
    acknowledge the frame and sends its info (`is_misdirected`). The sender still has the message, and routes it by what
    the info shows (`is_still_next_hop`). Without this check a child that has moved would send the message up from its
    new position, and the message would come back to the sender again and again.

Cost
    For each message, the intervals of its region are compared with the universes of all neighbors and children: some
    hundred comparisons.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq.wire import UP, Notification
from workbench.protocols.tinymq.zones import child_key, intersect, parent_key, subtract, universe


def fragments(overlay, position, box, region, mapping, shortcuts):
    """Divide the region of a query or an event among next hops: return [(next hop, part of the region for it)].

    Parts that contain no string of the box are omitted. The next hop `NOBODY` stands for this node. ``overlay``,
    ``position``: this node's `Overlay` and its position in the tree; ``box``: the message's (lowest, highest) cell of
    each dimension; ``mapping``: the `Mapping` from boxes to strings; ``shortcuts``: whether neighbors other than parent
    and children may be next hops.
    """
    own_universe, _, child_universes = position.regions(mapping.key_bits)
    region_inside = intersect(region, own_universe)
    region_outside = subtract(region, own_universe)
    hop_regions = []
    for child, child_universe in child_universes:
        _add_part(hop_regions, mapping, box, child, intersect(region_inside, child_universe))
        region_inside = subtract(region_inside, child_universe)
    _add_part(hop_regions, mapping, box, NOBODY, region_inside)
    if region_outside and shortcuts:
        for neighbor, key in _find_shortcuts(overlay, position):
            neighbor_universe = universe(key, mapping.key_bits)
            if _add_part(hop_regions, mapping, box, neighbor, intersect(region_outside, neighbor_universe)):
                region_outside = subtract(region_outside, neighbor_universe)
    if position.parent != NOBODY:
        _add_part(hop_regions, mapping, box, position.parent, region_outside)
    return hop_regions


def _add_part(parts, mapping, box, neighbor, region):
    """Append (neighbor, ``region`` clipped to a box) to ``parts``, unless the clipped region is empty.

    ``box``: (lowest, highest) cell of each dimension; ``mapping``: the `Mapping` from boxes to strings. Returns whether
    the pair was appended.
    """
    clipped_region = mapping.clip(box, region)
    if clipped_region:
        parts.append((neighbor, clipped_region))
    return bool(clipped_region)


def _find_shortcuts(overlay, position):
    """Return [(neighbor, key)] of the neighbors that may be shortcuts in a tree, longest keys first.

    Such a neighbor has a longer key in the tree than the parent. It is not a child, and its key does not begin with
    this node's key. A neighbor is a shortcut to the strings that begin with its key; the caller checks this.
    ``position``: this node's position in the tree.
    """
    parent_key_length = len(parent_key(position.key))
    shortcuts = [
        (-len(key), address, key)
        for address, key in overlay.neighbors_in(position.tree)
        if len(key) > parent_key_length and address not in position.children and not key.startswith(position.key)
    ]
    return [(address, key) for _, address, key in sorted(shortcuts)]


def next_hop_to_key(overlay, position, key, shortcuts):
    """Return the next hop to the node with the key ``key``: `NOBODY` for this node itself, None if no hop is known.

    ``position``: this node's position in the tree; ``shortcuts``: whether neighbors other than parent and children may
    be next hops.
    """
    if key == position.key:
        return NOBODY
    if key.startswith(position.key):
        for child, key_of_child in position.child_keys():
            if key.startswith(key_of_child):
                return child
        return None
    if shortcuts:
        for neighbor, neighbor_key in _find_shortcuts(overlay, position):
            if key.startswith(neighbor_key):
                return neighbor
    return position.parent if position.parent != NOBODY else None


def tree_of(message):
    """Return the tree in which a query, an event or a notification is routed."""
    return message.sink_tree if isinstance(message, Notification) else message.tree


def is_misdirected(overlay, message, direction, sender, key_bits):
    """Return whether this node is the wrong receiver of a message, because the sender has an outdated view of the tree.

    The node is the wrong receiver in three cases: it has no position in the message's tree; ``direction`` is UP (to the
    sender's parent), but the sender is the node's own parent; ``direction`` is DOWN (to a node whose key is a prefix of
    the message's target), but the node has no such key.

    ``key_bits``: the length in bits of the key space's strings.
    """
    own_position = overlay.positions.get(tree_of(message))
    if own_position is None:
        return True
    if direction == UP:
        return own_position.parent == sender
    return own_position.key is None or not _is_within(message, own_position.key, key_bits)


def is_still_next_hop(overlay, message, direction, neighbor, key_bits):
    """Return whether a neighbor is still a valid next hop for a message that this node has addressed to it.

    The node itself must still have a key in the message's tree. With ``direction`` UP, the neighbor must still be the
    node's parent. With DOWN, the neighbor's key must still be a prefix of the message's target. ``key_bits``: the
    length in bits of the key space's strings.
    """
    own_position = overlay.position(tree_of(message))
    if own_position is None:
        return False
    if direction == UP:
        return own_position.parent == neighbor
    slot = own_position.children.get(neighbor)
    neighbor_key = overlay.key_of(neighbor, own_position.tree) if slot is None else child_key(own_position.key, slot)
    return neighbor_key is not None and _is_within(message, neighbor_key, key_bits)


def _is_within(message, key, key_bits):
    """Return whether a message is only for the node with the key ``key`` or for nodes below it in the tree.

    ``key_bits``: the length in bits of the key space's strings.
    """
    if isinstance(message, Notification):
        return message.sink_key.startswith(key)
    return not subtract(message.region, universe(key, key_bits))
