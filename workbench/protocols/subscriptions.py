"""A node's subscriptions: who wants what, until when, and which samples of a publication each is handed.

Theory of operation
    A subscription is an open pipe from the network to the application. The node puts in each sample that matches;
    the application takes out what has come. It is open from `Subscriptions.add` on, until the application ends it or
    its time is over. From the microsecond ``expires_us`` on it is handed nothing more, whether or not the node has
    noticed yet: a node without timers never calls `expire`.

    A protocol that sends something for a subscription (an interest, a query) notes that as its ``request``. It uses
    `make` and `keep` in place of `add`, and between the two whatever may refuse the subscription. What is refused
    leaves no trace: its number goes to the next one.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import check_subscription, matching_samples
from workbench.protocols.contract import SECOND_US, Delivered


class Subscription:
    """What ``subscribe`` returns. Iterating over it takes the samples that arrived since the last time, oldest first.

    ``expires_us``: when it ends, None if it never does by itself. ``request``: what its node sends for it, or None.
    """

    def __init__(self, node, number, attributes, expires_us=None):
        self.node = node
        self.number = number
        self.attributes = attributes
        self.expires_us = expires_us
        self.request = None
        self._samples = []

    def put(self, sample):
        """Append a sample (called by the node)."""
        self._samples.append(sample)

    def take(self):
        """Return the samples that arrived since the last call, oldest first."""
        samples, self._samples = self._samples, []
        return samples

    def __iter__(self):
        return iter(self.take())

    def is_over(self, now):
        """Whether its time is over."""
        return self.expires_us is not None and now >= self.expires_us

    def unsubscribe(self, now):
        """End it: the node's ``unsubscribe`` with this subscription."""
        self.node.unsubscribe(self, now)


class Subscriptions:
    """The open subscriptions of one node, in the order in which they were made."""

    def __init__(self, node):
        self.node = node
        self.open = []  # To be read only; public because a node asks for every publication whether there is any.
        self._kept = 0

    def add(self, attributes, now, expires_s=None, match_all=False):
        """A new subscription to what matches ``attributes``, for ``expires_s`` seconds (None: for ever).

        AttributeFormatError if it constrains nothing and ``match_all`` is not set.
        """
        return self.keep(self.make(attributes, now, expires_s, match_all))

    def make(self, attributes, now, expires_s=None, match_all=False):
        """The subscription that `add` would return, checked and numbered; it is not open before `keep`."""
        attributes = tuple(attributes)
        check_subscription(attributes, match_all)
        expires_us = None if expires_s is None else now + int(expires_s * SECOND_US)
        return Subscription(self.node, self.next_number(), attributes, expires_us)

    def next_number(self):
        """The number of the next subscription at this node: first_number, and so on."""
        return self.node.first_number + self._kept

    def keep(self, subscription):
        """Open a subscription that has the next number, and return it."""
        self._kept += 1
        self.open.append(subscription)
        return subscription

    def end(self, subscription):
        """Close a subscription; returns False, and does nothing, if it is not open."""
        is_open = subscription in self.open
        if is_open:
            self.open.remove(subscription)
        return is_open

    def expire(self, now):
        """Close the subscriptions whose time is over, and return them."""
        over = [one for one in self.open if one.is_over(now)]
        for one in over:
            self.open.remove(one)
        return over

    def next_expiry_us(self):
        """When the first of them ends, or None if none ends by itself."""
        times = [one.expires_us for one in self.open if one.expires_us is not None]
        return min(times) if times else None

    def of(self, request):
        """The open subscriptions that one request was sent for."""
        return [one for one in self.open if one.request is request]

    def deliver(self, attributes, previous_hop, message, origin, sequence, now, request=None):
        """Hand each subscription the samples of a publication that match it: one Delivered event per sample.

        ``request``: only the subscriptions of this request are asked.
        """
        for one in self.open if request is None else self.of(request):
            if one.is_over(now):
                continue
            for sample in matching_samples(one.attributes, attributes):
                one.put(sample)
                self.node.events.append(Delivered(previous_hop, message, origin, sequence, one.number, sample))
