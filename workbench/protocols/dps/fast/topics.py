"""The topics of a workload for DPS's fast twin: their filters, and a table of matches, computed before the run.

Publications and subscriptions are mapped to topics by `workbench.protocols.dps.mapping`, and each different set of
topics is hashed once. A table contains a byte for each pair of a published and a subscribed set: whether the two sets
match. Attributes are compared during the run, except TOPIC, whose wildcards are matched here.

Cost
    A byte for each pair of sets, up to `MOST_PAIRS`; a comparison of texts for each pair that the filter lets through.
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
    """The topics of a scenario's publications and subscriptions, as arrays. Equal sets of topics have the same number.

    published_set     for each content of a publication, the number of its set of topics
    topic_first       published set s has entries topic_first[s]:topic_first[s + 1] of the next two arrays: its filter
    topic_positions   position in the filter of each 64-bit word that is not 0
    topic_words       value of this word
    subscribed_set    for each subscription, the number of its set of topics
    subscribed        filter of each subscribed set (sets, words)
    subscribed_needs  fuzzy hash of each subscribed set (sets, words)
    set_matches       NO, MAYBE or YES for each pair of sets (published, subscribed)
    text_set          for each subscription, its row in text_matches; NONE without a constraint on TOPIC
    text_matches      whether a sample matches the constraints on TOPIC (rows, samples)
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
    """Return the topics of a scenario.

    Raises NoFastTwinError for too many pairs of sets of topics, AttributeFormatError for an invalid topic.
    """
    protocol, _, workload, _ = setup
    published, subscribed = twin.Numbering(), twin.Numbering()
    contents = zip(workload.contents["first_sample"].tolist(), workload.contents["last_sample"].tolist(), strict=True)
    bounds = workload.samples["first"].tolist(), workload.samples["last"].tolist()
    published_set = [
        published[
            mapping.publication_topics(
                _attributes(workload, bounds[0][first], bounds[1][last - 1]), protocol.separators
            )
        ]
        for first, last in contents
    ]
    subscribed_set = [
        subscribed[mapping.subscription_topics(_attributes_of(workload, subscription), protocol.separators)]
        for subscription in workload.subscriptions
    ]
    if len(published.numbers) * len(subscribed.numbers) > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"{len(published.numbers)} published and {len(subscribed.numbers)} subscribed sets of topics make more "
            f"than {MOST_PAIRS} pairs, the limit of the fast engine"
        )
    filters = _stack_filters(
        [publication_filter(topics, protocol, protocol.wildcards) for topics in published.numbers], protocol
    )
    vectors = [subscription_filter(topics, protocol) for topics in subscribed.numbers]
    subscribed_filters = _stack_filters(vectors, protocol)
    needs = np.frombuffer(b"".join(vector.fuzzy_hash() for vector in vectors), np.uint64).reshape(-1, 4)
    filter_rows, word_positions = np.nonzero(filters)
    first = np.searchsorted(filter_rows, np.arange(len(filters) + 1))
    text_set, text_matches = _match_texts(workload, protocol)
    return Workload(
        np.array(published_set, np.int32),
        first,
        word_positions.astype(np.int32),
        filters[filter_rows, word_positions],
        np.array(subscribed_set, np.int32),
        subscribed_filters,
        needs,
        _match_sets(filters, subscribed_filters, list(published.numbers), list(subscribed.numbers), protocol),
        text_set,
        text_matches,
    )


def _attributes(workload: twin.Work, first: int, last: int) -> tuple[Attribute, ...]:
    """Return the workload's attributes in rows [first, last) as `Attribute` objects."""
    attributes = []
    for key, operator, number in workload.attributes[first:last].tolist():
        attributes.append(Attribute(key, operator, workload.blobs[number] if is_blob(key) else number))
    return tuple(attributes)


def _attributes_of(workload: twin.Work, subscription: Any) -> tuple[Attribute, ...]:
    """Return the attributes of a subscription or sample, given as its row in the workload."""
    return _attributes(workload, int(subscription["first"]), int(subscription["last"]))


def _stack_filters(vectors: list[BitVector], protocol: Any) -> np.ndarray:
    data = b"".join(vector.to_bytes() for vector in vectors)
    return np.frombuffer(data, np.uint64).reshape(len(vectors), protocol.filter_bits // 64)


def _match_sets(
    filters: np.ndarray, subscribed_filters: np.ndarray, published: list, subscribed: list, protocol: Any
) -> np.ndarray:
    """Return ``set_matches`` of the `Workload`.

    ``filters``: filters of the published sets; ``published``, ``subscribed``: the topics of each set.
    """
    set_matches = np.full((len(published), len(subscribed)), NO, np.uint8)
    is_filled = filters.any(axis=1)
    for k, (words, topics) in enumerate(zip(subscribed_filters, subscribed, strict=True)):
        columns = np.flatnonzero(words)
        is_included = is_filled & ((filters[:, columns] & words[columns]) == words[columns]).all(axis=1)
        for published_index in np.flatnonzero(is_included).tolist():
            set_matches[published_index, k] = (
                YES if matches(published[published_index], topics, protocol.separators) else MAYBE
            )
    return set_matches


def _match_texts(workload: twin.Work, protocol: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return (text_set, text_matches), two arrays of the `Workload`."""
    codes = twin.Numbering()
    text_set = np.full(len(workload.subscriptions), NONE, np.int32)
    for k, subscription in enumerate(workload.subscriptions):
        attributes = _attributes_of(workload, subscription)
        texts = tuple(
            attribute.value for attribute in attributes if attribute.key == TOPIC and attribute.operator == EQ
        )
        if texts:
            text_set[k] = codes[texts]
    text_matches = np.zeros((len(codes.numbers), len(workload.samples) if codes.numbers else 0), np.uint8)
    for k, sample in enumerate(workload.samples if codes.numbers else ()):
        attributes = _attributes_of(workload, sample)
        published_texts = [attribute.value for attribute in attributes if attribute.key == TOPIC]
        for row, subscribed in enumerate(codes.numbers):
            text_matches[row, k] = matches(published_texts, subscribed, protocol.separators)
    return text_set, text_matches
