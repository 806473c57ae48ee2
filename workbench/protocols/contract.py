"""The protocol contract (sans-IO): what a node is called with, and what it answers.

Theory of operation
    One object is one node. It is made with its address, its settings and its own random stream. A driver calls it:
    the simulator, a socket or a mote. Time is an argument, in integer microseconds. The node receives frames (bytes)
    and appends those that it sends to its outbox. It logs what happened as events, which are small named tuples. A
    node never sleeps, prints, opens anything or reads a clock, so the same file runs under every driver.

    start(now, boot)                               once, before anything else; boot: how often it has started before
    receive(frame, previous_hop, now, broadcast)   a neighbor sent a frame; broadcast False: to this node alone
    sent(destination, frame, ok, now)              the radio reports the outcome of a unicast frame of this node
    wake(now)                                      called when ``now`` has reached ``next_wake``
    subscribe(attributes, now, expires_s, match_all)   -> Subscription; match_all: it may be without a constraint
    unsubscribe(subscription, now)
    publish(attributes, now, payload)              -> number of this reading at this node
    take_frames()                                  -> [(destination or None for broadcast, bytes), ...]
    take_events()                                  -> [event, ...]
    next_wake                                      microseconds, or None

Events
    All events have the same six fields, so a driver can write any of them as a row of a table without knowing it:

    peer       the neighbor it concerns, or NOBODY
    message    the protocol's name of the message it concerns ("interest", "data", ...), or ""
    origin     the node the message came from in the first place, or NOBODY
    sequence   the message's sequence number at its origin
    value      an integer whose meaning each event states below
    detail     a text, or a tuple of attributes (drivers write it in text form)

    A protocol may have events of its own beside these: named tuples of FIELDS, listed in its node's EVENTS.

Subscriptions
    Every node has the set of its open subscriptions (subscriptions.py). A node that receives a publication calls
    `Node.deliver_to`, unless it matches by a rule of its own. A protocol that sends something for a subscription
    overrides `subscribe` and `unsubscribe`.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.attributes.model import matching_samples
from workbench.protocols.subscriptions import Subscription, Subscriptions

NOBODY = -1
# A node that has lost its memory must not number from 0 again: its neighbors would take what is new for known.
# So each start has a range of numbers of its own, until the 256th begins again.
NUMBERS_PER_BOOT = 1 << 24

FIELDS = ("peer", "message", "origin", "sequence", "value", "detail")

# A message starts its travel at its origin. value: the number of a reading it carries; one event per reading.
Originated = namedtuple("Originated", FIELDS)
# This node holds a publication (all of it) for the first time. value: hops it travelled.
Held = namedtuple("Held", FIELDS)
# A message was sent on. value: to how many neighbors (0 = broadcast); peer: the neighbor it came from.
Forwarded = namedtuple("Forwarded", FIELDS)
# A subscription was handed a sample. value: number of the subscription at this node; detail: the sample's attributes.
Delivered = namedtuple("Delivered", FIELDS)
# A message ended here. detail: the reason.
Dropped = namedtuple("Dropped", FIELDS)


class Settings:
    """The values of a protocol's parameters, as attributes: what a mote is given in place of the protocol."""

    def __init__(self, values):
        for name in values:
            setattr(self, name, values[name])


class Node:
    """What every node has: an outbox, events, subscriptions, a wake-up time. Subclasses do the protocol.

    A driver in a hurry may test ``node.outbox`` and ``node.events`` before it takes them. It may also set
    ``tells_all`` to False. Then drops are only counted in ``drops`` (reason -> number), and a node may leave out
    Forwarded: the driver has the frame itself.

    A node numbers its messages, readings and subscriptions from ``first_number`` on.

    ``settings`` has the protocol's parameters as attributes. In a simulation it is the protocol itself, on a mote a
    `Settings`.
    """

    # The protocol's own events, beside those of this file. On a mote their places in here go over the host link, so a
    # new one goes to the end, and none is taken out.
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
        """(message name, origin, sequence number) of a frame of this node's; broadcast: not unicast."""
        raise NotImplementedError

    @staticmethod
    def prepare(settings):
        """Compute what all nodes derive from their settings: called once, before the first node is made."""

    def start(self, now, boot=0):
        """Begin; ``boot`` counts the times that this node began before and lost its memory."""
        self.first_number = (boot & 0xFF) * NUMBERS_PER_BOOT

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Ask for what matches ``attributes``, for ``expires_s`` seconds (None: for ever); returns a Subscription."""
        return self.subscriptions.add(Subscription(self, attributes, now, expires_s, match_all))

    def unsubscribe(self, subscription, now):
        """End a subscription. Ending one that has ended does nothing."""
        self.subscriptions.end(subscription)

    def publish(self, attributes, now, payload=b""):
        """Publish a reading; returns its number at this node: first_number, and so on."""
        raise NotImplementedError

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Receive a frame from a neighbor. Whatever its bytes are, this raises nothing."""
        raise NotImplementedError

    def sent(self, destination, frame, ok, now):
        """Learn the outcome of a unicast frame of this node; the default ignores it. No bytes make this raise.

        ``ok``: True if the destination's radio acknowledged the frame. False if it did not, however often the radio
        tried, or if carrier sense never found the channel free; the frame may have arrived all the same. The radio
        reports each frame at most once. A radio that asks for no acknowledgements reports only what carrier sense
        gave up, and a node that fails gets no report of what it was sending.
        """

    def wake(self, now):
        """Do what is due: ``now`` has reached ``next_wake``. A protocol without timers is never woken."""

    def link_quality(self, neighbor, inbound, outbound, now):
        """The link layer estimates these delivery ratios (0 to 1) from and to a neighbor. Most protocols ignore it."""

    def deliver_to(self, subscriptions, attributes, previous_hop, message, origin, sequence, now):
        """Hand these subscriptions the samples of a publication that match them, and log a Delivered for each."""
        for one in subscriptions:
            if one.is_over(now):
                continue
            for sample in matching_samples(one.attributes, attributes):
                one.put(sample)
                self.events.append(Delivered(previous_hop, message, origin, sequence, one.number, sample))

    def drop(self, previous_hop, message, origin, sequence, reason):
        """Count a message that ends here under a reason, and log it unless the driver wants counts alone."""
        self.drops[reason] = self.drops.get(reason, 0) + 1
        if self.tells_all:
            self.events.append(Dropped(previous_hop, message, origin, sequence, 0, reason))

    def take_frames(self):
        """Return and forget [(destination or None, bytes), ...] in the order they are to be sent."""
        frames, self.outbox = self.outbox, []
        return frames

    def take_events(self):
        """Return and forget the events since the last call, in order."""
        events, self.events = self.events, []
        return events
