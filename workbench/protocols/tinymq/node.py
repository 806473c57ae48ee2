"""The TinyMQ node: calls of its application, frames of its neighbors, routing, and timed work.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import check_publication, with_payload
from workbench.errors import DecodeError, ParameterError
from workbench.protocols.contract import NOBODY, Forwarded, Held, Node, Originated
from workbench.protocols.recent import RecentIds
from workbench.protocols.subscriptions import Subscription
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.events import EVENTS, KeySet
from workbench.protocols.tinymq.mapping import Mapping
from workbench.protocols.tinymq.overlay import Overlay
from workbench.protocols.tinymq.queries import OwnQuery, QueryStore
from workbench.protocols.tinymq.rendezvous import Rendezvous
from workbench.protocols.tinymq.routing import fragments, is_misdirected, is_still_next_hop, next_hop_to_key, tree_of
from workbench.protocols.tinymq.rules import has_room_to_forward, is_too_old, next_round, times
from workbench.protocols.tinymq.unicast import Unicast


class TinyMQNode(Node):
    """A TinyMQ node: subscriber, publisher, relay and rendezvous node at once."""

    EVENTS = EVENTS
    every_tree = False  # whether a node has a position in every tree, or in only one
    describe = staticmethod(wire.describe)

    @classmethod
    def prepare(cls, settings):
        """Compute the values that all nodes share, and store them as attributes of ``settings``.

        mapping: the `Mapping` from attribute values to strings of the key space; times: the `Times` of `rules.times`;
        every_tree: whether a node has a position in every tree. Before the call, ``settings.spans`` must contain
        (key, lowest value, highest value) of each dimension.
        """
        settings.mapping = Mapping(settings.spans, settings.key_bits)
        settings.times = times(settings)
        settings.every_tree = cls.every_tree

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.mapping = settings.mapping
        self.unicast = Unicast(self)
        self.overlay = Overlay(address, settings, random, self.unicast, self)
        self.queries = QueryStore(self)
        self.rendezvous = Rendezvous(self)
        # Messages that wait for a position or a path: (message, previous hop, time in µs when the wait began). An event
        # whose tree is None has yet to be sent to the trees.
        self._waiting = []
        self._events = RecentIds(settings.max_known)  # (publisher, sequence) -> whether it was delivered, not just held
        self._queries_due_us = None
        self._published = 0

    def start(self, now, boot=0):
        """Start the node; a root takes its position in its own tree. ``boot``: the number of earlier starts."""
        Node.start(self, now, boot)
        self.unicast.start(boot)
        self.unicast.begin(now)
        self.overlay.start(self.first_number + 1, now)
        for position in self.overlay.positions.values():
            self._log_key(position)
        self._plan_wake()

    # Calls of the application

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Send a query to all trees for events that match ``attributes``; return the subscription.

        The subscription lasts ``expires_s`` seconds (None: for ever). ``match_all``: whether ``attributes`` may be
        without constraints, which matches every event. Raises ParameterError if the node already has ``max_queries``
        subscriptions.
        """
        subscription = Subscription(self, attributes, now, expires_s, match_all)
        if len(self.subscriptions.open) >= self.settings.max_queries:
            raise ParameterError(
                "node %d already has %d subscriptions, as many as max_queries allows; end one or raise max_queries"
                % (self.address, len(self.subscriptions.open))
            )
        self.unicast.begin(now)
        own_query = subscription.request = OwnQuery(subscription)
        # Encode before the state changes: a query that does not fit a frame must not leave a subscription behind.
        wire.encode(0, self._make_query(own_query, 0, 0, now))
        self.subscriptions.add(subscription)
        if self.overlay.is_attached() and self._queries_due_us is None:
            self._send_query(own_query, now)
        self._plan_wake()
        return subscription

    def unsubscribe(self, subscription, now):
        """End a subscription: send its query again, with lease 0. Do nothing if the subscription has already ended."""
        self.unicast.begin(now)
        if self.subscriptions.end(subscription) and subscription.request.round >= 0:
            self._send_query(subscription.request, now, is_end=True)
        self._plan_wake()

    def publish(self, attributes, now, payload=b""):
        """Send a new event to its rendezvous nodes; return the event's sequence number at this node.

        ``attributes``: the reading; ``payload``: bytes that the event carries in addition. Raises AttributeFormatError
        for invalid attributes, EncodeError if the event does not fit a frame.
        """
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        sequence = self.first_number + self._published
        region = self.mapping.hull(self.mapping.event_box(attributes))
        event = wire.Event(0, self.address, sequence, 0, self.mapping.key_bits, region, attributes)
        wire.encode(0, event)
        self._published += 1
        self.unicast.begin(now)
        self.events.append(Originated(NOBODY, "event", self.address, sequence, sequence, ""))
        self.hold(event, "event", NOBODY)
        self._send_to_trees(wire.with_tree(event, None), now)
        self._plan_wake()
        return sequence

    def _send_to_trees(self, event, now):
        """Send a copy of an event to every known tree.

        If the setting ``publish`` is "own", send it only to the tree of the nearest root.
        """
        if not self.overlay.is_attached():
            self._keep_for_later(event, NOBODY, now)
            return
        goes_to_all_trees = self.settings.publish == "all"
        for tree in self.overlay.known_trees() if goes_to_all_trees else [self.overlay.own_tree()]:
            self.route(wire.with_tree(event, tree), NOBODY, now)

    # Own queries

    def _make_query(self, own_query, tree, lease_s, now):
        """Return the query message that is sent to a tree for a subscription of this node.

        ``own_query``: the subscription's `OwnQuery`; ``lease_s``: the lease to request, in s.
        """
        subscription = own_query.subscription
        # In PUB-2-SUB+ the sink usually has a key in the same tree.
        sink_tree = tree if self.overlay.position(tree) is not None else self.overlay.own_tree()
        sink_position = None if sink_tree is None else self.overlay.position(sink_tree)
        return wire.Query(
            tree,
            self.address,
            subscription.number,
            max(own_query.round, 0),
            lease_s,
            0,
            sink_tree or 0,
            "" if sink_position is None else sink_position.key,
            self.mapping.key_bits,
            self.mapping.hull(self.mapping.query_box(subscription.attributes)),
            subscription.attributes,
        )

    def _send_query(self, own_query, now, is_end=False):
        """Send the query of a subscription of this node to every tree that can be reached.

        ``own_query``: the subscription's `OwnQuery`; ``is_end``: whether to end the query, by the lease 0.
        """
        refresh_us = self.settings.times.refresh_us
        own_query.round = next_round(own_query.round)
        lease_s = 0 if is_end else own_query.lease_s(now, self.settings.times.longest_lease_s)
        for tree in self.overlay.known_trees():
            self.route(self._make_query(own_query, tree, lease_s, now), NOBODY, now)
        own_query.refresh_us = now + refresh_us if refresh_us else None

    def _plan_queries(self, now):
        # Keys and trees often change together: wait, and send the queries once.
        if self._queries_due_us is None:
            self._queries_due_us = now + self.settings.times.settle_us

    # Frames

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Process a neighbor's frame; drop an invalid frame with the reason "malformed".

        A frame is invalid if it cannot be decoded or is from a network with other settings. An info is also invalid if
        it was sent as unicast, any other frame if it was sent as a broadcast. ``broadcast``: whether the frame was sent
        as a broadcast.
        """
        try:
            frame_number, message = wire.decode(frame)
            self._check_settings(message)
            if broadcast != isinstance(message, wire.Info):
                raise DecodeError("an info must be sent as a broadcast, any other message as unicast")
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        self.unicast.begin(now)
        if isinstance(message, wire.Info):
            self.overlay.take_info(message, previous_hop, now)
            self._reroute_pending(now)
        else:
            self.overlay.note_answer(previous_hop, now)
            if isinstance(message, wire.Ack):
                self.unicast.take_acknowledgement(previous_hop, message.number, now)
            elif isinstance(message, wire.Refusal):
                self.unicast.take_refusal(previous_hop, message.number, now)
            else:
                self._process_unicast(
                    frame_number, message, wire.direction_of(frame), wire.wants_ack(frame), previous_hop, now
                )
        self._plan_wake()

    def sent(self, destination, frame, ok, now):
        """Process the radio's report about a unicast frame.

        ``ok``: whether the radio of ``destination`` acknowledged the frame; then this neighbor is known to hear this
        node.
        """
        frame_number = wire.number_of(frame)
        if frame_number is None or not self.unicast.uses_reports:
            return
        self.unicast.take_report(destination, frame_number, ok, now)
        if ok:
            self.overlay.note_answer(destination, now)
        self._plan_wake()

    def _process_unicast(self, number, message, direction, wants_ack, previous_hop, now):
        """Process a unicast message, and acknowledge its frame if ``wants_ack`` is true.

        A repeated message is acknowledged and dropped. A misdirected message (`routing.is_misdirected`) is dropped, and
        its frame refused unless ``wants_ack`` is true. If ``wants_ack`` is true and this node has no room for the
        message, its frame is refused. ``number``: the frame's sequence number; ``direction``: the role in which the
        sender addresses this node: UP as its parent, DOWN as a node whose key is a prefix of the message's target, OPEN
        in no particular role.
        """
        if not self.unicast.is_new(previous_hop, number):
            self.unicast.take(previous_hop, number, wants_ack)
            self.drop_message(message, previous_hop, "repeated")
        elif wants_ack and not self._has_room_for(message):
            self.unicast.refuse(previous_hop, number)
        elif direction != wire.OPEN and is_misdirected(
            self.overlay, message, direction, previous_hop, self.mapping.key_bits
        ):
            self.drop_message(message, previous_hop, "astray")
            if not wants_ack:
                self.unicast.refuse(previous_hop, number)
            self.overlay.plan_info(now)  # The sender then learns this node's position.
        else:
            self.unicast.take(previous_hop, number, wants_ack)
            self._process_message(message, previous_hop, now)

    def _has_room_for(self, message):
        """Return whether this node accepts a message.

        An event, or a notification for another node, is accepted only if enough memory of pending frames is free
        (`rules.has_room_to_forward`).
        """
        is_event = isinstance(message, wire.Event)
        if not is_event and (not isinstance(message, wire.Notification) or message.sink == self.address):
            return True
        return has_room_to_forward(len(self.unicast.pending), self.settings.max_known, is_event)

    def _check_settings(self, message):
        """Raise DecodeError if a message is from a network with other settings than this node's.

        The indexes of trees in the message must be below this node's number of trees. The ``key_bits`` of a query or an
        event must be equal to this node's.
        """
        trees = len(self.settings.roots)
        if isinstance(message, wire.Info):
            is_wrong = any([announced_position.tree >= trees for announced_position in message.positions])
        elif isinstance(message, (wire.Ack, wire.Refusal, wire.Probe)):
            is_wrong = False
        else:
            is_wrong = message.tree >= trees
        if isinstance(message, (wire.Query, wire.Event)):
            is_wrong = is_wrong or message.key_bits != self.mapping.key_bits
        if isinstance(message, (wire.Query, wire.Notification)):
            is_wrong = is_wrong or message.sink_tree >= trees
        if is_wrong:
            raise DecodeError(
                "the message is from a network with other roots or key_bits; use the same settings at all nodes"
            )

    def _process_message(self, message, previous_hop, now):
        """Process a message that this node has accepted from a neighbor, depending on the message's type."""
        if isinstance(message, wire.Join):
            if not self.overlay.take_join(message, previous_hop, now):
                self.drop_message(message, previous_hop, "no_place")
            self._reroute_pending(now)
        elif isinstance(message, wire.Grant):
            if not self.overlay.take_grant(message, previous_hop, now):
                self.drop_message(message, previous_hop, "unasked")
            self._reroute_pending(now)
        elif isinstance(message, wire.Probe):
            return
        elif message.hops >= self.settings.max_hops:
            self.drop_message(message, previous_hop, "ttl")
        else:
            self.take_routed(wire.with_hops(message, message.hops + 1), previous_hop, now)

    def take_routed(self, message, previous_hop, now):
        """Route a query, event or notification from a neighbor; its hop count includes the hop to this node."""
        self.route(message, previous_hop, now)

    # Routing

    def route(self, message, previous_hop, now):
        """Send a query, event or notification to its next hops, or keep the message until it can be routed."""
        if self.must_wait(message):
            self._keep_for_later(message, previous_hop, now)
        elif isinstance(message, wire.Notification):
            self._route_notification(message, previous_hop, now)
        elif isinstance(message, wire.Query) and not self.queries.note_path(message, previous_hop):
            self.drop_message(message, previous_hop, "stale")
        else:
            own_position = self.overlay.position(message.tree)
            if own_position is None:
                self._send_or_keep(self.overlay.next_hop_to(message.tree), message, previous_hop, now)
            else:
                self._route_in_tree(own_position, message, previous_hop, now)

    def _route_in_tree(self, position, message, previous_hop, now):
        """Split a query or an event, and forward its parts to neighbors; store or match this node's own part.

        ``position``: this node's position in the message's tree.
        """
        hop_regions = self.split(position, message)
        if not hop_regions:
            self.drop_message(message, previous_hop, "no_zone")  # Its region and its box are disjoint.
            return
        self._log_forwarded(message, previous_hop, len([hop for hop, _ in hop_regions if hop != NOBODY]))
        for neighbor, region in hop_regions:
            partial_message = wire.with_region(message, region)
            if neighbor == NOBODY:
                self.rendezvous.store_or_match(partial_message, previous_hop, now)
            else:
                self.unicast.send(neighbor, partial_message, now, self.direction_to(position, neighbor))

    def direction_to(self, position, neighbor):
        """Return the direction of a message to a neighbor: UP if the neighbor is the parent, else DOWN.

        ``position``: this node's position in the message's tree.
        """
        return wire.UP if neighbor == position.parent else wire.DOWN

    def _reroute_pending(self, now):
        """Withdraw the pending frames whose next hops have changed, and route their messages again."""
        for message in self.unicast.withdraw(self._has_other_next_hop):
            self.route(message, NOBODY, now)

    def _has_other_next_hop(self, pending):
        if pending.direction == wire.OPEN:
            return False
        return not is_still_next_hop(
            self.overlay, pending.message, pending.direction, pending.neighbor, self.mapping.key_bits
        )

    def split(self, position, message):
        """Divide a message's region among next hops; return [(next hop, part of the region for it)].

        The region is the set of strings that the message has not reached yet. ``position``: this node's position (key,
        parent, children) in the message's tree. The next hop `NOBODY` stands for this node.
        """
        return fragments(
            self.overlay, position, self.box(message), message.region, self.mapping, self.settings.shortcuts
        )

    def must_wait(self, message):
        """Return whether a message must wait until this node has a key.

        A message waits if the node has no key in any tree, or has lost its key in the message's tree.
        """
        tree = tree_of(message)
        is_lost = tree in self.overlay.positions and self.overlay.position(tree) is None
        return is_lost or not self.overlay.is_attached()

    def box(self, message):
        """Return the box of a query or an event in the key space: (lowest, highest) cell of each dimension."""
        if isinstance(message, wire.Query):
            return self.mapping.query_box(message.attributes)
        return self.mapping.event_box(message.attributes)

    def _send_or_keep(self, neighbor, message, previous_hop, now, direction=wire.OPEN):
        """Send a message to a neighbor, or keep the message for later if ``neighbor`` is None.

        ``direction``: UP to the parent, DOWN to a node whose key is a prefix of the target, OPEN to any other neighbor.
        """
        if neighbor is None:
            self._keep_for_later(message, previous_hop, now)
            return
        self._log_forwarded(message, previous_hop, 1)
        self.unicast.send(neighbor, message, now, direction)

    def _route_notification(self, message, previous_hop, now):
        if message.sink == self.address:
            self.deliver(message, "notification", previous_hop, now)
            return
        if not message.by_key:
            neighbor = self.queries.path(message.tree, message.sink, message.query, previous_hop)
            if neighbor in self.overlay.neighbors:
                self._send_or_keep(neighbor, message, previous_hop, now)
                return
            message = wire.by_key(message)
        own_position = self.overlay.position(message.sink_tree)
        if own_position is None:
            self._send_or_keep(self.overlay.next_hop_to(message.sink_tree), message, previous_hop, now)
            return
        neighbor = next_hop_to_key(self.overlay, own_position, message.sink_key, self.settings.shortcuts)
        if neighbor in (None, NOBODY):
            # The sink has another key by now, and announces it in its next query.
            self.drop_message(message, previous_hop, "no_sink")
        else:
            self._send_or_keep(neighbor, message, previous_hop, now, self.direction_to(own_position, neighbor))

    def _keep_for_later(self, message, previous_hop, now):
        """Keep a message until it can be routed.

        If ``max_waiting`` messages wait already, drop the oldest with the reason "full".
        """
        if len(self._waiting) >= self.settings.max_waiting:
            dropped_message, from_hop, _ = self._waiting.pop(0)
            self.drop_message(dropped_message, from_hop, "full")
        self._waiting.append((message, previous_hop, now))

    def _send_waiting(self, now):
        """Route the waiting messages again, and drop those that have waited for too long."""
        waiting_messages, self._waiting = self._waiting, []
        lost_after_us = self.settings.times.lost_after_us
        for message, previous_hop, since_us in waiting_messages:
            if is_too_old(since_us, now, lost_after_us):
                self.drop_message(message, previous_hop, "waited")
            elif message.tree is None:
                self._send_to_trees(message, now)
            else:
                self.route(message, previous_hop, now)
            # A message that must keep waiting keeps its original time.
            if self._waiting and self._waiting[-1][0] is message:
                self._waiting[-1] = message, previous_hop, since_us

    # Received events

    def deliver(self, message, name, previous_hop, now):
        """Deliver the event in ``message`` to the matching subscriptions of this node.

        An event that was delivered before is dropped, because several rendezvous nodes may send the same event.
        ``message``: an event or a notification; ``name``: the name of its type in the trace; ``previous_hop``: the
        neighbor that sent it.
        """
        event_id = message.publisher, message.sequence
        if self._events.get(event_id):
            self.drop_message(message, previous_hop, "duplicate")
            return
        self.hold(message, name, previous_hop)
        self._events.put(event_id, True)
        self.deliver_to(
            self.subscriptions.open, message.attributes, previous_hop, name, message.publisher, message.sequence, now
        )

    def hold(self, message, name, previous_hop):
        """Log that this node holds the event in ``message``, unless the node remembers that it has logged this before.

        ``name``: the name of the message's type in the trace; ``previous_hop``: the neighbor that sent the message.
        """
        event_id = message.publisher, message.sequence
        if event_id not in self._events:
            self._events.put(event_id, False)
            self.events.append(Held(previous_hop, name, message.publisher, message.sequence, message.hops, ""))

    # Changes of the overlay

    def tree_found(self, now):
        """Send the waiting messages, and plan to send the node's queries, because a path to a tree was found."""
        self._send_waiting(now)
        self._plan_queries(now)

    def key_changed(self, position, now):
        """Log that this node has got or lost its key in a tree; ``position``: the node's position in the tree.

        If the node has a new key, route the waiting messages and the stored queries again, and plan to send the node's
        own queries.
        """
        self._log_key(position)
        if position.key is not None:
            self._send_waiting(now)
            self.rendezvous.key_changed(position, now)
            self._plan_queries(now)

    def child_added(self, position, child, child_universe, now):
        """Hand over stored queries to a new child, as far as their strings are in ``child_universe``.

        If a query has other strings too, it is split, and this node keeps the rest. ``child_universe``: the strings
        that begin with the child's key, as intervals ((lowest, highest), ...). ``position``: this node's position in
        the tree.
        """
        self.rendezvous.child_added(position, child, child_universe, now)

    # Time

    def wake(self, now):
        """Do the work that is due: send frames again, give up silent neighbors, join, send infos, refresh queries."""
        self.unicast.begin(now)
        for neighbor, messages in self.unicast.wake(now):
            self.overlay.lose(neighbor, now)
            for message in messages:
                if isinstance(message, (wire.Query, wire.Event, wire.Notification)):
                    self.route(message, NOBODY, now)
        due_info = self.overlay.wake(now)
        if due_info is not None:
            self.outbox.append((None, wire.encode_info(due_info)))
        self._reroute_pending(now)
        self.queries.wake(now)
        if self._waiting and is_too_old(self._waiting[0][2], now, self.settings.times.lost_after_us):
            self._send_waiting(now)
        self._send_due_queries(now)
        self._plan_wake()

    def _send_due_queries(self, now):
        """Send the due queries of open subscriptions, or all queries if they were planned after a change of keys.

        Before that, close expired subscriptions. Without a key in any tree, send nothing.
        """
        self.subscriptions.expire(now)
        if not self.overlay.is_attached():
            return
        is_everything_due = self._queries_due_us is not None and self._queries_due_us <= now
        if is_everything_due:
            self._queries_due_us = None
        for subscription in self.subscriptions.open:
            own_query = subscription.request
            if is_everything_due or (own_query.refresh_us is not None and own_query.refresh_us <= now):
                self._send_query(own_query, now)

    def _plan_wake(self):
        """Finish the processing of an input: log the changed zones, and set the time of the next wake-up."""
        if self.tells_all:
            self.events += self.overlay.changed_zones()
        due_times_us = [self.unicast.next_due_us(), self.overlay.next_due_us(), self.queries.next_due_us()]
        due_times_us += [subscription.expires_us for subscription in self.subscriptions.open]
        if self.overlay.is_attached():
            due_times_us.append(self._queries_due_us)
            due_times_us += [subscription.request.refresh_us for subscription in self.subscriptions.open]
        due_times_us = [due_us for due_us in due_times_us if due_us is not None]
        self.next_wake = min(due_times_us) if due_times_us else None

    # Logging

    def _log_key(self, position):
        message, length = ("", NOBODY) if position.key is None else ("grant", len(position.key))
        self.events.append(KeySet(position.parent, message, position.tree, position.epoch, length, position.key or ""))

    def _log_forwarded(self, message, previous_hop, count):
        if self.tells_all and count:
            name, origin, sequence = _make_trace_label(message)
            self.events.append(Forwarded(previous_hop, name, origin, sequence, count, ""))

    def drop_message(self, message, previous_hop, reason):
        """Log that a decoded message was dropped, and why: ``reason`` is a word such as "full"."""
        name, origin, sequence = _make_trace_label(message)
        self.drop(previous_hop, name, origin, sequence, reason)


def _make_trace_label(message):
    """Return (message name, origin, sequence) of a message for the trace.

    A message without an origin has the origin `NOBODY` and the sequence 0.
    """
    name = wire.NAMES[wire.LAYOUTS[type(message)][0]]
    if name == "query":
        return name, message.sink, message.query
    if name in ("event", "notification"):
        return name, message.publisher, message.sequence
    return name, NOBODY, 0


class Pub2SubNode(TinyMQNode):
    """A node of PUB-2-SUB+: it has a position in every tree."""

    every_tree = True
