"""Topics, filters and routes as arrays: the same results as for single values."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.dps.bloom import BitVector, routes
from workbench.protocols.dps.bloom import arrays as bloom_arrays
from workbench.protocols.dps.bloom import kernels as bloom_kernels
from workbench.protocols.dps.bloom.arrays import Texts
from workbench.protocols.dps.topics import matches, publication_items, subscription_items

SEPARATORS = "/."
WORDS = st.sampled_from(("a", "b", "ab", "é", "x" * 30))
INNER = st.sampled_from(("", "a", "b", "+", "+"))
LENGTHS = st.sampled_from((64, 192, 256, 8192))
HASHES = st.integers(1, 8)


@st.composite
def topics(draw, inner, ends):
    """Draw a topic of one to five segments."""
    segments = [draw(ends.filter(lambda end: end != "#"))]
    if draw(st.booleans()):
        segments += draw(st.lists(inner, max_size=3)) + [draw(ends)]
    between = [draw(st.sampled_from(SEPARATORS)) for _ in segments[1:]]
    return "".join(a + b for a, b in zip(segments, [*between, ""], strict=True))


PUBLISHED = st.lists(topics(st.one_of(st.just(""), WORDS), WORDS), max_size=6)
SUBSCRIBED = st.lists(topics(st.one_of(INNER, WORDS), st.one_of(WORDS, st.sampled_from("+#"))), max_size=6)


def filters_of(vectors, length):
    return bloom_arrays.from_vectors(vectors) if vectors else np.zeros((0, length // 64), np.uint64)


@given(st.binary(max_size=300))
@settings(max_examples=50)
def test_digest_is_sha256(data):
    item = np.frombuffer(data + bytes(128), np.uint8).copy()
    state, w = np.empty(8, np.uint32), np.empty(64, np.uint32)
    bloom_kernels._digest(state, w, item, len(data))
    assert b"".join(int(word).to_bytes(4, "big") for word in state) == hashlib.sha256(data).digest()


@given(PUBLISHED, LENGTHS, HASHES, st.booleans())
def test_filters_of_publications_equal_the_single_ones(published, length, hashes, wildcards):
    rows = bloom_arrays.publication_filters(published, length, hashes, SEPARATORS, wildcards)
    singles = [BitVector.of(publication_items(topic, SEPARATORS, wildcards), length, hashes) for topic in published]
    assert bloom_arrays.to_vectors(rows) == singles


@given(SUBSCRIBED, LENGTHS, HASHES)
def test_filters_of_subscriptions_equal_the_single_ones(subscribed, length, hashes):
    rows = bloom_arrays.subscription_filters(subscribed, length, hashes, SEPARATORS)
    singles = [BitVector.of(subscription_items(topic, SEPARATORS), length, hashes) for topic in subscribed]
    assert bloom_arrays.to_vectors(rows) == singles


@given(PUBLISHED, SUBSCRIBED)
def test_matches_equal_those_of_single_pairs(published, subscribed):
    table = bloom_arrays.matches(published, subscribed, SEPARATORS)
    assert table.tolist() == [
        [matches(publication, subscription, SEPARATORS) for subscription in subscribed] for publication in published
    ]


@given(st.lists(st.binary(max_size=10), max_size=4), SUBSCRIBED)
def test_matches_of_any_bytes_equal_those_of_single_pairs(published, subscribed):
    table = bloom_arrays.matches(published, subscribed, SEPARATORS)
    assert table.tolist() == [
        [matches([publication], subscription, SEPARATORS) for subscription in subscribed] for publication in published
    ]


@given(LENGTHS, st.data())
def test_routes_and_inclusions_equal_those_of_single_pairs(length, data):
    some = st.sets(st.integers(0, length - 1), max_size=80).map(lambda bits: BitVector.at(bits, length))
    base = data.draw(some)
    dense = BitVector(length, data.draw(st.integers(0, 2**length - 1)))
    publications = [vector | base for vector in data.draw(st.lists(some, max_size=3))] + [BitVector(length), dense]
    links = [*data.draw(st.lists(some, max_size=3)), base, BitVector(length), dense]
    needs = [data.draw(st.sampled_from((link, base, BitVector(length)))).fuzzy_hash() for link in links]
    rows, link_rows = filters_of(publications, length), filters_of(links, length)
    needed = np.frombuffer(b"".join(needs), np.uint64).reshape(-1, 4)
    routed = bloom_arrays.routes(rows, link_rows, needed)
    assert routed.tolist() == [
        [routes(publication, link, need) for link, need in zip(links, needs, strict=True)]
        for publication in publications
    ]
    included = bloom_arrays.includes(rows, link_rows)
    assert included.tolist() == [[publication.includes(link) for link in links] for publication in publications]
    hashes = bloom_arrays.fuzzy_hashes(rows)
    assert [row.tobytes() for row in hashes] == [publication.fuzzy_hash() for publication in publications]
    assert bloom_arrays.to_vectors(rows) == publications


def test_all_vectors_of_matches_and_routes(dps_reference):
    for case in dps_reference["match"]:
        separators, wild = case["separators"], not case["no_wild"]
        if wild:
            table = bloom_arrays.matches(case["pub"], case["sub"], separators)
            assert table.any(axis=0).all() == case["string_match"], case
        for length in (64, 128, 256, 8192):
            of_each = bloom_arrays.publication_filters(case["pub"], length, 3, separators, wild)
            publication = np.bitwise_or.reduce(of_each)[None]
            of_each = bloom_arrays.subscription_filters(case["sub"], length, 3, separators)
            subscription = np.bitwise_or.reduce(of_each)[None]
            needs = bloom_arrays.fuzzy_hashes(subscription)
            assert bloom_arrays.includes(publication, subscription)[0, 0] == case[f"bloom_{length}"], case
            assert bloom_arrays.routes(publication, subscription, needs)[0, 0] == case[f"routed_{length}"], case


@given(SUBSCRIBED, st.text(alphabet="a/.+#", max_size=6), SUBSCRIBED)
def test_invalid_topic_raises_the_same_error_as_alone(before, topic, behind):
    for batch, single in (
        (bloom_arrays.subscription_filters, subscription_items),
        (bloom_arrays.publication_filters, publication_items),
    ):
        expected = None
        for text in (*before, topic, *behind):
            try:
                single(text.encode(), SEPARATORS)
            except AttributeFormatError as error:
                expected = str(error)
                break
        if expected is None:
            assert len(batch([*before, topic, *behind], separators=SEPARATORS)) == len(before) + 1 + len(behind)
        else:
            with pytest.raises(AttributeFormatError) as raised:
                batch([*before, topic, *behind], separators=SEPARATORS)
            assert str(raised.value) == expected


def test_longest_topic_is_accepted_and_one_byte_more_is_refused():
    topic = "/".join(["x" * 1023, "y" * 1024])
    rows = bloom_arrays.publication_filters([topic])
    assert bloom_arrays.to_vectors(rows) == [BitVector.of(publication_items(topic))]
    deep = "/".join("x" * 1024)
    assert bloom_arrays.to_vectors(bloom_arrays.publication_filters([deep])) == [BitVector.of(publication_items(deep))]
    with pytest.raises(AttributeFormatError, match="position 2048"):
        bloom_arrays.publication_filters([topic + "z"])


def test_texts_are_concatenated():
    texts = Texts.of(["a", b"", "é"])
    assert (len(texts), texts.text(0), texts.text(1), texts.text(2)) == (3, b"a", b"", "é".encode())
    assert bloom_arrays.matches(Texts.of(["a"]), Texts.of(["a"])).tolist() == [[True]]


def test_rows_of_different_lengths_are_refused():
    rows, longer_rows = np.zeros((1, 2), np.uint64), np.zeros((1, 4), np.uint64)
    for wrong in (
        lambda: bloom_arrays.includes(rows, longer_rows),
        lambda: bloom_arrays.routes(rows, longer_rows, np.zeros((1, 4), np.uint64)),
        lambda: bloom_arrays.routes(rows, rows, np.zeros((2, 4), np.uint64)),
        lambda: bloom_arrays.routes(rows, rows, np.zeros((1, 4), np.int64)),
        lambda: bloom_arrays.fuzzy_hashes(np.zeros(3, np.uint64)),
        lambda: bloom_arrays.from_vectors([]),
        lambda: bloom_arrays.from_vectors([BitVector(64), BitVector(128)]),
        lambda: bloom_arrays.publication_filters(["a"], 100),
        lambda: bloom_arrays.publication_filters(["a"], hashes=9),
        lambda: bloom_arrays.publication_filters(["a"], separators="+"),
    ):
        with pytest.raises(ParameterError):
            wrong()
