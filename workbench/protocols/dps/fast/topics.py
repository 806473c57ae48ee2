"""The topics of a workload for DPS's fast twin: their filters, and a table of matches, computed before the run.

Publications and subscriptions are mapped to topics by `workbench.protocols.dps.mapping`, and each different set of
topics is hashed once. A table contains a byte for each pair of a published and a subscribed set: the result when a node
compares them. Attributes are compared during the run, except for TOPIC, whose wildcards are matched here.

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

# Result of comparing a publication with a subscription: the filter excludes it, no topic matches, or the topics match.
NO, MAYBE, YES = range(3)


class Workload(NamedTuple):
    """The topics of a scenario's publications and subscriptions, as arrays. Equal sets of topics have one number.

    published_set     for each content of a publication, the number of its set of topics
    topic_first       published set s has the entries topic_first[s]:topic_first[s + 1] of the next two arrays
    topic_positions   position in the filter of each 64-bit word that is not 0
    topic_words       that word
    subscribed_set    for each subscription, the number of its set of topics
    subscribed        filter of each subscribed set (sets, words)
    subscribed_needs  fuzzy hash of each subscribed set (sets, words)
    set_matches       NO, MAYBE or YES for each pair (published, subscribed)
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
    """Compute the workload's topics. Raises NoFastTwinError if they are too many, AttributeFormatError if invalid."""
    protocol, _, work, _ = setup
    published, subscribed = twin.Numbering(), twin.Numbering()
    contents = zip(work.contents["first_sample"].tolist(), work.contents["last_sample"].tolist(), strict=True)
    bounds = work.samples["first"].tolist(), work.samples["last"].tolist()
    published_set = [
        published[
            mapping.publication_topics(_attributes(work, bounds[0][first], bounds[1][last - 1]), protocol.separators)
        ]
        for first, last in contents
    ]
    subscribed_set = [
        subscribed[mapping.subscription_topics(_constraints(work, subscription), protocol.separators)]
        for subscription in work.subscriptions
    ]
    if len(published.numbers) * len(subscribed.numbers) > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"{len(published.numbers)} published and {len(subscribed.numbers)} "
            "subscribed sets of topics make more than "
            f"{MOST_PAIRS} pairs, the limit of the fast engine"
        )
    filters = _rows(
        [publication_filter(topics, protocol, protocol.wildcards) for topics in published.numbers], protocol
    )
    vectors = [subscription_filter(topics, protocol) for topics in subscribed.numbers]
    wanted = _rows(vectors, protocol)
    needs = np.frombuffer(b"".join(vector.fuzzy_hash() for vector in vectors), np.uint64).reshape(-1, 4)
    rows, places = np.nonzero(filters)
    first = np.searchsorted(rows, np.arange(len(filters) + 1))
    text_set, text_matches = _match_texts(work, protocol)
    return Workload(
        np.array(published_set, np.int32),
        first,
        places.astype(np.int32),
        filters[rows, places],
        np.array(subscribed_set, np.int32),
        wanted,
        needs,
        _match_sets(filters, wanted, list(published.numbers), list(subscribed.numbers), protocol),
        text_set,
        text_matches,
    )


def _attributes(work: twin.Work, first: int, last: int) -> tuple[Attribute, ...]:
    """Return rows of the workload's attributes as `Attribute` objects."""
    attributes = []
    for key, operator, number in work.attributes[first:last].tolist():
        attributes.append(Attribute(key, operator, work.blobs[number] if is_blob(key) else number))
    return tuple(attributes)


def _constraints(work: twin.Work, subscription: Any) -> tuple[Attribute, ...]:
    return _attributes(work, int(subscription["first"]), int(subscription["last"]))


def _rows(vectors: list[BitVector], protocol: Any) -> np.ndarray:
    data = b"".join(vector.to_bytes() for vector in vectors)
    return np.frombuffer(data, np.uint64).reshape(len(vectors), protocol.filter_bits // 64)


def _match_sets(
    filters: np.ndarray, wanted: np.ndarray, published: list, subscribed: list, protocol: Any
) -> np.ndarray:
    set_matches = np.full((len(published), len(subscribed)), NO, np.uint8)
    is_filled = filters.any(axis=1)
    for k, (words, topics) in enumerate(zip(wanted, subscribed, strict=True)):
        used = np.flatnonzero(words)
        included = is_filled & ((filters[:, used] & words[used]) == words[used]).all(axis=1)
        for row in np.flatnonzero(included).tolist():
            set_matches[row, k] = YES if matches(published[row], topics, protocol.separators) else MAYBE
    return set_matches


def _match_texts(work: twin.Work, protocol: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return ``text_set`` and ``text_matches`` of the `Workload`."""
    codes = twin.Numbering()
    text_set = np.full(len(work.subscriptions), NONE, np.int32)
    for k, subscription in enumerate(work.subscriptions):
        attributes = _constraints(work, subscription)
        texts = tuple(
            attribute.value for attribute in attributes if attribute.key == TOPIC and attribute.operator == EQ
        )
        if texts:
            text_set[k] = codes[texts]
    set_matches = np.zeros((len(codes.numbers), len(work.samples) if codes.numbers else 0), np.uint8)
    for k, sample in enumerate(work.samples if codes.numbers else ()):
        attributes = _constraints(work, sample)
        published_texts = [attribute.value for attribute in attributes if attribute.key == TOPIC]
        for row, subscribed in enumerate(codes.numbers):
            set_matches[row, k] = matches(published_texts, subscribed, protocol.separators)
    return text_set, set_matches
