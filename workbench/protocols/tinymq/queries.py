"""A node's queries: its own, those that it stores as a rendezvous node, and the reverse paths of passing queries.

Theory of operation
    The sink sends its query to every tree, with a *round* that increases each time, a *lease*, and its own tree and
    key. Rendezvous nodes store it until the lease ends or a query with lease 0 comes. The sink sends it again every
    ``refresh_s``, and soon after its key or the set of reachable trees has changed. Every node on the path of a query
    notes the neighbor from which it first received this round: the reverse path, for notifications.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.events import QueryStored
from workbench.protocols.tinymq.rules import SECOND_US, asked_lease_s, is_newer_round, lease_left_s
from workbench.protocols.tinymq.zones import union


class OwnQuery:
    """A subscription of this node, with the state of the query that is sent for it.

    round: the number of the query's last transmission, modulo 256, -1 before the first; refresh_us: time in µs at which
    to send it next, None if no transmission is planned.
    """

    def __init__(self, subscription):
        self.subscription = subscription
        self.round = -1
        self.refresh_us = None

    def lease_s(self, now, longest_s):
        """Return the lease in s to request for the query: until the subscription ends, but at most ``longest_s``."""
        expires_us = self.subscription.expires_us
        return longest_s if expires_us is None else asked_lease_s(longest_s, expires_us, now)


class StoredQuery:
    """A query that this node stores: its message, and the time in µs at which its lease ends (None: never)."""

    def __init__(self, message, expires_us):
        self.message = message
        self.expires_us = expires_us


class QueryStore:
    """The queries that a node stores as a rendezvous node, and the reverse paths of queries that passed the node.

    Both are identified by the id of a query: (tree, sink, the query's number at the sink).
    """

    def __init__(self, node):
        self.node = node
        self.stored = {}  # query id -> StoredQuery
        # query id -> (round, previous hop in this round, previous hop in the round before)
        self._paths = RecentIds(node.settings.max_known)
        self._next_expiry_us = None
        self._sorted_ids = None  # None after a change. Dictionaries on a mote have no order.

    def note_path(self, query, previous_hop):
        """Record ``previous_hop`` as the reverse path of a query; return whether the query is up to date.

        The sink sends a query repeatedly, each time with a higher number, its round. The first neighbor that sends this
        node a round becomes the reverse path. If the node has already received a newer round, the result is False, and
        nothing is recorded.
        """
        query_id = (query.tree, query.sink, query.query)
        known_path = self._paths.get(query_id)
        if known_path is not None and is_newer_round(known_path[0], query.round):
            return False
        if known_path is None or is_newer_round(query.round, known_path[0]):
            self._paths.put(query_id, (query.round, previous_hop, NOBODY if known_path is None else known_path[1]))
        return True

    def path(self, tree, sink, number, previous_hop):
        """Return the next hop of a notification on the reverse path of its query, or None if no path is known.

        ``tree``, ``sink``, ``number``: the id of the query; ``number`` is the query's number at its sink.
        ``previous_hop``: the neighbor that sent the notification. A path back to this neighbor is not used; the reverse
        path of the query's previous round (transmission by its sink) is tried instead.
        """
        known_path = self._paths.get((tree, sink, number))
        if known_path is None:
            return None
        next_hop = known_path[2] if known_path[1] == previous_hop else known_path[1]
        return None if next_hop in (NOBODY, previous_hop) else next_hop

    def has_seen(self, query):
        """Return whether the newest round (transmission by the sink) of a query at this node is that of ``query``."""
        known_path = self._paths.get((query.tree, query.sink, query.query))
        return known_path is not None and known_path[0] == query.round

    def store(self, query, previous_hop, now):
        """Store a query, or renew a stored query; remove the query if its lease is 0.

        A new query is dropped with the reason "full" if ``max_queries`` queries are stored.
        """
        query_id = (query.tree, query.sink, query.query)
        stored_query = self.stored.get(query_id)
        if query.lease_s == 0:
            if stored_query is not None:
                self.forget(query_id)
            return
        if stored_query is None and len(self.stored) >= self.node.settings.max_queries:
            self.node.drop(previous_hop, "query", query.sink, query.query, "full")
            return
        expires_us = None if query.lease_s == wire.LEASE_FOREVER_S else now + query.lease_s * SECOND_US
        self._sorted_ids = None
        if stored_query is None:
            event = QueryStored(previous_hop, "query", query.sink, query.query, query.tree + 1, query.attributes)
            self.node.events.append(event)
        else:
            query = wire.with_region(query, union(stored_query.message.region, query.region))
        self.stored[query_id] = StoredQuery(query, expires_us)
        if expires_us is not None and (self._next_expiry_us is None or expires_us < self._next_expiry_us):
            self._next_expiry_us = expires_us

    def reduce_region(self, query_id, region):
        """Reduce the region of a stored query to ``region``, because a child now stores the rest.

        ``query_id``: (tree, sink, number) of the query.
        """
        stored_query = self.stored[query_id]
        stored_query.message = wire.with_region(stored_query.message, region)

    def forget(self, query_id):
        """Remove a stored query, and log the removal; ``query_id``: (tree, sink, number)."""
        message = self.stored.pop(query_id).message
        self._sorted_ids = None
        event = QueryStored(NOBODY, "query", message.sink, message.query, -1 - message.tree, message.attributes)
        self.node.events.append(event)

    def ids(self):
        """Return the ids (tree, sink, number) of all stored queries, sorted."""
        if self._sorted_ids is None:
            self._sorted_ids = sorted(self.stored)
        return self._sorted_ids

    def in_tree(self, tree, now):
        """Return the messages of a tree's stored queries whose leases have not ended, sorted by sink and number."""
        return [
            self.stored[query_id].message
            for query_id in self.ids()
            if query_id[0] == tree and not _has_ended(self.stored[query_id], now)
        ]

    def message_to_move(self, query_id, now):
        """Return a copy of a stored query's message, with the remaining lease, for another node.

        The query stays stored. ``query_id``: (tree, sink, number).
        """
        stored_query = self.stored[query_id]
        if stored_query.expires_us is None:
            return stored_query.message
        return wire.with_lease(stored_query.message, lease_left_s(stored_query.expires_us, now))

    def next_due_us(self):
        """Return the earliest time in µs at which a stored query's lease may end, or None if no lease ends."""
        return self._next_expiry_us

    def wake(self, now):
        """Remove the queries whose leases have ended."""
        if self._next_expiry_us is None or self._next_expiry_us > now:
            return
        for query_id in self.ids():
            if _has_ended(self.stored[query_id], now):
                self.forget(query_id)
        expiry_times_us = [
            stored_query.expires_us for stored_query in self.stored.values() if stored_query.expires_us is not None
        ]
        self._next_expiry_us = min(expiry_times_us) if expiry_times_us else None


def _has_ended(stored, now):
    return stored.expires_us is not None and stored.expires_us <= now
