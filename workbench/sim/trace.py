"""The trace: one append-only table with a row for each event of a run. Metrics and views read only this table.

Columns
    time_us    int64   when, in microseconds from the start
    node       int32   the address of the node where it happened
    event      text    the kind of event, see below
    peer       int32   the other node involved, -1 for none or for all
    message    text    the protocol's name of the message ("interest", "data", "flood", ...)
    origin     int32   the node that created the message, -1 if the row has no message
    sequence   int64   the message's number at its origin
    size_B     int32   bytes of the frame, without the radio's overhead; 0 for other events
    value      int64   depends on the event
    detail     text    depends on the event

Events of the radio (time is the end of the airtime)
    sent       peer: destination, -1 for a broadcast; value: airtime in µs
    received   peer: transmitter
    lost       node: the receiver that missed the frame; peer: transmitter; detail: link (also if no arc leads to the
               receiver of a unicast), collision, half_duplex, jammed or down
    given_up   the frame was not sent; detail: the reason, channel_busy (csma) or down (the node failed)
Events of the application
    subscribed     sequence: the subscription's number at this node; value: its time of expiry in µs, -1 if none
    unsubscribed   sequence: the subscription's number
    published      sequence: the reading's number at this node
    failed         the node goes down; detail: crashed (it loses its memory), absent (it joins the network later) or ""
    recovered      the node comes up; detail: restarted (without memory; value: number of earlier starts), joined or ""
Events of the protocols: those of `protocols/contract.py` in snake case (Delivered -> delivered), and further ones
that a protocol's nodes define (GradientSet -> gradient_set).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.attributes.text import to_text
from workbench.columns import count_distinct
from workbench.protocols import contract
from workbench.protocols.protocol import Protocol
from workbench.sim.metrics.shown import modules_of
from workbench.sim.rows import codes

_TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("time_us", pa.int64()),
        ("node", pa.int32()),
        ("event", _TEXT),
        ("peer", pa.int32()),
        ("message", _TEXT),
        ("origin", pa.int32()),
        ("sequence", pa.int64()),
        ("size_B", pa.int32()),
        ("value", pa.int64()),
        ("detail", _TEXT),
    ]
)
_ROWS_PER_BATCH = 200_000
_ROWS_AT_ONCE = 1 << 15
_WITH_REASON = frozenset(("lost", "dropped", "given_up"))
_COUNTED_SEPARATELY = _WITH_REASON | {"held"}  # not counted by event and message alone
# The metrics of every run read each row of these events, and the rows "held" of nodes that subscribe.
METRIC_EVENTS = frozenset(("delivered", "originated", "published", "subscribed", "unsubscribed", "failed", "recovered"))


def metric_events(protocol: Protocol) -> frozenset[str]:
    """Return the events whose rows both engines store when a run records metrics only.

    They are METRIC_EVENTS, and the events that the metrics of the protocol and of plug-ins read. The protocol's reports
    of samples that a filter changed or dropped, or that a source withheld from a sink, are stored too. All other rows
    are only counted (frames, losses, drops, holders) or discarded. In such a run, nodes need not report each message
    that they forward or drop (`Node.tells_all`), so metrics cannot read those events.
    """
    reports = *protocol.changes[:1], *protocol.drops[:1], protocol.withholds
    return METRIC_EVENTS.union(*(module.LOOKS_AT for module in modules_of(protocol)), filter(None, reports))


Counts = Counter[tuple[str, str, str]]  # (event, message, reason) -> number
Sizes = Counter[tuple[str, str, str]]  # (event, message, reason) -> bytes


def event_name(event_type: type) -> str:
    """Return the name of an event type in the trace: GradientSet -> gradient_set."""
    name = event_type.__name__
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))


class _EventNames(dict[type, str]):
    """A dictionary: event type -> its name in the trace. Types that a protocol defines are added at first use."""

    def __missing__(self, event_type: type) -> str:
        name = self[event_type] = event_name(event_type)
        return name


EVENT_NAMES = _EventNames(
    (cls, event_name(cls))
    for cls in vars(contract).values()
    if isinstance(cls, type) and issubclass(cls, tuple) and getattr(cls, "_fields", ()) == contract.Held._fields
)


class Recorder:
    """A recorder of the rows of a run. ``append`` takes a row as a tuple in the order of the columns.

    Rows are stored as one flat list of cells, in which every tenth cell belongs to the same column. That takes half the
    memory of a tuple for each row.
    """

    metrics_only = False
    ended_us: int | None = None  # when a run that was stopped early ended
    radio_states_us: np.ndarray | None = None  # see `RadioLedger.finish`; None if the radio states no currents

    def __init__(self) -> None:
        self._cells: list[Any] = []
        self._batches: list[pa.RecordBatch] = []
        self._texts: dict[tuple[Any, ...], str] = {}
        self.append: Callable[[tuple[Any, ...]], None] = self._cells.extend

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Append a row for each event that a node reports; attributes in an event's detail are converted to text."""
        append = self.append
        for event in events:
            peer, message, origin, sequence, value, detail = event
            if not isinstance(detail, str):
                detail = self.text(detail)
            append((time_us, node, EVENT_NAMES[type(event)], peer, message, origin, sequence, 0, value, detail))

    def text(self, attributes: tuple[Any, ...]) -> str:
        """Return attributes as text; results are cached, as the same attributes occur again and again."""
        text = self._texts.get(attributes)
        if text is None:
            text = self._texts[attributes] = to_text(attributes)
        return text

    def flush_if_large(self) -> None:
        """Convert the stored rows to Arrow columns if there are many.

        As Python objects, rows take ten times the memory.
        """
        if len(self._cells) >= _ROWS_PER_BATCH * len(SCHEMA):
            self._flush()

    def _flush(self) -> None:
        self._batches.append(to_batch(self._cells))
        self._cells.clear()  # `append` is bound to this list, so it is cleared and not replaced.

    def table(self) -> pa.Table:
        """Return all stored rows as a table, in the order of recording."""
        if self._cells or not self._batches:
            self._flush()
        return pa.Table.from_batches(self._batches, schema=SCHEMA).unify_dictionaries()


class MetricsRecorder(Recorder):
    """A recorder for runs without a trace: it stores only the rows that metrics read, and counts most others.

    It stores the rows of ``stored_events``, and rows of the event "held" at ``sinks``, the nodes that subscribe.
    Frames, losses, drops and the nodes that held a publication are counted. Other events (a message forwarded, a
    gradient set, an innovative packet) are neither stored nor counted. So no metric may use their numbers, which only
    the `tally` of a full trace contains.
    """

    metrics_only = True

    def __init__(self, sinks: frozenset[int], stored_events: frozenset[str] = METRIC_EVENTS) -> None:
        super().__init__()
        self._sinks = sinks
        self._stored_events = stored_events
        self._counts: Counts = Counter()
        self._sizes: Sizes = Counter()
        # publication -> a byte for each address: 1 if the node held it, once or several times
        self._holders: defaultdict[tuple[int, int], bytearray] = defaultdict(bytearray)
        self._traffic: dict[str, list[int]] = {}  # message -> frames sent, bytes sent, frames heard, bytes heard
        self.append = self._count_or_store

    def count_frame(self, message: str, size_B: int, heard: int) -> None:
        """Count a sent frame of ``size_B`` bytes; ``heard`` is the number of nodes that received it."""
        traffic = self._traffic.get(message)
        if traffic is None:
            traffic = self._traffic[message] = [0, 0, 0, 0]
        traffic[0] += 1
        traffic[1] += size_B
        traffic[2] += heard
        traffic[3] += heard * size_B

    def count_drops(self, drops: dict[str, int]) -> None:
        """Add ``drops``, {reason: number of messages}, which a node counted instead of reporting each drop."""
        for reason, number in drops.items():
            self._counts["dropped", "", reason] += number

    def _count_or_store(self, row: tuple[Any, ...]) -> None:
        event = row[2]
        reason = row[9] if event in _WITH_REASON else ""
        self._counts[event, row[4], reason] += 1
        self._sizes[event, row[4], reason] += row[7]
        if event in self._stored_events:
            self._cells.extend(row)

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Count the nodes that held each publication, and store the rows of events that metrics read."""
        for event in events:
            event_type = type(event)
            if event_type is contract.Held:
                holders = self._holders[event[2], event[3]]
                if node >= len(holders):
                    holders.extend(bytes(max(2 * len(holders), node + 1) - len(holders)))
                holders[node] = 1
            if EVENT_NAMES[event_type] in self._stored_events or (node in self._sinks and event_type is contract.Held):
                peer, message, origin, sequence, value, detail = event
                detail_text = detail if isinstance(detail, str) else self.text(detail)
                trace_row = (
                    time_us,
                    node,
                    EVENT_NAMES[event_type],
                    peer,
                    message,
                    origin,
                    sequence,
                    0,
                    value,
                    detail_text,
                )
                self._cells.extend(trace_row)

    def tally(self) -> tuple[Counts, Sizes]:
        """Return (counts, bytes): the number of events and the bytes of their frames, by (event, message, reason)."""
        counts, sizes = self._counts.copy(), self._sizes.copy()
        counts["held", "", ""] += sum(holders.count(1) for holders in self._holders.values())
        for message, (sent_count, sent_B, heard_count, heard_B) in self._traffic.items():
            counts["sent", message, ""] += sent_count
            counts["received", message, ""] += heard_count
            sizes["sent", message, ""] += sent_B
            sizes["received", message, ""] += heard_B
        return +counts, +sizes


def to_batch(cells: list[Any]) -> pa.RecordBatch:
    """Convert rows, stored as a flat list of cells, to an Arrow batch of columns."""
    arrays = []
    for column_index, field in enumerate(SCHEMA):
        column_cells = cells[column_index :: len(SCHEMA)]
        if field.type == _TEXT:
            arrays.append(pa.array(column_cells, pa.string()).dictionary_encode())
        else:
            arrays.append(pa.array(np.asarray(column_cells, dtype=field.type.to_pandas_dtype()), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def digest(table: pa.Table) -> str:
    """Return the sha256 of all rows in order: on any machine, equal digests mean equal traces.

    A column of numbers is hashed as 64-bit integers, a column of text as lines.
    """
    hasher = hashlib.sha256()
    for field in SCHEMA:
        column = table.column(field.name)
        hasher.update(field.name.encode())
        for first_row in range(0, len(column), _ROWS_PER_BATCH):
            column_batch = column.slice(first_row, _ROWS_PER_BATCH)
            if field.type == _TEXT:
                hasher.update(_text_bytes(column_batch, is_last=first_row + len(column_batch) == len(column)))
            else:
                hasher.update(np.ascontiguousarray(column_batch.to_numpy().astype("<i8", copy=False)).data)
    return hasher.hexdigest()


def _text_bytes(column: pa.ChunkedArray, is_last: bool) -> memoryview:
    """Return the texts of a column as bytes, separated by line breaks.

    The last text is followed by a line break, too, unless ``is_last``.
    """
    whole_column = column.combine_chunks()
    with_breaks = pa.array([text + "\n" for text in whole_column.dictionary.to_pylist()], pa.large_string())
    _, offsets, text_buffer = with_breaks.take(whole_column.indices).buffers()
    length = int(np.frombuffer(offsets, np.int64)[len(whole_column)])
    return memoryview(text_buffer)[: length - is_last]


def tally(table: pa.Table) -> tuple[Counts, Sizes]:
    """Return (counts, bytes) of a full trace: the number of its rows and their bytes, by (event, message, reason).

    Rows of the event "held" are counted once for each pair of a node and a publication, as in a run without a trace.
    """
    event_codes, event_names = codes(table.column("event"))
    message_codes, message_names = codes(table.column("message"))
    event_message_pairs = list(product(event_names, message_names))
    size_B = table.column("size_B").to_numpy()
    row_counts, total_B = np.zeros(len(event_message_pairs), np.int64), np.zeros(len(event_message_pairs), np.int64)
    # Chunks of this size fit in the processor's cache.
    for first_row in range(0, len(table), _ROWS_AT_ONCE):
        row_slice = slice(first_row, first_row + _ROWS_AT_ONCE)
        pair_codes = np.multiply(event_codes[row_slice], len(message_names), dtype=np.int64) + message_codes[row_slice]
        row_counts += np.bincount(pair_codes, minlength=len(event_message_pairs))
        total_B += np.bincount(pair_codes, size_B[row_slice], len(event_message_pairs)).astype(np.int64)
    row_counts_of: Counts = Counter()
    bytes_of: Sizes = Counter()
    for (event, message), row_count, count_B in zip(
        event_message_pairs, row_counts.tolist(), total_B.tolist(), strict=True
    ):
        if event not in _COUNTED_SEPARATELY:
            row_counts_of[event, message, ""] += row_count
            bytes_of[event, message, ""] += count_B
    rows_of_event = {
        name: np.flatnonzero(event_codes == code)
        for code, name in enumerate(event_names)
        if name in _COUNTED_SEPARATELY
    }
    for event in sorted(_WITH_REASON.intersection(rows_of_event)):
        _count_reasons(
            table,
            event,
            rows_of_event[event],
            message_codes[rows_of_event[event]],
            message_names,
            (row_counts_of, bytes_of),
        )
    held_rows = rows_of_event.get("held", np.zeros(0, np.int64))
    row_counts_of["held", "", ""] = count_distinct(
        *(table.column(name).to_numpy()[held_rows] for name in ("node", "origin", "sequence"))
    )
    return +row_counts_of, +bytes_of


def _count_reasons(
    table: pa.Table,
    event: str,
    rows: np.ndarray,
    messages: np.ndarray,
    names: list[str],
    totals: tuple[Counts, Sizes],
) -> None:
    """Add to ``totals`` the number and the bytes of an event's rows, for each message and reason.

    ``rows`` (n,): the numbers of the event's rows. ``messages`` (n,): for each row, the index of its message in
    ``names``. ``totals``: (counts, bytes), as `tally` returns them.
    """
    row_counts_of, bytes_of = totals
    details, detail_texts = codes(table.column("detail"))
    details = details[rows]
    used_codes = np.flatnonzero(np.bincount(details, minlength=len(detail_texts)))
    new_code = np.zeros(len(detail_texts), np.int64)
    new_code[used_codes] = np.arange(len(used_codes))
    pair_codes = np.multiply(messages, len(used_codes), dtype=np.int64) + new_code[details]
    message_reason_pairs = product(names, [detail_texts[code] for code in used_codes.tolist()])
    row_counts = np.bincount(pair_codes, minlength=len(names) * len(used_codes)).tolist()
    total_B = np.bincount(pair_codes, table.column("size_B").to_numpy()[rows], len(row_counts)).tolist()
    for (message, reason), row_count, count_B in zip(message_reason_pairs, row_counts, total_B, strict=True):
        row_counts_of[event, message, reason] += row_count
        bytes_of[event, message, reason] += int(count_B)
