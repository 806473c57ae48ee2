"""The copies of an event to which each trace row may belong; the rows themselves name only the event.

A copy is the event on its path in one tree, or the event's notification to one sink.

Theory of operation
    A rendezvous node makes the notifications of an event in the order of its sinks, and logs a row "forwarded" for
    each. A node sends frames in the order in which it made them, so a row "sent" belongs to the first frame in
    the node's queue. The rows that the receiver of this frame logs next belong to the same copy. If the radio retries a
    frame, it puts the frame at the end of its queue, or with carrier sense at the front.

    A row may belong to several copies if the order of a node's frames is not known: after a message had to wait, or if
    a frame may have been sent again because an acknowledgement was lost. From then on any frame of the node may belong
    to any copy that the node holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from workbench.analysis.evidence import Evidence
from workbench.protocols.contract import NOBODY
from workbench.sim.rows import Row

# A copy: ("notification", its sink), or ("event", its number at the publisher; 0 before it is sent to a tree).
Copy = tuple[str, int]
Copies = frozenset[Copy]


class _Frame:
    """A frame that waits at a node to be sent, and carries one copy of an event.

    copies: the copies of which the frame carries one; if there are several, the trace does not show which. made_us:
    time in µs at which the frame was made. neighbor: the frame's receiver, None before the frame is sent.
    """

    def __init__(self, copies: Copies, made_us: int) -> None:
        self.copies = copies
        self.made_us = made_us
        self.earliest_us = made_us  # the earliest time at which the protocol may have handed it to the radio again
        self.neighbor: int | None = None
        self.tries = 0
        self.is_sure = True  # whether it will certainly be sent
        self.is_taken: bool | None = False  # whether the neighbor has accepted it; None: unknown

    def fits(self, row: Row) -> bool:
        """Return whether a trace row "sent" or "given_up" may belong to this frame.

        The message type must be equal. In a row "sent" the receiver must be equal too, if the frame was sent before.
        """
        is_named = next(iter(self.copies), ("", 0))[0] == row.message
        return is_named and (row.event == "given_up" or self.neighbor in (None, row.peer))


class CopyRows:
    """A table that assigns to each trace row about an event the copies of the event to which the row may belong.

    A copy is the event on its path in one tree, or its notification to one sink.

    Attribute: ``copies_by_row``, a dict from the position of a row in the trace to a set of copies.

    Arguments: ``rows``, the trace rows about the event and its notifications; ``sinks``, a function that takes a row
    "event_matched" and returns the sinks to which the row's node sends notifications, in the order of sending.
    """

    def __init__(self, evidence: Evidence, rows: Iterable[Row], sinks: Callable[[Row], list[int]]) -> None:
        self.copies_by_row: dict[int, Copies] = {}
        self._evidence = evidence
        scenario = evidence.scenario
        radio = scenario.radio
        self._most_tries = 1 + radio.retries
        self._retries_at_once = radio.senses_carrier
        self._graph = scenario.topology
        self._may_repeat = scenario.protocol.retries > 0
        self._retry_wait_us = scenario.protocol.retry_ms * 1000
        self._may_lose = radio.loss != "none" or radio.collisions
        self._sinks_of = sinks
        self._frames_by_node: dict[int, list[_Frame]] = {}
        self._repetitions_by_node: dict[int, list[_Frame]] = {}
        self._copies_by_node: dict[int, Copies] = {}
        self._unclear_nodes: set[int] = set()
        self._last_sent: tuple[Row, _Frame | None, Copies] | None = None
        self._last_received: tuple[Row, Copies] | None = None
        self._event_count = 0
        self._rows = list(rows)
        for index, row in enumerate(self._rows):
            self.copies_by_row[row.position] = self._find_copies(index, row)

    def _find_copies(self, index: int, row: Row) -> Copies:
        if row.event in ("sent", "given_up"):
            return self._assign_sent_row(index, row)
        if row.event in ("received", "lost"):
            return self._assign_arrival_row(row)
        if row.event == "forwarded":
            return self._assign_forwarded_row(row)
        if row.event == "event_matched":
            return self._assign_matched_row(index, row)
        if (row.event, row.detail, row.peer) == ("dropped", "full", NOBODY) and index:
            previous_row = self._rows[index - 1]
            if (previous_row.event, previous_row.position, previous_row.node) == (
                "forwarded",
                row.position - 1,
                row.node,
            ):
                self._frames_by_node[row.node].pop()
                return self.copies_by_row[previous_row.position]
        if row.event == "originated":
            self._copies_by_node[row.node] = frozenset(((row.message, 0),))
        copies = self._copies_just_received(row)
        return self._copies_of_node(row) if copies is None else copies

    def _copies_just_received(self, row: Row) -> Copies | None:
        """Return the copies that the last received frame may carry, or None if the frame did not cause ``row``.

        The frame caused the trace row if both have the same time, node, sender and message type.
        """
        if self._last_received is None:
            return None
        received_row, copies = self._last_received
        is_same_message = (row.time_us, row.node, row.peer, row.message) == (
            received_row.time_us,
            received_row.node,
            received_row.peer,
            received_row.message,
        )
        return copies if is_same_message else None

    def _copies_of_node(self, row: Row) -> Copies:
        """Return the copies of the type of ``row`` (event or notification) that the node of ``row`` has had so far."""
        return frozenset(copy for copy in self._copies_by_node.get(row.node, ()) if copy[0] == row.message)

    def _assign_matched_row(self, index: int, row: Row) -> Copies:
        """Assign the rows "forwarded" that follow a row "event_matched" to notifications; return an empty set.

        The node logs a row "forwarded" for each sink, so each such row belongs to one notification. The result, the
        copies of ``row``, is empty, because a row "event_matched" belongs to no copy. ``row``: the row "event_matched";
        ``index``: its index in the rows about the event.
        """
        forwarded_rows = []
        for later_row in self._rows[index + 1 :]:
            if (later_row.time_us, later_row.node) != (row.time_us, row.node) or later_row.event in (
                "received",
                "event_matched",
            ):
                break
            if later_row.event == "forwarded" and later_row.message == "notification" and later_row.peer == NOBODY:
                forwarded_rows.append(later_row)
        copies = [("notification", sink) for sink in self._sinks_of(row) if sink != row.node]
        self._copies_by_node[row.node] = self._copies_by_node.get(row.node, frozenset()).union(copies)
        is_clear = len(forwarded_rows) == len(copies)
        for copy_index, later_row in enumerate(forwarded_rows):
            self.copies_by_row[later_row.position] = frozenset(
                copies[copy_index : copy_index + 1] if is_clear else copies
            )
        return frozenset()

    def _assign_forwarded_row(self, row: Row) -> Copies:
        """Return the copies of an event to which a trace row "forwarded" may belong.

        If the node forwards a message that it has just received, these are the copies in the received frame. If the
        publisher sends its own event, the result is a new copy. Otherwise the result has all copies that the node has
        had.
        """
        copies = self.copies_by_row.get(row.position)
        if copies is None:
            copies = self._copies_just_received(row)
            self._last_received = None
        if copies is None and row.message == "event" and row.node == row.origin:
            self._event_count += 1
            copies = frozenset((("event", self._event_count),))
            known_copies = self._copies_by_node[row.node] = self._copies_by_node.get(row.node, frozenset()) | copies
            if row.time_us != self._rows[0].time_us:
                copies = known_copies  # The row may also belong to a copy that came back.
                self._unclear_nodes.add(row.node)
        if copies is None:
            copies = self._copies_of_node(row)
            self._unclear_nodes.add(row.node)
        self._frames_by_node.setdefault(row.node, []).extend(_Frame(copies, row.time_us) for _ in range(row.value))
        return copies

    def _assign_sent_row(self, index: int, row: Row) -> Copies:
        """Return the copies to which a trace row "sent" or "given_up" may belong.

        These are the copies of all frames that the node may have sent (or given up) in this row. ``index``: the index
        of ``row`` in the rows about the event.
        """
        self._last_received = self._last_sent = None
        frames = self._frames_by_node.setdefault(row.node, [])
        candidates = [] if row.node in self._unclear_nodes else self._candidates(row, frames)
        is_repeated = self._is_repeated(index, row) if self._may_repeat else None
        if is_repeated is not None:
            candidates = [sent_frame for sent_frame in candidates if sent_frame.is_taken in (is_repeated, None)]
        sent_frame = candidates[0] if len(candidates) == 1 else None
        if sent_frame is None:
            self._unclear_nodes.add(row.node)
            copies = frozenset[Copy]().union(*(sent_frame.copies for sent_frame in candidates)) or self._copies_of_node(
                row
            )
        else:
            copies = sent_frame.copies
            if sent_frame in frames:
                frame_index = frames.index(sent_frame)
                self._add_repetitions(row.node, frames[:frame_index])
                del frames[: frame_index + 1]
            sent_frame.tries += 1
            if self._is_received(index, row) and not sent_frame.is_taken:
                sent_frame.is_taken = None if is_repeated is None else True
        if row.event == "sent":
            self._last_sent = row, sent_frame, copies
            if sent_frame is not None:
                sent_frame.neighbor = row.peer
        elif sent_frame is not None:
            self._add_repetitions(row.node, [sent_frame])
        return copies

    def _is_received(self, sent_index: int, sent: Row) -> bool:
        next_row = self._rows[sent_index + 1] if sent_index + 1 < len(self._rows) else sent
        return (next_row.event, next_row.node, next_row.peer, next_row.time_us) == (
            "received",
            sent.peer,
            sent.node,
            sent.time_us,
        )

    def _is_repeated(self, sent_index: int, sent: Row) -> bool | None:
        """Return whether a frame was dropped by its receiver, because the receiver had accepted the same frame before.

        Returns None if the frame was lost, or if the trace does not show what the receiver did. ``sent``: the frame's
        row "sent"; ``sent_index``: the index of this row in the rows about the event.
        """
        if not self._is_received(sent_index, sent) or sent_index + 2 >= len(self._rows):
            return None
        receiver_row = self._rows[sent_index + 2]
        if (receiver_row.time_us, receiver_row.node) != (sent.time_us, sent.peer) or receiver_row.event in (
            "sent",
            "given_up",
        ):
            return None
        if receiver_row.event == "dropped":
            return True if receiver_row.detail == "repeated" else None if receiver_row.detail == "astray" else False
        return False

    def _candidates(self, row: Row, frames: list[_Frame]) -> list[_Frame]:
        """Return the frames of a node to which ``row``, a trace row "sent" or "given_up", may belong.

        ``frames``: the frames that wait at the node, in the order of sending. For some of them, it is uncertain whether
        they will be sent. So the result has the first certain frame, all uncertain frames before it, and the frames
        that the protocol may send again by now; frames of another type or receiver are omitted (`_Frame.fits`).

        Returns [] if the node was down after the oldest waiting frame was made, because the node may have lost its
        frames.
        """
        first_sure_index = next(
            (index for index, waiting_frame in enumerate(frames) if waiting_frame.is_sure), len(frames)
        )
        earliest_made_us = min((waiting_frame.made_us for waiting_frame in frames), default=row.time_us)
        if self._evidence.outages_between(row.node, row.node, earliest_made_us, row.time_us):
            return []  # A node that was off may have forgotten the frames that it had to send.
        repetitions = [
            waiting_frame
            for waiting_frame in self._repetitions_by_node.get(row.node, ())
            if waiting_frame.earliest_us <= row.time_us
        ]
        return [
            waiting_frame
            for waiting_frame in (*frames[: first_sure_index + 1], *repetitions)
            if waiting_frame.fits(row)
        ]

    def _add_repetitions(self, node: int, frames: list[_Frame]) -> None:
        """Record that the protocol may send ``frames`` of a node again after the retry interval.

        Do nothing if the protocol never sends a frame again (``retries`` is 0).
        """
        if self._may_repeat:
            repetitions = self._repetitions_by_node.setdefault(node, [])
            for repeated_frame in frames:
                repeated_frame.earliest_us += self._retry_wait_us
                if repeated_frame not in repetitions:
                    repetitions.append(repeated_frame)

    def _assign_arrival_row(self, row: Row) -> Copies:
        if self._last_sent is None:
            return self._copies_of_node(row)
        sent_row, frame, copies = self._last_sent
        is_received = row.event == "received"
        if frame is not None and row.node == sent_row.peer:
            self._requeue_frame(sent_row.node, row.node, frame, is_received)
        if is_received:
            self._last_received = row, copies
            self._copies_by_node[row.node] = self._copies_by_node.get(row.node, frozenset()) | copies
        return copies

    def _requeue_frame(self, sender: int, receiver: int, frame: _Frame, is_received: bool) -> None:
        """Put a sent frame back into its sender's list of waiting frames, if the radio may retry the frame.

        With carrier sense the frame becomes the first of the list, without carrier sense the last. But the frame is
        recorded with `_add_repetitions` instead if the radio has no retries left, or if its place is unknown (without
        carrier sense, if the protocol repeats frames too). ``is_received``: whether the receiver got the frame.
        """
        is_answered = is_received and not self._may_lose and self._graph.has_edge(receiver, sender)
        if is_answered and (self._most_tries > 1 or not self._may_repeat):
            return
        is_next = self._retries_at_once or not self._may_repeat
        if is_next and frame.tries < self._most_tries and frame not in self._repetitions_by_node.get(sender, ()):
            frame.is_sure = not is_received
            frames = self._frames_by_node[sender]
            frames.insert(0 if self._retries_at_once else len(frames), frame)
        else:
            self._add_repetitions(sender, [frame])
