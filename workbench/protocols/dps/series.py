"""The objects of an application that uses DPS: series of publications, subscriptions, and their results.

A subscription yields an `Arrival` for each publication. A series yields an `Answer` for each acknowledgement.
"""

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

MOST_ANSWERS = 1000  # answers of one series that the application has not taken yet


class Arrival(NamedTuple):
    """A publication, or the expiry of a retained publication, as a subscriber gets it.

    wants_answer  whether the publisher requests acknowledgements
    ttl_s         remaining lifetime in seconds, 0 if the publication is not retained
    hops          number of hops from the publisher
    neighbor      the neighbor that sent it, None if this node published it
    sender        key id of its signature, None if it is not signed
    opened        how the publication was encrypted or signed, a `cose.Opened`; None if it was neither
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
    """An acknowledgement as the publisher gets it. If ``sender`` and ``way`` are both None, it may be forged.

    sequence  sequence number of the acknowledged publication in its series
    sender    key id of the acknowledgement's signature, None if it is not signed
    way       key management of its encryption, such as "A256KW" (see `cose.WAYS`), None if it was not encrypted
    neighbor  the neighbor that sent it, None if it comes from this node
    """

    sequence: int
    data: bytes
    sender: bytes | None
    way: str | None
    neighbor: Neighbor | None


def publication_filter(topics: Iterable[str], settings: Any, wildcards: bool = True) -> BitVector:
    """Return the filter of a publication's topics; raise AttributeFormatError for an invalid topic.

    ``settings``: an object with the fields ``separators``, ``filter_bits`` and ``hashes``. ``wildcards``: whether
    subscriptions with wildcards can match the publication.
    """
    items = [publication_items(topic, settings.separators, wildcards) for topic in topics]
    return BitVector.of(chain(*items), settings.filter_bits, settings.hashes)


def subscription_filter(topics: Iterable[str], settings: Any) -> BitVector:
    """Return the filter of a subscription's topics; raise AttributeFormatError for an invalid topic.

    ``settings``: an object with the fields ``separators``, ``filter_bits`` and ``hashes``.
    """
    items = [subscription_items(topic, settings.separators) for topic in topics]
    return BitVector.of(chain(*items), settings.filter_bits, settings.hashes)


@dataclass(slots=True)
class Interest:
    """The topics of a subscription, and their filter.

    expired           whether an Arrival is delivered when a retained publication expires
    is_of_attributes  whether the topics were made from attributes (`dps.mapping`)
    is_announced      whether the filter is part of the interests that the node sends to neighbors
    """

    topics: tuple[str, ...]
    filter: BitVector
    expired: bool = False
    is_of_attributes: bool = False
    is_announced: bool = True

    @property
    def pair(self) -> tuple[BitVector, bytes] | None:
        """The topics' filter and its fuzzy hash, to be sent to neighbors; None if ``is_announced`` is False."""
        return (self.filter, self.filter.fuzzy_hash()) if self.is_announced else None


class TopicSubscription(Subscription):
    """A subscription to topics.

    Iterating over the subscription yields the publications (`Arrival`) that came since the previous iteration.
    """

    def __init__(self, node: DPSNode, topics: tuple[str, ...], now: int) -> None:
        Subscription.__init__(self, node, (), now, match_all=True)
        self.topics = topics

    def __repr__(self) -> str:
        return f"<subscription {self.number} to {', '.join(map(repr, self.topics))}>"


@dataclass(slots=True, eq=False, repr=False)
class Series:
    """A series of publications on the same topics under one id.

    ``publish`` sends the next publication, and ``expire`` makes the retained publication expire at all nodes.
    Iterating over the series yields the acknowledgements (`Answer`) since the last iteration, oldest first.
    """

    node: DPSNode
    publication_id: bytes
    topics: tuple[str, ...]
    filter: BitVector
    acknowledge: bool
    is_encrypted: bool = False  # whether any of its publications was encrypted
    is_multicast: bool = False  # whether it is sent by multicast, even if the node's other publications are not
    sequence: int = 0
    lost: int = 0  # answers that were dropped, as MOST_ANSWERS were waiting
    _answers: list[Answer] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<series on {', '.join(map(repr, self.topics))}, {self.sequence} published>"

    def publish(self, payload: bytes, now: int, ttl_s: int = 0) -> int:
        """Publish a payload, and return the sequence number of the publication.

        ``now``: the time (µs). ``ttl_s``: seconds for which nodes retain the publication; 0: it is not retained.
        """
        return self.node.publish_next(self, payload, now, ttl_s)

    def expire(self, now: int) -> int:
        """Send a message that expires the retained publication at all nodes; return the message's sequence number.

        Raises ParameterError if no publication of the series is retained.
        """
        return self.node.expire(self, now)

    def put(self, answer: Answer) -> None:
        """Store an acknowledgement until the application takes it; the node calls this method.

        If MOST_ANSWERS acknowledgements are stored already, the oldest is discarded.
        """
        if len(self._answers) >= MOST_ANSWERS:
            del self._answers[0]
            self.lost += 1
        self._answers.append(answer)

    def take(self) -> list[Answer]:
        """Return the acknowledgements (`Answer`) that arrived since the last call, oldest first."""
        answers, self._answers = self._answers, []
        return answers

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.take())
