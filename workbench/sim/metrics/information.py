"""The error of a sink's estimate and the age of its information, for runs in which filters process data.

Theory of operation
    Each subscription has a *truth* and an *estimate*. The truth is the mean of the latest published values, one for
    each publisher with matching readings since the subscription began. The estimate is the mean of the latest
    delivered values, one for each source. The source of a delivered value is the origin of its message. If the message
    passed a filter that merges, the value counts for several sources: all origins whose messages this filter dropped or
    changed in the run.

    A filter *merges* if it both drops and changes data in the run, as `neighborhood_average` does. A filter that only
    drops, or only changes, processes each source separately. A filter reports only the messages that it drops or
    changes. So a message to a subscription counts as having passed a merging filter under three conditions: the filter
    dropped or changed some message of the same origin; it did not drop this message for good; and the subscription also
    received a message that this filter changed.

    Truth and estimate are step functions of time, so the error, their difference, is integrated exactly. The error is
    defined from the first delivery to a subscription on, while the subscription is active. The age is the time since
    the publication of the newest reading that a delivered message carried; before the first delivery, it is the time
    since the first reading that matched. Means are over time, and over all subscriptions.

    Values are those of a single attribute: the first that a filter names (in its parameter ``of``, or in ``match`` if
    it has no ``of``). If no filter names one, it is the first attribute that a subscription constrains. Attributes that
    describe a reading, such as APP and X, are left out.

Limits
    A filter that drops some readings and changes others is taken for one that merges, even if it processes each source
    separately. If some messages reach a sink through a filter that merges and others around it, a message that the
    filter neither dropped nor changed is taken for one that passed it. If a merged message carries several values,
    their mean counts.

Cost
    Subscriptions times publications; deliveries times the sources of a filter that merges.

Reference
    S. Kaul, R. Yates, M. Gruteser: Real-time status: How often should one update? INFOCOM 2012, for the age.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.keys import key_of
from workbench.attributes.model import IS, is_blob
from workbench.attributes.text import parse
from workbench.columns import find_last, row_keys, shared_keys, split_rows, take_rows, unique_inverse
from workbench.errors import AttributeFormatError
from workbench.sim.metrics.deliveries import NOT_A_NUMBER, samples_of
from workbench.sim.metrics.filtered import read_reports
from workbench.sim.metrics.matching import matching_of, read_numbers
from workbench.sim.metrics.workload import (
    Publications,
    Subscriptions,
    active_intervals,
    read_publications,
    read_subscriptions,
)
from workbench.sim.rows import Columns

METRICS = ("sink_error_mean", "sink_error_max", "age_s_mean", "age_s_max")
_DESCRIPTIVE = "APP INSTANCE X Y Z CONFIDENCE TIME INTERVAL LATITUDE LONGITUDE TARGET"
_DESCRIPTIVE_KEYS = frozenset(key_of(name).number for name in _DESCRIPTIVE.split())
_US = 1_000_000
_NEVER_US = int(np.iinfo(np.int64).max)


class _Updates(NamedTuple):
    """Updates of the sinks' estimates in order of time.

    A delivered value that merges readings of several nodes is several updates, one for each node.
    ``subscription``: the index of the subscription in the scenario's workload. ``source``: the address of a node
    whose readings went into the value. ``value``: in steps of the attribute key's resolution; a mean if messages were
    merged, NaN if the reading lacks the key. ``newest_us``: the time of publication of the newest reading in the
    message. Each field is an array (u,).
    """

    subscription: np.ndarray
    source: np.ndarray
    time_us: np.ndarray
    value: np.ndarray
    newest_us: np.ndarray


class _Arrivals(NamedTuple):
    """Arrivals of messages at subscriptions, one array (a,) per field.

    ``subscription``: an index in the run's `Subscriptions`. ``is_changed``: whether the delivered text differs from the
    text of the message's newest reading. ``message`` (the code of a name), ``origin`` and ``sequence`` identify the
    message.
    """

    subscription: np.ndarray
    is_changed: np.ndarray
    message: np.ndarray
    origin: np.ndarray
    sequence: np.ndarray


def information(scenario: Any, rows: Columns) -> dict[str, float]:
    """Return {name: value} of `METRICS`: errors and ages of the sinks' data; NaN if the run has no filters."""
    protocol = scenario.protocol
    if not (protocol.changes and protocol.parts()):
        return dict.fromkeys(METRICS, NOT_A_NUMBER)
    subscriptions, publications = read_subscriptions(rows), read_publications(rows)
    samples = samples_of(subscriptions, publications, matching_of(protocol))
    intervals, end_us = active_intervals(subscriptions, rows), round(scenario.duration_s * _US)
    key = _choose_key(protocol, subscriptions)
    published_values = _read_values(publications.texts, key)[publications.text]
    updates = _read_updates(rows, protocol, subscriptions, publications, key)
    errors, ages = [], []
    for subscription, own_rows in enumerate(split_rows(updates.subscription, len(subscriptions.node))):
        is_own = intervals.subscription == subscription
        active = [
            (first_us, min(last_us, end_us))
            for first_us, last_us in zip(intervals.first_us[is_own], intervals.last_us[is_own], strict=True)
        ]
        is_match = samples[subscriptions.text[subscription]][publications.text] > 0
        is_match &= publications.time_us >= subscriptions.first_us[subscription]
        is_match &= publications.time_us < subscriptions.last_us[subscription]
        own_updates = take_rows(updates, own_rows)
        ages.append(_sum_age(active, publications.time_us[is_match], own_updates))
        truth = _mean_of_latest(publications.time_us[is_match], publications.node[is_match], published_values[is_match])
        estimate = _mean_of_latest(own_updates.time_us, own_updates.source, own_updates.value)
        errors.append(_sum_error(active, truth, estimate))
    steps_per_unit = 1 if key is None else key_of(key).steps
    metric_values = (
        *(value / steps_per_unit for value in _summarize(errors)),
        *(value / _US for value in _summarize(ages)),
    )
    return dict(zip(METRICS, metric_values, strict=True))


def _choose_key(protocol: Any, subscriptions: Subscriptions) -> int | None:
    """Return the number of the attribute key whose values make up the truth and the estimate, or None.

    The choice is the first key that a filter of the protocol processes. If no filter processes a key, the choice is the
    first key that a subscription constrains. Keys that describe a reading, such as X, and keys of byte strings are left
    out.
    """
    constrained_keys = [a.key for text in subscriptions.texts for a in parse(text) if a.operator != IS]
    candidate_keys = (*protocol.measured_keys(), *constrained_keys)
    return next((key for key in candidate_keys if key not in _DESCRIPTIVE_KEYS and not is_blob(key)), None)


def _read_values(texts: Iterable[str], key: int | None) -> np.ndarray:
    """Return the first value of a key in each text of attributes, float64; NaN if a text lacks the key."""
    return np.array([_read_value(text, key) for text in texts], np.float64)


def _read_value(text: str, key: int | None) -> float:
    try:
        return next((value for number, value in read_numbers(text) if number == key), NOT_A_NUMBER)
    except AttributeFormatError:  # A filter computed a number beyond its key's range, which text cannot express.
        return NOT_A_NUMBER


# Deliveries


def _read_updates(
    rows: Columns, protocol: Any, subscriptions: Subscriptions, publications: Publications, key: int | None
) -> _Updates:
    columns = ("node", "value", "time_us", "detail", "message", "origin", "sequence")
    node, subscription_number, time_us, detail, *message = rows.columns("delivered", *columns)
    codes, text = unique_inverse(detail)
    value = _read_values([rows.words["detail"][code] for code in codes.tolist()], key)[text]
    subscription = find_last((node, subscription_number), (subscriptions.node, subscriptions.number))
    newest = _find_newest(rows, publications, message[1:])
    is_known = (subscription >= 0) & (newest >= 0)
    subscription, time_us, detail, value, newest, *message = (
        column[is_known] for column in (subscription, time_us, detail, value, newest, *message)
    )
    # A message may deliver several samples at once. The last row of each delivery stands for all of its rows.
    delivery_keys, delivery = unique_inverse(row_keys(subscription, time_us, *message))
    last_row = np.zeros(len(delivery_keys), np.int64)
    last_row[delivery] = np.arange(len(delivery))
    mean = np.bincount(delivery, value, len(delivery_keys)) / np.bincount(delivery, minlength=len(delivery_keys))
    text_pairs = zip(detail.tolist(), publications.text[newest].tolist(), strict=True)
    is_different = [
        rows.words["detail"][delivered] != publications.texts[published] for delivered, published in text_pairs
    ]
    is_changed = np.bincount(delivery, is_different, len(delivery_keys)) > 0
    arrivals = _Arrivals(subscription[last_row], is_changed, *(column[last_row] for column in message))
    arrival_index, source, is_merged = _find_sources(rows, protocol, arrivals)
    row = last_row[arrival_index]
    value_of_delivery = np.where(is_merged, mean, value[last_row])[arrival_index]
    updates = _Updates(subscription[row], source, time_us[row], value_of_delivery, publications.time_us[newest[row]])
    return take_rows(updates, np.argsort(row, kind="stable"))


def _find_newest(rows: Columns, publications: Publications, messages: list[np.ndarray]) -> np.ndarray:
    """Return for each message the index of the newest publication in it; -1 for a message that no node created.

    ``messages``: columns (origin, sequence), which identify a message.
    """
    node, number, *carriers = rows.columns("originated", "node", "value", "origin", "sequence")
    publication = find_last((node, number), (publications.node, publications.number))
    by_time = np.argsort(publication, kind="stable")  # Publications are in order of time.
    last_carrier = find_last(tuple(messages), tuple(column[by_time] for column in carriers))
    return np.append(publication[by_time], -1)[last_carrier]


def _find_sources(rows: Columns, protocol: Any, arrivals: _Arrivals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (index, source, is_merged): the origins whose readings went into the value of each arrived message.

    ``source[k]`` is the address of an origin of arrival ``index[k]``; an arrival has one or several origins.
    ``is_merged`` (a,): whether the arrived message passed a filter that merges messages.
    """
    dropped, changed = (read_reports(rows, report) for report in (protocol.drops, protocol.changes))
    drop_keys, change_keys, message_keys = shared_keys(dropped[:3], changed[:3], arrivals[2:])
    filter_of_drop, filter_of_change = shared_keys(
        (dropped.message, dropped.node, dropped.filter), (changed.message, changed.node, changed.filter)
    )
    arrival_index, source = [np.arange(len(message_keys))], [arrivals.origin]
    is_merged = np.zeros(len(message_keys), np.bool_)
    for merging_filter in np.intersect1d(filter_of_drop, filter_of_change):
        is_drop, is_change = filter_of_drop == merging_filter, filter_of_change == merging_filter
        sources = np.union1d(dropped.origin[is_drop], changed.origin[is_change])
        stopped_messages = np.setdiff1d(drop_keys[is_drop], change_keys[is_change])
        is_result = arrivals.is_changed & np.isin(message_keys, change_keys[is_change])
        has_passed = np.isin(arrivals.subscription, arrivals.subscription[is_result])
        has_passed &= np.isin(arrivals.origin, sources) & ~np.isin(message_keys, stopped_messages)
        is_merged |= has_passed
        passed_arrivals = np.flatnonzero(has_passed)
        arrival_index.append(np.repeat(passed_arrivals, len(sources)))
        source.append(np.tile(sources, len(passed_arrivals)))
    return np.concatenate(arrival_index), np.concatenate(source), is_merged


# Step functions: (times, values); each value holds from its time to the next. The last of equal times counts.


def _mean_of_latest(time_us: np.ndarray, source: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (times, means), a step function: the mean of the latest values of all sources that have a value.

    ``means[k]`` is the mean from ``times[k]`` to the next time. Element i of the three arguments is an update of one
    source's value; updates must be in order of time. Updates to NaN are left out.
    """
    is_number = ~np.isnan(value)
    time_us, source, value = time_us[is_number], source[is_number], value[is_number]
    by_source = np.argsort(source, kind="stable")
    is_first = np.diff(source[by_source], prepend=-1) != 0
    sum_change, is_new_source = np.empty(len(value)), np.empty(len(value), np.bool_)
    sum_change[by_source] = np.diff(value[by_source], prepend=0.0)
    is_new_source[by_source] = is_first
    sum_change[is_new_source] = value[is_new_source]
    return time_us, np.cumsum(sum_change) / np.cumsum(is_new_source)


def _evaluate_at(function: tuple[np.ndarray, np.ndarray], time_us: np.ndarray) -> np.ndarray:
    return function[1][np.searchsorted(function[0], time_us, "right") - 1]


def _split_intervals(
    active: list[tuple[int, int]], from_us: int, times_us: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (starts, ends) in µs: the ``active`` intervals from ``from_us`` on, split at ``times_us``."""
    edge_pairs = [np.zeros((2, 0), np.int64)]
    for first_us, last_us in active:
        first_us = max(first_us, from_us)
        if first_us < last_us:
            inner_times_us = times_us[(first_us < times_us) & (times_us < last_us)]
            edges = np.unique(np.concatenate([[first_us], inner_times_us, [last_us]]))
            edge_pairs.append(np.array([edges[:-1], edges[1:]]))
    starts_us, ends_us = np.concatenate(edge_pairs, axis=1)
    return starts_us, ends_us


def _sum_error(
    active: list[tuple[int, int]], truth: tuple[np.ndarray, np.ndarray], estimate: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float, float]:
    """Return (integral over time, time in µs, maximum) of the error of a subscription's estimate.

    The integral is over the time in which the subscription is active, and truth and estimate both exist. The second
    result is the length of this time. ``active``: the intervals (first_us, last_us) of the subscription. ``truth``,
    ``estimate``: step functions (times, values).
    """
    if not (len(truth[0]) and len(estimate[0])):
        return 0.0, 0.0, 0.0
    starts_us, ends_us = _split_intervals(
        active, max(truth[0][0], estimate[0][0]), np.concatenate([truth[0], estimate[0]])
    )
    error = np.abs(_evaluate_at(estimate, starts_us) - _evaluate_at(truth, starts_us))
    lengths_us = ends_us - starts_us
    return float((error * lengths_us).sum()), float(lengths_us.sum()), float(error.max(initial=0.0))


def _sum_age(active: list[tuple[int, int]], published_us: np.ndarray, updates: _Updates) -> tuple[float, float, float]:
    """Return (integral over time, time in µs, maximum in µs) of the age of a subscription's data.

    The integral begins with the first publication or update, and covers the time in which the subscription is active;
    the second result is the length of this time. ``active``: the intervals (first_us, last_us) of the subscription.
    ``published_us``: the times of the publications that match. ``updates``: the changes of the sink's estimate.
    """
    begin_us = np.concatenate([published_us[:1], updates.time_us[:1]]).min(initial=_NEVER_US)
    times_us = np.append(begin_us, updates.time_us)
    newest_us = np.append(begin_us, np.maximum.accumulate(updates.newest_us))
    starts_us, ends_us = _split_intervals(active, begin_us, times_us)
    newest_us = _evaluate_at((times_us, newest_us), starts_us)
    lengths_us, mean_age_us = ends_us - starts_us, (starts_us + ends_us) / 2 - newest_us
    return float((mean_age_us * lengths_us).sum()), float(lengths_us.sum()), float((ends_us - newest_us).max(initial=0))


def _summarize(sums: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Return (mean over time, maximum) of a quantity; NaN if all times are 0.

    ``sums``: for each subscription, (integral of the quantity over time, length of that time, maximum).
    """
    integrals, times_us, maxima = zip(*sums, strict=True) if sums else ((), (), ())
    return (sum(integrals) / sum(times_us), max(maxima)) if sum(times_us) else (NOT_A_NUMBER, NOT_A_NUMBER)
