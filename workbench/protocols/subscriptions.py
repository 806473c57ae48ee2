"""A node's subscriptions: their constraints, their expiry, and the matching samples that arrived for each.

Theory of operation
    A subscription is a queue from the network to the application. The node appends each sample that matches; the
    application takes the samples out. A subscription is open from `Subscriptions.add` until the application ends it or
    it expires. From the time ``expires_us`` on it receives no samples, even if its node has not removed it: a node
    without timers never calls `expire`.

    A protocol that sends a message for a subscription (an interest, a query) stores it in the subscription's field
    ``request``. Checks that may refuse a subscription come before `Subscriptions.add`. So a refused subscription leaves
    no state and uses up no number.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import check_subscription

SECOND_US = 1000000  # All times of a node are whole microseconds.


class Subscription:
    """A subscription, as a node's ``subscribe`` returns it. Iterating over it takes out the samples that have arrived.

    The subscription ends after ``expires_s`` seconds (None: never). Raises AttributeFormatError if ``attributes`` has
    no constraints and ``match_all`` is not set. ``request`` is the message that the node sent for the subscription, or
    None.
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
        """Append a sample that the node has received, given as its attributes."""
        self._samples.append(attributes)

    def take(self):
        """Return the samples that arrived since the last call, oldest first."""
        samples, self._samples = self._samples, []
        return samples

    def __iter__(self):
        return iter(self.take())

    def is_over(self, now):
        """Return whether the subscription has expired."""
        return self.expires_us is not None and now >= self.expires_us

    def unsubscribe(self, now):
        """End the subscription before it expires. Samples that have arrived can still be taken."""
        self.node.unsubscribe(self, now)


class Subscriptions:
    """The open subscriptions of a node, oldest first."""

    def __init__(self):
        self.open = []  # Read-only for others; public because a node checks it for every publication.
        self.added = 0  # subscriptions added so far, from which the next one gets its number

    def add(self, subscription):
        """Add a new `Subscription` to the open ones, and return it."""
        self.added += 1
        self.open.append(subscription)
        return subscription

    def end(self, subscription):
        """Close a subscription; return False if it was not open."""
        is_open = subscription in self.open
        if is_open:
            self.open.remove(subscription)
        return is_open

    def expire(self, now):
        """Close the expired subscriptions, and return them."""
        expired_subscriptions = [subscription for subscription in self.open if subscription.is_over(now)]
        for subscription in expired_subscriptions:
            self.open.remove(subscription)
        return expired_subscriptions

    def of(self, request):
        """Return the open subscriptions whose field ``request`` is this object."""
        return [subscription for subscription in self.open if subscription.request is request]
