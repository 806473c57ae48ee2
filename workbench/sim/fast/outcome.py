"""What a fast run leaves: the trace as Arrow columns, or its numbers; what `workbench.sim.run.Run` asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pyarrow as pa

from workbench.sim.columns import different_rows
from workbench.sim.fast.layout import HELD, HELD_EVENT, ROW, Core
from workbench.sim.fast.names import Names
from workbench.sim.trace import SCHEMA, tally


class Outcome:
    """Rows as they come, in columns; ``names``: what codes stand for; ``texts``: the details.

    ``ended_us``: the end of a run that was ended early, else None.
    ``holders``: the kernel has counted who holds what; otherwise all rows that tell of it are here.
    """

    def __init__(self, metrics_only: bool, names: Names, texts: Sequence[str], holders: bool) -> None:
        self.metrics_only = metrics_only
        self.ended_us: int | None = None
        self._counts_holders = holders
        self._texts = {"event": names.events, "message": names.messages, "detail": tuple(texts)}
        self._reasons = names.reasons
        self._pieces: dict[str, list[np.ndarray]] = {name: [np.zeros(0, ROW[name])] for name in SCHEMA.names}
        self._numbers: tuple[Counter, Counter] | None = None

    def take_rows(self, rows: np.ndarray) -> None:
        """Keep a copy of these rows, in columns: now, while they are in the processor's cache."""
        for name, pieces in self._pieces.items():
            pieces.append(rows[name].copy())

    def _column(self, name: str) -> np.ndarray:
        """A column of all rows: in one piece from now on."""
        pieces = self._pieces[name]
        if len(pieces) > 1:
            pieces[:] = [np.concatenate(pieces)]
        return pieces[0]

    def name_details(self, text_of: Callable[[int], str]) -> None:
        """Give the details that were made during the run their texts; ``text_of`` knows them by number."""
        known = self._texts["detail"]
        codes = {text: code for code, text in enumerate(known)}
        details = self._column("detail")
        made = np.flatnonzero(details >= len(known))
        numbers, index = np.unique(details[made], return_inverse=True)
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
        counts["held", "", ""] += int(core.numbers[HELD]) if self._counts_holders else self._holders()
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
        held = np.flatnonzero(self._column("event") == HELD_EVENT)
        return different_rows(*(self._column(name)[held] for name in ("node", "origin", "sequence")))

    def table(self) -> pa.Table:
        """All rows kept, in order."""
        columns = []
        for field in SCHEMA:
            values = self._column(field.name)
            if field.name in self._texts:
                columns.append(_in_words(values, self._texts[field.name]))
            else:
                columns.append(pa.array(values, field.type))
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def tally(self) -> tuple[Counter, Counter]:
        """(counts by (event, message, reason), bytes by (event, reason)): as `workbench.sim.trace.tally`."""
        return tally(self.table()) if self._numbers is None else self._numbers


# What the application does; what protocols tell is not counted, but for what is held.
_COUNTED = frozenset(("subscribed", "unsubscribed", "published", "failed", "recovered"))


def _in_words(codes: np.ndarray, texts: Sequence[str]) -> pa.DictionaryArray:
    """Codes with the texts that occur among them."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(texts)))
    index = np.zeros(len(texts), np.int32)
    index[used] = np.arange(len(used))
    words = pa.array([texts[i] for i in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(index[codes]), words)
