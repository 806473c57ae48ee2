"""TinyMQ's node with algorithms 3.1 and 3.2 as published, which lose queries and send events in circles.

    wb.TinyMQ(literal=True), wb.PrintedTinyMQ()     the same protocol, and in a scenario file the same text

Theory of operation
    Overlay, keys, mapping, notifications and leases are TinyMQ's. Queries and events are routed as published. A node
    hands no queries over when keys change, and drops a query or an event that comes back to it.

The published algorithms
    Z is the set of strings that begin with the node's key.

    3.1, query     A node that has already had this query stops. If strings of the query lie outside of Z, the node
                   chooses a next hop for each of these strings: the neighbor whose key has the longest common prefix
                   with the string, if this prefix is longer than the parent's, and the parent otherwise. Each next hop
                   gets the whole query. *Else*, the node stores the query if a string of the query is in its zone, and
                   sends the whole query to all children.
    3.2, event     As 3.1 for the one string of the event, until the event reaches a node whose key is a prefix of that
                   string. Then the event goes down to the child whose key is a prefix too. A node without such a child
                   matches the event.

    So a node that sends a query out of Z does not store it, because of the *else*. A node that receives the query on a
    second path ignores it. And two neighbors may send an event to each other for ever, because each has the longest
    common prefix among the other's neighbors.

Choices where the algorithms are not explicit
    The same query for another tree counts as another query. The keys of neighbors other than children are compared
    whatever tree they are in, as published; of equally long prefixes the neighbor with the lowest address counts. Z and
    the zone are the corrected ones (C1 and C5 in the package's docstring). An event that returns to a node would circle
    for ever, so it is dropped as "loop". If a message had to wait at a node, or is rerouted because a neighbor does not
    answer, this does not count as a return.

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
    """A `Rendezvous` that never hands stored queries over: the receivers would drop them as duplicates."""

    def child_added(self, position, child, child_universe, now):
        """Do nothing: the published algorithms send no stored queries to a new child."""

    def key_changed(self, position, now):
        """Do nothing: after a change of key, the published algorithms do not route stored queries again."""


class OverlayAsPublished(Overlay):
    """TinyMQ's overlay without its tests of links: all links are assumed to work both ways, and no probes are sent.

    It also keeps a child that announces another parent until no frame to this child waits to be sent or acknowledged.
    """

    def is_two_way(self, known):
        """Return True: the published algorithms assume that the link to each neighbor works both ways."""
        return True

    def has_no_key_yet(self, position, child):
        """Return whether any frame to a child is pending: it may be the grant, without which the child has no key."""
        return self.unicast.is_waiting_for(child)

    def choose_named(self, now):
        """Return (): in the published algorithms, an info (status broadcast) does not list neighbors."""
        return ()

    def probe_silent(self, now):
        """Do nothing: the published algorithms do not probe silent neighbors."""


class TinyMQNodeAsPublished(TinyMQNode):
    """A node that routes as published; it drops a query ("duplicate") or an event ("loop") that comes back to it."""

    def __init__(self, address, settings, random):
        TinyMQNode.__init__(self, address, settings, random)
        self.overlay = OverlayAsPublished(address, settings, random, self.unicast, self)
        self.rendezvous = RendezvousAsPublished(self)
        self._routed_events = RecentIds(settings.max_known)  # (tree, publisher, sequence) of the events routed here

    def take_routed(self, message, previous_hop, now):
        """Route a message; drop a query ("duplicate") or an event ("loop") that this node has routed before."""
        if isinstance(message, wire.Query) and not self.must_wait(message) and self.queries.has_seen(message):
            self.drop_message(message, previous_hop, "duplicate")
        elif (
            isinstance(message, wire.Event)
            and self.overlay.position(message.tree)
            and _event_id(message) in self._routed_events
        ):
            self.drop_message(message, previous_hop, "loop")
        else:
            self.route(message, previous_hop, now)

    def direction_to(self, position, neighbor):
        """Return OPEN: a receiver accepts the message in any role (parent, child or neighbor)."""
        return wire.OPEN

    def split(self, position, message):
        """Return [(next hop, region)] for a query or an event: each next hop gets the message's whole region.

        ``position``: this node's position in the message's tree. The next hop `NOBODY` stands for this node.
        """
        box = self.box(message)
        if isinstance(message, wire.Query):
            next_hops = query_hops(self.overlay, position, box, self.mapping)
        else:
            self._routed_events.put(_event_id(message))
            next_hops = [event_hop(self.overlay, position, self.mapping.first_cell(box), self.mapping)]
        return [(hop, message.region) for hop in next_hops]


def _event_id(event):
    return event.tree, event.publisher, event.sequence


def query_hops(overlay, position, box, mapping):
    """Return a sorted list of the neighbors to which a node sends a query, by algorithm 3.1 of TinyMQ's paper.

    The list also contains `NOBODY` if the node itself stores the query. The module's docstring describes the algorithm.

    ``overlay``, ``position``: this node's `Overlay` and its position in the tree; ``box``: the query's range of cells
    in each dimension; ``mapping``: the `Mapping` from boxes to strings.
    """
    own_universe = universe(position.key, mapping.key_bits)
    strings = mapping.cells(box)
    strings_outside = [string for string in strings if not _is_in(string, own_universe)]
    if strings_outside:
        next_hops = []
        for string in strings_outside:
            hop = _find_hop_outside(overlay, position, wire.bits(string, mapping.key_bits))
            if hop not in next_hops:
                next_hops.append(hop)
        return sorted(next_hops)
    next_hops = [child for child, _ in position.child_keys()]
    own_zone = position.regions(mapping.key_bits)[1]
    if any([_is_in(string, own_zone) for string in strings]):
        next_hops.append(NOBODY)
    return sorted(next_hops)


def event_hop(overlay, position, string, mapping):
    """Return the neighbor to which a node sends an event, or `NOBODY` if the node itself matches the event.

    This is algorithm 3.2 of TinyMQ's paper, which the module's docstring describes.

    ``overlay``, ``position``: this node's `Overlay` and its position in the tree; ``string``: the event's string in the
    key space, as an integer; ``mapping``: the `Mapping` that produced the string.
    """
    target_bits = wire.bits(string, mapping.key_bits)
    if not target_bits.startswith(position.key):
        return _find_hop_outside(overlay, position, target_bits)
    for child, child_key in position.child_keys():
        if target_bits.startswith(child_key):
            return child
    return NOBODY


def _find_hop_outside(overlay, position, target):
    """Return the next hop to a target string (bits as text) that does not begin with this node's key.

    The neighbor whose key has the longest common prefix with ``target`` is the next hop, if that prefix is longer than
    the parent's. Otherwise the parent is the next hop.
    """
    default_hop, parent_prefix_length = position.parent, -1
    candidates = []
    for address in sorted(overlay.neighbors):
        if address in position.children:
            continue
        for tree in sorted(overlay.neighbors[address].positions):
            prefix = _common_prefix_length(target, overlay.neighbors[address].positions[tree].key)
            if address == position.parent and tree == position.tree:
                parent_prefix_length = max(parent_prefix_length, prefix)
            else:
                candidates.append((-prefix, address))
    for prefix, address in sorted(candidates):
        if -prefix > parent_prefix_length:
            return address
        break
    return default_hop


def _common_prefix_length(text, other):
    length = 0
    while length < len(text) and length < len(other) and text[length] == other[length]:
        length += 1
    return length


def _is_in(string, region):
    return bool(intersect(((string, string),), region))
