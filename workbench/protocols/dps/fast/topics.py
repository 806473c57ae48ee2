"""The topics of a workload for DPS's fast twin (its compiled version): filters and matches, computed before a run.

`workbench.protocols.dps.mapping` maps each publication and each subscription to a set of topics. The filter of each
distinct set is computed once. A table shows for each pair of a published and a subscribed set whether they match. The
attributes themselves are compared during the run, except TOPIC: its wildcards are matched here.

Cost
    The table takes a byte for each pair of sets, up to `MOST_PAIRS`. Topics are compared as texts only if the filter of
    the published set has all bits of the subscribed set.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.model import EQ, TOPIC, Attribute, is_blob
from workbench.protocols.dps import mapping
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.series import publication_filter, subscription_filter
from workbench.protocols.dps.topics import matches
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, Setup

MOST_PAIRS = 1 << 28

# Result of comparing a publication with a subscription: filters exclude a match; only filters match; topics match.
NO, MAYBE, YES = range(3)


class Workload(NamedTuple):
    """The topics of a scenario's publications and subscriptions, as arrays.

    The topics of a publication, or of a subscription, are a *set* with a number. Equal sets have the same number.

    published_set     number of the set of each publication content (a row of ``contents`` in the engine's workload)
    topic_first       published set s has the elements topic_first[s]:topic_first[s + 1] of the next two arrays
    topic_positions   positions (word indices) of the nonzero 64-bit words in the filters of the published sets
    topic_words       values of these words
    subscribed_set    number of the set of each subscription
    subscribed        filter of each subscribed set (sets, words)
    subscribed_needs  fuzzy hash of each subscribed set (sets, words)
    set_matches       NO, MAYBE or YES for each pair of sets (published, subscribed)
    text_set          row of text_matches for each subscription; NONE: the subscription has no constraint on TOPIC
    text_matches      a row for each distinct set of constraints on TOPIC: whether each sample meets it (rows, samples)
    """

    published_set: np.ndarray
    topic_first: np.ndarray
    topic_positions: np.ndarray
    topic_words: np.ndarray
    subscribed_set: np.ndarray
    subscribed: np.ndarray
    subscribed_needs: np.ndarray
    set_matches: np.ndarray
    text_set: np.ndarray
    text_matches: np.ndarray


def workload_of(setup: Setup) -> Workload:
    """Return the `Workload` with the topics of a scenario's publications and subscriptions.

    Raises NoFastTwinError if there are more than `MOST_PAIRS` pairs of a published and a subscribed set, and
    AttributeFormatError for an invalid topic.
    """
    protocol, _, workload, _ = setup
    published_sets, subscribed_sets = twin.Numbering(), twin.Numbering()
    sample_ranges = zip(
        workload.contents["first_sample"].tolist(), workload.contents["last_sample"].tolist(), strict=True
    )
    attribute_bounds = workload.samples["first"].tolist(), workload.samples["last"].tolist()
    published_set = [
        published_sets[
            mapping.publication_topics(
                _attributes(workload, attribute_bounds[0][first_sample], attribute_bounds[1][last_sample - 1]),
                protocol.separators,
            )
        ]
        for first_sample, last_sample in sample_ranges
    ]
    subscribed_set = [
        subscribed_sets[mapping.subscription_topics(_attributes_of(workload, subscription), protocol.separators)]
        for subscription in workload.subscriptions
    ]
    if len(published_sets.numbers) * len(subscribed_sets.numbers) > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"{len(published_sets.numbers)} published and {len(subscribed_sets.numbers)} subscribed sets of topics "
            f"make more than {MOST_PAIRS} pairs, the limit of the fast engine; use the reference engine"
        )
    published_filters = _stack_filters(
        [publication_filter(topics, protocol, protocol.wildcards) for topics in published_sets.numbers], protocol
    )
    subscribed_vectors = [subscription_filter(topics, protocol) for topics in subscribed_sets.numbers]
    subscribed_filters = _stack_filters(subscribed_vectors, protocol)
    subscribed_needs = np.frombuffer(b"".join(vector.fuzzy_hash() for vector in subscribed_vectors), np.uint64).reshape(
        -1, 4
    )
    filter_rows, word_positions = np.nonzero(published_filters)
    topic_first = np.searchsorted(filter_rows, np.arange(len(published_filters) + 1))
    text_set, text_matches = _match_texts(workload, protocol)
    return Workload(
        np.array(published_set, np.int32),
        topic_first,
        word_positions.astype(np.int32),
        published_filters[filter_rows, word_positions],
        np.array(subscribed_set, np.int32),
        subscribed_filters,
        subscribed_needs,
        _match_sets(
            published_filters, subscribed_filters, list(published_sets.numbers), list(subscribed_sets.numbers), protocol
        ),
        text_set,
        text_matches,
    )


def _attributes(workload: twin.Work, first: int, last: int) -> tuple[Attribute, ...]:
    """Return the rows [first, last) of the workload's attributes as `Attribute` objects."""
    attributes = []
    for key, operator, number in workload.attributes[first:last].tolist():
        attributes.append(Attribute(key, operator, workload.blobs[number] if is_blob(key) else number))
    return tuple(attributes)


def _attributes_of(workload: twin.Work, subscription: Any) -> tuple[Attribute, ...]:
    """Return the attributes of ``subscription``, a row of ``workload.subscriptions`` or of ``workload.samples``."""
    return _attributes(workload, int(subscription["first"]), int(subscription["last"]))


def _stack_filters(vectors: list[BitVector], protocol: Any) -> np.ndarray:
    data = b"".join(vector.to_bytes() for vector in vectors)
    return np.frombuffer(data, np.uint64).reshape(len(vectors), protocol.filter_bits // 64)


def _match_sets(
    filters: np.ndarray, subscribed_filters: np.ndarray, published: list, subscribed: list, protocol: Any
) -> np.ndarray:
    """Return the field ``set_matches`` of `Workload`: whether each published set matches each subscribed set.

    ``filters``, ``subscribed_filters``: filter of each published and subscribed set, one a row. ``published``,
    ``subscribed``: the topics of each set.
    """
    set_matches = np.full((len(published), len(subscribed)), NO, np.uint8)
    has_bits = filters.any(axis=1)
    for k, (filter_words, topics) in enumerate(zip(subscribed_filters, subscribed, strict=True)):
        word_positions = np.flatnonzero(filter_words)
        is_included = has_bits & (
            (filters[:, word_positions] & filter_words[word_positions]) == filter_words[word_positions]
        ).all(axis=1)
        for published_index in np.flatnonzero(is_included).tolist():
            set_matches[published_index, k] = (
                YES if matches(published[published_index], topics, protocol.separators) else MAYBE
            )
    return set_matches


def _match_texts(workload: twin.Work, protocol: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the fields text_set and text_matches of `Workload`: which samples meet the constraints on TOPIC."""
    text_sets = twin.Numbering()
    text_set = np.full(len(workload.subscriptions), NONE, np.int32)
    for k, subscription in enumerate(workload.subscriptions):
        attributes = _attributes_of(workload, subscription)
        key_texts = tuple(
            attribute.value for attribute in attributes if attribute.key == TOPIC and attribute.operator == EQ
        )
        if key_texts:
            text_set[k] = text_sets[key_texts]
    text_matches = np.zeros((len(text_sets.numbers), len(workload.samples) if text_sets.numbers else 0), np.uint8)
    for k, sample in enumerate(workload.samples if text_sets.numbers else ()):
        attributes = _attributes_of(workload, sample)
        published_texts = [attribute.value for attribute in attributes if attribute.key == TOPIC]
        for text_set_row, subscribed_texts in enumerate(text_sets.numbers):
            text_matches[text_set_row, k] = matches(published_texts, subscribed_texts, protocol.separators)
    return text_set, text_matches
