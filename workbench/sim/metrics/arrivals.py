"""The outcome of each delivery: it is credited to a publication, wrong, or a duplicate.

Theory of operation
    A message carries one or several publications, each with its samples. The *items* of a message for a subscription
    are the samples in the message that match the subscription. Each item has the sample's text and its publication. The
    k-th delivery of a text from a message to a subscription is credited to the k-th item with that text. A delivery of
    another text is wrong, unless the protocol reports that it changed the message on purpose. The deliveries of such a
    message to a subscription are matched one by one: a changed sample is credited to the first item that has not
    arrived.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench import columns
from workbench.columns import Table, find_last, ranges, row_keys
from workbench.sim.metrics.matching import Matching
from workbench.sim.metrics.workload import Publications, Subscriptions
from workbench.sim.rows import Columns

_MESSAGE = "message", "origin", "sequence"  # the columns that identify a message


class Arrived(NamedTuple):
    """Deliveries that are credited to a publication, one array (a,) per field, and the numbers of other deliveries.

    ``subscription`` and ``publication`` are indices in the run's `Subscriptions` and `Publications`. ``row``: the
    position of a delivery among the rows "delivered". ``wrong`` and ``duplicates`` count the other deliveries.
    """

    subscription: np.ndarray
    publication: np.ndarray
    time_us: np.ndarray
    row: np.ndarray
    wrong: int
    duplicates: int


class _Contents(NamedTuple):
    """The publications that each message carries: those of message m are ``publication[first[m] : first[m + 1]]``.

    Publications are indices into the run's `Publications`.
    """

    first: np.ndarray
    publication: np.ndarray


class _Deliveries(NamedTuple):
    """Deliveries of samples to subscriptions, one array (d,) per field.

    ``subscription``: an index in the run's `Subscriptions`. ``message``: an index in `_Contents`. ``text``: an index in
    a list of the distinct texts of delivered samples. Unknown subscriptions and messages have the index -1. ``row``:
    the delivery's position among the trace rows "delivered". ``may_differ``: whether the protocol reports that a node
    changed the message on purpose.
    """

    subscription: np.ndarray
    message: np.ndarray
    time_us: np.ndarray
    text: np.ndarray
    may_differ: np.ndarray
    row: np.ndarray


class _Items(NamedTuple):
    """Matches of samples in messages with subscription texts, one array (i,) of indices per field.

    Each match is a sample in a message, and a subscription text that the sample matches. ``pair``: the pair of the
    message and the subscription text. ``publication``: the sample's publication. ``text``: the sample's text.
    """

    pair: np.ndarray
    publication: np.ndarray
    text: np.ndarray


def arrivals(
    rows: Columns,
    subscriptions: Subscriptions,
    publications: Publications,
    matching: Matching,
    changes: tuple[str, ...],
) -> Arrived:
    """Return the deliveries in a trace, each credited to a publication; wrong and duplicate deliveries are counted.

    ``changes``: (event, detail) of the trace rows that report a message changed by a filter, or () if the protocol does
    not report changes.
    """
    message_name, origin, sequence = rows.columns("delivered", *_MESSAGE)
    node, subscription_number, time_us, detail = rows.columns("delivered", "node", "value", "time_us", "detail")
    contents, message = _read_contents(rows, publications, (origin, sequence))
    codes, text_index = columns.unique_inverse(detail)
    sample_texts = [rows.words["detail"][code] for code in codes.tolist()]
    subscription = find_last((node, subscription_number), (subscriptions.node, subscriptions.number))
    may_differ = find_last((message_name, origin, sequence), _read_changed_messages(rows, changes)) >= 0
    all_deliveries = _Deliveries(subscription, message, time_us, text_index, may_differ, np.arange(len(node)))
    valid_deliveries = columns.take_rows(all_deliveries, _mark_valid(all_deliveries, subscriptions))
    valid_deliveries = columns.take_rows(
        valid_deliveries, _mark_matches(valid_deliveries, subscriptions, sample_texts, matching)
    )
    _, first_of_pair, pair_index = columns.unique_all(
        row_keys(valid_deliveries.message, subscriptions.text[valid_deliveries.subscription])
    )
    messages_and_texts = (
        valid_deliveries.message[first_of_pair],
        subscriptions.text[valid_deliveries.subscription[first_of_pair]],
    )
    matching_items = _make_items(*messages_and_texts, contents, subscriptions, publications, sample_texts, matching)
    publication, is_duplicate, is_wrong = _credit_deliveries(valid_deliveries, pair_index, matching_items)
    is_credited = publication >= 0
    credited_columns = (
        valid_deliveries.subscription[is_credited],
        publication[is_credited],
        valid_deliveries.time_us[is_credited],
        valid_deliveries.row[is_credited],
    )
    wrong_count = len(node) - len(valid_deliveries.text) + int(np.count_nonzero(is_wrong))
    return Arrived(*credited_columns, wrong_count, int(np.count_nonzero(is_duplicate)))


def _read_contents(rows: Columns, publications: Publications, messages: Table) -> tuple[_Contents, np.ndarray]:
    """Return (contents, indices): the publications in each message, and the position of ``messages`` in ``contents``.

    ``messages``: columns (origin, sequence), which identify a message. ``indices[k]`` is the index in ``contents`` of
    message k, or -1 for a message that no node created.
    """
    node, reading_number, origin, sequence = rows.columns("originated", "node", "value", "origin", "sequence")
    publication = find_last((node, reading_number), (publications.node, publications.number))
    is_known = publication >= 0
    carried_keys, message_keys = columns.shared_keys((origin[is_known], sequence[is_known]), messages)
    by_message = columns.argsort(carried_keys)
    carried_keys = carried_keys[by_message]
    first_of_message = np.flatnonzero(columns.mark_first(carried_keys))
    content_index = columns.find_sorted(message_keys, carried_keys[first_of_message])
    return _Contents(np.append(first_of_message, len(carried_keys)), publication[is_known][by_message]), content_index


def _read_changed_messages(rows: Columns, changes: tuple[str, ...]) -> Table:
    """Return the messages that filters changed, as three columns: name (its code), origin and sequence.

    ``changes``: (event, detail) of the trace rows that report a message changed by a filter, or ().
    """
    event, detail = changes or ("", "")
    details, *messages = rows.columns(event, "detail", *_MESSAGE)
    is_change = details == rows.code("detail", detail)
    return tuple(column[is_change] for column in messages)


def _mark_valid(all_deliveries: _Deliveries, subscriptions: Subscriptions) -> np.ndarray:
    """Return for each delivery, as bool (d,), whether its message and its subscription are valid.

    A message is valid if a node created it, a subscription if it existed at the time of the delivery.
    """
    is_known = (all_deliveries.subscription >= 0) & (all_deliveries.message >= 0)
    first_us, last_us = (
        subscriptions.first_us[all_deliveries.subscription],
        subscriptions.last_us[all_deliveries.subscription],
    )
    return is_known & (first_us <= all_deliveries.time_us) & (all_deliveries.time_us < last_us)


def _mark_matches(
    deliveries: _Deliveries, subscriptions: Subscriptions, texts: list[str], matching: Matching
) -> np.ndarray:
    """Return for each delivery (d,) whether the delivered sample matches the subscription.

    ``texts``: the texts of all samples, into which ``deliveries.text`` has indices.
    """
    subscription_text = subscriptions.text[deliveries.subscription]
    _, first_of_pair, pair_index = columns.unique_all(row_keys(subscription_text, deliveries.text))
    is_match = [
        matching.is_match(subscriptions.texts[wanted_text], texts[sample])
        for wanted_text, sample in zip(
            subscription_text[first_of_pair].tolist(), deliveries.text[first_of_pair].tolist(), strict=True
        )
    ]
    return np.array(is_match, np.bool_)[pair_index]


def _make_items(
    message: np.ndarray,
    subscription_text: np.ndarray,
    contents: _Contents,
    subscriptions: Subscriptions,
    publications: Publications,
    texts: list[str],
    matching: Matching,
) -> _Items:
    """Return, for n pairs of a message and a subscription text, the samples in the message that match the text.

    ``message`` (n,): indices into ``contents``, the publications in each message. ``subscription_text`` (n,): indices
    into ``subscriptions.texts``. ``texts``: the texts of delivered samples. In the result, a sample's text is an index
    into ``texts``; a text that was not delivered has an index beyond the end of ``texts``.
    """
    publication_counts = contents.first[message + 1] - contents.first[message]
    pair_index = np.repeat(np.arange(len(message)), publication_counts)
    publication = contents.publication[ranges(contents.first[message], publication_counts)]
    _, first_of_texts, texts_index = columns.unique_all(
        row_keys(subscription_text[pair_index], publications.text[publication])
    )
    codes = {text: code for code, text in enumerate(texts)}
    sample_codes = [
        [
            codes.setdefault(sample, len(codes))
            for sample in matching.samples(subscriptions.texts[wanted_text], publications.texts[publication_text])
        ]
        for wanted_text, publication_text in zip(
            subscription_text[pair_index[first_of_texts]].tolist(),
            publications.text[publication[first_of_texts]].tolist(),
            strict=True,
        )
    ]
    lengths = np.array([len(samples) for samples in sample_codes], np.int64)
    first_samples, counts_of_pairs = (np.cumsum(lengths) - lengths)[texts_index], lengths[texts_index]
    text = np.array([code for samples in sample_codes for code in samples], np.int64)[
        ranges(first_samples, counts_of_pairs)
    ]
    return _Items(np.repeat(pair_index, counts_of_pairs), np.repeat(publication, counts_of_pairs), text)


def _credit_deliveries(
    valid: _Deliveries, pair: np.ndarray, items: _Items
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (publication, is_duplicate, is_wrong), arrays (d,) with the outcome of each of the deliveries ``valid``.

    ``publication``: the index of the publication to which the delivery is credited, or -1. ``items``: for each pair of
    a message and a subscription text, the samples that match. ``pair`` (d,): each delivery's pair, as in
    ``items.pair``. A delivery is wrong if its pair has no sample with its text, unless a filter may have changed the
    message.
    """
    of_items = items.pair, items.text
    delivery_rank = columns.cumcount(row_keys(valid.subscription, pair, valid.text))
    item_index = find_last((pair, valid.text, delivery_rank), (*of_items, columns.cumcount(row_keys(*of_items))))
    publication = np.append(items.publication, -1)[item_index]
    is_unknown = find_last((pair, valid.text), of_items) < 0
    is_duplicate = ~is_unknown & (item_index < 0)
    is_changed = is_unknown & valid.may_differ
    if is_changed.any():
        _credit_changed(valid, pair, items, is_changed, publication, is_duplicate)
    return publication, is_duplicate, is_unknown & ~valid.may_differ


def _credit_changed(
    valid: _Deliveries,
    pair: np.ndarray,
    items: _Items,
    is_changed: np.ndarray,
    publication: np.ndarray,
    is_duplicate: np.ndarray,
) -> None:
    """Match deliveries with publications, for messages in which a filter changed a sample.

    All deliveries of such a message to a subscription are credited one by one, each to the first item (matching sample)
    that has not arrived. An unchanged sample needs an item with its own text, a changed sample takes any item. ``pair``
    (d,): the number of each delivery's pair in ``items``. ``is_changed`` (d,) marks the deliveries of changed samples.
    The arrays ``publication`` and ``is_duplicate`` are changed in place.
    """
    group_keys = row_keys(valid.subscription, pair)
    pair_ends = np.searchsorted(items.pair, np.arange(1 + pair.max()), side="right").tolist()
    missing_items: dict[int, list[tuple[int, int]]] = {}  # group -> (text, publication) of items that have not arrived
    seen_texts: set[tuple[int, int]] = set()
    for delivery_index in np.flatnonzero(np.isin(group_keys, group_keys[is_changed])).tolist():
        group_key, text_index = int(group_keys[delivery_index]), int(valid.text[delivery_index])
        if group_key not in missing_items:
            items_of_pair = slice(
                pair_ends[pair[delivery_index] - 1] if pair[delivery_index] else 0, pair_ends[pair[delivery_index]]
            )
            missing_items[group_key] = list(
                zip(items.text[items_of_pair].tolist(), items.publication[items_of_pair].tolist(), strict=True)
            )
        # A changed sample is credited to the first item that has not arrived.
        candidate_positions = (
            item_position
            for item_position, item in enumerate(missing_items[group_key])
            if is_changed[delivery_index] or item[0] == text_index
        )
        item_position = next(candidate_positions, None)
        publication[delivery_index] = -1 if item_position is None else missing_items[group_key].pop(item_position)[1]
        # A text seen for the first time may match only because a filter changed it: it is not expected, and not wrong.
        is_duplicate[delivery_index] = item_position is None and (group_key, text_index) in seen_texts
        seen_texts.add((group_key, text_index))
