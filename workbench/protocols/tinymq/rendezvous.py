"""The rendezvous node: it stores queries, matches events with them, and hands queries over when keys change.

A *region* is a set of strings of the key space, stored as intervals ((lowest, highest), ...).

Theory of operation
    A node stores a query whose box overlaps its zone. It matches an event in its zone with the stored queries of the
    same tree. Each sink with a matching query gets one notification, because a sink checks all of its subscriptions
    itself.

    Zones change when children join and when keys change. A new child is sent the part of the stored queries that is now
    in its universe (the strings that begin with its key). A node that gets another key routes its stored queries anew,
    as if they had just come; the parts in its new zone stay. Queries that a dead node had stored return only with the
    sinks' next refresh.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import matching_samples
from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.events import EventMatched
from workbench.protocols.tinymq.zones import intersect, subtract


class Rendezvous:
    """The component of a node that stores queries and matches events with them."""

    def __init__(self, node):
        self.node = node
        self.queries = node.queries
        self.mapping = node.mapping

    def store_or_match(self, message, previous_hop, now):
        """Store a query, or match an event with the stored queries of its tree.

        ``message``: the query or event, whose region is the part that this node handles.
        """
        if isinstance(message, wire.Query):
            self.queries.store(message, previous_hop, now)
            return
        self.node.hold(message, "event", previous_hop)
        self.node.events.append(
            EventMatched(previous_hop, "event", message.publisher, message.sequence, message.tree, "")
        )
        notified_sinks = set()
        for query in self.queries.in_tree(message.tree, now):
            if query.sink not in notified_sinks and matching_samples(query.attributes, message.attributes):
                notified_sinks.add(query.sink)
                self._notify(query, message, previous_hop, now)

    def _notify(self, query, event, previous_hop, now):
        """Send the query's sink a notification of an event, or deliver the event if this node is the sink."""
        if query.sink == self.node.address:
            self.node.deliver(event, "event", previous_hop, now)
            return
        notification = wire.Notification(
            event.tree,
            query.sink,
            query.query,
            False,
            event.publisher,
            event.sequence,
            event.hops,
            query.sink_tree,
            query.sink_key,
            event.attributes,
        )
        self.node.route(notification, NOBODY, now)

    def child_added(self, position, child, child_universe, now):
        """Hand over stored queries to a new child, as far as their strings are in ``child_universe``.

        If a query has other strings too, it is split, and this node keeps the rest. ``child_universe``: the strings
        that begin with the child's key, as intervals ((lowest, highest), ...). ``position``: this node's position in
        the tree.
        """
        for query_id in list(self.queries.ids()):
            if query_id[0] != position.tree:
                continue
            query = self.queries.message_to_move(query_id, now)
            box = self.mapping.query_box(query.attributes)
            child_region = self.mapping.clip(box, intersect(query.region, child_universe))
            if not child_region:
                continue
            self.node.unicast.send(
                child, wire.with_region(query, child_region), now, self.node.direction_to(position, child)
            )
            remaining_region = self.mapping.clip(box, subtract(query.region, child_universe))
            if remaining_region:
                self.queries.reduce_region(query_id, remaining_region)
            else:
                self.queries.forget(query_id)

    def key_changed(self, position, now):
        """Route stored queries again, as if they had just arrived, because this node has a new key in a tree.

        This concerns the queries of this tree, and of trees in which the node has no key any more. ``position``: the
        node's position in the tree.
        """
        for query_id in list(self.queries.ids()):
            if query_id[0] == position.tree or self.node.overlay.position(query_id[0]) is None:
                query = self.queries.message_to_move(query_id, now)
                self.queries.forget(query_id)
                self.node.route(query, NOBODY, now)
