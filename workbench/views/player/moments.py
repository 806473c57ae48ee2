"""The moments of a run to which a button of the player jumps, such as the first delivery, failures and new paths."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from workbench.columns import argsort, mark_first, row_keys
from workbench.sim.actions import ABSENT
from workbench.sim.rows import Columns

# Event in the trace -> the text about its first row. The braces are for the row's node.
FIRST = {
    "reinforced": "node {} reinforces a path for the first time",
    "delivered": "first delivery, at node {}",
    "lost": "first loss: a frame does not reach node {}",
    "given_up": "node {} gives up a frame for the first time",
    "generation_begun": "node {} receives the first coded packet",
    "decoded": "node {} is the first to decode an event",
}
MOST = 60  # moments of each kind that is not in `FIRST`


FAILURES = {"crashed": "node {} crashes"}  # details of rows "failed" of the trace
RECOVERIES = {"restarted": "node {} starts again", "joined": "node {} joins"}


def moments_of(columns: Columns, changes: Iterable[tuple[int, str]] = ()) -> list[tuple[float, str]]:
    """Return (time in s, text) for each moment, in order of time.

    Moments are the first trace row of each event in `FIRST`, such as the first delivery; failures and recoveries of
    nodes; and the first delivery after each failure. A delivery is also a moment if it came from another neighbor than
    the previous delivery from the same publisher to the same node. Moments at time 0 are left out. The texts of moments
    at the same time are joined.

    ``changes``: (time in µs, sentence) of further moments.
    """
    moments = [(event_rows[0], text) for event, text in FIRST.items() if len(event_rows := columns.where(event=event))]
    delivery_rows = columns.where(event="delivered")
    for row, detail in _find_details(columns, "failed"):
        moments.append((row, FAILURES.get(detail, "node {} fails")))
        next_delivery = np.searchsorted(delivery_rows, row)
        if next_delivery < len(delivery_rows):
            moments.append((delivery_rows[next_delivery], "first delivery after the failure, at node {}"))
    moments += [(row, RECOVERIES.get(detail, "node {} is back")) for row, detail in _find_details(columns, "recovered")]
    moments += [
        (row, "another path: node {} is reached by another neighbor")
        for row in _find_path_changes(columns, delivery_rows)
    ]
    texts_by_time: dict[int, list[str]] = {}  # by time in µs
    for row, text in sorted(moments):
        texts_by_time.setdefault(int(columns["time_us"][row]), []).append(text.format(int(columns["node"][row])))
    for time_us, text in changes:
        texts_by_time.setdefault(time_us, []).insert(0, text)
    return [
        (time_us / 1e6, "; ".join(dict.fromkeys(texts))) for time_us, texts in sorted(texts_by_time.items()) if time_us
    ]


def _find_details(columns: Columns, event: str) -> list[tuple[int, str]]:
    """Return (row of the trace, its detail) for the first `MOST` rows of the trace with this event.

    ``event``: "failed" or "recovered". Nodes that join later "fail" at the begin of the run; these rows are left out.
    """
    rows = columns.where(event=event)
    details = columns.text("detail", rows)
    return [(row, detail) for row, detail in zip(rows.tolist(), details.tolist(), strict=True) if detail != ABSENT][
        :MOST
    ]


def _find_path_changes(columns: Columns, delivered: np.ndarray) -> list[int]:
    """Return the trace rows of deliveries that came from another neighbor than the previous delivery.

    The previous delivery is the one from the same publisher to the same node. Only the first `MOST` rows are returned.
    ``delivered``: the indices of all rows "delivered" of the trace.
    """
    delivery_rows = delivered[columns["peer"][delivered] >= 0]
    key = row_keys(columns["node"][delivery_rows], columns["origin"][delivery_rows])
    delivery_rows, key = delivery_rows[by_key := argsort(key)], key[by_key]
    last_hops = columns["peer"][delivery_rows]
    is_change = np.append(False, last_hops[1:] != last_hops[:-1])[: len(delivery_rows)] & ~mark_first(key)
    return np.sort(delivery_rows[is_change])[:MOST].tolist()
