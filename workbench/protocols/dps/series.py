"""What the application holds of DPS: a series of publications, a subscription to topics, and what arrives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
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
    """Return the filter of a publication's topics; AttributeFormatError for a topic that cannot be published."""
    items = [publication_items(topic, settings.separators, wildcards) for topic in topics]
    return BitVector.of(chain(*items), settings.filter_bits, settings.hashes)


def subscription_filter(topics: Iterable[str], settings: Any) -> BitVector:
    """Return the filter of a subscription's topics; AttributeFormatError for a text that is not a topic."""
    items = [subscription_items(topic, settings.separators) for topic in topics]
    return BitVector.of(chain(*items), settings.filter_bits, settings.hashes)


@dataclass(slots=True)
class Interest:
    """The topics that a subscription asks for, and their filter.

    expired           whether it also asks for the end of retained publications
    is_of_attributes  whether its topics stand for attributes
    is_told           whether neighbors are told of it
    """

    topics: tuple[str, ...]
    filter: BitVector
    expired: bool = False
    is_of_attributes: bool = False
    is_told: bool = True

    @property
    def pair(self) -> tuple[BitVector, bytes] | None:
        """Return what it adds to the interests that neighbors are told; None if they are told nothing of it."""
        return (self.filter, self.filter.fuzzy_hash()) if self.is_told else None


class TopicSubscription(Subscription):
    """A subscription to topics: iterating over it takes the Arrivals since the last time."""

    def __init__(self, node: DPSNode, topics: tuple[str, ...], now: int) -> None:
        Subscription.__init__(self, node, (), now, match_all=True)
        self.topics = topics

    def __repr__(self) -> str:
        return f"<subscription {self.number} to {', '.join(map(repr, self.topics))}>"


@dataclass(slots=True, eq=False, repr=False)
class Series:
    """Publications on the same topics under one id: ``publish`` sends the next one, ``expire`` ends a retained one.

    Iterating over it takes the Answers since the last time, oldest first.
    """

    node: DPSNode
    publication_id: bytes
    topics: tuple[str, ...]
    filter: BitVector
    acknowledge: bool
    is_encrypted: bool = False  # whether any of it was
    is_multicast: bool = False  # whether it is, though the node's other publications are not
    sequence: int = 0
    lost: int = 0  # answers that were not taken in time
    _answers: list[Answer] = field(default_factory=list)

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
