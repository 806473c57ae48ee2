"""What the application holds of DPS: a series of publications, a subscription to topics, and what arrives.

This file is written in MicroPython's subset of Python.
"""

from collections import namedtuple

from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.topics import publication_items, subscription_items
from workbench.protocols.subscriptions import Subscription

MOST_ANSWERS = 1000  # of one series, that nobody has taken
# A publication as the subscriber gets it. topics: texts; data: bytes; wants_answer: whether the publisher asked for
# acknowledgements; ttl_s: seconds that were left, 0 if it is not retained; hops: links that it came over; neighbor: the
# last of them, None if it was published here; sender: the key id of its signature, None without one; opened: how it was
# secured, None if it was not.
Arrival = namedtuple(
    "Arrival",
    (
        "publication_id",
        "sequence",
        "topics",
        "data",
        "is_expiry",
        "wants_answer",
        "ttl_s",
        "hops",
        "neighbor",
        "sender",
        "opened",
    ),
)
# An acknowledgement as the publisher gets it: of which number of the series, its data, the key id of its sender, how it
# was encrypted, and the neighbor that it came from (None: this node). Without sender and way it is plain, and anybody
# may have written it.
Answer = namedtuple("Answer", ("sequence", "data", "sender", "way", "neighbor"))


def publication_filter(topics, settings, wildcards=True):
    """The filter of a publication's topics; AttributeFormatError for a topic that cannot be published."""
    vector = BitVector(settings.filter_bits)
    for topic in topics:
        for item in publication_items(topic, settings.separators, wildcards):
            vector.add(item, settings.hashes)
    return vector


def subscription_filter(topics, settings):
    """The filter of a subscription's topics; AttributeFormatError for one that is none."""
    vector = BitVector(settings.filter_bits)
    for topic in topics:
        for item in subscription_items(topic, settings.separators):
            vector.add(item, settings.hashes)
    return vector


class Interest:
    """What a subscription asks for: topics and their filter.

    ``pair`` is what it adds to the interests that neighbors are told; None: they are told nothing of it.
    """

    __slots__ = ("expired", "filter", "is_of_attributes", "pair", "topics")

    def __init__(self, topics, settings, expired=False, is_of_attributes=False, is_told=True):
        self.topics = topics
        self.filter = subscription_filter(topics, settings)
        self.pair = (self.filter, self.filter.fuzzy_hash()) if is_told else None
        self.expired = expired
        self.is_of_attributes = is_of_attributes


class TopicSubscription(Subscription):
    """A subscription to topics: iterating over it takes the Arrivals since the last time."""

    def __init__(self, node, topics, now):
        Subscription.__init__(self, node, (), now, match_all=True)
        self.topics = topics

    def __repr__(self):
        return "<subscription %d to %s>" % (self.number, ", ".join([repr(one) for one in self.topics]))


class Series:
    """Publications on the same topics under one id: ``publish`` sends the next one, ``expire`` ends a retained one.

    Iterating over it takes the Answers since the last time, oldest first.
    """

    def __init__(self, node, publication_id, number, topics, vector, acknowledge):
        self.node = node
        self.publication_id = publication_id
        self.number = number
        self.topics = topics
        self.filter = vector
        self.acknowledge = acknowledge
        self.is_encrypted = False  # whether any of it was
        self.is_multicast = False  # whether it is, though the node's other publications are not
        self.sequence = 0
        self.lost = 0  # answers that nobody had taken
        self._answers = []

    def __repr__(self):
        return "<series on %s, %d published>" % (", ".join([repr(one) for one in self.topics]), self.sequence)

    def publish(self, payload, now, ttl_s=0):
        """Publish this payload (bytes) under the next number, which is returned; see `DPSNode.publish_topics`."""
        return self.node.publish_next(self, payload, now, ttl_s)

    def expire(self, now):
        """Have everybody forget the publication that is retained; ParameterError if there is none."""
        return self.node.expire(self, now)

    def put(self, answer):
        """Append an Answer (called by the node); anybody can send many, so the oldest of too many is lost."""
        if len(self._answers) >= MOST_ANSWERS:
            del self._answers[0]
            self.lost += 1
        self._answers.append(answer)

    def take(self):
        """Return the Answers since the last call, oldest first."""
        answers, self._answers = self._answers, []
        return answers

    def __iter__(self):
        return iter(self.take())
