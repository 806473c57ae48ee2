"""The DPS node: the class that a driver and an application use; its methods call the other modules of DPS."""

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
from workbench.protocols.dps.publications import MOST_TOPICS, NAME, Publications, event_label
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

SIMULATED_PORT = 40000  # port number in the messages of a simulation, where it has no meaning


class DPSNode(Node):
    """A node of a DPS mesh. The parameter ``now`` of its methods is the time in µs.

    A driver for a real network sets ``port``, ``security`` (encryption and signatures) and ``multicasts`` (whether
    publications are also sent by multicast). It overrides the methods `neighbor_of` and `may_speak_for` in a subclass.
    The address of a neighbor can be any hashable value.
    """

    EVENTS = events.EVENTS
    describe = staticmethod(wire.describe)

    def __init__(self, address: int, settings: Any, random: Stream) -> None:
        Node.__init__(self, address, settings, random)
        self.context = context = Context(self, SIMULATED_PORT)
        self.multicasts = False
        remotes: dict[Neighbor, Remote] = {}
        history = History(settings.max_history)
        self.acknowledgements = Acknowledgements(context, history, address)
        self.publications = Publications(context, remotes, self.subscriptions, history, self.acknowledgements.send)
        self.links = Links(context, remotes, self.publications.interests_changed)
        self.neighborhood = Neighborhood(address, context, self.links)
        self.links.ended = self.neighborhood.link_ended
        self._publication_count = 0
        self._next_series_number = 0

    @property
    def port(self) -> int:
        """The number of the UDP port to which neighbors send answers; each message of this node contains it."""
        return self.context.port

    @port.setter
    def port(self, port: int) -> None:
        self.context.port = port

    @property
    def security(self) -> Any:
        """A `workbench.protocols.dps.cose.Security` or an object with its methods; None without encryption."""
        return self.context.security

    @security.setter
    def security(self, security: Any) -> None:
        self.context.security = security

    def start(self, now: int, boot: int = 0) -> None:
        """Start the node with a random mesh id; ``boot`` is the number of earlier starts."""
        Node.start(self, now, boot)
        self._next_series_number = self.first_number
        mesh_id = add_mark(mesh_id_number(self._random_bytes() + self._random_bytes()))
        self.links.start(mesh_id.to_bytes(fields.ID_B, "little"))
        self._finish()

    def neighbor_of(self, previous_hop: Neighbor, port: int | None) -> Neighbor | None:
        """Return the address of the neighbor that sent a message from the source address ``previous_hop``.

        ``port`` is the port number in the message; None: the message contains no port. Return None if no answer can be
        sent to the neighbor; the node then drops the message.
        """
        return previous_hop

    def may_speak_for(self, previous_hop: Neighbor, port: int) -> bool:
        """Return whether a unicast message from the address ``previous_hop`` may name ``port`` as its sender's port.

        If the result is False, the node drops the message. Subclasses may override this method; here the result is
        always True."""
        return True

    def _random_bytes(self) -> bytes:
        return self.random.bits().to_bytes(8, "big")

    # Links

    def link(self, neighbor: Neighbor, now: int) -> None:
        """Request a link with a neighbor unless one exists; raise ParameterError beyond ``max_links`` links."""
        self.links.link(neighbor, now)
        self._finish()

    def unlink(self, neighbor: Neighbor, now: int) -> None:
        """End the link with a neighbor, if one exists."""
        self.neighborhood.forget(neighbor)
        self.links.unlink(neighbor, now)
        self._finish()

    def link_quality(self, neighbor: int, inbound: float, outbound: float, now: int) -> None:
        """Store the delivery ratios (0 to 1) of frames from a neighbor (``inbound``) and to it (``outbound``).

        The link layer measured these ratios. The node uses them to choose the neighbors with which it requests links.
        """
        self.neighborhood.report(neighbor, min(inbound, outbound), now)
        self._finish()

    # Subscriptions

    def subscribe(
        self, attributes: Any, now: int, expires_s: float | None = None, match_all: bool = False
    ) -> Subscription:
        """Subscribe to readings that match the constraints ``attributes``, which are mapped to topics (mapping.py).

        ``expires_s``: lifetime of the subscription in seconds; None: until `unsubscribe`. ``match_all`` allows
        ``attributes`` without a constraint, which match all readings.
        """
        subscription = Subscription(self, attributes, now, expires_s, match_all)
        topics = mapping.subscription_topics(subscription.attributes, self.settings.separators)
        subscription.request = Interest(topics, subscription_filter(topics, self.settings), is_of_attributes=True)
        return self._open_subscription(subscription, now)

    def subscribe_topics(
        self, topics: str | Sequence[str], now: int, expired: bool = False, is_announced: bool = True
    ) -> TopicSubscription:
        """Subscribe to publications that match all of these topics; return a TopicSubscription of Arrivals.

        An Arrival is a received publication. ``expired``: whether the subscription also gets an Arrival when a retained
        publication expires. If ``is_announced`` is False, the node does not send the subscription to neighbors. It
        then gets only publications that reach the node anyway, for example by multicast.
        """
        topics = (topics,) if isinstance(topics, str) else tuple(topics)
        if not topics:
            raise ParameterError("the argument `topics` is empty; a subscription needs at least one topic")
        subscription = TopicSubscription(self, topics, now)
        subscription.request = Interest(
            topics, subscription_filter(topics, self.settings), expired, is_announced=is_announced
        )
        return self._open_subscription(subscription, now)

    def _open_subscription(self, subscription: Any, now: int) -> Any:
        if len(self.subscriptions.open) >= self.settings.max_subscriptions:
            raise ParameterError(
                f"the node has {len(self.subscriptions.open)} subscriptions, as many as max_subscriptions; end a "
                "subscription, or raise max_subscriptions"
            )
        self.subscriptions.add(subscription)
        if subscription.request.pair is not None:
            self.links.add_subscription(subscription.request.pair, now)
        self.publications.deliver_retained(subscription, now)
        self._finish()
        return subscription

    def unsubscribe(self, subscription: Any, now: int) -> None:
        """End a subscription to attributes or topics; do nothing if it has ended already."""
        if self.subscriptions.end(subscription) and subscription.request.pair is not None:
            self.links.remove_subscription(subscription.request.pair, now)
        self._finish()

    # Publications

    def publish(self, attributes: Any, now: int, payload: bytes = b"") -> int:
        """Publish a reading on the topics of its attributes; return its number among the publications of this node."""
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        topics = mapping.publication_topics(attributes, self.settings.separators)
        settings = self.settings
        publication_number = self.first_number + self._publication_count
        series = self.new_series(topics, settings.acknowledge, settings.wildcards)
        self.publish_next(series, mapping.encode_data(attributes), now, settings.ttl_s)
        return publication_number

    def publish_topics(
        self,
        topics: str | Sequence[str],
        payload: bytes,
        now: int,
        ttl_s: int = 0,
        acknowledge: bool = False,
        wildcards: bool = True,
    ) -> Series:
        """Publish a payload on topics; return the Series, for further publications and for acknowledgements.

        Nodes retain the publication for later subscribers during ``ttl_s`` seconds (0: not at all). If ``acknowledge``
        is True, subscribers may acknowledge it. If ``wildcards`` is False, it matches only subscriptions without
        wildcards. Raises AttributeFormatError for an invalid topic, EncodeError if the publication does not fit a
        datagram, and ParameterError for an invalid ``ttl_s`` or number of topics.
        """
        topics = (topics,) if isinstance(topics, str) else tuple(topics)
        if not 1 <= len(topics) <= MOST_TOPICS:
            raise ParameterError(f"a publication has {len(topics)} topics; it must have 1 to {MOST_TOPICS}")
        series = self.new_series(topics, acknowledge, wildcards)
        self.publish_next(series, payload, now, ttl_s)
        return series

    def new_series(self, topics: tuple[str, ...], acknowledge: bool, wildcards: bool) -> Series:
        """Return a new Series without publications; see `publish_topics` for the parameters.

        Raises AttributeFormatError for an invalid topic.
        """
        topic_filter = publication_filter(topics, self.settings, wildcards)
        series_number = self._next_series_number & fields.I31
        if isinstance(self.address, int) and self.address >= 0:
            publication_id = wire.make_publication_id(self.address, series_number, self._random_bytes())
        else:
            publication_id = self._random_bytes() + self._random_bytes()
        return Series(self, publication_id, topics, topic_filter, acknowledge)

    def publish_next(self, series: Series, payload: bytes, now: int, ttl_s: int) -> int:
        """Publish a payload as the next publication of a series; return the publication's sequence number.

        ``ttl_s``: seconds for which nodes retain the publication; 0: they do not retain it.
        """
        if not (isinstance(ttl_s, int) and 0 <= ttl_s <= wire.LONGEST_TTL_S):
            raise ParameterError(
                f"the argument `ttl_s` is {ttl_s!r}; it must be whole seconds from 0 to {wire.LONGEST_TTL_S}"
            )
        self._send_next(series, payload, ttl_s, now)
        return series.sequence

    def expire(self, series: Series, now: int) -> int:
        """Send a message that ends the retained publication of a series at all nodes.

        Return the sequence number of this message. Raises ParameterError if no publication of the series is retained.
        """
        if self.publications.retained.get(series.publication_id) is None:
            raise ParameterError(
                f"no publication on {', '.join(series.topics)} is retained; only a publication with a ttl_s above 0 "
                "can be expired, and only within that time"
            )
        self._send_next(series, b"", -1, now)
        return series.sequence

    def _send_next(self, series: Series, payload: bytes, ttl_s: int, now: int) -> None:
        plain_message = wire.Publication(
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
        outgoing_message = plain_message if self.security is None else self.security.seal(plain_message)
        is_multicast = self.multicasts or series.is_multicast
        outgoing_frame = self.publications.frame_of_own(outgoing_message, is_multicast)
        series.sequence += 1
        series.is_encrypted = series.is_encrypted or (self.security is not None and self.security.way is not None)
        if series.sequence == 1:
            self._next_series_number += 1
        if series.acknowledge:
            self.acknowledgements.expect(series)
        if ttl_s >= 0:
            publication_number = self.first_number + self._publication_count
            self._publication_count += 1
            publication_label = event_label(series.publication_id, series.sequence)
            self.context.report(Originated, NOBODY, NAME, *publication_label, publication_number, "")
        self.publications.send_own(outgoing_message, outgoing_frame, plain_message, is_multicast, now)
        self._finish()

    def acknowledge(self, arrival: Arrival, payload: bytes, now: int) -> None:
        """Send an acknowledgement with a payload to the publisher of ``arrival``, a received publication.

        Raises ParameterError if the publisher does not want acknowledgements.
        """
        self.acknowledgements.send(arrival, bytes(payload))

    # Messages

    def receive(self, frame: bytes, previous_hop: Neighbor, now: int, broadcast: bool = False) -> None:
        """Process a frame that was received from the address ``previous_hop``.

        ``broadcast``: whether the frame was sent by multicast.
        """
        try:
            message = wire.decode(frame, self.settings.filter_bits)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        message_name = wire.NAMES[wire.KIND_OF[type(message)]]
        port = None if isinstance(message, wire.Acknowledgement) else message.port
        if not (port is None or broadcast or self.may_speak_for(previous_hop, port)):
            self.drop(previous_hop, message_name, NOBODY, 0, "port")
            return
        neighbor = self.neighbor_of(previous_hop, port)
        if neighbor is None:
            self.drop(previous_hop, message_name, NOBODY, 0, "no_address")
        elif isinstance(message, wire.Publication):
            self.publications.receive(message, neighbor, now)
            self._finish()
        elif isinstance(message, wire.Acknowledgement):
            self.acknowledgements.receive(message, bytes(frame), neighbor)
        elif broadcast:
            self.drop(previous_hop, message_name, NOBODY, message.sequence, "malformed")
        else:
            if isinstance(message, wire.Subscription):
                self.links.receive_subscription(neighbor, message, now)
            else:
                self.links.receive_acknowledgement(neighbor, message, now)
            self._finish()

    def sent(self, destination: Neighbor, frame: bytes, ok: bool, now: int) -> None:
        """Process the radio's report on a sent frame; if ``ok`` is False (not delivered), plan to send it again.

        Acknowledgements of publications are not sent again.
        """
        if ok:
            self.links.note_reached(destination)
            return
        try:
            sent_message = wire.decode(frame, self.settings.filter_bits)
        except DecodeError:
            return
        if isinstance(sent_message, wire.Publication):
            self.publications.retries.plan(destination, bytes(frame), sent_message, now)
        elif not isinstance(sent_message, wire.Acknowledgement):
            is_answer = isinstance(sent_message, wire.SubscriptionAcknowledgement) and sent_message.interests is None
            self.links.plan_retry(destination, is_answer, now)
        self._finish()

    # Time

    def wake(self, now: int) -> None:
        """Send due messages and link requests, forward delayed publications, and end expired subscriptions."""
        for subscription in self.subscriptions.expire(now):
            self.links.remove_subscription(subscription.request.pair, now)
        self.links.wake(now)
        self.publications.wake(now)
        self.neighborhood.wake(now)
        self._finish()

    def _finish(self) -> None:
        """Log changes of interests and mesh ids, and set ``next_wake``, the time of the next `wake` (None: never)."""
        self.links.report_changes()
        event_times_us = [self.links.next_due_us(), self.publications.next_due_us(), self.neighborhood.next_due_us()]
        event_times_us += [subscription.expires_us for subscription in self.subscriptions.open]
        due_times_us = [time_us for time_us in event_times_us if time_us is not None]
        self.next_wake = min(due_times_us) if due_times_us else None
