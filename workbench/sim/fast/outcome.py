"""What a fast run leaves: the trace as Arrow columns, or its numbers; what `workbench.sim.run.Run` asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from workbench.sim.fast.layout import HELD, HELD_EVENT, ROW, Core
from workbench.sim.fast.names import Names
from workbench.sim.trace import SCHEMA, tally


class Outcome:
    """Rows as they come, in batches of codes; ``names``: what codes stand for; ``texts``: the details.

    ``holders``: the kernel has counted who holds what; otherwise all rows that tell of it are here.
    """

    def __init__(self, metrics_only: bool, names: Names, texts: Sequence[str], holders: bool) -> None:
        self.metrics_only = metrics_only
        self._counts_holders = holders
        self._texts = {"event": names.events, "message": names.messages, "detail": tuple(texts)}
        self._reasons = names.reasons
        self._batches: list[np.ndarray] = []
        self._numbers: tuple[Counter, Counter] | None = None

    def take_rows(self, rows: np.ndarray) -> None:
        """Keep a copy of these rows."""
        self._batches.append(rows.copy())

    def name_details(self, text_of: Callable[[int], str]) -> None:
        """Give the details that were made during the run their texts; ``text_of`` knows them by number."""
        known = self._texts["detail"]
        codes = {text: code for code, text in enumerate(known)}
        for rows in self._batches:
            made = np.flatnonzero(rows["detail"] >= len(known))
            numbers, index = np.unique(rows["detail"][made], return_inverse=True)
            texts = [text_of(number - len(known)) for number in numbers.tolist()]
            rows["detail"][made] = np.array([codes.setdefault(text, len(codes)) for text in texts], np.int32)[index]
        self._texts["detail"] = tuple(codes)

    def take_numbers(self, core: Core) -> None:
        """Keep the counters of a run without a trace."""
        counts: Counter = Counter()
        sizes: Counter = Counter()
        for row in np.concatenate(self._batches or [np.zeros(0, ROW)])[["event", "message"]].tolist():
            event, message = self._texts["event"][row[0]], self._texts["message"][row[1]]
            if event in _COUNTED:
                counts[event, message, ""] += 1
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
        rows = np.concatenate(self._batches or [np.zeros(0, ROW)])
        held = rows[rows["event"] == HELD_EVENT]
        return len(np.unique(held[["node", "origin", "sequence"]]))

    def table(self) -> pa.Table:
        """All rows kept, in order."""
        rows = np.concatenate(self._batches) if len(self._batches) != 1 else self._batches[0]
        columns = []
        for field in SCHEMA:
            values = np.ascontiguousarray(rows[field.name])
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
