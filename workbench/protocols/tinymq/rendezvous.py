"""The rendezvous node: where queries are stored and events meet them, and what becomes of the queries when keys change.

Theory of operation
    A query whose box meets the node's zone is stored. An event in the zone is matched with the stored queries of its
    tree; each sink that wants it gets one notification, as it looks at all of its subscriptions itself.

    Zones change when children come and when keys do. A child is sent what is now its part of the stored queries. A node
    that gets another key sends its stored queries where they now belong, as if they had just come; what falls into its
    new zone stays. Only what a node had stored that died comes back no sooner than with the sinks' next queries.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import matching_samples
from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.events import EventMatched
from workbench.protocols.tinymq.zones import intersect, subtract


class Rendezvous:
    """What a node does as a rendezvous node."""

    def __init__(self, node):
        self.node = node
        self.queries = node.queries
        self.mapping = node.mapping

    def meet(self, message, previous_hop, now):
        """A query, or an event, whose region is in this node's zone."""
        if isinstance(message, wire.Query):
            self.queries.store(message, previous_hop, now)
            return
        self.node.hold(message, "event", previous_hop)
        self.node.events.append(
            EventMatched(previous_hop, "event", message.publisher, message.sequence, message.tree, "")
        )
        notified = set()
        for query in self.queries.in_tree(message.tree, now):
            if query.sink not in notified and matching_samples(query.attributes, message.attributes):
                notified.add(query.sink)
                self._notify(query, message, previous_hop, now)

    def _notify(self, query, event, previous_hop, now):
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

    def child_added(self, place, child, reach, now):
        """A child has a key, whose universe is ``reach``."""
        for query_id in list(self.queries.ids()):
            if query_id[0] != place.tree:
                continue
            query = self.queries.take_out(query_id, now)
            box = self.mapping.query_box(query.attributes)
            part = self.mapping.clip(box, intersect(query.region, reach))
            if not part:
                continue
            self.node.unicast.send(child, wire.with_region(query, part), now, self.node.way_to(place, child))
            rest = self.mapping.clip(box, subtract(query.region, reach))
            if rest:
                self.queries.keep(query_id, rest)
            else:
                self.queries.forget(query_id)

    def key_changed(self, place, now):
        """This node has another key in a tree, or has come from another tree."""
        for query_id in list(self.queries.ids()):
            if query_id[0] == place.tree or self.node.overlay.place(query_id[0]) is None:
                query = self.queries.take_out(query_id, now)
                self.queries.forget(query_id)
                self.node.route(query, NOBODY, now)
