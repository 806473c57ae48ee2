"""TinyMQ's node with algorithms 3.1 and 3.2 as published, which lose queries and send events in circles.

    wb.TinyMQ(literal=True), wb.PrintedTinyMQ()     the same protocol, and in a scenario file the same text

Theory of operation
    Overlay, keys, mapping, notifications and leases are TinyMQ's. Queries and events are routed as published. A node
    hands no queries over when keys change, and drops a query or an event that comes back to it.

The published algorithms
    Z is the set of strings that begin with the node's key.

    3.1, query     A node that has already had this query stops. If part of the query lies outside of Z, then for each
                   string of that part the whole query goes to the neighbor with the longest common prefix, if that is
                   longer than the parent's, and else to the parent. *Else*, if the query overlaps Z, the node stores
                   it where it meets its zone and sends the whole query to all children.
    3.2, event     As 3.1 for the one string of the event, until the key is a prefix of that string. Then the event goes
                   down to the child whose key is a prefix too. A node without such a child matches it.

    So a node that can send a query on does not store it (the else). A node that a second branch of the query reaches
    stops. And two neighbors may each have the longest common prefix from the other's point of view.

Choices where the algorithms are not explicit
    The same query for another tree counts as another query. The keys of neighbors other than children are compared
    whatever tree they are in, as published; of equally long prefixes the neighbor with the lowest address counts. Z and
    the zone are the corrected ones (C1, C5). An event that returns to a node would return for ever, and is dropped as
    "loop". A message that had to wait at a node, or that is rerouted because a neighbor does not answer, does not count
    as returned.

Limits
    Each string outside of Z is compared with each neighbor's key, so key spaces have 16 bits at most. Shortcuts are
    part of the algorithms: ``shortcuts=False`` raises ParameterError. The fast engine does not support this node.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.node import TinyMQNode
from workbench.protocols.tinymq.overlay import Overlay
from workbench.protocols.tinymq.rendezvous import Rendezvous
from workbench.protocols.tinymq.zones import intersect, universe

WIDEST_KEY_SPACE = 16


class RendezvousAsPublished(Rendezvous):
    """A rendezvous node that hands no queries over: the published algorithms would drop them as duplicates."""

    def child_added(self, position, child, child_universe, now):
        """Keep all stored queries."""

    def key_changed(self, position, now):
        """Keep all stored queries."""


class OverlayAsPublished(Overlay):
    """An overlay that assumes that links work both ways, and keeps a child that has yet to acknowledge a frame."""

    def is_two_way(self, known):
        """Return True: the published algorithms do not test links."""
        return True

    def has_no_key_yet(self, position, child):
        """Return whether any frame to a child is still pending; the child may not have its key yet."""
        return self.unicast.is_waiting_for(child)

    def choose_named(self, now):
        """Return (): infos name no neighbors."""
        return ()

    def probe_silent(self, now):
        """Do nothing: the published algorithms do not probe silent neighbors."""


class TinyMQNodeAsPublished(TinyMQNode):
    """A node that drops queries as "duplicate" and events as "loop" when they come back."""

    def __init__(self, address, settings, random):
        TinyMQNode.__init__(self, address, settings, random)
        self.overlay = OverlayAsPublished(address, settings, random, self.unicast, self)
        self.rendezvous = RendezvousAsPublished(self)
        self._passed = RecentIds(settings.max_known)  # (tree, publisher, sequence) of the events routed here

    def take_routed(self, message, previous_hop, now):
        """Route a query or an event the first time that it comes; route notifications as TinyMQ does."""
        if isinstance(message, wire.Query) and not self.must_wait(message) and self.queries.has_seen(message):
            self.drop_message(message, previous_hop, "duplicate")
        elif (
            isinstance(message, wire.Event)
            and self.overlay.position(message.tree)
            and _event_id(message) in self._passed
        ):
            self.drop_message(message, previous_hop, "loop")
        else:
            self.route(message, previous_hop, now)

    def direction_to(self, position, neighbor):
        """Return OPEN: messages assume no role of their receivers."""
        return wire.OPEN

    def split(self, position, message):
        """Return [(neighbor, region)]: each neighbor that gets a query or an event gets the whole region."""
        box = self.box(message)
        if isinstance(message, wire.Query):
            hops = query_hops(self.overlay, position, box, self.mapping)
        else:
            self._passed.put(_event_id(message))
            hops = [event_hop(self.overlay, position, self.mapping.first_cell(box), self.mapping)]
        return [(hop, message.region) for hop in hops]


def _event_id(event):
    return event.tree, event.publisher, event.sequence


def query_hops(overlay, position, box, mapping):
    """Return the neighbors to which algorithm 3.1 sends a query, and NOBODY if this node stores the query."""
    own = universe(position.key, mapping.key_bits)
    strings = mapping.cells(box)
    outside = [string for string in strings if not _is_in(string, own)]
    if outside:
        hops = []
        for string in outside:
            hop = _hop_outside(overlay, position, wire.bits(string, mapping.key_bits))
            if hop not in hops:
                hops.append(hop)
        return sorted(hops)
    hops = [child for child, _ in position.child_keys()]
    own_zone = position.regions(mapping.key_bits)[1]
    if any([_is_in(string, own_zone) for string in strings]):
        hops.append(NOBODY)
    return sorted(hops)


def event_hop(overlay, position, string, mapping):
    """Return the neighbor to which algorithm 3.2 sends an event, or NOBODY if this node matches the event."""
    target = wire.bits(string, mapping.key_bits)
    if not target.startswith(position.key):
        return _hop_outside(overlay, position, target)
    for child, key in position.child_keys():
        if target.startswith(key):
            return child
    return NOBODY


def _hop_outside(overlay, position, target):
    best, length = position.parent, -1
    candidates = []
    for address in sorted(overlay.neighbors):
        if address in position.children:
            continue
        for tree in sorted(overlay.neighbors[address].positions):
            prefix = _common_prefix_length(target, overlay.neighbors[address].positions[tree].key)
            if address == position.parent and tree == position.tree:
                length = max(length, prefix)
            else:
                candidates.append((-prefix, address))
    for prefix, address in sorted(candidates):
        if -prefix > length:
            return address
        break
    return best


def _common_prefix_length(text, other):
    """Return the length of the longest common prefix of two texts."""
    length = 0
    while length < len(text) and length < len(other) and text[length] == other[length]:
        length += 1
    return length


def _is_in(string, region):
    return bool(intersect(((string, string),), region))
