"""The protocol contract (sans-IO): one object is one node, and it never learns who drives it.

Theory of operation
    A node is given its address, its settings and its own random stream. Time comes in as an argument, in integer
    microseconds; frames (bytes) go in and out; what happened comes out as small named tuples. A node never sleeps,
    prints, opens anything or reads a clock, so the same file runs in the simulator, over UDP and on a mote.

    start(now, boot)                               once, before anything else; boot: how often it has started before
    receive(frame, previous_hop, now, broadcast)   a frame from a neighbor; broadcast False: to us alone
    wake(now)                                      called when ``now`` has reached ``next_wake``
    subscribe(attributes, now, expires_s, match_all)   -> Subscription; match_all: no constraint is meant
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

    A protocol that needs no mote may have events of its own beside these: `protocols/dps/events.py`.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.errors import ParameterError

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
# A filter answered REPLACE or DROP. value: the filter's key; detail: "replace" or "drop".
Filtered = namedtuple("Filtered", FIELDS)
# An interest entered the interest cache. value: its round; origin, sequence: sink and number; detail: its attributes.
InterestCached = namedtuple("InterestCached", FIELDS)
# An interest left the interest cache. detail: "expired", "evicted" or "cancelled".
InterestRemoved = namedtuple("InterestRemoved", FIELDS)
# Data for sink ``origin`` may now go to ``peer``. value: when it expires, in µs; detail: "interest", "reinforcement".
GradientSet = namedtuple("GradientSet", FIELDS)
# Data for it no longer goes to ``peer``. sequence: of the interest or reinforcement that set it last; detail:
# "expired", "evicted", "cancelled", "round", "blacklisted".
GradientRemoved = namedtuple("GradientRemoved", FIELDS)
# New data of source ``origin`` came first from ``peer``. sequence: the data message's.
DataGradientSet = namedtuple("DataGradientSet", FIELDS)
# A reinforcement (of sink ``origin``) was sent to ``peer``, towards the source. value: the source that it is meant for.
Reinforced = namedtuple("Reinforced", FIELDS)
# A coded packet from ``peer`` raised the rank of its decoding matrix. value: the rank; detail: the column of its pivot.
Innovative = namedtuple("Innovative", FIELDS)
# The event ``origin``, ``sequence`` was decoded. value: its generation size.
Decoded = namedtuple("Decoded", FIELDS)
# A neighbor was put on the black list (value 1) or taken off it (value 0).
Blacklisted = namedtuple("Blacklisted", FIELDS)
# This node has a key in an overlay tree. peer: its parent; origin: the tree; sequence: the root's epoch; value: the
# key's length, or NOBODY: it has lost its place; detail: the key.
KeySet = namedtuple("KeySet", FIELDS)
# A query of sink ``origin`` was stored here (value 1) or removed (value 0). detail: its attributes.
QueryStored = namedtuple("QueryStored", FIELDS)

# What a filter answers. Here and not in filters.py, so that a mote without filters does not load them.
PASS = "pass"
REPLACE = "replace"
DROP = "drop"

_LARGEST = 1e30
Parameter = namedtuple("Parameter", ("name", "default", "minimum", "maximum", "unit", "reason"))


class Subscription:
    """What ``subscribe`` returns: an open pipe from the network to the subscriber.

    Iterating over it takes the samples that arrived since the last time, oldest first.
    """

    def __init__(self, node, number, attributes, expires_us):
        self.node = node
        self.number = number
        self.attributes = attributes
        self.expires_us = expires_us
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

    def unsubscribe(self, now):
        """End it: the node's ``unsubscribe`` with this subscription."""
        self.node.unsubscribe(self, now)


class Node:
    """What every protocol node has: an outbox, its events, a wake-up time. Subclasses do the protocol.

    A driver in a hurry may test ``node.outbox`` and ``node.events`` before it takes them, and set ``tells_all`` to
    False: drops are then counted in ``drops`` (reason -> number) and not told one by one, and a node may leave out
    Forwarded, as the driver has the frame itself.

    What a node numbers, it numbers from ``first_number``: its messages, readings and subscriptions.
    """

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

    def start(self, now, boot=0):
        """Begin; ``boot`` counts the times that this node began before and lost its memory."""
        self.first_number = (boot & 0xFF) * NUMBERS_PER_BOOT

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Ask for what matches ``attributes``, for ``expires_s`` seconds (None: for ever); returns a Subscription."""
        raise NotImplementedError

    def unsubscribe(self, subscription, now):
        """End a subscription; one that has ended already is no error."""
        raise NotImplementedError

    def publish(self, attributes, now, payload=b""):
        """Publish a reading; returns its number at this node: first_number, and so on."""
        raise NotImplementedError

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Take a frame from a neighbor. Whatever its bytes are, this raises nothing."""
        raise NotImplementedError

    def wake(self, now):
        """``now`` has reached ``next_wake``; a protocol without timers is never woken."""

    def link_quality(self, neighbor, inbound, outbound, now):
        """What the link layer estimates: the delivery ratios (0 to 1) from and to a neighbor; most ignore it."""

    def drop(self, previous_hop, message, origin, sequence, reason):
        """Count a message that ends here under a reason; tell it as an event unless the driver wants counts alone."""
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


class Protocol:
    """A protocol and its settings: an immutable value from which nodes are made.

    A subclass names its node class, its table of parameters and the largest address its frames can carry::

        class Flooding(Protocol):
            node = FloodingNode
            parameters = (Parameter("ttl", 50, 1, 255, "hops", "why 50"),)
            describe = staticmethod(wire.describe)

    ``describe(frame, broadcast)`` tells (message name, origin, sequence number) of one of its frames, for the trace.
    Every parameter is a keyword argument, checked against the table, and readable as an attribute.
    """

    node = Node
    parameters = ()
    largest_address = 0xFFFFFFFF
    # Whether a publication is meant to reach every node: then its coverage has a meaning.
    disseminates = False

    def __init__(self, **settings):
        table = {}
        for parameter in self.parameters:
            value = settings.pop(parameter.name, parameter.default)
            table[parameter.name] = check_parameter(type(self).__name__, parameter, value)
        if settings:
            unknown = sorted(settings)[0]
            known = ", ".join([parameter.name for parameter in self.parameters])
            raise ParameterError("%s has no parameter %r; it has: %s" % (type(self).__name__, unknown, known or "none"))
        self.settings = table

    def __getattr__(self, name):
        # Only called when ordinary look-up fails: parameters read as attributes (protocol.ttl).
        if name != "settings" and name in self.settings:
            return self.settings[name]
        raise AttributeError(name)

    def matching_samples(self, subscription, publication):
        """The samples of a publication that a subscription asks for, both as attributes: what metrics go by."""
        from workbench.attributes import matching_samples

        return matching_samples(subscription, publication)

    def make_node(self, address, random):
        """A fresh node of this protocol."""
        return self.node(address, self, random)

    @staticmethod
    def describe(frame, broadcast=True):
        """(message name, origin, sequence number) of one of this protocol's frames; broadcast: not unicast."""
        raise NotImplementedError

    def __eq__(self, other):
        return type(self) is type(other) and self.settings == other.settings

    def __hash__(self):
        return hash((type(self).__name__, tuple(sorted([(k, str(v)) for k, v in self.settings.items()]))))

    def __repr__(self):
        changed = [
            "%s=%r" % (parameter.name, self.settings[parameter.name])
            for parameter in self.parameters
            if self.settings[parameter.name] != parameter.default
        ]
        return "%s(%s)" % (type(self).__name__, ", ".join(changed))


def check_parameter(owner, parameter, value):
    """``value`` as the default's type; ParameterError unless it is of that type and within the parameter's range.

    A range of None leaves that side open; a tuple as ``minimum`` lists the only values allowed. A list will do for a
    tuple, and the integers and floats of other libraries for Python's.
    """
    name, default, minimum, maximum, unit, _ = parameter
    value = _plain(value, default)
    if isinstance(minimum, tuple):
        if value not in minimum:
            raise ParameterError(
                "%s: %s is %r; it must be one of %s"
                % (owner, name, value, ", ".join([repr(choice) for choice in minimum]))
            )
        return value
    if isinstance(default, tuple) and not isinstance(value, tuple):
        raise ParameterError("%s: %s is %r; write a tuple or a list, as in %s=[...]" % (owner, name, value, name))
    number = isinstance(default, (int, float)) and not isinstance(default, bool)
    right_type = (
        isinstance(value, (int, float) if isinstance(default, float) else int) and not isinstance(value, bool)
        if number
        else isinstance(value, type(default))
    )
    # Written so that not-a-number fails, and infinity even where a side is open: neither can be written as JSON.
    too_small = number and right_type and not value >= (-_LARGEST if minimum is None else minimum)
    too_large = number and right_type and not value <= (_LARGEST if maximum is None else maximum)
    if not right_type or too_small or too_large:
        kind = "a number" if isinstance(default, float) else "a whole number" if number else type(default).__name__
        limits = "" if minimum is None else " from %s to %s" % (minimum, "any" if maximum is None else maximum)
        raise ParameterError("%s: %s is %r; it must be %s%s %s" % (owner, name, value, kind, limits, unit))
    return value


def _plain(value, default):
    """A list as a tuple, and a number of numpy's as Python's, where the default asks for one; all else as it is."""
    if isinstance(default, tuple):
        return tuple(value) if isinstance(value, list) else value
    if isinstance(default, bool) or not isinstance(default, (int, float)) or type(value) in (bool, int, float):
        return value
    try:
        if hasattr(value, "__index__"):
            return value.__index__()
        if isinstance(default, float) and hasattr(value, "__float__"):
            return float(value)
    except TypeError:  # An array has these names too.
        pass
    return value
