"""Coded diffusion: events spread through a mesh as random linear combinations of their chunks, filtered by receivers.

Theory of operation
    A source broadcasts its event as a whole. A neighbor that hears it is a *bootstrap node*: it cuts the event into m
    chunks (its *generation*) and at once broadcasts BF random linear combinations of them. Every other node is an
    *intermediate node*: it keeps the combinations it hears that are *innovative*, each one raising the rank of its
    decoding matrix. With probability FP an innovative packet sets a timer to ΔTC from now; when it fires, the node
    broadcasts k = ceil(FF * ip) new combinations of all it has, ip being the innovative packets since it last sent.
    At rank m the node decodes the event and hands it to those of its subscriptions that match. Subscriptions are not
    sent: every node gets every event.

Messages (wire/coded.py)
    event    broadcast by the source alone: the attributes
    coded    broadcast: event id, hops, generation size, field, encoding vector, information vector

Limits
    An event's bytes are those of its attributes, 65,535 at most. A node keeps ``max_events`` decoding matrices, each
    of m rows of 1/m of the event's length, and ``max_known`` ids. Where that is full a further event is refused, as
    long as none has been quiet for ``forget_after_s``: a node that made room by forgetting an event which its neighbors
    still send would take it for new and send it again, and they as well, without end. For the same reason an event has
    to be through with every neighborhood in that time.

Differs from the original in (B1, B2, ... number its gaps in this project's own list)
    B1   the field is a parameter; the printed figures compute over the integers, which GF(257) reproduces.
    B2   S and m are one: ``generation_size``.
    B3   k = ceil(FF * ip), so at m = 2 there are but two cases, FF up to 1/2 and above.
    B4   ip counts since the node's last transmission for the event.
    B5   one timer for each event: a draw that succeeds moves it to now + ΔTC, one that fails leaves it as it is.
    B6   later innovative packets set the timer again; ``rearm=False`` lets a node send once for an event.
    B7   a decoded event is kept until a timer that runs has fired, or diffusion would stop with the first decoders.
    B8   BF * neighbors >= m is necessary, not sufficient: random combinations may depend on each other.
    B9   a neighbor that missed the event is an intermediate node; a bootstrap node ignores FP and its earlier timer.
    B10  an encoding vector of zeros is drawn again; the event's length is in every packet, padding is zeros; an event
         is known by (origin, sequence), and forgotten when nothing was heard of it for ``forget_after_s``, or for
         2 m ΔTC if that is longer: until then a neighbor may still be collecting.
    --   a source does not take its own event back, decoded or not.
    --   a checksum in every frame; a hop count, one more than the least of the packets a node had, for the metrics.

Reference
    A note of two pages on event diffusion with random linear network coding in a wireless mesh network, whose figures
    notebooks/02-network-coding.ipynb and notebooks/papers/network-coding.ipynb go after. The text at hand has lost its
    title and authors; of the same subject is R. Beraldi, H. Alnuweiri: A Network-Coding Based Event Diffusion Protocol
    for Wireless Mesh Networks, LNICST 23, Springer, doi 10.1007/978-3-642-11482-3_2.
    S. Chachulski et al.: Trading structure for randomness in wireless opportunistic routing, SIGCOMM 2007 (pre-coding).

This file runs on a mote too (MicroPython's subset of Python).
"""

import math

from workbench.attributes import check_publication, check_subscription, matching_samples, with_payload
from workbench.errors import DecodeError
from workbench.protocols.contract import (
    NOBODY,
    Decoded,
    Delivered,
    Forwarded,
    Held,
    Innovative,
    Node,
    Originated,
    Parameter,
    Protocol,
    Subscription,
)
from workbench.rlnc import Decoder, Encoder, Recoder, join, split
from workbench.wire import coded as wire

SECOND_US = 1000000

PARAMETERS = (
    Parameter("generation_size", 2, 1, wire.LARGEST_GENERATION, "chunks", "the paper's evaluation; m, and its S"),
    Parameter("field", 256, wire.FIELDS, None, "order", "GF(2^8): random vectors are independent with p = .996"),
    Parameter("bootstrap_factor", 2, 1, 255, "packets", "BF = m: a lone bootstrap node can start the diffusion"),
    Parameter("forwarding_probability", 1.0, 0.0, 1.0, "share", "FP: below about .7 a grid is not covered"),
    Parameter("forwarding_factor", 0.5, 0.001, 1.0, "per packet", "FF: half of what was innovative; more costs more"),
    Parameter("collecting_time_ms", 50.0, 0.001, 1e6, "ms", "ΔTC of the paper's evaluation"),
    Parameter("rearm", True, None, None, "", "later packets are worth sending: coverage .99 against .64 at 20 % loss"),
    Parameter("max_events", 50, 1, 65535, "events", "decoding matrices: what is on its way at one time"),
    Parameter("max_known", 1000, 1, 65535, "events", "ids, as many as Flooding knows: 100 events a second"),
    Parameter("forget_after_s", 10.0, 0.0, 65535.0, "s", "long after an event has passed: then its id is forgotten"),
)


class Generation:
    """What a node has of one event on its way: a decoder, and when to send."""

    def __init__(self, coded):
        self.header = _header(coded)
        self.decoder = Decoder(coded.generation_size, coded.field)
        self.hops = wire.U16
        self.fresh = 0  # innovative packets since the last transmission
        self.send_us = None
        self.has_sent = False


def _header(coded):
    """What all packets of an event have in common."""
    return coded.generation_size, coded.field, coded.length_B


class CodedDiffusionNode(Node):
    """One node: source, bootstrap node or intermediate node, as it comes."""

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.generations = {}  # event id -> Generation
        self._ids = []  # of the generations, oldest first: a dictionary keeps no order on a mote
        self.known = {}  # event id -> when it was last heard of or sent
        self._collecting_us = int(settings.collecting_time_ms * 1000)
        longest_us = 2 * settings.generation_size * self._collecting_us
        self._forget_after_us = max(int(settings.forget_after_s * SECOND_US), longest_us)
        self._all_known_until_us = 0
        self.subscriptions = []
        self._subscribed = 0
        self._published = 0

    # The application's side

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Keep what matches ``attributes`` from now on, for ``expires_s`` seconds (None: for ever)."""
        check_subscription(attributes, match_all)
        expires_us = None if expires_s is None else now + int(expires_s * SECOND_US)
        subscription = Subscription(self, self.first_number + self._subscribed, tuple(attributes), expires_us)
        self._subscribed += 1
        self.subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription, now):
        """Forget a subscription; one already forgotten is no error."""
        self.subscriptions = [kept for kept in self.subscriptions if kept is not subscription]

    def publish(self, attributes, now, payload=b""):
        """Broadcast an event; returns its number at this node."""
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        number = self.first_number + self._published
        frame = wire.encode_event(wire.Event(self.address, number, attributes))
        self._published += 1
        self.events.append(Originated(NOBODY, "event", self.address, number, number, ""))
        self._hold((self.address, number), tuple(attributes), NOBODY, "event", 0, now)
        self.outbox.append((None, frame))
        return number

    # Frames

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Take a neighbor's event or coded packet."""
        try:
            message = wire.decode(frame)
            if isinstance(message, wire.Event):
                self._receive_event(message, previous_hop, now)
            else:
                self._receive_coded(message, previous_hop, now)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")

    def _receive_event(self, event, previous_hop, now):
        event_id = (event.origin, event.sequence)
        if self._is_over(event_id, now):
            self.drop(previous_hop, "event", event.origin, event.sequence, "duplicate")
            return
        if event_id not in self.generations and not self._has_room(now, 0):
            self.drop(previous_hop, "event", event.origin, event.sequence, "full")
            return
        self._forget(event_id)
        self.known[event_id] = now
        self._hold(event_id, event.attributes, previous_hop, "event", 1, now)
        settings = self.settings
        data = wire.event_bytes(event.attributes)
        encoder = Encoder(split(data, settings.generation_size, settings.field), settings.field, self.random)
        for _ in range(settings.bootstrap_factor):
            self._send(event_id, 1, (settings.generation_size, settings.field, len(data)), encoder.encode())
        self._tell_forwarded(previous_hop, event_id, settings.bootstrap_factor)

    def _receive_coded(self, coded, previous_hop, now):
        event_id = (coded.origin, coded.sequence)
        if self._is_over(event_id, now):
            self.drop(previous_hop, "coded", coded.origin, coded.sequence, "decoded")
            return
        generation = self.generations.get(event_id)
        if generation is None:
            if not self._has_room(now, 1):
                self.drop(previous_hop, "coded", coded.origin, coded.sequence, "full")
                return
            generation = self.generations[event_id] = Generation(coded)
            self._ids.append(event_id)
        elif generation.header != _header(coded):
            raise DecodeError("a packet of another generation under the same id")
        self.known[event_id] = now
        decoder = generation.decoder
        if not decoder.add(coded.encoding_vector, coded.information_vector):
            self.drop(previous_hop, "coded", coded.origin, coded.sequence, "not_innovative")
            return
        generation.hops = min(generation.hops, coded.hops + 1)
        generation.fresh += 1
        self.events.append(
            Innovative(previous_hop, "coded", coded.origin, coded.sequence, decoder.rank, str(decoder.arrivals[-1]))
        )
        if decoder.is_complete:
            self._decode(event_id, generation, previous_hop, now)
        self._plan_sending(generation, now)
        if decoder.is_complete and generation.send_us is None:
            self._forget(event_id)
        self._plan_wake()

    def _plan_sending(self, generation, now):
        if generation.has_sent and not self.settings.rearm:
            return
        # Drawn even where it is certain: a node draws the same whatever its parameters are.
        if self.random.uniform() < self.settings.forwarding_probability:
            generation.send_us = now + self._collecting_us

    def _decode(self, event_id, generation, previous_hop, now):
        generation_size, _, length_B = generation.header
        decoder = generation.decoder
        chunks = (decoder.field.to_data(decoder.row(index).information_vector) for index in range(generation_size))
        try:
            attributes = wire.event_attributes(memoryview(join(chunks, length_B)))
        except DecodeError:
            # Packets that do not belong together, each with a right checksum. The id stays known: to begin anew with
            # such packets might never end.
            self._forget(event_id)
            raise
        self.events.append(Decoded(previous_hop, "coded", event_id[0], event_id[1], generation_size, ""))
        self._hold(event_id, attributes, previous_hop, "coded", generation.hops, now)

    # What is known

    def _is_over(self, event_id, now):
        """Whether nothing more is wanted of an event: it is this node's own, or known and not being decoded."""
        if event_id[0] == self.address:
            return True
        heard_us = self.known.get(event_id)
        generation = self.generations.get(event_id)
        if heard_us is None or (generation is not None and not generation.decoder.is_complete):
            return False
        if now - heard_us >= self._forget_after_us:
            del self.known[event_id]
            return False
        self.known[event_id] = now
        return True

    def _has_room(self, now, matrices):
        """Whether another event can be known, with so many matrices; what has long been quiet makes room for it."""
        if self._is_full(matrices) and now >= self._all_known_until_us:
            self._forget_the_quiet(now)
        return not self._is_full(matrices)

    def _is_full(self, matrices):
        settings = self.settings
        return len(self.known) >= settings.max_known or len(self._ids) + matrices > settings.max_events

    def _forget_the_quiet(self, now):
        quiet = [event_id for event_id in self.known if now - self.known[event_id] >= self._forget_after_us]
        for event_id in [event_id for event_id in self._ids if event_id in quiet]:
            self._forget(event_id)
            self.drop(NOBODY, "coded", event_id[0], event_id[1], "expired")
        for event_id in quiet:
            del self.known[event_id]
        # Looking through all of them for every packet would cost too much; before that time there is nothing to find.
        oldest_us = min(self.known.values()) if self.known else now
        self._all_known_until_us = oldest_us + self._forget_after_us

    def _forget(self, event_id):
        if event_id in self.generations:
            del self.generations[event_id]
            self._ids.remove(event_id)
            self._plan_wake()

    def _hold(self, event_id, attributes, previous_hop, name, hops, now):
        """This node has an event: tell so, and hand it to the subscriptions that it matches."""
        origin, sequence = event_id
        self.events.append(Held(previous_hop, name, origin, sequence, hops, ""))
        for subscription in self.subscriptions:
            if subscription.expires_us is not None and now >= subscription.expires_us:
                continue
            for sample in matching_samples(subscription.attributes, attributes):
                subscription.put(sample)
                self.events.append(Delivered(previous_hop, name, origin, sequence, subscription.number, sample))

    # Sending

    def wake(self, now):
        """Send for the events whose collecting time is over."""
        for event_id in list(self._ids):
            generation = self.generations[event_id]
            if generation.send_us is None or generation.send_us > now:
                continue
            generation.send_us = None
            generation.has_sent = True
            self.known[event_id] = now
            # 0.1 * 30 is a little more than 3 in floating point.
            count = math.ceil(self.settings.forwarding_factor * generation.fresh - 1e-9)
            generation.fresh = 0
            recoder = Recoder(generation.decoder, self.random)
            for _ in range(count):
                self._send(event_id, generation.hops, generation.header, recoder.recode())
            self._tell_forwarded(NOBODY, event_id, count)
            if generation.decoder.is_complete:
                self._forget(event_id)
        self._plan_wake()

    def _send(self, event_id, hops, header, packet):
        generation_size, order, length_B = header
        hops = min(hops, wire.U16 - 1)
        coded = wire.Coded(event_id[0], event_id[1], hops, generation_size, order, length_B, packet[0], packet[1])
        self.outbox.append((None, wire.encode_coded(coded)))

    def _tell_forwarded(self, previous_hop, event_id, count):
        if self.tells_all:
            self.events.append(Forwarded(previous_hop, "coded", event_id[0], event_id[1], 0, str(count)))

    def _plan_wake(self):
        times = [generation.send_us for generation in self.generations.values() if generation.send_us is not None]
        self.next_wake = min(times) if times else None


class CodedDiffusion(Protocol):
    """Coded diffusion and its settings: ``CodedDiffusion(generation_size=2, forwarding_probability=.8, ...)``."""

    node = CodedDiffusionNode
    parameters = PARAMETERS
    disseminates = True
    describe = staticmethod(wire.describe)
