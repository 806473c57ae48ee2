"""A node that spreads events as random linear combinations of their chunks.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.attributes.model import check_publication, with_payload
from workbench.coding.rlnc import Decoder, Recoder, join, split
from workbench.errors import DecodeError
from workbench.protocols.coded_diffusion import rules, wire
from workbench.protocols.contract import FIELDS, NOBODY, Forwarded, Held, Node, Originated

# A coded packet from ``peer`` raised the rank of its decoding matrix. value: the rank; detail: the column of its pivot.
Innovative = namedtuple("Innovative", FIELDS)
# The event ``origin``, ``sequence`` was decoded. value: its generation size.
Decoded = namedtuple("Decoded", FIELDS)
# This node has a matrix without rows for the event ``origin``, ``sequence``, or has emptied it. value: generation size.
GenerationBegun = namedtuple("GenerationBegun", FIELDS)


class Generation:
    """What a node has of one event on its way: a decoder, and when to send, to ask for more, to forget."""

    def __init__(self, header):
        self.has_sent = False
        self.is_suspect = False  # whether packets of it were dropped as corrupt
        self.begin(header)

    def begin(self, header):
        """Have nothing of an event whose packets have this header."""
        self.header = header
        self.decoder = Decoder(header[0], header[1])
        self.hops = wire.U16
        self.fresh = 0  # innovative packets since the last transmission
        self.send_us = None
        self.due_us = None  # when to ask for more or, decoded, to forget it
        self.requests = 0  # since the last innovative packet; see `_allow_request`
        self.peer = None  # who sent that packet, until it has been asked
        self.owed = 0  # packets that neighbors have asked for


def _header(coded):
    """What all packets of an event have in common."""
    return coded.generation_size, coded.field, coded.length_B


class CodedDiffusionNode(Node):
    """One node: source, bootstrap node or intermediate node, as it comes."""

    EVENTS = (Innovative, Decoded, GenerationBegun)
    describe = staticmethod(wire.describe)

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.generations = {}  # event id -> Generation
        self._ids = []  # of the generations, oldest first: a dictionary keeps no order on a mote
        self.known = {}  # event id -> when it was last heard of or sent
        self._collecting_us = rules.collecting_us(settings.collecting_time_ms)
        self._request_after_us = rules.request_after_us(self._collecting_us)
        self._keep_us = rules.keep_us(settings.max_requests, self._collecting_us, self._request_after_us)
        self._forget_after_us = rules.forget_after_us(
            settings.forget_after_s, settings.generation_size, self._collecting_us, self._keep_us
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
        """Take a neighbor's event, coded packet or request."""
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
        if self._is_over(event_id, now):
            self.drop(previous_hop, "event", event.origin, event.sequence, "duplicate")
            return
        if event_id not in self.generations and not self._has_room(now, 0):
            self.drop(previous_hop, "event", event.origin, event.sequence, "full")
            return
        self._forget(event_id)
        self.known[event_id] = now
        self._hold(event_id, event.attributes, previous_hop, "event", 1, now)
        generation = self._whole(event)
        self._send_combinations(event_id, generation, self.settings.bootstrap_factor)
        self._tell_forwarded(previous_hop, event_id, self.settings.bootstrap_factor)
        self._make_room()
        if self._keep_us and len(self._ids) < self.settings.max_events:
            generation.due_us = now + self._keep_us
            self._add(event_id, generation)
            self._plan_wake()

    def _whole(self, event):
        """The generation of an event that is at hand, its chunks in the rows of the matrix."""
        settings = self.settings
        data = wire.coded_bytes(event.origin, event.sequence, event.attributes)
        size = settings.generation_size
        generation = Generation((size, settings.field, len(data) - wire.CHECKSUM_B))
        generation.hops = 1
        decoder = generation.decoder
        chunks = split(data, size, settings.field)
        for index in range(size):
            decoder.add([1 if index == i else 0 for i in range(size)], decoder.field.from_data(chunks[index]))
        return generation

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
            generation = Generation(_header(coded))
            self._add(event_id, generation)
            self._log_begin(event_id, generation, previous_hop)
        elif generation.header != _header(coded):
            # Which of the two is the event's cannot be told; where it was the first, nothing would ever come of it.
            self._begin_again(event_id, generation, _header(coded), previous_hop, now)
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
        # What is not decoded yet is sent when it is: then it is known to be no forgery, and enough for all who asked.
        generation.owed = max(generation.owed, generation.header[0] - request.rank)
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
        """Allow one more request after the last: a neighbor sends, and its next packet is likely to be innovative."""
        if 0 < generation.requests == self.settings.max_requests:
            generation.requests -= 1
            if generation.due_us is None:
                self._plan_request(generation, now)
                self._plan_wake()

    def _plan_forgetting(self, event_id, generation, now):
        """A decoded event is kept for neighbors that ask, or until a timer that runs has fired."""
        if self._keep_us:
            generation.due_us = now + self._keep_us
            if generation.owed:
                self._plan_answer(generation, now)
        elif generation.send_us is None:
            self._forget(event_id)

    def _plan_sending(self, generation, now):
        if generation.has_sent and not self.settings.rearm:
            return
        # Drawn even where it is certain: a node draws the same whatever its parameters are.
        if self.random.uniform() < self.settings.forwarding_probability:
            generation.send_us = now + self._collecting_us

    def _decode(self, event_id, generation, previous_hop, now):
        """Whether what was decoded is the event: then this node holds it."""
        generation_size, _, length_B = generation.header
        decoder = generation.decoder
        chunks = (decoder.field.to_data(decoder.row(index).information_vector) for index in range(generation_size))
        try:
            data = memoryview(join(chunks, length_B + wire.CHECKSUM_B))
            attributes = wire.coded_attributes(event_id[0], event_id[1], data)
        except DecodeError:
            self._begin_again(event_id, generation, generation.header, previous_hop, now)
            return False
        self.events.append(Decoded(previous_hop, "coded", event_id[0], event_id[1], generation_size, ""))
        self._hold(event_id, attributes, previous_hop, "coded", generation.hops, now)
        return True

    def _begin_again(self, event_id, generation, header, previous_hop, now):
        """Drop all packets of an event, for they do not belong together, and collect others.

        Such a node sends nothing more of the event before it has decoded it: among nodes that forget packets the same
        packets would be innovative again and again, and circle.
        """
        self.drop(previous_hop, "coded", event_id[0], event_id[1], "corrupt")
        generation.begin(header)
        generation.is_suspect = True
        self._log_begin(event_id, generation, previous_hop)
        self._plan_request(generation, now)

    def _log_begin(self, event_id, generation, previous_hop):
        event = GenerationBegun(previous_hop, "coded", event_id[0], event_id[1], generation.header[0], "")
        self.events.append(event)

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
            self._forget(event_id)
            del self.known[event_id]
            return False
        self.known[event_id] = now
        return True

    def _has_room(self, now, matrices):
        """Whether another event can be known, with so many matrices; what has long been quiet makes room for it."""
        if matrices:
            self._make_room()
        if self._is_full(matrices) and now >= self._all_known_until_us:
            self._forget_the_quiet(now)
        return not self._is_full(matrices)

    def _is_full(self, matrices):
        settings = self.settings
        return rules.is_full(len(self.known), settings.max_known, len(self._ids) + matrices, settings.max_events)

    def _make_room(self):
        """Where another matrix has no room, forget the oldest event that is kept for neighbors alone."""
        if len(self._ids) < self.settings.max_events:
            return
        for event_id in self._ids:
            generation = self.generations[event_id]
            if generation.decoder.is_complete and generation.send_us is None:
                self._forget(event_id)
                return

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

    def _add(self, event_id, generation):
        self.generations[event_id] = generation
        self._ids.append(event_id)

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
            if generation.send_us is not None and generation.send_us <= now:
                self._send_planned(event_id, generation, now)
            if generation.due_us is not None and generation.due_us <= now:
                if generation.decoder.is_complete:
                    self._forget(event_id)
                else:
                    self._request(event_id, generation, now)
        self._plan_wake()

    def _send_planned(self, event_id, generation, now):
        generation.send_us = None
        generation.has_sent = True
        self.known[event_id] = now
        count = rules.packets_to_send(self.settings.forwarding_factor, generation.fresh)
        generation.fresh = 0
        is_complete = generation.decoder.is_complete
        if is_complete:
            count, generation.owed = max(count, generation.owed), 0
        self._send_combinations(event_id, generation, count)
        self._tell_forwarded(NOBODY, event_id, count)
        if is_complete and generation.due_us is None:
            self._forget(event_id)

    def _request(self, event_id, generation, now):
        """Ask for more packets: the neighbor that sent the last innovative one, and then all of them."""
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
            self._send(event_id, generation.hops, generation.header, recoder.recode())

    def _send(self, event_id, hops, header, packet):
        generation_size, order, length_B = header
        hops = min(hops, wire.U16 - 1)
        coded = wire.Coded(event_id[0], event_id[1], hops, generation_size, order, length_B, packet[0], packet[1])
        self.outbox.append((None, wire.encode_coded(coded)))

    def _tell_forwarded(self, previous_hop, event_id, count):
        if self.tells_all:
            self.events.append(Forwarded(previous_hop, "coded", event_id[0], event_id[1], 0, str(count)))

    def _plan_wake(self):
        times = [one.send_us for one in self.generations.values() if one.send_us is not None]
        times += [one.due_us for one in self.generations.values() if one.due_us is not None]
        self.next_wake = min(times) if times else None
