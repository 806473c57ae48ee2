"""The node that gossips pieces: a publication is sent in several frames, and nodes forward each piece by chance.

Theory of operation
    A publisher splits its publication into pieces and broadcasts each. A node forwards each piece that it hears for the
    first time with a probability, as gossip does with whole publications. When a node has all pieces, it holds the
    publication and delivers it to its own matching subscriptions. A node that misses a single piece lacks the whole
    publication. So fewer nodes hold a publication than if it is sent whole with the same number of bytes. This node is
    the baseline for network coding, where any packet can replace a lost packet.

Limits
    A node reassembles ``max_partial`` publications at a time. For a further publication it gives up the oldest. It does
    not begin to reassemble that publication again as long as it remembers the id. A node remembers the ids of the last
    ``max_events`` publications, and which of their pieces it has received.

Reference
    See `workbench.protocols.gossip`.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.event_bytes import event_attributes, event_bytes
from workbench.attributes.model import check_publication, with_payload
from workbench.errors import DecodeError
from workbench.protocols.contract import NOBODY, Forwarded, Held, Originated
from workbench.protocols.flooding.node import FloodingNode
from workbench.protocols.flooding.rules import hops_taken
from workbench.protocols.gossip import wire


class Partial:
    """An incomplete publication at a node: the pieces received so far, and the most hops that any of them took."""

    def __init__(self, piece):
        self.header = piece.pieces, piece.length_B
        self.data = [None] * piece.pieces
        self.missing = piece.pieces
        self.hops = 0


class PiecesGossipNode(FloodingNode):
    """A gossip node that sends a publication in pieces, and forwards each received piece with a probability."""

    describe = staticmethod(wire.describe)

    def __init__(self, address, settings, random):
        FloodingNode.__init__(self, address, settings, random)
        # The values of `_known` are here: (number of pieces, event length in bytes, a bit set of the pieces received).
        self.partial = {}  # event id -> Partial
        self._partial_ids = []  # keys of `partial`, oldest first: a dictionary keeps no order on a mote

    def publish(self, attributes, now, payload=b""):
        """Broadcast a new publication piece by piece and return its sequence number at this node.

        ``payload``: bytes that are added to the attributes, see `with_payload`.
        """
        attributes = check_publication(with_payload(attributes, payload))
        data = event_bytes(attributes)
        piece_count = wire.number_of_pieces(len(data), self.settings.pieces)
        number = self.first_number + self._published
        frames = []
        for index in range(piece_count):
            begin, end = wire.piece_bounds(len(data), piece_count, index)
            piece = wire.Piece(self.address, number, self.ttl, piece_count, index, len(data), data[begin:end])
            frames.append((None, wire.encode(piece)))
        self._published += 1
        self.events.append(Originated(NOBODY, "piece", self.address, number, number, ""))
        self._known.put((self.address, number), (piece_count, len(data), (1 << piece_count) - 1))
        self._record_and_deliver(attributes, self.address, number, NOBODY, 0, now)
        self.outbox += frames
        return number

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Store a new piece, and forward it with ``forwarding_probability``; drop duplicates and malformed frames.

        A piece with a ttl of at most 1 is not forwarded. ``broadcast`` has no effect.
        """
        try:
            piece = wire.decode(frame)
            if self._is_duplicate(piece):
                self.drop(previous_hop, "piece", piece.origin, piece.sequence, "duplicate")
                return
            self._store_piece(piece, previous_hop, now)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        if piece.ttl <= 1:
            self.drop(previous_hop, "piece", piece.origin, piece.sequence, "ttl")
        elif self.random.uniform() >= self.settings.forwarding_probability:
            self.drop(previous_hop, "piece", piece.origin, piece.sequence, "chance")
        else:
            self.outbox.append((None, wire.with_ttl(frame, piece.ttl - 1)))
            if self.tells_all:
                self.events.append(Forwarded(previous_hop, "piece", piece.origin, piece.sequence, 0, ""))

    def _is_duplicate(self, piece):
        """Return whether the node has received this piece before.

        Raises DecodeError if ``piece`` differs from earlier pieces of its event in the number of pieces or in the
        event's length.
        """
        event_id = (piece.origin, piece.sequence)
        header = piece.pieces, piece.length_B
        partial, known_pieces = self.partial.get(event_id), self._known.get(event_id)
        if (partial is not None and partial.header != header) or (
            known_pieces is not None and known_pieces[:2] != header
        ):
            raise DecodeError(
                "a piece differs from earlier pieces of its event in the number of pieces or the event length"
            )
        return known_pieces is not None and bool(known_pieces[2] >> piece.number & 1)

    def _store_piece(self, piece, previous_hop, now):
        event_id = (piece.origin, piece.sequence)
        known_pieces, partial = self._known.get(event_id), self.partial.get(event_id)
        if known_pieces is None and partial is None:
            partial = self._begin_reassembly(event_id, piece)
        received_bits = 0 if known_pieces is None else known_pieces[2]
        self._known.put(event_id, (piece.pieces, piece.length_B, received_bits | 1 << piece.number))
        # Without a Partial, the publication was evicted or is complete. A piece may be stored although the node does
        # not remember receiving it: it forgot the id during the reassembly.
        if partial is None or partial.data[piece.number] is not None:
            return
        partial.data[piece.number] = piece.data
        partial.missing -= 1
        partial.hops = max(partial.hops, hops_taken(self.ttl, piece.ttl))
        if partial.missing == 0:
            self._remove_partial(event_id)
            attributes = event_attributes(b"".join(partial.data))
            self._record_and_deliver(attributes, piece.origin, piece.sequence, previous_hop, partial.hops, now)

    def _begin_reassembly(self, event_id, piece):
        if len(self._partial_ids) >= self.settings.max_partial:
            oldest_id = self._partial_ids[0]
            self._remove_partial(oldest_id)
            self.drop(NOBODY, "piece", oldest_id[0], oldest_id[1], "evicted")
        partial = self.partial[event_id] = Partial(piece)
        self._partial_ids.append(event_id)
        return partial

    def _remove_partial(self, event_id):
        del self.partial[event_id]
        self._partial_ids.remove(event_id)

    def _record_and_deliver(self, attributes, origin, sequence, previous_hop, hops, now):
        self.events.append(Held(previous_hop, "piece", origin, sequence, hops, ""))
        self.deliver_to(self.subscriptions.open, attributes, previous_hop, "piece", origin, sequence, now)
