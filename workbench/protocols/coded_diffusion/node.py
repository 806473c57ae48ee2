"""The node of coded diffusion, which spreads events as random linear combinations of their chunks.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.attributes.model import check_publication, with_payload
from workbench.coding.rlnc import Decoder, Recoder, join, split
from workbench.errors import DecodeError
from workbench.protocols.coded_diffusion import rules, wire
from workbench.protocols.contract import FIELDS, NOBODY, Forwarded, Held, Node, Originated

# A coded packet from ``peer`` raised the rank of the event's decoding matrix. value: the new rank; detail: the pivot
# column of the new row.
Innovative = namedtuple("Innovative", FIELDS)
# The event ``origin``, ``sequence`` was decoded. value: its generation size.
Decoded = namedtuple("Decoded", FIELDS)
# The node created or emptied its decoding matrix of the event ``origin``, ``sequence``. value: generation size.
GenerationBegun = namedtuple("GenerationBegun", FIELDS)


class Generation:
    """A node's state for one event: a decoder, and the times to send or request packets and to forget the event."""

    def __init__(self, header):
        self.has_sent = False
        self.is_suspect = False  # True once its packets were dropped as corrupt
        self.begin(header)

    def begin(self, header):
        """Discard all packets, and begin with an empty decoder for packets with the given header.

        ``header``: (generation size, field order, event length in bytes).
        """
        self.header = header
        self.decoder = Decoder(header[0], header[1])
        self.hops = wire.U16
        self.fresh = 0  # innovative packets since the last transmission
        self.send_us = None
        self.due_us = None  # when to send a request or, once decoded, to forget the event
        self.requests = 0  # requests sent since the last innovative packet; see `_allow_request`
        self.peer = None  # the sender of the last innovative packet; None once it has been sent a request
        self.requested = 0  # packets still to be sent in answer to requests


def _common_header(coded):
    """Return (generation size, field order, event length in bytes) of a coded packet.

    These values are equal in all packets of an event.
    """
    return coded.generation_size, coded.field, coded.length_B


class CodedDiffusionNode(Node):
    """A node of coded diffusion: source, bootstrap node or intermediate node, depending on the event."""

    EVENTS = (Innovative, Decoded, GenerationBegun)
    describe = staticmethod(wire.describe)

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.generations = {}  # event id -> Generation
        self._ids = []  # keys of `generations`, oldest first: a dictionary keeps no order on a mote
        self.known = {}  # event id -> time (µs) at which its last frame was heard or sent
        self._collecting_us = rules.collecting_us(settings.collecting_time_ms)
        self._request_after_us = rules.request_after_us(self._collecting_us)
        self._keep_us = rules.keep_us(settings.max_requests, self._collecting_us, self._request_after_us)
        self._forget_after_us = rules.forget_after_us(
            settings.forget_after_s, settings.generation_size, self._collecting_us, self._keep_us
        )
        self._next_search_us = 0
        self._published = 0

    # Called by the application

    def publish(self, attributes, now, payload=b""):
        """Broadcast a new event and return its sequence number at this node.

        ``payload``: bytes that are added to the attributes, see `with_payload`.
        """
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        number = self.first_number + self._published
        frame = wire.encode_event(wire.Event(self.address, number, attributes))
        self._published += 1
        self.events.append(Originated(NOBODY, "event", self.address, number, number, ""))
        self._record_and_deliver((self.address, number), tuple(attributes), NOBODY, "event", 0, now)
        self.outbox.append((None, frame))
        return number

    # Frames

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Process a neighbor's frame: an event, a coded packet or a request. Drop an invalid frame as "malformed".

        ``broadcast`` has no effect.
        """
        try:
            message = wire.decode(frame)
            if isinstance(message, wire.Event):
                self._receive_event(message, previous_hop, now)
            elif isinstance(message, wire.Coded):
                self._receive_coded(message, previous_hop, now)
            else:
                self._receive_request(message, previous_hop, now)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")

    def _receive_event(self, event, previous_hop, now):
        event_id = (event.origin, event.sequence)
        if self._is_finished(event_id, now):
            self.drop(previous_hop, "event", event.origin, event.sequence, "duplicate")
            return
        if event_id not in self.generations and not self._make_room_for_event(now, 0):
            self.drop(previous_hop, "event", event.origin, event.sequence, "full")
            return
        self._remove_generation(event_id)
        self.known[event_id] = now
        self._record_and_deliver(event_id, event.attributes, previous_hop, "event", 1, now)
        generation = self._generation_of_event(event)
        self._send_combinations(event_id, generation, self.settings.bootstrap_factor)
        self._report_forwarded(previous_hop, event_id, self.settings.bootstrap_factor)
        self._forget_answering_event()
        if self._keep_us and len(self._ids) < self.settings.max_events:
            generation.due_us = now + self._keep_us
            self._add_generation(event_id, generation)
            self._plan_wake()

    def _generation_of_event(self, event):
        """Return the generation (state) for an event that was received as a whole; its decoder holds all chunks."""
        settings = self.settings
        data = wire.coded_bytes(event.origin, event.sequence, event.attributes)
        generation_size = settings.generation_size
        generation = Generation((generation_size, settings.field, len(data) - wire.CHECKSUM_B))
        generation.hops = 1
        decoder = generation.decoder
        chunks = split(data, generation_size, settings.field)
        for index in range(generation_size):
            decoder.add(
                [1 if index == i else 0 for i in range(generation_size)], decoder.field.from_data(chunks[index])
            )
        return generation

    def _receive_coded(self, coded, previous_hop, now):
        event_id = (coded.origin, coded.sequence)
        if self._is_finished(event_id, now):
            self.drop(previous_hop, "coded", coded.origin, coded.sequence, "decoded")
            return
        generation = self.generations.get(event_id)
        if generation is None:
            if not self._make_room_for_event(now, 1):
                self.drop(previous_hop, "coded", coded.origin, coded.sequence, "full")
                return
            generation = Generation(_common_header(coded))
            self._add_generation(event_id, generation)
            self._report_generation_begun(event_id, generation, previous_hop)
        elif generation.header != _common_header(coded):
            # Either header may be the forged one. If it is the first, the node could never decode the event with it.
            self._restart_generation(event_id, generation, _common_header(coded), previous_hop, now)
        self.known[event_id] = now
        decoder = generation.decoder
        if not decoder.add(coded.encoding_vector, coded.information_vector):
            self.drop(previous_hop, "coded", coded.origin, coded.sequence, "not_innovative")
            self._allow_request(generation, now)
            return
        generation.hops = min(generation.hops, coded.hops + 1)
        generation.fresh += 1
        generation.requests = 0
        generation.peer = previous_hop
        self.events.append(
            Innovative(previous_hop, "coded", coded.origin, coded.sequence, decoder.rank, str(decoder.arrivals[-1]))
        )
        if not decoder.is_complete:
            self._plan_request(generation, now)
            if not generation.is_suspect:
                self._plan_sending(generation, now)
        elif self._decode(event_id, generation, previous_hop, now):
            self._plan_sending(generation, now)
            self._plan_forgetting(event_id, generation, now)
        self._plan_wake()

    def _receive_request(self, request, previous_hop, now):
        event_id = (request.origin, request.sequence)
        generation = self.generations.get(event_id)
        if generation is None or not self._keep_us or request.rank >= generation.header[0]:
            self.drop(previous_hop, "request", request.origin, request.sequence, "not_at_hand")
            return
        self.known[event_id] = now
        # A node answers only after decoding the event: then its packets are verified and suffice for all requesters.
        generation.requested = max(generation.requested, generation.header[0] - request.rank)
        if generation.decoder.is_complete:
            self._plan_answer(generation, now)
            self._plan_wake()

    def _plan_answer(self, generation, now):
        if generation.send_us is None:
            generation.send_us = now + self._collecting_us
            generation.due_us = max(generation.due_us, generation.send_us)

    def _plan_request(self, generation, now):
        if self._keep_us:
            generation.due_us = now + self._request_after_us

    def _allow_request(self, generation, now):
        """Allow one more request for an incomplete generation, if this node has sent ``max_requests`` already.

        Called after a coded packet that did not raise the rank. The packet shows that a neighbor is sending packets of
        this generation; the next one is likely to raise the rank.
        """
        if 0 < generation.requests == self.settings.max_requests:
            generation.requests -= 1
            if generation.due_us is None:
                self._plan_request(generation, now)
                self._plan_wake()

    def _plan_forgetting(self, event_id, generation, now):
        """Set the time at which this node forgets a decoded event, and plan the answer to earlier requests for it.

        If nodes send requests, the node forgets the event after the time in which neighbors may request packets.
        Otherwise the node forgets the event when its send timer for the event fires, or at once if that timer is not
        set.
        """
        if self._keep_us:
            generation.due_us = now + self._keep_us
            if generation.requested:
                self._plan_answer(generation, now)
        elif generation.send_us is None:
            self._remove_generation(event_id)

    def _plan_sending(self, generation, now):
        if generation.has_sent and not self.settings.rearm:
            return
        # Draw even if the result is certain: then the sequence of draws does not depend on the parameters.
        if self.random.uniform() < self.settings.forwarding_probability:
            generation.send_us = now + self._collecting_us

    def _decode(self, event_id, generation, previous_hop, now):
        """Decode a complete generation, and deliver its event to matching subscriptions; return True.

        If the event's checksum is wrong, drop all packets of the generation instead, and return False.
        """
        generation_size, _, length_B = generation.header
        decoder = generation.decoder
        chunks = (decoder.field.to_data(decoder.row(index).information_vector) for index in range(generation_size))
        try:
            data = memoryview(join(chunks, length_B + wire.CHECKSUM_B))
            attributes = wire.coded_attributes(event_id[0], event_id[1], data)
        except DecodeError:
            self._restart_generation(event_id, generation, generation.header, previous_hop, now)
            return False
        self.events.append(Decoded(previous_hop, "coded", event_id[0], event_id[1], generation_size, ""))
        self._record_and_deliver(event_id, attributes, previous_hop, "coded", generation.hops, now)
        return True

    def _restart_generation(self, event_id, generation, header, previous_hop, now):
        """Drop all packets of an event, and start over with an empty generation.

        The caller has found that the packets do not belong together: their headers differ, or the decoded checksum is
        wrong. From now on the node sends no packets of the event before decoding it. Otherwise packets could circulate
        without end among nodes that dropped them, as they would be innovative again and again.

        ``header``: (generation size, field order, event length in bytes) of the packets to collect.
        """
        self.drop(previous_hop, "coded", event_id[0], event_id[1], "corrupt")
        generation.begin(header)
        generation.is_suspect = True
        self._report_generation_begun(event_id, generation, previous_hop)
        self._plan_request(generation, now)

    def _report_generation_begun(self, event_id, generation, previous_hop):
        event = GenerationBegun(previous_hop, "coded", event_id[0], event_id[1], generation.header[0], "")
        self.events.append(event)

    # Memory of events

    def _is_finished(self, event_id, now):
        """Return whether the node needs no more packets of an event, because it published, received or decoded it.

        If the result is True, ``now`` becomes the time of the event's last frame. If the event's last frame was long
        ago (`rules.is_quiet`), the node forgets the event, so that the event counts as new, and the result is False.
        """
        if event_id[0] == self.address:
            return True
        heard_us = self.known.get(event_id)
        generation = self.generations.get(event_id)
        if heard_us is None or (generation is not None and not generation.decoder.is_complete):
            return False
        if rules.is_quiet(now, heard_us, self._forget_after_us):
            self._remove_generation(event_id)
            del self.known[event_id]
            return False
        self.known[event_id] = now
        return True

    def _make_room_for_event(self, now, matrices):
        """Make room for an event and for ``matrices`` (0 or 1) decoding matrices; return whether there is room now.

        If no decoding matrix is free, the node forgets the oldest event that it stores only to answer requests. If that
        is not enough, it also forgets all events of which it has neither received nor sent a frame for a long time.
        """
        if matrices:
            self._forget_answering_event()
        if self._is_memory_full(matrices) and now >= self._next_search_us:
            self._forget_quiet_events(now)
        return not self._is_memory_full(matrices)

    def _is_memory_full(self, matrices):
        settings = self.settings
        return rules.is_full(len(self.known), settings.max_known, len(self._ids) + matrices, settings.max_events)

    def _forget_answering_event(self):
        """Forget the oldest event that is stored only to answer requests, if no decoding matrix is free."""
        if len(self._ids) < self.settings.max_events:
            return
        for event_id in self._ids:
            generation = self.generations[event_id]
            if generation.decoder.is_complete and generation.send_us is None:
                self._remove_generation(event_id)
                return

    def _forget_quiet_events(self, now):
        quiet_ids = [
            event_id for event_id in self.known if rules.is_quiet(now, self.known[event_id], self._forget_after_us)
        ]
        for event_id in [event_id for event_id in self._ids if event_id in quiet_ids]:
            self._remove_generation(event_id)
            self.drop(NOBODY, "coded", event_id[0], event_id[1], "expired")
        for event_id in quiet_ids:
            del self.known[event_id]
        # A search for every packet would cost too much; before this time no event is quiet long enough.
        oldest_us = min(self.known.values()) if self.known else now
        self._next_search_us = oldest_us + self._forget_after_us

    def _add_generation(self, event_id, generation):
        self.generations[event_id] = generation
        self._ids.append(event_id)

    def _remove_generation(self, event_id):
        if event_id in self.generations:
            del self.generations[event_id]
            self._ids.remove(event_id)
            self._plan_wake()

    def _record_and_deliver(self, event_id, attributes, previous_hop, name, hops, now):
        """Record that this node holds an event, and deliver its attributes to matching subscriptions.

        ``previous_hop``, ``name``, ``hops``: the sender of the message that completed the event, the name of its type,
        and the number of hops that it has taken.
        """
        origin, sequence = event_id
        self.events.append(Held(previous_hop, name, origin, sequence, hops, ""))
        self.deliver_to(self.subscriptions.open, attributes, previous_hop, name, origin, sequence, now)

    # Sending

    def wake(self, now):
        """Run the timers that are due: send coded packets, send a request, or forget an event."""
        for event_id in list(self._ids):
            generation = self.generations[event_id]
            if generation.send_us is not None and generation.send_us <= now:
                self._send_planned_packets(event_id, generation, now)
            if generation.due_us is not None and generation.due_us <= now:
                if generation.decoder.is_complete:
                    self._remove_generation(event_id)
                else:
                    self._send_request(event_id, generation, now)
        self._plan_wake()

    def _send_planned_packets(self, event_id, generation, now):
        generation.send_us = None
        generation.has_sent = True
        self.known[event_id] = now
        count = rules.packets_to_send(self.settings.forwarding_factor, generation.fresh)
        generation.fresh = 0
        is_complete = generation.decoder.is_complete
        if is_complete:
            count, generation.requested = max(count, generation.requested), 0
        self._send_combinations(event_id, generation, count)
        self._report_forwarded(NOBODY, event_id, count)
        if is_complete and generation.due_us is None:
            self._remove_generation(event_id)

    def _send_request(self, event_id, generation, now):
        """Request more packets for an incomplete generation, unless ``max_requests`` requests have already been sent.

        The first request after an innovative packet goes to the sender of this packet, later ones go to all neighbors.
        """
        if generation.requests == self.settings.max_requests:
            generation.due_us = None
            return
        generation.requests += 1
        generation.due_us = now + self._request_after_us
        self.known[event_id] = now
        request = wire.Request(event_id[0], event_id[1], generation.decoder.rank)
        self.outbox.append((generation.peer, wire.encode_request(request)))
        generation.peer = None

    def _send_combinations(self, event_id, generation, count):
        recoder = Recoder(generation.decoder, self.random)
        for _ in range(count):
            self._send_coded_packet(event_id, generation.hops, generation.header, recoder.recode())

    def _send_coded_packet(self, event_id, hops, header, packet):
        generation_size, field_order, length_B = header
        hops = min(hops, wire.U16 - 1)
        coded = wire.Coded(event_id[0], event_id[1], hops, generation_size, field_order, length_B, packet[0], packet[1])
        self.outbox.append((None, wire.encode_coded(coded)))

    def _report_forwarded(self, previous_hop, event_id, count):
        if self.tells_all:
            self.events.append(Forwarded(previous_hop, "coded", event_id[0], event_id[1], 0, str(count)))

    def _plan_wake(self):
        times = [generation.send_us for generation in self.generations.values() if generation.send_us is not None]
        times += [generation.due_us for generation in self.generations.values() if generation.due_us is not None]
        self.next_wake = min(times) if times else None
