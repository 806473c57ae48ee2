"""Samples that filters dropped on purpose: they are not expected, unless they arrive all the same.

Theory of operation
    A filter reports each sample that it drops or changes (`Protocol.drops`, `Protocol.changes`). The report names the
    message, not the sample. If d samples of a message were dropped, then for each subscription, the first d samples of
    the message that did not arrive are not expected. A filter may also send a dropped sample later. It then reports a
    change of the message after the drop, which cancels one drop: the sample is expected again.

Limits
    A sample that one node dropped is not expected, even if a copy of it was lost elsewhere. A changed sample that no
    longer matches the subscription stays expected. If a filter dropped an interest, the samples that are missing for
    this reason stay expected too, because no row of the trace connects them with the interest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.columns import cumcount, find_last, find_sorted, first_rows, row_keys, shared_keys, unique_all
from workbench.sim.metrics.withheld import Withheld
from workbench.sim.metrics.workload import ActiveIntervals, Publications, Subscriptions
from workbench.sim.rows import Columns


class Reports(NamedTuple):
    """Trace rows in which filters report dropped or changed messages, in order of time; one array (r,) per field.

    ``message`` (the code of a name), ``origin`` and ``sequence`` identify the message. ``filter``: the key of the
    filter at ``node``.
    """

    message: np.ndarray
    origin: np.ndarray
    sequence: np.ndarray
    node: np.ndarray
    filter: np.ndarray
    time_us: np.ndarray


def read_reports(rows: Columns, event_and_detail: tuple[str, ...]) -> Reports:
    """Return the filters' reports in a trace: the rows with this event and this detail.

    ``event_and_detail``: `Protocol.drops` or `Protocol.changes`. These are () if the protocol has no such event; the
    result is then empty.
    """
    event, word = event_and_detail or ("", "")
    detail, *fields = rows.columns(event, "detail", "message", "origin", "sequence", "node", "value", "time_us")
    return Reports(*(field[detail == rows.code("detail", word)] for field in fields))


def filtered_out(
    protocol: Any,
    rows: Columns,
    subscriptions: Subscriptions,
    publications: Publications,
    samples: list[np.ndarray],
    active: ActiveIntervals,
    arrived: tuple[np.ndarray, np.ndarray],
) -> Withheld:
    """Return the pairs of a subscription and a publication that need not arrive, as a filter dropped the publication.

    Pairs that arrived all the same are left out. ``samples[i][j]``: the number of samples in publication text j that
    match subscription text i. ``active``: the intervals in which subscriptions are active. ``arrived``: columns
    (subscription, publication) of all deliveries.
    """
    no_indices = np.zeros(0, np.int64)
    drops, dropped_counts = _count_drops(read_reports(rows, protocol.drops), read_reports(rows, protocol.changes))
    if not (protocol.parts() and len(dropped_counts)):
        return Withheld(no_indices, no_indices)
    message_name, node, reading_number, origin, sequence = rows.columns(
        "originated", "message", "node", "value", "origin", "sequence"
    )
    message = find_last((message_name, origin, sequence), drops)
    publication = find_last((node, reading_number), (publications.node, publications.number))
    is_dropped = (message >= 0) & (publication >= 0)
    message, publication = message[is_dropped], publication[is_dropped]
    first_pairs = first_rows(row_keys(message, publication))
    message, publication = message[first_pairs], publication[first_pairs]
    subscription_parts, publication_parts = [no_indices], [no_indices]
    for subscription, text in enumerate(subscriptions.text.tolist()):
        matching_rows = np.flatnonzero(samples[text][publications.text[publication]] > 0)
        pairs = np.full(len(matching_rows), subscription), publication[matching_rows]
        is_missing = active.has(pairs[0], publications.time_us[pairs[1]]) & (find_last(pairs, arrived) < 0)
        missing_rows = matching_rows[is_missing]
        missing_rows = missing_rows[cumcount(message[missing_rows]) < dropped_counts[message[missing_rows]]]
        missing_rows = missing_rows[first_rows(publication[missing_rows])]  # Several messages may carry a publication.
        subscription_parts.append(np.full(len(missing_rows), subscription))
        publication_parts.append(publication[missing_rows])
    return Withheld(np.concatenate(subscription_parts), np.concatenate(publication_parts))


def _count_drops(dropped: Reports, changed: Reports) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Return (messages, counts): the messages with dropped samples, and the number of dropped samples in each.

    ``messages``: columns (code of the message's name, origin, sequence). If the same node later reports a change of the
    message, one drop is cancelled: the node then sent the sample. ``dropped``, ``changed``: the filters' reports.
    """
    drop_keys, change_keys = shared_keys(dropped[:4], changed[:4])
    distinct_keys, first_row, message_at_node = unique_all(drop_keys)
    dropped_counts = np.bincount(message_at_node, minlength=len(distinct_keys))
    sent_later = find_sorted(change_keys, distinct_keys)
    is_later = sent_later >= 0
    is_later[is_later] = changed.time_us[is_later] > dropped.time_us[first_row[sent_later[is_later]]]
    dropped_counts -= np.bincount(sent_later[is_later], minlength=len(distinct_keys))
    messages = tuple(column[first_row] for column in dropped[:3])
    distinct_keys, first_row, message = unique_all(row_keys(*messages))
    drop_counts = np.zeros(len(distinct_keys), np.int64)
    np.add.at(drop_counts, message, np.maximum(dropped_counts, 0))
    return tuple(column[first_row] for column in messages), drop_counts
