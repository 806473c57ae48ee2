"""Queries: those a node asks itself, those it stores as a rendezvous node, and the ways they came.

Theory of operation
    The sink sends its query to every tree, with a *round* that grows each time, a *lease*, and its own tree and key.
    Rendezvous nodes store it until the lease ends or a query with lease 0 comes. It is sent again every ``refresh_s``,
    and soon after the sink's key or the trees that it knows have changed. Every node that a query passes notes which
    neighbor it first had this round from: the reverse path, for notifications.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.events import QueryStored
from workbench.protocols.tinymq.rules import SECOND_US, asked_lease_s, is_newer_round, lease_left_s
from workbench.protocols.tinymq.zones import union


class OwnQuery:
    """A subscription of this node as it is asked in the network."""

    def __init__(self, subscription):
        self.subscription = subscription
        self.round = -1
        self.refresh_us = None

    def lease_s(self, now, longest_s):
        """The lease that the query asks for."""
        expires_us = self.subscription.expires_us
        return longest_s if expires_us is None else asked_lease_s(longest_s, expires_us, now)


class StoredQuery:
    """A query that this node stores: the message, and when its lease ends (None: never)."""

    def __init__(self, message, expires_us):
        self.message = message
        self.expires_us = expires_us


class QueryStore:
    """What a node stores as a rendezvous node, by (tree, sink, number of the query), and the reverse paths."""

    def __init__(self, node):
        self.node = node
        self.stored = {}
        self._paths = RecentIds(node.settings.max_known)  # id -> (round, previous hop, that of the round before)
        self._next_expiry_us = None
        self._order = None  # The ids in order, while nothing changes: a dictionary keeps none on a mote.

    def note_path(self, query, previous_hop):
        """Note where a query came from; returns False for one of an older round than is known already."""
        query_id = (query.tree, query.sink, query.query)
        known = self._paths.get(query_id)
        if known is not None and is_newer_round(known[0], query.round):
            return False
        if known is None or is_newer_round(query.round, known[0]):
            self._paths.put(query_id, (query.round, previous_hop, NOBODY if known is None else known[1]))
        return True

    def path(self, tree, sink, number, previous_hop):
        """The neighbor that a query came from, or None.

        Where its last round came from the ``previous_hop`` of a notification, the two have met halfway: the
        notification goes on as the round before came, and not back.
        """
        known = self._paths.get((tree, sink, number))
        if known is None:
            return None
        hop = known[2] if known[1] == previous_hop else known[1]
        return None if hop in (NOBODY, previous_hop) else hop

    def has_seen(self, query):
        """Whether this round of a query has been here."""
        known = self._paths.get((query.tree, query.sink, query.query))
        return known is not None and known[0] == query.round

    def store(self, query, previous_hop, now):
        """Store a query, renew it, or with lease 0 forget it."""
        query_id = (query.tree, query.sink, query.query)
        known = self.stored.get(query_id)
        if query.lease_s == 0:
            if known is not None:
                self.forget(query_id)
            return
        if known is None and len(self.stored) >= self.node.settings.max_queries:
            self.node.drop(previous_hop, "query", query.sink, query.query, "full")
            return
        expires_us = None if query.lease_s == wire.LEASE_FOREVER_S else now + query.lease_s * SECOND_US
        self._order = None
        if known is None:
            event = QueryStored(previous_hop, "query", query.sink, query.query, query.tree + 1, query.attributes)
            self.node.events.append(event)
        else:
            query = wire.with_region(query, union(known.message.region, query.region))
        self.stored[query_id] = StoredQuery(query, expires_us)
        if expires_us is not None and (self._next_expiry_us is None or expires_us < self._next_expiry_us):
            self._next_expiry_us = expires_us

    def keep(self, query_id, region):
        """A child has taken over the rest: this is what is left here of a stored query."""
        stored = self.stored[query_id]
        stored.message = wire.with_region(stored.message, region)

    def forget(self, query_id):
        """Remove a query."""
        message = self.stored.pop(query_id).message
        self._order = None
        event = QueryStored(NOBODY, "query", message.sink, message.query, -1 - message.tree, message.attributes)
        self.node.events.append(event)

    def ids(self):
        """(tree, sink, number) of each stored query, in order."""
        if self._order is None:
            self._order = sorted(self.stored)
        return self._order

    def in_tree(self, tree, now):
        """The stored queries of a tree whose lease lasts, in the order of sinks and numbers."""
        return [
            self.stored[query_id].message
            for query_id in self.ids()
            if query_id[0] == tree and not _is_over(self.stored[query_id], now)
        ]

    def take_out(self, query_id, now):
        """The stored query as a message for another node, with what is left of its lease; it stays stored."""
        stored = self.stored[query_id]
        if stored.expires_us is None:
            return stored.message
        return wire.with_lease(stored.message, lease_left_s(stored.expires_us, now))

    def next_due_us(self):
        """When the first lease ends, or None."""
        return self._next_expiry_us

    def wake(self, now):
        """Forget the queries whose lease is over."""
        if self._next_expiry_us is None or self._next_expiry_us > now:
            return
        for query_id in self.ids():
            if _is_over(self.stored[query_id], now):
                self.forget(query_id)
        times = [stored.expires_us for stored in self.stored.values() if stored.expires_us is not None]
        self._next_expiry_us = min(times) if times else None


def _is_over(stored, now):
    return stored.expires_us is not None and stored.expires_us <= now
