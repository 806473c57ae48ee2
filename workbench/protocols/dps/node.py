"""The DPS node: what it does for its application, with a neighbor's message, and when time has passed.

This file is written in MicroPython's subset of Python.
"""

from workbench.attributes.model import check_publication, with_payload
from workbench.errors import DecodeError, ParameterError
from workbench.protocols.contract import NOBODY, Node, Originated
from workbench.protocols.dps import events, mapping, rules, wire
from workbench.protocols.dps.acknowledgements import Acknowledgements
from workbench.protocols.dps.links import Links
from workbench.protocols.dps.mesh_ids import marked, number_of
from workbench.protocols.dps.neighborhood import Neighborhood
from workbench.protocols.dps.publications import MOST_TOPICS, NAME, Publications, label
from workbench.protocols.dps.series import Interest, Series, TopicSubscription, publication_filter
from workbench.protocols.dps.wire import fields
from workbench.protocols.subscriptions import Subscription

SIMULATED_PORT = 40000  # what goes into the messages; in simulation nobody looks at it
_NAMES = {
    wire.Publication: wire.NAMES[wire.PUBLICATION],
    wire.Subscription: wire.NAMES[wire.SUBSCRIPTION],
    wire.Acknowledgement: wire.NAMES[wire.ACKNOWLEDGEMENT],
    wire.SubscriptionAcknowledgement: wire.NAMES[wire.SUBSCRIPTION_ACKNOWLEDGEMENT],
}


class DPSNode(Node):
    """One node of a mesh. A driver with addresses of its own sets ``port``, ``security``, ``multicasts`` and
    overrides `neighbor_of` and `may_speak_for`; neighbors are whatever it takes for addresses, if that can be hashed.
    """

    EVENTS = events.EVENTS
    describe = staticmethod(wire.describe)

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.port = SIMULATED_PORT
        self.security = (
            None  # a `workbench.protocols.dps.cose.Security`, or what seals, opens and is answering as that does
        )
        self.multicasts = False
        self.times = rules.times_of(settings)
        self.links = Links(self)
        self.publications = Publications(self)
        self.acknowledgements = Acknowledgements(self, self.publications.history)
        self.neighborhood = Neighborhood(self)
        self.is_crowded = False  # whether it links with the best of its neighbors alone, which sets it as it sets times
        self._published = 0
        self._series = 0

    def start(self, now, boot=0):
        """Begin, with a mesh id of its own."""
        Node.start(self, now, boot)
        self._series = self.first_number
        mesh_id = marked(number_of(self._random_bytes() + self._random_bytes()))
        self.links.start(mesh_id.to_bytes(fields.ID_B, "little"))
        self._finish()

    def neighbor_of(self, previous_hop, port):
        """The neighbor that a message is from, by where it came from and the port that it names (None: it names none).

        None if nobody there could be answered: the message is dropped then.
        """
        return previous_hop

    def may_speak_for(self, previous_hop, port):
        """Whether what came from there, and not by multicast, may be of the neighbor that its port names."""
        return True

    def _random_bytes(self):
        return self.random.bits().to_bytes(8, "big")

    # Links

    def link(self, neighbor, now):
        """Ask a neighbor for a link; nothing if there is one. ParameterError if there are ``max_links``."""
        self.links.link(neighbor, now)
        self._finish()

    def unlink(self, neighbor, now):
        """End a link; nothing if there is none."""
        self.neighborhood.forget(neighbor)
        self.links.unlink(neighbor, now)
        self._finish()

    def link_quality(self, neighbor, inbound, outbound, now):
        """On a radio the links are with the neighbors that work well enough both ways, or the best of them."""
        self.neighborhood.report(neighbor, min(inbound, outbound), now)
        self._finish()

    def link_ended(self, remote, now):
        """A link has ended; on a radio this neighbor or another is asked later (called by `Links`)."""
        self.neighborhood.link_ended(remote.address, now)

    def interests_changed(self, remote, now):
        """A neighbor asks for something else now, or for the first time (called by `Links`)."""
        self.publications.interests_changed(remote, now)

    # Subscriptions

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Ask for what matches ``attributes``, by the topics that they are mapped to (see mapping.py)."""
        subscription = Subscription(self, attributes, now, expires_s, match_all)
        topics = mapping.subscription_topics(subscription.attributes, self.settings.separators)
        subscription.request = Interest(topics, self.settings, False, True)
        return self._keep(subscription, now)

    def subscribe_topics(self, topics, now, expired=False, is_told=True):
        """Ask for publications that match all of these topics (texts); ``expired``: also for the end of retained ones.

        Returns a TopicSubscription, whose samples are Arrivals. Unless it ``is_told`` to the neighbors, they are
        what comes without being asked for: by multicast, say.
        """
        topics = (topics,) if isinstance(topics, str) else tuple(topics)
        if not topics:
            raise ParameterError("a subscription needs at least one topic")
        subscription = TopicSubscription(self, topics, now)
        subscription.request = Interest(topics, self.settings, expired, is_told=is_told)
        return self._keep(subscription, now)

    def _keep(self, subscription, now):
        if len(self.subscriptions.open) >= self.settings.max_subscriptions:
            raise ParameterError(
                "the node has %d subscriptions already, which is max_subscriptions" % len(self.subscriptions.open)
            )
        self.subscriptions.add(subscription)
        if subscription.request.pair is not None:
            self.links.subscribed(subscription.request.pair, now)
        self.publications.give_retained(subscription, now)
        self._finish()
        return subscription

    def unsubscribe(self, subscription, now):
        """End a subscription of either kind. Ending one that has ended does nothing."""
        if self.subscriptions.end(subscription) and subscription.request.pair is not None:
            self.links.unsubscribed(subscription.request.pair, now)
        self._finish()

    # Publications

    def publish(self, attributes, now, payload=b""):
        """Publish a reading on the topics it is mapped to; returns its number at this node."""
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        topics = mapping.publication_topics(attributes, self.settings.separators)
        settings = self.settings
        number = self.first_number + self._published
        series = self.new_series(topics, settings.acknowledge, settings.wildcards)
        self.publish_next(series, mapping.encode_data(attributes), now, settings.ttl_s)
        return number

    def publish_topics(self, topics, payload, now, ttl_s=0, acknowledge=False, wildcards=True):
        """Publish a payload (bytes) on topics (texts); returns its Series, with which to publish again.

        ``ttl_s``: for so many seconds it is kept for those who ask later. ``acknowledge``: subscribers may answer, and
        the series has their answers. Without ``wildcards`` only subscriptions that spell a topic out are sent it.
        EncodeError if it does not fit a datagram.
        """
        topics = (topics,) if isinstance(topics, str) else tuple(topics)
        if not 1 <= len(topics) <= MOST_TOPICS:
            raise ParameterError("a publication on %d topics; it has 1 to %d of them" % (len(topics), MOST_TOPICS))
        series = self.new_series(topics, acknowledge, wildcards)
        self.publish_next(series, payload, now, ttl_s)
        return series

    def new_series(self, topics, acknowledge, wildcards):
        """A Series of which nothing is published yet; `publish_topics` says what it is of."""
        vector = publication_filter(topics, self.settings, wildcards)
        number = self._series & fields.I31
        if isinstance(self.address, int) and self.address >= 0:
            publication_id = wire.make_publication_id(self.address, number, self._random_bytes())
        else:
            publication_id = self._random_bytes() + self._random_bytes()
        return Series(self, publication_id, number, topics, vector, acknowledge)

    def publish_next(self, series, payload, now, ttl_s):
        """Publish under the next number of a series, and return that: what `Series.publish` does."""
        if not (isinstance(ttl_s, int) and 0 <= ttl_s <= wire.LONGEST_TTL_S):
            raise ParameterError("ttl_s is %r; it must be whole seconds from 0 to %d" % (ttl_s, wire.LONGEST_TTL_S))
        self._send_next(series, payload, ttl_s, ttl_s, now)
        return series.sequence

    def expire(self, series, now):
        """End a retained publication everywhere, and return the number of the message that says so."""
        if self.publications.retained.get(series.publication_id) is None:
            raise ParameterError(
                "there is nothing retained of the publication on %s; only what was published with a ttl can be expired"
                % ", ".join(series.topics)
            )
        self._send_next(series, b"", -1, 0, now)
        return series.sequence

    def _send_next(self, series, payload, ttl_s, lifetime_s, now):
        plain = wire.Publication(
            self.port,
            None,
            ttl_s,
            0,
            lifetime_s,
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
            origin, sequence = label(series.publication_id, series.sequence)
            number = self.first_number + self._published
            self._published += 1
            self.events.append(Originated(NOBODY, NAME, origin, sequence, number, ""))
        self.publications.send_own(message, frame, plain, is_multicast, now)
        self._finish()

    def acknowledge(self, arrival, payload, now):
        """Answer an Arrival with a payload (bytes); ParameterError if its publisher has not asked for answers."""
        self.acknowledgements.send(arrival, bytes(payload))

    # Messages

    def receive(self, frame, previous_hop, now, broadcast=False):
        """Take a message; from whom is told by `neighbor_of`."""
        try:
            message = wire.decode(frame, self.settings.filter_bits)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        kind = type(message)
        is_acknowledgement = kind is wire.Acknowledgement
        port = None if is_acknowledgement else message.port
        if not (port is None or broadcast or self.may_speak_for(previous_hop, port)):
            self.drop(previous_hop, _NAMES[kind], NOBODY, 0, "port")
            return
        neighbor = self.neighbor_of(previous_hop, port)
        if neighbor is None:
            self.drop(previous_hop, _NAMES[kind], NOBODY, 0, "no_address")
        elif is_acknowledgement:
            self.acknowledgements.take(message, bytes(frame), neighbor)
        elif kind is wire.Publication:
            self.publications.take(message, neighbor, now)
            self._finish()
        elif broadcast:
            self.drop(previous_hop, wire.NAMES[wire.SUBSCRIPTION], NOBODY, message.sequence, "malformed")
        else:
            if kind is wire.Subscription:
                self.links.take_subscription(neighbor, message, now)
            else:
                self.links.take_acknowledgement(neighbor, message, now)
            self._finish()

    # Time

    def wake(self, now):
        """Do what is due: messages of links, ends of publications and subscriptions, links to ask for."""
        for subscription in self.subscriptions.expire(now):
            self.links.unsubscribed(subscription.request.pair, now)
        self.links.wake(now)
        self.publications.wake(now)
        self.neighborhood.wake(now)
        self._finish()

    def _finish(self):
        """Report what has changed, and plan when to wake up."""
        self.links.announce()
        times = [self.links.next_due_us(), self.publications.next_due_us(), self.neighborhood.next_due_us()]
        times += [subscription.expires_us for subscription in self.subscriptions.open]
        times = [time for time in times if time is not None]
        self.next_wake = min(times) if times else None
