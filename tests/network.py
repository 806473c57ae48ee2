"""A network for tests without a kernel: nodes, ideal links that deliver first in first out, time moved by hand.

This file runs under MicroPython too, where dictionaries keep no order.
"""

from collections import OrderedDict

from workbench import draws
from workbench.attributes.text import parse, to_text
from workbench.protocols.contract import Dropped

SECOND = 1_000_000


class Network:
    """Nodes of one protocol on two-way ``links``; ``choose(n)`` picks which of n busy links delivers next."""

    def __init__(self, protocol, links, choose=None):
        self.links = {link for first, second in links for link in ((first, second), (second, first))}
        addresses = sorted({address for link in self.links for address in link})
        self.nodes = OrderedDict((a, protocol.make_node(a, draws.Stream(draws.make_key(1, a)))) for a in addresses)
        self.now, self.sent, self.events = 0, [], []  # (sender, destination or None, frame) and (node, event)
        self._in_flight, self._choose = [], choose

    def settle(self):
        """Deliver frames until no frame is in transit."""
        for _ in range(200_000):
            self._collect()
            if not self._in_flight:
                return
            sender, receiver, frame, is_broadcast = self._in_flight.pop(self._next())
            self.nodes[receiver].receive(frame, sender, self.now, is_broadcast)
        raise AssertionError("the network never falls silent")

    def _next(self):
        first = OrderedDict()
        for i, (sender, receiver, *_) in enumerate(self._in_flight):
            first.setdefault((sender, receiver), i)
        return list(first.values())[self._choose(len(first))] if self._choose else 0

    def _collect(self):
        for address, node in self.nodes.items():
            self.events += [(address, event) for event in node.take_events()]
            for destination, frame in node.take_frames():
                self.sent.append((address, destination, frame))
                hearers = sorted(b for a, b in self.links if a == address and destination in (None, b))
                self._in_flight += [(address, hearer, frame, destination is None) for hearer in hearers]

    def advance(self, seconds):
        """Advance the time: wake the nodes that are due, in order, and deliver all frames after each wake-up."""
        end = self.now + int(seconds * SECOND)
        while due := [(n.next_wake, a) for a, n in self.nodes.items() if n.next_wake is not None]:
            wake_us, address = min(due)
            if wake_us > end:
                break
            self.now = max(self.now, wake_us)
            self.nodes[address].wake(self.now)
            self.settle()
        self.now = end

    def subscribe(self, address, constraints, **options):
        subscription = self.nodes[address].subscribe(parse(constraints), self.now, **options)
        self.settle()
        return subscription

    def publish(self, address, attributes, **options):
        self.nodes[address].publish(parse(attributes), self.now, **options)
        self.settle()

    def hops(self, name):
        """Return (sender, destination) of every frame with this name, in the order in which they were sent."""
        describe = self.nodes[min(self.nodes)].describe
        return [(sender, to) for sender, to, frame in self.sent if describe(frame, to is None)[0] == name]

    def drops(self, *addresses):
        """Return {reason: number of drops} at these nodes, or at all nodes."""
        counts = {}
        for node, event in self.events:
            if isinstance(event, Dropped) and (not addresses or node in addresses):
                counts[event.detail] = counts.get(event.detail, 0) + 1
        return counts


def taken(subscription):
    """Return the samples, as text, that arrived since the previous call."""
    return [to_text(sample) for sample in subscription]
