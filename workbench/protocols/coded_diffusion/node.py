"""A node that spreads events as random linear combinations of their chunks.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import check_publication, with_payload
from workbench.coding.rlnc import Decoder, Encoder, Recoder, join, split
from workbench.errors import DecodeError
from workbench.protocols.coded_diffusion import events, rules, wire
from workbench.protocols.coded_diffusion.events import Decoded, Innovative
from workbench.protocols.contract import NOBODY, Forwarded, Held, Node, Originated


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

    EVENTS = events.EVENTS
    describe = staticmethod(wire.describe)

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.generations = {}  # event id -> Generation
        self._ids = []  # of the generations, oldest first: a dictionary keeps no order on a mote
        self.known = {}  # event id -> when it was last heard of or sent
        self._collecting_us = rules.collecting_us(settings.collecting_time_ms)
        self._forget_after_us = rules.forget_after_us(
            settings.forget_after_s, settings.generation_size, self._collecting_us
        )
        self._all_known_until_us = 0
        self._published = 0

    # The application's side

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
        if rules.is_quiet(now, heard_us, self._forget_after_us):
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
        return rules.is_full(len(self.known), settings.max_known, len(self._ids) + matrices, settings.max_events)

    def _forget_the_quiet(self, now):
        quiet = [
            event_id for event_id in self.known if rules.is_quiet(now, self.known[event_id], self._forget_after_us)
        ]
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
        self.deliver_to(self.subscriptions.open, attributes, previous_hop, name, origin, sequence, now)

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
            count = rules.packets_to_send(self.settings.forwarding_factor, generation.fresh)
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
