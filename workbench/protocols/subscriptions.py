"""A node's subscriptions: who wants what, until when, and which samples of a publication each is handed.

Theory of operation
    A subscription is an open pipe from the network to the application. The node puts in each sample that matches;
    the application takes out what has come. It is open from `Subscriptions.add` on, until the application ends it or
    its time is over. From the microsecond ``expires_us`` on it is handed nothing more, whether or not its node has
    noticed: a node without timers never calls `expire`.

    A protocol that sends something for a subscription (an interest, a query) notes that as its ``request``. Whatever
    may refuse the subscription comes before `Subscriptions.add`: what is refused leaves no trace, and its number goes
    to the next one.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import check_subscription

SECOND_US = 1000000  # All times of a node are whole microseconds.


class Subscription:
    """What ``subscribe`` returns. Iterating over it takes the samples that arrived since the last time, oldest first.

    It ends after ``expires_s`` seconds (None: never by itself). AttributeFormatError if it constrains nothing and
    ``match_all`` is not set. ``request``: what its node sends for it, or None.
    """

    def __init__(self, node, attributes, now, expires_s=None, match_all=False):
        self.attributes = tuple(attributes)
        check_subscription(self.attributes, match_all)
        self.node = node
        self.number = node.first_number + node.subscriptions.added
        self.expires_us = None if expires_s is None else now + int(expires_s * SECOND_US)
        self.request = None
        self._samples = []

    def put(self, attributes):
        """Append a sample (called by the node)."""
        self._samples.append(attributes)

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
    """The open subscriptions of a node, in the order in which they were made."""

    def __init__(self):
        self.open = []  # To be read only; public because a node asks for every publication whether there is any.
        self.added = 0

    def add(self, subscription):
        """Open a subscription, and return it."""
        self.added += 1
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

    def of(self, request):
        """The open subscriptions that a request was sent for."""
        return [one for one in self.open if one.request is request]
