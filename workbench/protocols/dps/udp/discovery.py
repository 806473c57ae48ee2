"""Discovery: nodes of one service find each other by multicast, and link where one publishes what another asks for.

Theory of operation
    A node publishes an *announcement* on ``$DPS_Discovery/<service>``, by multicast and with acknowledgements wanted:
    the filter of what its application asks for, and data of the application's own. It does so 20 to 119 ms after it
    is opened, about a second later, and then at intervals that double up to five minutes or more. Who receives one
    acknowledges it with an announcement. A node that closes says goodbye with an empty one. Subscriptions to
    announcements are told to no neighbor, so they do not travel over links.

    From the filter a node sees whether the other one may ask for something that is published here: an item of the
    publication's topics is in it. Then it acknowledges at once, and asks for a link. Otherwise it acknowledges after
    20 to 119 ms, for others are answering too.

    What a node has published on is remembered; so a link is asked for as soon as one of the two sides makes it matter.

Bounds
    `MOST_NODES` nodes are known, `MOST_PUBLISHED` publications remembered, `MOST_WAITING` acknowledgements
    waiting. A node that has said nothing for `FORGET_S` is forgotten.

Limits
    filters     One says yes in vain now and then, and the node links in vain. A subscription to ``+`` or ``#`` alone
                has no bits: nobody links for it. It is given announcements, though.
    lost links  One is asked for once more, and then with the next announcement.
    C nodes     A publisher of the C implementation does not ask for a link when its publication allows wildcards (see
                below). Announcements do not say what a node publishes, so a subscriber cannot ask in its place.
    strangers   Who can multicast here can make a node link.

Differs from the reference implementation in
    match      The reference links if the interests include the whole filter of a publication: the test is the wrong
               way round, and holds for publications without wildcards at best. Here it is what was meant.
    changes    New subscriptions are announced at once, and what was published late is compared with what is known.
               There the application has to announce again, and a late publication waits for the next announcement.
    memory     There each announcement is told to the application. Here nodes are known, and what changes is told.
    relayed    An announcement that came over a link is ignored: who relayed it is not who announced itself.

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
from workbench.protocols.dps.udp.application import DPSSeries, ReceivedPublication, Receiver, count, shown
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
FORGET_S = 1200.0  # two of the longest intervals
_SOONEST_MS, _SPREAD_MS = 20, 100
_SECOND_MS = 1000
_LONG_ENOUGH_S = 300.0  # an interval that is this long is not doubled any more


@dataclass(frozen=True, repr=False)
class DiscoveredNode:
    """A node that was found, as it was when this was made.

    address         its text, for `UDPNode.link`
    service         what it was found under
    interests       the filter of what its application asks for
    data            what its application says of itself; ``text`` is that as a text
    is_gone         whether it has said goodbye, or has not been heard for long
    publication_id  of its announcements, 16 bytes
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
        asks = "asks for nothing" if self.interests.is_empty else f"asks for {count(self.interests.popcount, 'bit')}"
        state = "gone" if self.is_gone else asks
        return f"<DPS node at {self.address} in {self.service}: {state}{', ' + shown(self.data) if self.data else ''}>"

    @property
    def text(self) -> str:
        """The data as a text; bytes that are no UTF-8 are shown as such."""
        return self.data.decode("utf-8", "backslashreplace")

    def may_want(self, *topics: str) -> bool:
        """Whether it may ask for a publication on these topics. No is sure, and yes is likely.

        AttributeFormatError for a topic that cannot be published.
        """
        masks = item_masks(topics, self.separators, True, self.interests.length, self.hashes)
        return holds_one(self.interests, masks)


class Discoveries(Receiver[DiscoveredNode]):
    """What changes: ``async for found in node.discover()`` takes nodes that were found, have changed, or are gone."""

    def __repr__(self) -> str:
        return f"<discoveries: {self._waiting()}>"


class _Known(NamedTuple):
    """A node that was found, its address, and when it was heard last."""

    node: DiscoveredNode
    neighbor: Address
    heard_s: float


def item_masks(topics: Sequence[str], separators: str, wildcards: bool, length: int, hashes: int) -> list[int]:
    """The bits of each item of a publication's topics."""
    items = [item for topic in topics for item in publication_items(topic, separators, wildcards)]
    return [BitVector.of([item], length, hashes).bits for item in items]


def holds_one(interests: BitVector, masks: Sequence[int]) -> bool:
    """Whether interests may be those of somebody who asks for a publication with these items.

    Each item of a subscription is one of every publication that it matches.
    """
    return any(mask & interests.bits == mask for mask in masks)


class Discovery:
    """What one node announces, and whom it has found; ``drops`` counts announcements that ended here."""

    def __init__(self, node: UDPNode, service: str, data: bytes) -> None:
        self.node = node
        self.service = service
        self.data = data
        self._topic = TOPIC + service
        check_publication_topic(self._topic, node.protocol.separators)
        if len(data) > MOST_DATA_B:
            raise ParameterError(f"{len(data)} bytes to announce; there is room for {MOST_DATA_B}")
        self.drops: Counter[str] = Counter()
        self._known: dict[bytes, _Known] = {}  # by publication id, who was heard last at the end
        self._ids: dict[Address, bytes] = {}
        self._published: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        self._told: WeakSet[Discoveries] = WeakSet()
        self._handles: set[asyncio.TimerHandle] = set()  # of what is done after 20 to 119 ms
        self._mattered: set[Address] = set()  # neighbors that were heard, and wanted, while there was a link
        self._timer: asyncio.TimerHandle | None = None
        self._is_first = False
        self._interval_s = 0.0

    # Beginning and end

    def open(self) -> None:
        """Subscribe to announcements, and begin to announce."""
        core = self.node.core
        self._loop = asyncio.get_running_loop()
        self.node.hold_subscription(core.subscribe_topics(self._topic, now_us(), is_announced=False), self._heard)
        series = core.new_series((self._topic,), True, False)
        series.is_multicast = True
        self._series: DPSSeries = self.node.hold_series(series, self._answered)
        self.announce_soon()

    def say_goodbye(self) -> None:
        """Tell everybody that this node is closing."""
        self._stop()
        self._publish(b"")

    def close(self) -> None:
        """Announce and answer nothing any more."""
        self._stop()
        for discoveries in list(self._told):
            discoveries.close()

    def _stop(self) -> None:
        for handle in (*self._handles, *([self._timer] if self._timer else [])):
            handle.cancel()
        self._handles.clear()

    # What is announced

    def announce_soon(self) -> None:
        """Announce from the first interval on: at the beginning, and when the subscriptions have changed."""
        if self._is_first:  # It is due already; put off each time, it might never come.
            return
        if self._timer is not None:
            self._timer.cancel()
        self._is_first = True
        first_s = self._some_time_s()
        self._interval_s = first_s + 1.0
        self._timer = self._loop.call_later(first_s, self._announce)

    def _some_time_s(self) -> float:
        return (_SOONEST_MS + int(self.node.core.random.below(_SPREAD_MS))) / _SECOND_MS

    def _announce(self) -> None:
        self._is_first = False
        self._timer = self._loop.call_later(self._interval_s, self._announce)
        if self._interval_s < _LONG_ENOUGH_S:
            self._interval_s *= 2
        self._forget_silent()
        self._publish(encode_announcement(self._own(None)))

    def _own(self, publication_id: bytes | None) -> Announcement:
        bits = 0
        for subscription in self.node.core.subscriptions.open:
            if subscription.request.pair is not None:
                bits |= subscription.request.filter.bits
        return Announcement(BitVector(self.node.protocol.filter_bits, bits), self.data, publication_id)

    def _publish(self, payload: bytes) -> None:
        try:
            self.node.publish_next(self._series, payload, 0)
        except WorkbenchError:  # The filter is so long that it fits no datagram.
            self.drops["too_long"] += 1

    # What is heard

    def _heard(self, publication: ReceivedPublication) -> None:
        """An announcement, or a goodbye."""
        if publication.neighbor is None or publication.hops > 1:
            return
        if not publication.data:
            self._forget(publication.publication_id)
            return
        announcement = self._decoded(publication.data)
        if announcement is None:
            return
        is_wanted = self._note(publication.publication_id, publication.neighbor, announcement)
        if publication.wants_answer and is_wanted:
            self._answer(publication)
        elif publication.wants_answer:
            self._later(lambda: self._answer(publication))
        self._link_if(is_wanted, publication.neighbor)

    def _answered(self, answer: Answer) -> None:
        """An acknowledgement of an announcement of this node."""
        announcement = self._decoded(answer.data)
        if announcement is None or answer.neighbor is None:
            return
        if announcement.publication_id is None:
            self.drops["malformed"] += 1
            return
        self._link_if(self._note(announcement.publication_id, answer.neighbor, announcement), answer.neighbor)

    def _decoded(self, payload: bytes) -> Announcement | None:
        try:
            return decode_announcement(payload, self.node.protocol.filter_bits)
        except DecodeError:
            self.drops["malformed"] += 1
            return None

    def _later(self, act: Callable[[], None]) -> None:
        if len(self._handles) >= MOST_WAITING:
            self.drops["full"] += 1
            return

        def call() -> None:
            self._handles.discard(handle)
            act()

        handle = self._loop.call_later(self._some_time_s(), call)
        self._handles.add(handle)

    def _answer(self, publication: ReceivedPublication) -> None:
        try:
            publication.acknowledge(encode_announcement(self._own(self._series.publication_id)))
        except WorkbenchError:
            self.drops["too_long"] += 1

    # Who is known

    @property
    def found(self) -> list[DiscoveredNode]:
        """The nodes that are there, as far as is known."""
        return [known.node for known in self._known.values()]

    def discoveries(self, most: int) -> Discoveries:
        """What is known, and what will change."""
        discoveries = Discoveries(None, most)
        discoveries.put(self.found)
        self._told.add(discoveries)
        return discoveries

    def _note(self, publication_id: bytes, neighbor: Address, announcement: Announcement) -> bool:
        """Know a node; returns whether it may ask for what is published here."""
        known = self._known.pop(publication_id, None)
        if known is not None and len(known.neighbor) != len(neighbor):
            neighbor = known.neighbor  # It is heard by IPv4 and by IPv6, and is one node.
        before = self._ids.get(neighbor)
        if before is not None and before != publication_id:
            self._forget(before)  # It has been started anew.
        elif known is None and len(self._known) >= MOST_NODES:
            self._forget(next(iter(self._known)))
        node = DiscoveredNode(
            addresses.as_text(neighbor),
            self.service,
            announcement.interests,
            announcement.data,
            publication_id=publication_id,
            separators=self.node.protocol.separators,
            hashes=self.node.protocol.hashes,
        )
        if known is not None and known.neighbor != neighbor:
            self._ids.pop(known.neighbor, None)
        self._known[publication_id] = _Known(node, neighbor, self._loop.time())
        self._ids[neighbor] = publication_id
        if known is None or known.node != node:
            self._tell(node)
        return any(holds_one(node.interests, masks) for masks in self._published.values())

    def _forget(self, publication_id: bytes) -> None:
        known = self._known.pop(publication_id, None)
        if known is not None:
            self._ids.pop(known.neighbor, None)
            self._mattered.discard(known.neighbor)
            self._tell(replace(known.node, is_gone=True))

    def _forget_silent(self) -> None:
        since_s = self._loop.time() - FORGET_S
        for publication_id in [one for one, known in self._known.items() if known.heard_s < since_s]:
            self._forget(publication_id)

    def _tell(self, node: DiscoveredNode) -> None:
        for discoveries in list(self._told):
            discoveries.put([node])

    # Links

    def published(self, topics: tuple[str, ...], wildcards: bool) -> None:
        """The application publishes on these topics: link to those who may ask for it."""
        masks = self._published.pop((topics, wildcards), None)
        is_new = masks is None
        if masks is None:
            protocol = self.node.protocol
            masks = item_masks(topics, protocol.separators, wildcards, protocol.filter_bits, protocol.hashes)
        while len(self._published) >= MOST_PUBLISHED:
            del self._published[next(iter(self._published))]
        self._published[topics, wildcards] = masks
        if is_new:
            for known in list(self._known.values()):
                self._link_if(holds_one(known.node.interests, masks), known.neighbor)

    def _link_if(self, is_wanted: bool, neighbor: Address) -> None:
        if not is_wanted:
            return
        if neighbor in self.node.core.links.remotes:
            self._mattered.add(neighbor)
        else:
            try:
                self.node.keeper.ask(neighbor, keep=False)
            except ParameterError:
                self.drops["full"] += 1
            except LinkError:
                self.drops["unreachable"] += 1

    def link_ended(self, neighbor: Address) -> None:
        """A link has ended: if it mattered, it is asked for once more. Its other end may have been started anew."""
        if neighbor in self._mattered:
            self._mattered.discard(neighbor)
            # A goodbye may come behind the end of the link.
            self._later(lambda: self._link_if(neighbor in self._ids, neighbor))
