"""Acknowledgements of publications: from a subscriber's application back to the publisher's, the way they came.

Theory of operation
    An acknowledgement goes to the neighbor that brought the series' newest publication with the fewest hops, over a
    link or straight to its address, and from there likewise; the bytes stay as they are. It is sent once. The node that
    has published it hands it to its series. What was encrypted is answered encrypted: an answer to it that is neither
    that nor signed by a known key is dropped as "plain".

This file is written in MicroPython's subset of Python.
"""

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.contract import NOBODY, Forwarded
from workbench.protocols.dps import wire
from workbench.protocols.dps.events import Acknowledged
from workbench.protocols.dps.publications import checked, label
from workbench.protocols.dps.series import Answer

NAME = wire.NAMES[wire.ACKNOWLEDGEMENT]


class Acknowledgements:
    """What one node does with them. ``history`` knows the way back."""

    def __init__(self, node, history):
        self.node = node
        self._history = history
        self._own = {}  # publication id -> Series, the one published last at the end
        self._most = node.settings.max_history

    def expect(self, series):
        """Answers to this series are for this node; of too many the oldest are forgotten."""
        own = self._own
        own.pop(series.publication_id, None)
        while len(own) >= self._most:
            del own[next(iter(own))]
        own[series.publication_id] = series

    def send(self, arrival, data):
        """Acknowledge what has arrived.

        ParameterError if its publisher has not asked for that, EncodeError if it does not fit a datagram.
        """
        if not arrival.wants_answer:
            raise ParameterError("the publisher has not asked for acknowledgements of this publication")
        message = wire.Acknowledgement(arrival.publication_id, arrival.sequence, data)
        if arrival.neighbor is None:
            self._hand_over(message, NOBODY, data, None, None)
            return
        if arrival.opened is not None:
            message = self.node.security.answering(arrival.opened).seal(message)
        frame = checked(wire.encode(message), NAME)
        neighbor = self._history.way_back(arrival.publication_id)
        if neighbor is None:
            self._drop(message, NOBODY, "no_way_back")
            return
        self.node.outbox.append((neighbor, frame))

    def take(self, message, frame, neighbor):
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
        self.node.outbox.append((onward, frame))
        if self.node.tells_all:
            origin, number = label(message.publication_id, message.acknowledged)
            self.node.events.append(Forwarded(neighbor, NAME, origin, number, 1, ""))

    def _open(self, message, series, neighbor):
        security = self.node.security
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
        self._hand_over(message, neighbor, data, sender, way)

    def _hand_over(self, message, peer, data, sender, way):
        series = self._own.get(message.publication_id)
        if series is not None:
            series.put(Answer(message.acknowledged, data, sender, way, None if peer == NOBODY else peer))
            origin, number = label(message.publication_id, message.acknowledged)
            self.node.events.append(Acknowledged(peer, NAME, origin, number, len(data), ""))

    def _drop(self, message, peer, reason):
        origin, number = label(message.publication_id, message.acknowledged)
        self.node.drop(peer, NAME, origin, number, reason)
