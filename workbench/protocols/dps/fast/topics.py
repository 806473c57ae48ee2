"""A workload's topics for DPS's twin: filters, and what matches, worked out in Python before the run.

Publications and subscriptions are mapped to topics by `workbench.protocols.dps.mapping`, and each set of topics that
differs is hashed once. A table of a byte for each set that is published and each that is asked for says what a node
finds when it compares them. Attributes are compared during the run, but for TOPIC, whose wildcards are matched here.

Cost
    A byte for each pair of sets, up to `MOST_PAIRS`; a comparison of texts for each pair of which the filter says yes.
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

# What a subscription's node finds of a publication: its filter says no, no topic matches, or they do.
NO, MAYBE, YES = range(3)


class Workload(NamedTuple):
    """Topics are rows of sets. ``topic_first``, ``topic_places``, ``topic_words``: the words of what is published that
    are not 0, and where they are in a filter. ``asked``, ``asked_needs``: what subscriptions ask for (sets, words).
    ``met`` (published, asked). ``texts_of`` (subscriptions) are rows of ``text_met`` (texts, samples), NONE without a
    constraint on TOPIC.
    """

    topics_of: np.ndarray
    topic_first: np.ndarray
    topic_places: np.ndarray
    topic_words: np.ndarray
    asked_of: np.ndarray
    asked: np.ndarray
    asked_needs: np.ndarray
    met: np.ndarray
    texts_of: np.ndarray
    text_met: np.ndarray


def workload_of(setup: Setup) -> Workload:
    """All of it; NoFastTwinError if it is too large, the definition's own error for what is no topic."""
    protocol, _, work, _ = setup
    published, asked = twin.Numbering(), twin.Numbering()
    contents = zip(work.contents["first_sample"].tolist(), work.contents["last_sample"].tolist(), strict=True)
    bounds = work.samples["first"].tolist(), work.samples["last"].tolist()
    topics_of = [
        published[
            mapping.publication_topics(_attributes(work, bounds[0][first], bounds[1][last - 1]), protocol.separators)
        ]
        for first, last in contents
    ]
    asked_of = [
        asked[mapping.subscription_topics(_constraints(work, one), protocol.separators)] for one in work.subscriptions
    ]
    if len(published.numbers) * len(asked.numbers) > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"{len(published.numbers)} sets of topics and {len(asked.numbers)} that are asked for are more than "
            f"{MOST_PAIRS} pairs for it to keep in mind"
        )
    filters = _rows([publication_filter(one, protocol, protocol.wildcards) for one in published.numbers], protocol)
    vectors = [subscription_filter(one, protocol) for one in asked.numbers]
    wanted = _rows(vectors, protocol)
    needs = np.frombuffer(b"".join(one.fuzzy_hash() for one in vectors), np.uint64).reshape(-1, 4)
    rows, places = np.nonzero(filters)
    first = np.searchsorted(rows, np.arange(len(filters) + 1))
    texts_of, text_met = _texts(work, protocol)
    return Workload(
        np.array(topics_of, np.int32),
        first,
        places.astype(np.int32),
        filters[rows, places],
        np.array(asked_of, np.int32),
        wanted,
        needs,
        _met(filters, wanted, list(published.numbers), list(asked.numbers), protocol),
        texts_of,
        text_met,
    )


def _attributes(work: twin.Work, first: int, last: int) -> tuple[Attribute, ...]:
    """Rows of the workload's attributes as attributes again."""
    found = []
    for key, operator, number in work.attributes[first:last].tolist():
        found.append(Attribute(key, operator, work.blobs[number] if is_blob(key) else number))
    return tuple(found)


def _constraints(work: twin.Work, subscription: Any) -> tuple[Attribute, ...]:
    return _attributes(work, int(subscription["first"]), int(subscription["last"]))


def _rows(vectors: list[BitVector], protocol: Any) -> np.ndarray:
    data = b"".join(one.to_bytes() for one in vectors)
    return np.frombuffer(data, np.uint64).reshape(len(vectors), protocol.filter_bits // 64)


def _met(filters: np.ndarray, wanted: np.ndarray, published: list, asked: list, protocol: Any) -> np.ndarray:
    met = np.full((len(published), len(asked)), NO, np.uint8)
    is_filled = filters.any(axis=1)
    for k, (row, topics) in enumerate(zip(wanted, asked, strict=True)):
        used = np.flatnonzero(row)
        included = is_filled & ((filters[:, used] & row[used]) == row[used]).all(axis=1)
        for one in np.flatnonzero(included).tolist():
            met[one, k] = YES if matches(published[one], topics, protocol.separators) else MAYBE
    return met


def _texts(work: twin.Work, protocol: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which samples match the constraints on TOPIC of which subscriptions: ``texts_of``, ``text_met``."""
    codes = twin.Numbering()
    texts_of = np.full(len(work.subscriptions), NONE, np.int32)
    for k, subscription in enumerate(work.subscriptions):
        attributes = _constraints(work, subscription)
        texts = tuple(one.value for one in attributes if one.key == TOPIC and one.operator == EQ)
        if texts:
            texts_of[k] = codes[texts]
    met = np.zeros((len(codes.numbers), len(work.samples) if codes.numbers else 0), np.uint8)
    for k, sample in enumerate(work.samples if codes.numbers else ()):
        attributes = _constraints(work, sample)
        told = [one.value for one in attributes if one.key == TOPIC]
        for row, asked in enumerate(codes.numbers):
            met[row, k] = matches(told, asked, protocol.separators)
    return texts_of, met
