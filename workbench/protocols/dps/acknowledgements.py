"""Acknowledgements of publications: from a subscriber's application back to the publisher's, the way they came.

Theory of operation
    An acknowledgement goes to the neighbor that brought the series' newest publication with the fewest hops, over a
    link or straight to its address, and from there likewise; the bytes stay as they are. It is sent once. The node that
    has published it hands it to its series. What was encrypted is answered encrypted: an answer to it that is neither
    that nor signed by a known key is dropped as "plain".
"""

from __future__ import annotations

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.contract import NOBODY, Forwarded
from workbench.protocols.dps import wire
from workbench.protocols.dps.context import Context, Neighbor
from workbench.protocols.dps.events import Acknowledged
from workbench.protocols.dps.history import History
from workbench.protocols.dps.publications import fit_for_datagram, label
from workbench.protocols.dps.series import Answer, Arrival, Series

NAME = wire.NAMES[wire.ACKNOWLEDGEMENT]


class Acknowledgements:
    """Acknowledgements at one node. Its ``history`` has the path back of each publication."""

    def __init__(self, context: Context, history: History) -> None:
        self._context = context
        self._history = history
        self._own: dict[bytes, Series] = {}  # publication id -> Series, the one published last at the end
        self._most = context.settings.max_history

    def expect(self, series: Series) -> None:
        """Answers to this series are for this node; of too many the oldest are forgotten."""
        own = self._own
        own.pop(series.publication_id, None)
        while len(own) >= self._most:
            del own[next(iter(own))]
        own[series.publication_id] = series

    def send(self, arrival: Arrival, data: bytes) -> None:
        """Acknowledge what has arrived.

        ParameterError if its publisher has not asked for that, EncodeError if it does not fit a datagram.
        """
        if not arrival.wants_answer:
            raise ParameterError("the publisher has not asked for acknowledgements of this publication")
        message = wire.Acknowledgement(arrival.publication_id, arrival.sequence, data)
        if arrival.neighbor is None:
            self._hand_over(message, Answer(arrival.sequence, data, None, None, None))
            return
        if arrival.opened is not None:
            message = self._context.security.answering(arrival.opened).seal(message)
        frame = fit_for_datagram(wire.encode(message), NAME)
        neighbor = self._history.way_back(arrival.publication_id)
        if neighbor is None:
            self._drop(message, None, "no_way_back")
            return
        self._context.send(neighbor, frame)

    def take(self, message: wire.Acknowledgement, frame: bytes, neighbor: Neighbor) -> None:
        """One from a neighbor: for a series of this node's own, or to be passed on."""
        series = self._own.get(message.publication_id)
        if series is not None and message.acknowledged <= series.sequence:
            self._open(message, series, neighbor)
            return
        seen = self._history.get(message.publication_id)
        if seen is None or not seen.acknowledge or message.acknowledged > seen.sequence:
            self._drop(message, neighbor, "unasked")
            return
        onward = self._history.way_back(message.publication_id)
        if onward is None or onward == neighbor:
            self._drop(message, neighbor, "no_way_back")
            return
        self._context.send(onward, frame)
        if self._context.reports_details:
            self._context.report(Forwarded, neighbor, NAME, *label(message.publication_id, message.acknowledged), 1, "")

    def _open(self, message: wire.Acknowledgement, series: Series, neighbor: Neighbor) -> None:
        security = self._context.security
        data, sender, way = message.data, None, None
        if data is None:
            try:
                if security is None:
                    raise DecodeError("a secured acknowledgement, and no keys")
                opened = security.open(message)
                data, sender, way = opened.message.data, opened.sender, opened.way
            except DecodeError:
                self._drop(message, neighbor, "sealed")
                return
        if sender is None and way is None and (series.is_encrypted or (security is not None and not security.plain)):
            self._drop(message, neighbor, "plain")
            return
        self._hand_over(message, Answer(message.acknowledged, data, sender, way, neighbor))

    def _hand_over(self, message: wire.Acknowledgement, answer: Answer) -> None:
        series = self._own.get(message.publication_id)
        if series is not None:
            series.put(answer)
            peer = NOBODY if answer.neighbor is None else answer.neighbor
            self._context.report(
                Acknowledged, peer, NAME, *label(message.publication_id, message.acknowledged), len(answer.data), ""
            )

    def _drop(self, message: wire.Acknowledgement, neighbor: Neighbor | None, reason: str) -> None:
        self._context.drop(neighbor, NAME, label(message.publication_id, message.acknowledged), reason)
