"""What a fast run leaves: the trace as Arrow columns, or its numbers; what `workbench.sim.run.Run` asks for."""

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

# Room for so many times as many rows, until there are many; then for twice as many.
_MORE, _MANY_ROWS = 8, 1 << 20
_LITTLE_ROOM = 1 << 12  # rows; that much room, or a quarter of the rows, may stay behind them
_ROWS_AT_ONCE = 1 << 15


class Outcome:
    """Rows as they come, in columns; ``names``: what codes stand for; ``texts``: the details.

    ``ended_us``: the end of a run that was ended early, else None.
    ``holders``: the kernel has counted who holds what; otherwise all rows that tell of it are here.
    """

    # Of the run before. Whoever moves a slider runs much the same again, and columns of that length find the memory of
    # the last ones: fresh memory costs more than the rows that are written into it.
    _usual_rows = 0

    def __init__(self, metrics_only: bool, names: Names, texts: Sequence[str], holders: bool) -> None:
        self.metrics_only = metrics_only
        self.ended_us: int | None = None
        self._counts_holders = holders
        self._texts = {"event": names.events, "message": names.messages, "detail": tuple(texts)}
        self._reasons = names.reasons
        # With room for more rows: `_column` has those that are there. Codes are of the type that the table wants.
        self._columns = {
            one.name: np.zeros(0, np.int32 if one.name in self._texts else ROW[one.name]) for one in SCHEMA
        }
        self._rows = 0
        self._numbers: tuple[Counter, Counter] | None = None

    def take_rows(self, rows: np.ndarray) -> None:
        """Keep a copy of these rows, in columns: now, while they are in the processor's cache."""
        first, self._rows = self._rows, self._rows + len(rows)
        if self._rows > len(self._columns["event"]):
            self._make_room()
        for name, column in self._columns.items():
            column[first : self._rows] = rows[name]

    def _make_room(self) -> None:
        """Longer columns. Room that is never used costs no memory, while each copy of the rows costs it anew."""
        rows = len(self._columns["event"])
        more = rows * (_MORE if rows < _MANY_ROWS else 2) if rows else Outcome._usual_rows
        self._copy(max(self._rows, more), rows)

    def _copy(self, room: int, rows: int) -> None:
        """Columns of another length, with the first ``rows`` of these."""
        for name, column in self._columns.items():
            copy = self._columns[name] = np.empty(room, column.dtype)
            copy[:rows] = column[:rows]

    def _column(self, name: str) -> np.ndarray:
        """A column of all rows."""
        return self._columns[name][: self._rows]

    def name_details(self, text_of: Callable[[int], str]) -> None:
        """Give the details that were made during the run their texts; ``text_of`` knows them by number."""
        known = self._texts["detail"]
        codes = {text: code for code, text in enumerate(known)}
        details = self._column("detail")
        made = np.flatnonzero(details >= len(known))
        numbers, index = unique_inverse(details[made])
        texts = [text_of(number - len(known)) for number in numbers.tolist()]
        details[made] = np.array([codes.setdefault(text, len(codes)) for text in texts], np.int32)[index]
        self._texts["detail"] = tuple(codes)

    def take_numbers(self, core: Core) -> None:
        """Keep the counters of a run without a trace."""
        counts: Counter = Counter()
        sizes: Counter = Counter()
        messages = self._texts["message"]
        kind = self._column("event") * np.int64(len(messages)) + self._column("message")
        kinds = product(self._texts["event"], messages)
        for (what, name), count in zip(kinds, np.bincount(kind).tolist(), strict=False):
            if what in _COUNTED:
                counts[what, name, ""] += count
        counts["held", "", ""] += int(core.numbers[Number.HELD]) if self._counts_holders else self._holders()
        for name, (sent, sent_B, heard, heard_B) in zip(self._texts["message"], core.traffic.tolist(), strict=True):
            counts["sent", name, ""] += sent
            counts["received", name, ""] += heard
            sizes["sent", ""] += sent_B
            sizes["received", ""] += heard_B
        for event, table in (("lost", core.lost), ("given_up", core.given_up)):
            for message, reason in np.argwhere(table[:, :, 0]).tolist():
                number, size_B = table[message, reason].tolist()
                counts[event, self._texts["message"][message], self._reasons[reason]] += number
                sizes[event, self._reasons[reason]] += size_B
        for text, number in zip(self._reasons, core.dropped.tolist(), strict=True):
            counts["dropped", "", text] += number
        self._numbers = +counts, +sizes

    def _holders(self) -> int:
        """Pairs of a node and a message that it came to hold: of a protocol that keeps all of these rows."""
        held = np.flatnonzero(self._column("event") == Event.HELD)
        return count_distinct(*(self._column(name)[held] for name in ("node", "origin", "sequence")))

    def table(self) -> pa.Table:
        """All rows kept, in order."""
        Outcome._usual_rows = self._rows + self._rows // 16
        if len(self._columns["event"]) > self._rows + self._rows // 4 + _LITTLE_ROOM:
            self._copy(self._rows, self._rows)  # whoever keeps many runs keeps no room with them
        columns = []
        for field in SCHEMA:
            texts = self._leave_out_unused(field.name) if field.name in self._texts else None
            values = pa.array(self._column(field.name))
            if texts is not None:
                values = pa.DictionaryArray.from_arrays(values, pa.array(texts, pa.string()))
            columns.append(values)
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def _leave_out_unused(self, name: str) -> Sequence[str]:
        """The texts that occur in a column, whose codes are of these from now on."""
        column, texts = self._column(name), self._texts[name]
        is_used = np.zeros(len(texts), bool)
        # In pieces that stay in the processor's cache.
        pieces = [column[first : first + _ROWS_AT_ONCE] for first in range(0, self._rows, _ROWS_AT_ONCE)]
        for some in pieces:
            is_used |= np.bincount(some, minlength=len(texts)) > 0
        if not is_used.all():
            code_of = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
            for some in pieces:
                np.take(code_of, some, out=some, mode="clip")  # Another mode would make a copy first.
            self._texts[name] = tuple(text for text, used in zip(texts, is_used.tolist(), strict=True) if used)
        return self._texts[name]

    def tally(self) -> tuple[Counter, Counter]:
        """(counts by (event, message, reason), bytes by (event, reason)): as `workbench.sim.trace.tally`."""
        return tally(self.table()) if self._numbers is None else self._numbers


# What the application does; what protocols tell is not counted, but for what is held.
_COUNTED = frozenset(("subscribed", "unsubscribed", "published", "failed", "recovered"))
