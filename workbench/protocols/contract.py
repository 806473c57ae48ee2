"""The protocol contract (sans-IO): the interface between a protocol's node and its driver.

Theory of operation
    One object is one node, created with its address, its settings and its own random stream. A driver calls it: the
    simulator, a socket program or a mote. Time is an argument, in integer microseconds. The node receives frames
    (bytes) and appends the frames that it sends to its outbox. It logs events, which are small named tuples. A node
    never sleeps, prints, opens files or reads a clock, so the same file runs under every driver.

    start(now, boot)                               once, before anything else; boot: number of earlier starts
    receive(frame, previous_hop, now, broadcast)   a neighbor sent a frame; broadcast False: to this node only
    sent(destination, frame, ok, now)              the radio reports the outcome of a unicast frame of this node
    wake(now)                                      called when ``now`` has reached ``next_wake``
    subscribe(attributes, now, expires_s, match_all)   -> Subscription; match_all: constraints may be missing
    unsubscribe(subscription, now)
    publish(attributes, now, payload)              -> number of this reading at this node
    take_frames()                                  -> [(destination or None for broadcast, bytes), ...]
    take_events()                                  -> [event, ...]
    next_wake                                      microseconds, or None

Events
    All events have the same six fields, so a driver can write any event as a row of a table:

    peer       the neighbor that the event concerns, or `NOBODY`
    message    the protocol's name of the message ("interest", "data", ...), or ""
    origin     the node that created the message, or `NOBODY`
    sequence   the message's sequence number at its origin
    value      an integer; its meaning is stated at each event below
    detail     a text, or a tuple of attributes (drivers write it in text form)

    A protocol may define further events: named tuples of FIELDS, listed in its node's EVENTS.

Subscriptions
    Every node keeps the set of its open subscriptions (subscriptions.py). A node that receives a publication calls
    `Node.deliver_to`, unless the protocol has a matching rule of its own. A protocol that sends messages for a
    subscription overrides `subscribe` and `unsubscribe`.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.attributes.model import matching_samples
from workbench.protocols.subscriptions import Subscription, Subscriptions

NOBODY = -1
# A node that lost its memory must not number its messages from 0 again: its neighbors would drop the new messages as
# duplicates. So each start has its own range of numbers; the 256th start begins again with the first range.
NUMBERS_PER_BOOT = 1 << 24

FIELDS = ("peer", "message", "origin", "sequence", "value", "detail")

# A message starts at its origin. value: the number of a reading that it carries; one event per reading.
Originated = namedtuple("Originated", FIELDS)
# This node holds a whole publication for the first time. value: the number of hops from its publisher.
Held = namedtuple("Held", FIELDS)
# A message was forwarded. value: the number of receivers (0: broadcast); peer: the neighbor that sent it to this node.
Forwarded = namedtuple("Forwarded", FIELDS)
# A subscription received a sample. value: the subscription's number at this node; detail: the sample's attributes.
Delivered = namedtuple("Delivered", FIELDS)
# A message was dropped. detail: the reason.
Dropped = namedtuple("Dropped", FIELDS)


class Settings:
    """The values of a protocol's parameters as attributes: a mote's replacement for the `Protocol` object."""

    def __init__(self, values):
        for name in values:
            setattr(self, name, values[name])


class Node:
    """The base class of nodes, with outbox, events, subscriptions and wake-up time. Subclasses implement a protocol.

    A fast driver may test whether ``node.outbox`` and ``node.events`` are empty before it calls `take_frames` and
    `take_events`. The driver may also set ``tells_all`` to False. Then the node only counts drops in ``drops``
    (reason -> number) and logs none. The node may omit Forwarded events, too, as the driver sees the forwarded frames.

    Messages, readings and subscriptions of a node have numbers, which begin with ``first_number``.

    ``settings`` has the protocol's parameters as attributes. In a simulation it is the `Protocol`, on a mote a
    `Settings`.
    """

    # The protocol's own events, in addition to the events of this file. A mote's host link sends an event's index in
    # this tuple, so new events are appended and no event is removed.
    EVENTS = ()

    def __init__(self, address, settings, random):
        self.address = address
        self.settings = settings
        self.random = random
        self.next_wake = None
        self.outbox = []
        self.events = []
        self.drops = {}
        self.tells_all = True
        self.first_number = 0
        self.subscriptions = Subscriptions()

    @staticmethod
    def describe(frame, broadcast=True):
        """Return (message name, origin, sequence number) of a frame of this protocol.

        ``broadcast``: whether the frame was broadcast; False for a unicast.
        """
        raise NotImplementedError

    @staticmethod
    def prepare(settings):
        """Compute values that all nodes derive from their settings, and store them in ``settings``.

        Drivers call this once, before the first node exists.
        """

    def start(self, now, boot=0):
        """Start this node.

        ``boot``: number of its earlier starts; the node loses its memory before each new start.
        """
        self.first_number = (boot & 0xFF) * NUMBERS_PER_BOOT

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Subscribe to readings that match ``attributes``; return the `Subscription`.

        ``expires_s``: how long the subscription lasts, in seconds (None: for ever); ``match_all``: whether
        ``attributes`` may be without constraints, which matches every reading.
        """
        return self.subscriptions.add(Subscription(self, attributes, now, expires_s, match_all))

    def unsubscribe(self, subscription, now):
        """End a subscription; do nothing if the subscription has already ended."""
        self.subscriptions.end(subscription)

    def publish(self, attributes, now, payload=b""):
        """Publish a reading; return its number at this node. Numbers are counted from ``first_number``.

        ``payload``: bytes that are added to the attributes, see `with_payload`.
        """
        raise NotImplementedError

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Process a frame from a neighbor. An implementation must not raise, whatever the bytes are.

        ``broadcast`` False: the frame was sent to this node only.
        """
        raise NotImplementedError

    def sent(self, destination, frame, ok, now):
        """React to the radio's report about a unicast frame of this node; the default ignores it. Must not raise.

        ``ok``: True if the destination's radio acknowledged the frame. It is False if no transmission of the frame was
        acknowledged, or if carrier sense never found the channel free. An unacknowledged frame may still have arrived.
        The radio reports each frame at most once. A radio without acknowledgements reports only frames that were not
        sent because the channel was busy. A node that fails receives no report of the frame that it was sending.
        """

    def wake(self, now):
        """Do the work that is due: ``now`` has reached ``next_wake``. A node without timers is never woken."""

    def link_quality(self, neighbor, inbound, outbound, now):
        """Use the link layer's estimates of delivery ratios (0 to 1); the default ignores them.

        ``inbound``: the ratio for frames from the neighbor; ``outbound``: the ratio for frames to the neighbor.
        """

    def deliver_to(self, subscriptions, attributes, previous_hop, message, origin, sequence, now):
        """Deliver to each subscription the matching samples of a publication; log an event Delivered for each sample.

        Expired subscriptions get no samples. ``attributes``: the publication's attributes. The remaining arguments
        describe the message that brought the publication.
        """
        for subscription in subscriptions:
            if subscription.is_over(now):
                continue
            for sample in matching_samples(subscription.attributes, attributes):
                subscription.put(sample)
                self.events.append(Delivered(previous_hop, message, origin, sequence, subscription.number, sample))

    def drop(self, previous_hop, message, origin, sequence, reason):
        """Count a dropped message by its reason. Log the drop, too, unless the driver has set ``tells_all`` to False.

        ``previous_hop``: the neighbor that sent the message. ``message``: the name of the message type. ``origin``,
        ``sequence``: the id of the message.
        """
        self.drops[reason] = self.drops.get(reason, 0) + 1
        if self.tells_all:
            self.events.append(Dropped(previous_hop, message, origin, sequence, 0, reason))

    def take_frames(self):
        """Return [(destination or None for a broadcast, bytes), ...] in the order of sending, and clear the outbox."""
        frames, self.outbox = self.outbox, []
        return frames

    def take_events(self):
        """Return the events that were logged since the last call, in order, and clear them."""
        events, self.events = self.events, []
        return events
