"""A node that floods.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import check_publication, check_subscription, matching_samples, with_payload
from workbench.errors import DecodeError
from workbench.protocols.contract import NOBODY, Delivered, Forwarded, Held, Node, Originated, Subscription
from workbench.protocols.flooding import wire
from workbench.protocols.recent import RecentIds


class FloodingNode(Node):
    """One node that floods."""

    describe = staticmethod(wire.describe)

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.ttl = settings.ttl
        self.subscriptions = []
        self._subscriptions_made = 0
        self._published = 0
        self._known = RecentIds(settings.max_events)

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Keep what matches ``attributes`` from now on, for ``expires_s`` seconds (None: for ever)."""
        check_subscription(attributes, match_all)
        expires_us = None if expires_s is None else now + int(expires_s * 1000000)
        subscription = Subscription(self, self.first_number + self._subscriptions_made, tuple(attributes), expires_us)
        self._subscriptions_made += 1
        self.subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription, now):
        """Forget a subscription; one already forgotten is no error."""
        self.subscriptions = [kept for kept in self.subscriptions if kept is not subscription]

    def publish(self, attributes, now, payload=b""):
        """Flood a publication; returns its number at this node."""
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        sequence = self.first_number + self._published
        frame = wire.encode(wire.Flood(self.address, sequence, self.ttl, attributes))
        self._published += 1
        self.events.append(Originated(NOBODY, "flood", self.address, sequence, sequence, ""))
        self._hold((self.address, sequence), NOBODY, 0)
        self._deliver(attributes, self.address, sequence, NOBODY, now)
        self.outbox.append((None, frame))
        return sequence

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Hold, deliver and pass on a flood heard for the first time."""
        try:
            event_id, ttl = wire.decode_header(frame)
            if event_id in self._known.values:
                self.drop(previous_hop, "flood", event_id[0], event_id[1], "duplicate")
                return
            origin, sequence = event_id
            attributes = ()
            if self.subscriptions:
                attributes = wire.decode_body(frame)
            else:
                wire.check_body(frame)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        self._hold(event_id, previous_hop, self.ttl - ttl + 1)
        if attributes:
            self._deliver(attributes, origin, sequence, previous_hop, now)
        if ttl <= 1:
            self.drop(previous_hop, "flood", origin, sequence, "ttl")
            return
        self.outbox.append((None, wire.with_ttl(frame, ttl - 1)))
        if self.tells_all:
            self.events.append(Forwarded(previous_hop, "flood", origin, sequence, 0, ""))

    def _hold(self, event_id, previous_hop, hops):
        self._known.put(event_id)
        self.events.append(Held(previous_hop, "flood", event_id[0], event_id[1], hops, ""))

    def _deliver(self, attributes, origin, sequence, previous_hop, now):
        for subscription in self.subscriptions:
            if subscription.expires_us is not None and now >= subscription.expires_us:
                continue
            for sample in matching_samples(subscription.attributes, attributes):
                subscription.put(sample)
                self.events.append(Delivered(previous_hop, "flood", origin, sequence, subscription.number, sample))
