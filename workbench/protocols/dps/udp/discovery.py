"""Discovery: nodes of one service find each other by multicast, and publishers link to possible subscribers.

Theory of operation
    A node publishes an *announcement* on ``$DPS_Discovery/<service>``, by multicast and with a request for
    acknowledgements. It contains the union of the filters of the application's subscriptions, and data that the
    application chooses. A node announces itself 20 to 119 ms after it is opened, about a second later, and then at
    intervals that double until they are at least five minutes. The multicast reaches other nodes of the service. Each
    of them acknowledges the announcement, with its own announcement as payload. A node that closes publishes an empty
    announcement, the goodbye. Announcements are not forwarded over links, because a node does not send its neighbors
    the subscription to announcements.

    A node that receives an announcement or an acknowledgement compares the announced filter with its own publications.
    If the filter has all bits of an item (a testable part of a topic) of a publication, the announced node may
    subscribe to this publication. The receiver then acknowledges an announcement at once and requests a link. If no
    publication may match, it acknowledges after 20 to 119 ms, as other nodes are answering too.

    A node remembers the topics of its publications, so it can request a link as soon as a subscription matches.

Bounds
    A node remembers at most `MOST_NODES` other nodes and the topics of `MOST_PUBLISHED` publications, and delays at
    most `MOST_WAITING` acknowledgements. It forgets another node after `FORGET_S` without an announcement.

Limits
    filters     Filters have false positives, so some links are not needed. A subscription to ``+`` or ``#`` alone sets
                no bits, so no node requests a link because of it. A subscription to ``#`` also receives announcements.
    lost links  A lost link is requested once more, and again with the next announcement.
    C nodes     A publisher of the C implementation does not request a link if its publication allows wildcards (see
                *match* below). The subscriber cannot request the link either, because announcements do not contain
                published topics.
    strangers   A host that can multicast to a node can make it request links.

Differs from the reference implementation in
    match      The reference requests a link if the announced filter has all bits of a publication's filter. This test
               is inverted: a subscription matches if the publication's filter has all bits of the subscription's
               filter. In practice the reference's test succeeds only without wildcards. This node requests a link if
               the announced filter has all bits of at least one item of the publication.
    changes    New subscriptions are announced at once, and new publications are compared with all known nodes. In the
               reference the application has to announce again, and a publication waits for the next announcement.
    memory     The reference passes each announcement to the application. This node remembers nodes and reports changes.
    relayed    Another implementation may still relay an announcement over a link. This node ignores such an
               announcement, because its sender is not the announced node.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from workbench.errors import DecodeError, LinkError, ParameterError, WorkbenchError
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.topics import check_publication_topic, publication_items
from workbench.protocols.dps.udp import addresses
from workbench.protocols.dps.udp.addresses import Address
from workbench.protocols.dps.udp.application import DPSSeries, ReceivedPublication, Receiver, count, payload_text
from workbench.protocols.dps.udp.link_keeper import now_us
from workbench.protocols.dps.wire.discovery import Announcement, decode_announcement, encode_announcement

if TYPE_CHECKING:
    from workbench.protocols.dps.series import Answer
    from workbench.protocols.dps.udp import UDPNode

SERVICE = "generic_discovery"
TOPIC = "$DPS_Discovery/"
MOST_NODES = 1000
MOST_PUBLISHED = 256
MOST_WAITING = 256
MOST_DATA_B = 1 << 15
FORGET_S = 1200.0  # two of the longest announcement intervals
_SHORTEST_DELAY_MS, _DELAY_RANGE_MS = 20, 100
_SECOND_MS = 1000
_LAST_DOUBLED_S = 300.0  # Intervals of this length or more are not doubled.


@dataclass(frozen=True, repr=False)
class DiscoveredNode:
    """A snapshot of a node that discovery has found.

    address         the node's address as a text, for `UDPNode.link`
    service         name of the service under which the node announces itself
    interests       union of the filters of its application's subscriptions
    data            data that its application announces, as bytes; ``text`` is the data as a text
    is_gone         whether the node has closed, or has not announced itself for `FORGET_S` seconds
    publication_id  publication id of its announcements, 16 bytes
    separators      level separators of topics in the node's mesh
    hashes          number of bits that each item (testable part of a topic) sets in a filter
    """

    address: str
    service: str
    interests: BitVector
    data: bytes = b""
    is_gone: bool = False
    publication_id: bytes = field(default=b"", kw_only=True)
    separators: str = field(default="/", kw_only=True)
    hashes: int = field(default=3, kw_only=True)

    def __repr__(self) -> str:
        interests_text = (
            "asks for nothing" if self.interests.is_empty else f"asks for {count(self.interests.popcount, 'bit')}"
        )
        state_text = "gone" if self.is_gone else interests_text
        data_text = f", {payload_text(self.data)}" if self.data else ""
        return f"<DPS node at {self.address} in {self.service}: {state_text}{data_text}>"

    @property
    def text(self) -> str:
        """The announced data as a text; bytes that are not UTF-8 are escaped."""
        return self.data.decode("utf-8", "backslashreplace")

    def may_want(self, *topics: str) -> bool:
        """Return whether the discovered node may subscribe to these topics; False is certain, True may be wrong.

        Raises AttributeFormatError for a topic that cannot be published.
        """
        topic_masks = item_masks(topics, self.separators, True, self.interests.length, self.hashes)
        return includes_any(self.interests, topic_masks)


class Discoveries(Receiver[DiscoveredNode]):
    """An iterator over discovered nodes: ``async for other in node.discover()`` yields new, changed and lost nodes."""

    def __repr__(self) -> str:
        return f"<discoveries: {self._waiting_text()}>"


class _KnownNode(NamedTuple):
    """A discovered node with its socket address and the time of its last announcement.

    ``heard_s`` is this time in seconds, on the event loop's clock.
    """

    node: DiscoveredNode
    neighbor: Address
    heard_s: float


def item_masks(topics: Sequence[str], separators: str, wildcards: bool, length: int, hashes: int) -> list[int]:
    """Return a mask for each item of a publication: an integer whose bits are those that the item sets in a filter.

    Items are the parts of a topic that a Bloom filter can test, such as its prefixes. ``separators``: characters that
    separate the levels of a topic; ``wildcards``: whether subscriptions with wildcards may match the publication;
    ``length``: number of bits of a filter; ``hashes``: number of bits that each item sets.
    """
    items = [item for topic in topics for item in publication_items(topic, separators, wildcards)]
    return [BitVector.of([item], length, hashes).bits for item in items]


def includes_any(interests: BitVector, masks: Sequence[int]) -> bool:
    """Return whether a filter has all bits of at least one item of a publication.

    ``interests``: the filter of another node's subscriptions. ``masks``: the bits of each item, a result of
    `item_masks`. If the result is True, the other node may have a subscription that matches the publication: all items
    of such a subscription are also items of the publication.
    """
    return any(mask & interests.bits == mask for mask in masks)


class Discovery:
    """The discovery of one node: it announces this node, and remembers the nodes whose announcements arrive.

    ``drops`` counts, by reason, dropped announcements and acknowledgements, and links that could not be requested.
    """

    def __init__(self, node: UDPNode, service: str, data: bytes) -> None:
        self.node = node
        self.service = service
        self.data = data
        self._topic = TOPIC + service
        check_publication_topic(self._topic, node.protocol.separators)
        if len(data) > MOST_DATA_B:
            raise ParameterError(f"the argument `announce` has {len(data)} bytes; it may have {MOST_DATA_B} at most")
        self.drops: Counter[str] = Counter()
        self._known_nodes: dict[bytes, _KnownNode] = {}  # by publication id; the most recently heard is last
        self._ids: dict[Address, bytes] = {}
        self._published_masks: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        self._iterators: WeakSet[Discoveries] = WeakSet()
        self._delayed_calls: set[asyncio.TimerHandle] = set()
        self._linked_subscribers: set[Address] = set()  # announced matching interests while linked to this node
        self._timer: asyncio.TimerHandle | None = None
        self._is_first_due = False
        self._interval_s = 0.0

    # Beginning and end

    def open(self) -> None:
        """Subscribe to announcements and start to announce this node."""
        state_machine = self.node.core
        self._loop = asyncio.get_running_loop()
        self.node.hold_subscription(
            state_machine.subscribe_topics(self._topic, now_us(), is_announced=False), self._receive_announcement
        )
        core_series = state_machine.new_series((self._topic,), True, False)
        core_series.is_multicast = True
        self._series: DPSSeries = self.node.hold_series(core_series, self._receive_answer)
        self.announce_soon()

    def send_goodbye(self) -> None:
        """Stop all timers, and announce to all nodes that this node is closing."""
        self._stop()
        self._publish(b"")

    def close(self) -> None:
        """Stop announcing and acknowledging, and end all iterators over discovered nodes."""
        self._stop()
        for discoveries in list(self._iterators):
            discoveries.close()

    def _stop(self) -> None:
        for handle in (*self._delayed_calls, *([self._timer] if self._timer else [])):
            handle.cancel()
        self._delayed_calls.clear()

    # Announcements of this node

    def announce_soon(self) -> None:
        """Announce this node after 20 to 119 ms, and then at intervals that grow again from about one second.

        Call this method after a change of subscriptions. Do nothing if such an announcement is already planned.
        """
        if self._is_first_due:  # If each change postponed the announcement, it might never be sent.
            return
        if self._timer is not None:
            self._timer.cancel()
        self._is_first_due = True
        first_delay_s = self._random_delay_s()
        self._interval_s = first_delay_s + 1.0
        self._timer = self._loop.call_later(first_delay_s, self._announce)

    def _random_delay_s(self) -> float:
        return (_SHORTEST_DELAY_MS + int(self.node.core.random.below(_DELAY_RANGE_MS))) / _SECOND_MS

    def _announce(self) -> None:
        self._is_first_due = False
        self._timer = self._loop.call_later(self._interval_s, self._announce)
        if self._interval_s < _LAST_DOUBLED_S:
            self._interval_s *= 2
        self._forget_silent_nodes()
        self._publish(encode_announcement(self._own_announcement(None)))

    def _own_announcement(self, publication_id: bytes | None) -> Announcement:
        interest_bits = 0
        for subscription in self.node.core.subscriptions.open:
            if subscription.request.pair is not None:
                interest_bits |= subscription.request.filter.bits
        return Announcement(BitVector(self.node.protocol.filter_bits, interest_bits), self.data, publication_id)

    def _publish(self, payload: bytes) -> None:
        try:
            self.node.publish_next(self._series, payload, 0)
        except WorkbenchError:  # With a very long filter the message does not fit in a datagram.
            self.drops["too_long"] += 1

    # Announcements of other nodes

    def _receive_announcement(self, publication: ReceivedPublication) -> None:
        """Process another node's announcement or goodbye; ignore an announcement that was forwarded over a link."""
        if publication.neighbor is None or publication.hops > 1:
            return
        if not publication.data:
            self._forget_node(publication.publication_id)
            return
        announcement = self._decode(publication.data)
        if announcement is None:
            return
        is_wanted = self._store_sender(publication.publication_id, publication.neighbor, announcement)
        if publication.wants_answer and is_wanted:
            self._answer_announcement(publication)
        elif publication.wants_answer:
            self._call_later(lambda: self._answer_announcement(publication))
        self._link_if_wanted(is_wanted, publication.neighbor)

    def _receive_answer(self, answer: Answer) -> None:
        """Process an acknowledgement of this node's announcement; it contains the announcement of another node."""
        announcement = self._decode(answer.data)
        if announcement is None or answer.neighbor is None:
            return
        if announcement.publication_id is None:
            self.drops["malformed"] += 1
            return
        self._link_if_wanted(
            self._store_sender(announcement.publication_id, answer.neighbor, announcement), answer.neighbor
        )

    def _decode(self, payload: bytes) -> Announcement | None:
        try:
            return decode_announcement(payload, self.node.protocol.filter_bits)
        except DecodeError:
            self.drops["malformed"] += 1
            return None

    def _call_later(self, action: Callable[[], None]) -> None:
        if len(self._delayed_calls) >= MOST_WAITING:
            self.drops["full"] += 1
            return

        def call() -> None:
            self._delayed_calls.discard(handle)
            action()

        handle = self._loop.call_later(self._random_delay_s(), call)
        self._delayed_calls.add(handle)

    def _answer_announcement(self, publication: ReceivedPublication) -> None:
        try:
            publication.acknowledge(encode_announcement(self._own_announcement(self._series.publication_id)))
        except WorkbenchError:
            self.drops["too_long"] += 1

    # Known nodes

    @property
    def nodes(self) -> list[DiscoveredNode]:
        """Discovered nodes, in the order of their last announcements, without nodes that closed or fell silent."""
        return [known_node.node for known_node in self._known_nodes.values()]

    def discoveries(self, most: int) -> Discoveries:
        """Return an iterator over the nodes known now and all later changes; it buffers at most ``most`` items."""
        discoveries = Discoveries(None, most)
        discoveries.put(self.nodes)
        self._iterators.add(discoveries)
        return discoveries

    def _store_sender(self, publication_id: bytes, neighbor: Address, announcement: Announcement) -> bool:
        """Store the sender of an announcement; return whether the sender may subscribe to a publication of this node.

        ``publication_id``: the publication id of all announcements of the sender. ``neighbor``: address of the sender.
        """
        known_node = self._known_nodes.pop(publication_id, None)
        if known_node is not None and len(known_node.neighbor) != len(neighbor):
            # The same node announces itself by IPv4 and by IPv6; the first address stays.
            neighbor = known_node.neighbor
        former_id = self._ids.get(neighbor)
        if former_id is not None and former_id != publication_id:
            self._forget_node(former_id)  # The node was restarted.
        elif known_node is None and len(self._known_nodes) >= MOST_NODES:
            self._forget_node(next(iter(self._known_nodes)))
        discovered_node = DiscoveredNode(
            addresses.as_text(neighbor),
            self.service,
            announcement.interests,
            announcement.data,
            publication_id=publication_id,
            separators=self.node.protocol.separators,
            hashes=self.node.protocol.hashes,
        )
        if known_node is not None and known_node.neighbor != neighbor:
            self._ids.pop(known_node.neighbor, None)
        self._known_nodes[publication_id] = _KnownNode(discovered_node, neighbor, self._loop.time())
        self._ids[neighbor] = publication_id
        if known_node is None or known_node.node != discovered_node:
            self._notify(discovered_node)
        return any(includes_any(discovered_node.interests, masks) for masks in self._published_masks.values())

    def _forget_node(self, publication_id: bytes) -> None:
        known_node = self._known_nodes.pop(publication_id, None)
        if known_node is not None:
            self._ids.pop(known_node.neighbor, None)
            self._linked_subscribers.discard(known_node.neighbor)
            self._notify(replace(known_node.node, is_gone=True))

    def _forget_silent_nodes(self) -> None:
        oldest_heard_s = self._loop.time() - FORGET_S
        for publication_id in [
            known_id for known_id, known_node in self._known_nodes.items() if known_node.heard_s < oldest_heard_s
        ]:
            self._forget_node(publication_id)

    def _notify(self, node: DiscoveredNode) -> None:
        for discoveries in list(self._iterators):
            discoveries.put([node])

    # Links

    def link_subscribers(self, topics: tuple[str, ...], wildcards: bool) -> None:
        """Remember the topics of a publication, and request links to discovered nodes that may subscribe to them.

        ``wildcards``: whether the publication also matches subscriptions with wildcards."""
        item_bit_masks = self._published_masks.pop((topics, wildcards), None)
        is_new = item_bit_masks is None
        if item_bit_masks is None:
            protocol = self.node.protocol
            item_bit_masks = item_masks(topics, protocol.separators, wildcards, protocol.filter_bits, protocol.hashes)
        while len(self._published_masks) >= MOST_PUBLISHED:
            del self._published_masks[next(iter(self._published_masks))]
        self._published_masks[topics, wildcards] = item_bit_masks
        if is_new:
            for known_node in list(self._known_nodes.values()):
                self._link_if_wanted(includes_any(known_node.node.interests, item_bit_masks), known_node.neighbor)

    def _link_if_wanted(self, is_wanted: bool, neighbor: Address) -> None:
        if not is_wanted:
            return
        if neighbor in self.node.core.links.remotes:
            self._linked_subscribers.add(neighbor)
        else:
            try:
                self.node.keeper.request(neighbor, keep=False)
            except ParameterError:
                self.drops["full"] += 1
            except LinkError:
                self.drops["unreachable"] += 1

    def link_ended(self, neighbor: Address) -> None:
        """Request an ended link again if its neighbor is a discovered subscriber, which may have restarted."""
        if neighbor in self._linked_subscribers:
            self._linked_subscribers.discard(neighbor)
            # The subscriber's goodbye may arrive after the end of the link.
            self._call_later(lambda: self._link_if_wanted(neighbor in self._ids, neighbor))
