"""The DPS node: what it does for its application, with a neighbor's message, and when time has passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.attributes.model import check_publication, with_payload
from workbench.draws import Stream
from workbench.errors import DecodeError, ParameterError
from workbench.protocols.contract import NOBODY, Node, Originated
from workbench.protocols.dps import events, mapping, wire
from workbench.protocols.dps.acknowledgements import Acknowledgements
from workbench.protocols.dps.context import Context, Neighbor
from workbench.protocols.dps.history import History
from workbench.protocols.dps.links import Links
from workbench.protocols.dps.mesh_ids import add_mark, mesh_id_number
from workbench.protocols.dps.neighborhood import Neighborhood
from workbench.protocols.dps.publications import MOST_TOPICS, NAME, Publications, label
from workbench.protocols.dps.remotes import Remote
from workbench.protocols.dps.series import (
    Arrival,
    Interest,
    Series,
    TopicSubscription,
    publication_filter,
    subscription_filter,
)
from workbench.protocols.dps.wire import fields
from workbench.protocols.subscriptions import Subscription

SIMULATED_PORT = 40000  # what goes into the messages; in simulation nobody looks at it


class DPSNode(Node):
    """One node of a mesh. A driver with addresses of its own sets ``port``, ``security``, ``multicasts`` and
    overrides `neighbor_of` and `may_speak_for`; neighbors are whatever it takes for addresses, if that can be hashed.
    """

    EVENTS = events.EVENTS
    describe = staticmethod(wire.describe)

    def __init__(self, address: int, settings: Any, random: Stream) -> None:
        Node.__init__(self, address, settings, random)
        self.context = context = Context(self, SIMULATED_PORT)
        self.multicasts = False
        remotes: dict[Neighbor, Remote] = {}
        history = History(settings.max_history)
        self.acknowledgements = Acknowledgements(context, history)
        self.publications = Publications(context, remotes, self.subscriptions, history, self.acknowledgements.send)
        self.links = Links(context, remotes, self.publications.interests_changed)
        self.neighborhood = Neighborhood(address, context, self.links)
        self.links.ended = self.neighborhood.link_ended
        self._published = 0
        self._series = 0

    @property
    def port(self) -> int:
        """The port that this node names in its messages."""
        return self.context.port

    @port.setter
    def port(self, port: int) -> None:
        self.context.port = port

    @property
    def security(self) -> Any:
        """A `workbench.protocols.dps.cose.Security`, or what seals, opens and answers like one; None without keys."""
        return self.context.security

    @security.setter
    def security(self, security: Any) -> None:
        self.context.security = security

    def start(self, now: int, boot: int = 0) -> None:
        """Begin, with a mesh id of its own."""
        Node.start(self, now, boot)
        self._series = self.first_number
        mesh_id = add_mark(mesh_id_number(self._random_bytes() + self._random_bytes()))
        self.links.start(mesh_id.to_bytes(fields.ID_B, "little"))
        self._finish()

    def neighbor_of(self, previous_hop: Neighbor, port: int | None) -> Neighbor | None:
        """The neighbor that a message is from, by where it came from and the port that it names (None: it names none).

        None if nobody there could be answered: the message is dropped then.
        """
        return previous_hop

    def may_speak_for(self, previous_hop: Neighbor, port: int) -> bool:
        """Whether what came from there, and not by multicast, may be of the neighbor that its port names."""
        return True

    def _random_bytes(self) -> bytes:
        return self.random.bits().to_bytes(8, "big")

    # Links

    def link(self, neighbor: Neighbor, now: int) -> None:
        """Ask a neighbor for a link; nothing if there is one. ParameterError if there are ``max_links``."""
        self.links.link(neighbor, now)
        self._finish()

    def unlink(self, neighbor: Neighbor, now: int) -> None:
        """End a link; nothing if there is none."""
        self.neighborhood.forget(neighbor)
        self.links.unlink(neighbor, now)
        self._finish()

    def link_quality(self, neighbor: int, inbound: float, outbound: float, now: int) -> None:
        """On a radio the links are with the neighbors that work well enough both ways, or the best of them."""
        self.neighborhood.report(neighbor, min(inbound, outbound), now)
        self._finish()

    # Subscriptions

    def subscribe(
        self, attributes: Any, now: int, expires_s: float | None = None, match_all: bool = False
    ) -> Subscription:
        """Ask for what matches ``attributes``, by the topics that they are mapped to (see mapping.py)."""
        subscription = Subscription(self, attributes, now, expires_s, match_all)
        topics = mapping.subscription_topics(subscription.attributes, self.settings.separators)
        subscription.request = Interest(topics, subscription_filter(topics, self.settings), is_of_attributes=True)
        return self._keep(subscription, now)

    def subscribe_topics(
        self, topics: str | Sequence[str], now: int, expired: bool = False, is_told: bool = True
    ) -> TopicSubscription:
        """Ask for publications that match all of these topics (texts); ``expired``: also for the end of retained ones.

        Returns a TopicSubscription, whose samples are Arrivals. Unless it ``is_told`` to the neighbors, they are
        what comes without being asked for: by multicast, say.
        """
        topics = (topics,) if isinstance(topics, str) else tuple(topics)
        if not topics:
            raise ParameterError("a subscription needs at least one topic")
        subscription = TopicSubscription(self, topics, now)
        subscription.request = Interest(topics, subscription_filter(topics, self.settings), expired, is_told=is_told)
        return self._keep(subscription, now)

    def _keep(self, subscription: Any, now: int) -> Any:
        if len(self.subscriptions.open) >= self.settings.max_subscriptions:
            raise ParameterError(
                f"the node has {len(self.subscriptions.open)} subscriptions already, which is max_subscriptions"
            )
        self.subscriptions.add(subscription)
        if subscription.request.pair is not None:
            self.links.subscribed(subscription.request.pair, now)
        self.publications.give_retained(subscription, now)
        self._finish()
        return subscription

    def unsubscribe(self, subscription: Any, now: int) -> None:
        """End a subscription of either kind. Ending one that has ended does nothing."""
        if self.subscriptions.end(subscription) and subscription.request.pair is not None:
            self.links.unsubscribed(subscription.request.pair, now)
        self._finish()

    # Publications

    def publish(self, attributes: Any, now: int, payload: bytes = b"") -> int:
        """Publish a reading on the topics it is mapped to; returns its number at this node."""
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        topics = mapping.publication_topics(attributes, self.settings.separators)
        settings = self.settings
        number = self.first_number + self._published
        series = self.new_series(topics, settings.acknowledge, settings.wildcards)
        self.publish_next(series, mapping.encode_data(attributes), now, settings.ttl_s)
        return number

    def publish_topics(
        self,
        topics: str | Sequence[str],
        payload: bytes,
        now: int,
        ttl_s: int = 0,
        acknowledge: bool = False,
        wildcards: bool = True,
    ) -> Series:
        """Publish a payload (bytes) on topics (texts); returns its Series, with which to publish again.

        ``ttl_s``: for so many seconds it is kept for those who ask later. ``acknowledge``: subscribers may answer, and
        the series has their answers. Without ``wildcards`` only subscriptions that spell a topic out are sent it.
        EncodeError if it does not fit a datagram.
        """
        topics = (topics,) if isinstance(topics, str) else tuple(topics)
        if not 1 <= len(topics) <= MOST_TOPICS:
            raise ParameterError(f"a publication on {len(topics)} topics; it has 1 to {MOST_TOPICS} of them")
        series = self.new_series(topics, acknowledge, wildcards)
        self.publish_next(series, payload, now, ttl_s)
        return series

    def new_series(self, topics: tuple[str, ...], acknowledge: bool, wildcards: bool) -> Series:
        """A Series of which nothing is published yet; `publish_topics` says what it is of."""
        vector = publication_filter(topics, self.settings, wildcards)
        number = self._series & fields.I31
        if isinstance(self.address, int) and self.address >= 0:
            publication_id = wire.make_publication_id(self.address, number, self._random_bytes())
        else:
            publication_id = self._random_bytes() + self._random_bytes()
        return Series(self, publication_id, topics, vector, acknowledge)

    def publish_next(self, series: Series, payload: bytes, now: int, ttl_s: int) -> int:
        """Publish under the next number of a series, and return that: what `Series.publish` does."""
        if not (isinstance(ttl_s, int) and 0 <= ttl_s <= wire.LONGEST_TTL_S):
            raise ParameterError(f"ttl_s is {ttl_s!r}; it must be whole seconds from 0 to {wire.LONGEST_TTL_S}")
        self._send_next(series, payload, ttl_s, now)
        return series.sequence

    def expire(self, series: Series, now: int) -> int:
        """End a retained publication everywhere, and return the number of the message that says so."""
        if self.publications.retained.get(series.publication_id) is None:
            raise ParameterError(
                f"there is nothing retained of the publication on {', '.join(series.topics)}; only what was published "
                "with a ttl can be expired"
            )
        self._send_next(series, b"", -1, now)
        return series.sequence

    def _send_next(self, series: Series, payload: bytes, ttl_s: int, now: int) -> None:
        plain = wire.Publication(
            self.port,
            None,
            ttl_s,
            0,
            max(0, ttl_s),
            series.publication_id,
            series.sequence + 1,
            bool(series.acknowledge),
            series.filter,
            series.topics,
            bytes(payload),
        )
        message = plain if self.security is None else self.security.seal(plain)
        is_multicast = self.multicasts or series.is_multicast
        frame = self.publications.frame_of_own(message, is_multicast)
        series.sequence += 1
        series.is_encrypted = series.is_encrypted or (self.security is not None and self.security.way is not None)
        if series.sequence == 1:
            self._series += 1
        if series.acknowledge:
            self.acknowledgements.expect(series)
        if ttl_s >= 0:
            number = self.first_number + self._published
            self._published += 1
            labels = label(series.publication_id, series.sequence)
            self.context.report(Originated, NOBODY, NAME, *labels, number, "")
        self.publications.send_own(message, frame, plain, is_multicast, now)
        self._finish()

    def acknowledge(self, arrival: Arrival, payload: bytes, now: int) -> None:
        """Answer an Arrival with a payload (bytes); ParameterError if its publisher has not asked for answers."""
        self.acknowledgements.send(arrival, bytes(payload))

    # Messages

    def receive(self, frame: bytes, previous_hop: Neighbor, now: int, broadcast: bool = False) -> None:
        """Take a message; from whom is told by `neighbor_of`."""
        try:
            message = wire.decode(frame, self.settings.filter_bits)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        name = wire.NAMES[wire.KIND_OF[type(message)]]
        port = None if isinstance(message, wire.Acknowledgement) else message.port
        if not (port is None or broadcast or self.may_speak_for(previous_hop, port)):
            self.drop(previous_hop, name, NOBODY, 0, "port")
            return
        neighbor = self.neighbor_of(previous_hop, port)
        if neighbor is None:
            self.drop(previous_hop, name, NOBODY, 0, "no_address")
        elif isinstance(message, wire.Publication):
            self.publications.take(message, neighbor, now)
            self._finish()
        elif isinstance(message, wire.Acknowledgement):
            self.acknowledgements.take(message, bytes(frame), neighbor)
        elif broadcast:
            self.drop(previous_hop, name, NOBODY, message.sequence, "malformed")
        else:
            if isinstance(message, wire.Subscription):
                self.links.take_subscription(neighbor, message, now)
            else:
                self.links.take_acknowledgement(neighbor, message, now)
            self._finish()

    def sent(self, destination: Neighbor, frame: bytes, ok: bool, now: int) -> None:
        """Send again what the radio has given up."""
        if ok:
            self.links.reached(destination)
            return
        try:
            message = wire.decode(frame, self.settings.filter_bits)
        except DecodeError:
            return
        if isinstance(message, wire.Publication):
            self.publications.repeats.give_up(destination, bytes(frame), message, now)
        elif not isinstance(message, wire.Acknowledgement):
            is_answer = isinstance(message, wire.SubscriptionAcknowledgement) and message.interests is None
            self.links.give_up(destination, is_answer, now)
        self._finish()

    # Time

    def wake(self, now: int) -> None:
        """Do what is due: messages of links, ends of publications and subscriptions, links to ask for."""
        for subscription in self.subscriptions.expire(now):
            self.links.unsubscribed(subscription.request.pair, now)
        self.links.wake(now)
        self.publications.wake(now)
        self.neighborhood.wake(now)
        self._finish()

    def _finish(self) -> None:
        """Report what has changed, and plan when to wake up."""
        self.links.report_changes()
        times = [self.links.next_due_us(), self.publications.next_due_us(), self.neighborhood.next_due_us()]
        times += [subscription.expires_us for subscription in self.subscriptions.open]
        due = [time_us for time_us in times if time_us is not None]
        self.next_wake = min(due) if due else None
