"""What the application holds of DPS: a series of publications, a subscription to topics, and what arrives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.context import Neighbor
from workbench.protocols.dps.topics import publication_items, subscription_items
from workbench.protocols.subscriptions import Subscription

if TYPE_CHECKING:
    from workbench.protocols.dps.node import DPSNode

MOST_ANSWERS = 1000  # of one series, that nobody has taken


class Arrival(NamedTuple):
    """A publication as its subscriber gets it.

    wants_answer  whether the publisher asked for acknowledgements
    ttl_s         seconds that were left, 0 if it is not retained
    hops          links that it came over
    neighbor      the last node on its path, None if it was published here
    sender        key id of its signature, None without one
    opened        how it was secured, None if it was not
    """

    publication_id: bytes
    sequence: int
    topics: Sequence[str]
    data: bytes
    is_expiry: bool
    wants_answer: bool
    ttl_s: int
    hops: int
    neighbor: Neighbor | None
    sender: bytes | None
    opened: Any


class Answer(NamedTuple):
    """An acknowledgement as the publisher gets it. Without sender and way anybody may have written it.

    sequence  number of the publication in its series
    sender    key id of its signature, None without one
    way       how it was encrypted, None if it was not
    neighbor  the last node on its path, None if it comes from this node
    """

    sequence: int
    data: bytes
    sender: bytes | None
    way: str | None
    neighbor: Neighbor | None


def publication_filter(topics: Iterable[str], settings: Any, wildcards: bool = True) -> BitVector:
    """The filter of a publication's topics; AttributeFormatError for a topic that cannot be published."""
    vector = BitVector(settings.filter_bits)
    for topic in topics:
        for item in publication_items(topic, settings.separators, wildcards):
            vector.add(item, settings.hashes)
    return vector


def subscription_filter(topics: Iterable[str], settings: Any) -> BitVector:
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

    def __init__(
        self,
        topics: tuple[str, ...],
        settings: Any,
        expired: bool = False,
        is_of_attributes: bool = False,
        is_told: bool = True,
    ) -> None:
        self.topics = topics
        self.filter = subscription_filter(topics, settings)
        self.pair = (self.filter, self.filter.fuzzy_hash()) if is_told else None
        self.expired = expired
        self.is_of_attributes = is_of_attributes


class TopicSubscription(Subscription):
    """A subscription to topics: iterating over it takes the Arrivals since the last time."""

    def __init__(self, node: DPSNode, topics: tuple[str, ...], now: int) -> None:
        Subscription.__init__(self, node, (), now, match_all=True)
        self.topics = topics

    def __repr__(self) -> str:
        return f"<subscription {self.number} to {', '.join(map(repr, self.topics))}>"


class Series:
    """Publications on the same topics under one id: ``publish`` sends the next one, ``expire`` ends a retained one.

    Iterating over it takes the Answers since the last time, oldest first.
    """

    def __init__(
        self,
        node: DPSNode,
        publication_id: bytes,
        number: int,
        topics: tuple[str, ...],
        vector: BitVector,
        acknowledge: bool,
    ) -> None:
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
        self._answers: list[Answer] = []

    def __repr__(self) -> str:
        return f"<series on {', '.join(map(repr, self.topics))}, {self.sequence} published>"

    def publish(self, payload: bytes, now: int, ttl_s: int = 0) -> int:
        """Publish this payload (bytes) under the next number, which is returned; see `DPSNode.publish_topics`."""
        return self.node.publish_next(self, payload, now, ttl_s)

    def expire(self, now: int) -> int:
        """Have everybody forget the publication that is retained; ParameterError if there is none."""
        return self.node.expire(self, now)

    def put(self, answer: Answer) -> None:
        """Append an Answer (called by the node); anybody can send many, so the oldest of too many is lost."""
        if len(self._answers) >= MOST_ANSWERS:
            del self._answers[0]
            self.lost += 1
        self._answers.append(answer)

    def take(self) -> list[Answer]:
        """Return the Answers since the last call, oldest first."""
        answers, self._answers = self._answers, []
        return answers

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.take())
