"""Acknowledgements of publications: from a subscriber's application to the publisher's, on the reverse path.

Theory of operation
    The next hop of an acknowledgement is a neighbor that sent this node the newest publication of the series; of
    several, the neighbor whose copy came with the fewest hops. The node needs no link with this neighbor, only the
    neighbor's address. Each node on the path forwards the same bytes in the same way. An acknowledgement is sent once
    and not repeated. The publisher's node appends it to the `Series` that the application holds. The answer to an
    encrypted publication must be encrypted, or signed by a known key; otherwise it is dropped with the reason "plain".

    After nodes have lost their memory, reverse paths may form a cycle. So a node forwards at most
    `rules.MOST_ANSWERS` acknowledgements of a publication id.
"""

from __future__ import annotations

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.contract import NOBODY, Forwarded
from workbench.protocols.dps import wire
from workbench.protocols.dps.context import Context, Neighbor
from workbench.protocols.dps.events import Acknowledged
from workbench.protocols.dps.history import History
from workbench.protocols.dps.publications import check_datagram_size, event_label
from workbench.protocols.dps.rules import MOST_ANSWERS
from workbench.protocols.dps.series import Answer, Arrival, Series

NAME = wire.NAMES[wire.ACKNOWLEDGEMENT]


class Acknowledgements:
    """Sender, receiver and forwarder of acknowledgements at one node.

    Acknowledgements travel on the reverse path of their publication, which ``history`` records. ``address``: the
    node's address; the ids of its own publications contain it.
    """

    def __init__(self, context: Context, history: History, address: int) -> None:
        self._address = address
        self._context = context
        self._history = history
        self._own_series: dict[bytes, Series] = {}  # publication id -> Series, the latest at the end
        self._most_series = context.settings.max_history

    def expect(self, series: Series) -> None:
        """Register a series that this node publishes, so that acknowledgements of it are accepted.

        Only the latest ``max_history`` series are registered; acknowledgements of older ones are dropped.
        """
        stored_series = self._own_series
        stored_series.pop(series.publication_id, None)
        while len(stored_series) >= self._most_series:
            del stored_series[next(iter(stored_series))]
        stored_series[series.publication_id] = series

    def send(self, arrival: Arrival, data: bytes) -> None:
        """Send an acknowledgement with ``data`` for the received publication ``arrival``.

        If no reverse path to the publisher is recorded, drop the acknowledgement. Raises ParameterError if the
        publication requests no acknowledgements, EncodeError if the message does not fit a datagram.
        """
        if not arrival.wants_answer:
            raise ParameterError(
                "the publication requests no acknowledgement; acknowledge only an Arrival whose wants_answer is True"
            )
        message = wire.Acknowledgement(arrival.publication_id, arrival.sequence, data)
        if arrival.neighbor is None:
            self._deliver(message, Answer(arrival.sequence, data, None, None, None))
            return
        if arrival.opened is not None:
            message = self._context.security.answering(arrival.opened).seal(message)
        encoded_acknowledgement = check_datagram_size(wire.encode(message), NAME)
        neighbor = self._history.reverse_hop(arrival.publication_id)
        if neighbor is None:
            self._drop(message, None, "no_way_back")
            return
        self._context.send(neighbor, encoded_acknowledgement)

    def receive(self, message: wire.Acknowledgement, frame: bytes, neighbor: Neighbor) -> None:
        """Handle an acknowledgement from ``neighbor``: deliver it if this node is the publisher, else forward it.

        ``message`` is the decoded acknowledgement, and ``frame`` its bytes, which are forwarded unchanged. An
        acknowledgement that is not expected, or for which no next hop is recorded, is dropped.
        """
        series = self._own_series.get(message.publication_id)
        if series is not None and message.acknowledged <= series.sequence:
            self._open_and_deliver(message, series, neighbor)
            return
        history_entry = self._history.get(message.publication_id)
        if history_entry is None or not history_entry.acknowledge or message.acknowledged > history_entry.sequence:
            self._drop(message, neighbor, "unasked")
            return
        if wire.origin_of(message.publication_id)[0] == self._address:
            # This node has forgotten its series. A neighbor may have sent it the publication again.
            self._drop(message, neighbor, "unasked")
            return
        next_hop = self._history.reverse_hop(message.publication_id)
        if next_hop is None or next_hop == neighbor or history_entry.forwarded_answers >= MOST_ANSWERS:
            self._drop(message, neighbor, "no_way_back")
            return
        history_entry.forwarded_answers += 1
        self._context.send(next_hop, frame)
        if self._context.reports_details:
            self._context.report(
                Forwarded, neighbor, NAME, *event_label(message.publication_id, message.acknowledged), 1, ""
            )

    def _open_and_deliver(self, message: wire.Acknowledgement, series: Series, neighbor: Neighbor) -> None:
        security = self._context.security
        payload, sender, key_management = message.data, None, None
        if payload is None:
            try:
                if security is None:
                    raise DecodeError("the acknowledgement is encrypted or signed, and this node has no keys")
                opened = security.open(message)
                payload, sender, key_management = opened.message.data, opened.sender, opened.way
            except DecodeError:
                self._drop(message, neighbor, "sealed")
                return
        if (
            sender is None
            and key_management is None
            and (series.is_encrypted or (security is not None and not security.plain))
        ):
            self._drop(message, neighbor, "plain")
            return
        self._deliver(message, Answer(message.acknowledged, payload, sender, key_management, neighbor))

    def _deliver(self, message: wire.Acknowledgement, answer: Answer) -> None:
        series = self._own_series.get(message.publication_id)
        if series is not None:
            series.put(answer)
            peer = NOBODY if answer.neighbor is None else answer.neighbor
            self._context.report(
                Acknowledged,
                peer,
                NAME,
                *event_label(message.publication_id, message.acknowledged),
                len(answer.data),
                "",
            )

    def _drop(self, message: wire.Acknowledgement, neighbor: Neighbor | None, reason: str) -> None:
        self._context.drop(neighbor, NAME, event_label(message.publication_id, message.acknowledged), reason)
