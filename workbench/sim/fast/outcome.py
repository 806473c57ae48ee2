"""The result of a run of the fast engine: the trace as Arrow columns, or its counts.

A `Run` takes its rows and counts from an `Outcome` here, or from the `Recorder` of the reference engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pyarrow as pa

from workbench.columns import count_distinct, unique_inverse
from workbench.sim.fast.layout import ROW, Core, Event, Number
from workbench.sim.fast.twin import Names
from workbench.sim.trace import SCHEMA, tally

# Growth factor of columns with few rows, and the number of rows from which the factor is 2.
_GROWTH, _MANY_ROWS = 8, 1 << 20
_LITTLE_ROOM = 1 << 12  # rows; up to that much unused room, or a quarter of the rows, is not freed
_ROWS_AT_ONCE = 1 << 15


class Outcome:
    """The result of a run on the fast engine: trace rows, added in batches, or counters of events.

    ``metrics_only``: whether rows that no metric needs are counted instead of stored. ``names``: the texts of event,
    message and reason codes; ``texts``: the texts of the column "detail". ``ended_us``: the end of a run that was
    stopped early, else None. ``holders``: whether the compiled loop counts the nodes that hold a publication. Otherwise
    all rows "held" are stored, and are counted at the end.
    """

    # Rows of the previous run. A user who moves a slider repeats similar runs, and columns of that length reuse the
    # memory of the previous columns: fresh memory costs more than writing the rows into it.
    _usual_rows = 0

    def __init__(self, metrics_only: bool, names: Names, texts: Sequence[str], holders: bool) -> None:
        self.metrics_only = metrics_only
        self.ended_us: int | None = None
        self.radio_states_us: np.ndarray | None = None
        self._counts_holders = holders
        self.names = names
        self._texts = {"event": names.events, "message": names.messages, "detail": tuple(texts)}
        # Longer than the rows stored so far: `_column` returns these. Codes have the type of the table's dictionaries.
        self._columns = {
            field.name: np.zeros(0, np.int32 if field.name in self._texts else ROW[field.name]) for field in SCHEMA
        }
        self._rows = 0
        self._numbers: tuple[Counter, Counter] | None = None

    def take_rows(self, rows: np.ndarray) -> None:
        """Append ``rows``, the trace rows that the compiled loop has written, to the stored columns."""
        first_row, self._rows = self._rows, self._rows + len(rows)
        if self._rows > len(self._columns["event"]):
            self._lengthen_columns()
        for name, column in self._columns.items():
            column[first_row : self._rows] = rows[name]

    def _lengthen_columns(self) -> None:
        # Unused rows take no memory, but each copy of the columns does.
        row_count = len(self._columns["event"])
        wanted_count = row_count * (_GROWTH if row_count < _MANY_ROWS else 2) if row_count else Outcome._usual_rows
        self._copy_columns(max(self._rows, wanted_count), row_count)

    def _copy_columns(self, room: int, rows: int) -> None:
        for name, column in self._columns.items():
            copy = self._columns[name] = np.empty(room, column.dtype)
            copy[:rows] = column[:rows]

    def _column(self, name: str) -> np.ndarray:
        """Return a column of the stored trace rows, without the unused end of its array."""
        return self._columns[name][: self._rows]

    def name_details(self, text_of: Callable[[int], str]) -> None:
        """Store the texts of the column "detail" that nodes created during the run; the rows contain their numbers.

        ``text_of``: a function that returns the text with a given number, which counts from 0.
        """
        known_texts = self._texts["detail"]
        code_of_text = {text: code for code, text in enumerate(known_texts)}
        details = self._column("detail")
        new_rows = np.flatnonzero(details >= len(known_texts))
        new_codes, text_index = unique_inverse(details[new_rows])
        new_texts = [text_of(detail_code - len(known_texts)) for detail_code in new_codes.tolist()]
        details[new_rows] = np.array(
            [code_of_text.setdefault(text, len(code_of_text)) for text in new_texts], np.int32
        )[text_index]
        self._texts["detail"] = tuple(code_of_text)

    def take_numbers(self, core: Core) -> None:
        """Convert the loop's counters to counts and bytes by event, message and reason, for a run without a trace."""
        row_counts: Counter = Counter()
        byte_counts: Counter = Counter()
        messages = self._texts["message"]
        pair_codes = self._column("event") * np.int64(len(messages)) + self._column("message")
        event_message_pairs = product(self._texts["event"], messages)
        for (event, message_name), row_count in zip(
            event_message_pairs, np.bincount(pair_codes).tolist(), strict=False
        ):
            if event in _COUNTED:
                row_counts[event, message_name, ""] += row_count
        row_counts["held", "", ""] += (
            int(core.numbers[Number.HELD]) if self._counts_holders else self._count_held_pairs()
        )
        for message_name, (sent_count, sent_B, heard_count, heard_B) in zip(
            self._texts["message"], core.traffic.tolist(), strict=True
        ):
            row_counts["sent", message_name, ""] += sent_count
            row_counts["received", message_name, ""] += heard_count
            byte_counts["sent", message_name, ""] += sent_B
            byte_counts["received", message_name, ""] += heard_B
        for event, frame_counts in (("lost", core.lost), ("given_up", core.given_up)):
            for message, reason in np.argwhere(frame_counts[:, :, 0]).tolist():
                frame_count, size_B = frame_counts[message, reason].tolist()
                count_key = event, self._texts["message"][message], self.names.reasons[reason]
                row_counts[count_key] += frame_count
                byte_counts[count_key] += size_B
        for reason_text, frame_count in zip(self.names.reasons, core.dropped.tolist(), strict=True):
            row_counts["dropped", "", reason_text] += frame_count
        self._numbers = +row_counts, +byte_counts

    def _count_held_pairs(self) -> int:
        """Return the number of different pairs of node and message in the rows "held"."""
        held_rows = np.flatnonzero(self._column("event") == Event.HELD)
        return count_distinct(*(self._column(name)[held_rows] for name in ("node", "origin", "sequence")))

    def table(self) -> pa.Table:
        """Return all stored rows of the trace, in order, as an Arrow table with the columns of ``SCHEMA``."""
        Outcome._usual_rows = self._rows + self._rows // 16
        if len(self._columns["event"]) > self._rows + self._rows // 4 + _LITTLE_ROOM:
            self._copy_columns(self._rows, self._rows)  # so that stored runs have no unused room
        arrow_columns = []
        for field in SCHEMA:
            used_texts = self._drop_unused_texts(field.name) if field.name in self._texts else None
            arrow_column = pa.array(self._column(field.name))
            if used_texts is not None:
                arrow_column = pa.DictionaryArray.from_arrays(arrow_column, pa.array(used_texts, pa.string()))
            arrow_columns.append(arrow_column)
        return pa.Table.from_arrays(arrow_columns, schema=SCHEMA)

    def _drop_unused_texts(self, name: str) -> Sequence[str]:
        """Remove a column's unused texts, renumber the codes in the column's rows, and return the used texts."""
        code_column, texts = self._column(name), self._texts[name]
        is_used = np.zeros(len(texts), bool)
        # Chunks of this size fit in the processor's cache.
        chunks = [
            code_column[first_row : first_row + _ROWS_AT_ONCE] for first_row in range(0, self._rows, _ROWS_AT_ONCE)
        ]
        for code_chunk in chunks:
            is_used |= np.bincount(code_chunk, minlength=len(texts)) > 0
        if not is_used.all():
            code_of = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
            for code_chunk in chunks:
                np.take(code_of, code_chunk, out=code_chunk, mode="clip")  # Another mode would make a copy first.
            self._texts[name] = tuple(text for text, occurs in zip(texts, is_used.tolist(), strict=True) if occurs)
        return self._texts[name]

    def tally(self) -> tuple[Counter, Counter]:
        """Return (counts, bytes): by (event, message, reason), the number of events and the bytes of their frames."""
        return tally(self.table()) if self._numbers is None else self._numbers


# Events of the application. Of the protocols' events only "held" is counted.
_COUNTED = frozenset(("subscribed", "unsubscribed", "published", "failed", "recovered"))
