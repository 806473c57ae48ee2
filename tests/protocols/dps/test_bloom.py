"""Bit vectors: positions, fuzzy hash, encoding, set operations, and vectors that count."""

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.dps.bloom import LONGEST, BitVector, CountingVector, positions_of, routes
from workbench.protocols.dps.topics import publication_items, subscription_items

LENGTHS = st.sampled_from((64, 128, 192, 256, 8192))


@st.composite
def vectors(draw, lengths=LENGTHS):
    """Draw a vector, empty to full; sparse vectors are as frequent as dense ones."""
    length = draw(lengths)
    bits = draw(st.integers(0, 2**length - 1))
    for _ in range(draw(st.integers(0, 4))):
        bits &= draw(st.integers(0, 2**length - 1))
    return BitVector(length, bits ^ (2**length - 1) if draw(st.booleans()) else bits)


def several(count):
    """Draw `count` vectors of the same length."""
    return LENGTHS.flatmap(lambda length: st.lists(vectors(st.just(length)), min_size=count, max_size=count))


def filter_of(topic, length=8192):
    return BitVector.of(publication_items(topic), length)


# Facts of the C implementation


@pytest.mark.parametrize(
    ("item", "length", "hashes", "bits"),
    [
        ("a", 8192, 3, [762, 6090, 7114]),
        ("a", 64, 8, [10, 20, 26, 39, 47, 57, 58]),
        ("a/b/c", 8192, 3, [2775, 2854, 7270]),
        (b"a/b/c", 128, 3, [38, 87, 102]),
    ],
)
def test_item_sets_the_bits_of_its_digest(item, length, hashes, bits):
    vector = BitVector(length)
    vector.add(item, hashes)
    assert vector.positions() == bits


@pytest.mark.parametrize(
    ("positions", "length", "encoded"),
    [
        ([], 8192, "830119200040"),
        (range(8192), 8192, "830319200040"),
        (range(64), 64, "8303184040"),
        ([0], 8192, "83011920004101"),
        ([1], 8192, "83011920004102"),
        ([4095], 8192, "83011920004400100000"),
        ([2775, 2854, 7270], 8192, "83011920004800882de003008102"),
        (range(0, 64, 2), 64, "83001840485555555555555555"),
    ],
)
def test_vector_is_encoded_like_the_reference(positions, length, encoded):
    vector = BitVector.at(positions, length)
    assert vector.encode().hex() == encoded
    assert BitVector.decode(bytes.fromhex(encoded)) == vector


def test_run_lengths_that_would_overflow_are_replaced_by_bytes():
    vector = BitVector.at(range(0, 8192, 4))  # 25 %: the reference fails here
    assert vector.encode() == cbor2.dumps([0, 8192, vector.to_bytes()])


@pytest.mark.parametrize(
    ("positions", "length", "fuzzy_hash"),
    [
        ([], 8192, "00" * 32),
        ([0], 128, "8100008040000000052800202001010081220a44110242140100000000000000"),
        ([2904, 2949, 7716], 8192, "2814008110088040a31315057ca42220367374c53b6ae6d90700000000000000"),
        ([5, 24, 36], 64, "2814008110088040a31315057ca42220367374c53b6ae6d90700000000000000"),
        (range(62), 64, "ff" * 31 + "3f"),
        (range(63), 64, "ff" * 32),
    ],
)
def test_fuzzy_hash_smears_the_folded_vector_and_stores_its_number_of_bits(positions, length, fuzzy_hash):
    assert BitVector.at(positions, length).fuzzy_hash().hex() == fuzzy_hash


def test_captured_needs_are_the_fuzzy_hash_of_the_filter():
    needs = "20108040402040208848c00254011a9051a58a5055a5aa0a0700000000000000"
    assert BitVector.of(subscription_items("a/b/c")).fuzzy_hash().hex() == needs


def test_interests_are_the_union_and_needs_the_intersection():
    topics = ("a/b/c", "a/#", "x/y")
    filters = [BitVector.of(subscription_items(topic), 256) for topic in topics]
    interests, needs = CountingVector(256), CountingVector(256)
    for vector in filters:
        interests.add(vector)
        needs.add(BitVector.from_bytes(vector.fuzzy_hash()))
    assert interests.union() == filters[0] | filters[1] | filters[2]
    common = "0000000000000000000080000000188050048000000108080700000000000000"
    assert needs.intersection().to_bytes().hex() == common


def test_all_vectors_of_items(dps_reference):
    for case in dps_reference["bloom_hash"]:
        vector = BitVector(case["len"])
        vector.add(case["item"], case["num_hashes"])
        assert vector.positions() == case["bits"], case


def test_all_vectors_of_the_encoding(dps_reference):
    for case in dps_reference["serialization"]:
        vector = BitVector.from_bytes(bytes.fromhex(case["raw"]))
        assert (vector.length, vector.popcount) == (case["len"], case["popcount"])
        encoded = vector.encode()
        # We encode the bytes of vectors that the reference cannot encode (status 9).
        expected = case["serialized"] if case["status"] == 0 else cbor2.dumps([0, case["len"], vector.to_bytes()]).hex()
        assert encoded.hex() == expected, case["name"]
        assert BitVector.decode(encoded) == vector


def test_all_vectors_of_run_lengths(dps_reference):
    for case in dps_reference["rle_runs"]:
        vector = BitVector.at([case["zeros_before_bit"]], case["len"])
        assert vector.encode().hex() == case["serialized"]
        assert BitVector.decode(vector.encode()) == vector


def test_all_vectors_of_fuzzy_hashes(dps_reference):
    for case in dps_reference["fuzzy_hash"]:
        vector = BitVector.at(range(case["len"]) if case["bits"] == "all" else case["bits"], case["len"])
        assert vector.fuzzy_hash().hex() == case["fuzzy_hash"], case
        assert cbor2.dumps(vector.fuzzy_hash()).hex() == case["serialized"]


def test_all_vectors_of_interests_and_needs(dps_reference):
    for case in dps_reference["interests_needs"]:
        interests, needs = CountingVector(case["len"]), CountingVector(256)
        for topics in case["subscriptions"]:
            items = [item for topic in topics for item in subscription_items(topic, case["separators"])]
            vector = BitVector.of(items, case["len"])
            interests.add(vector)
            needs.add(BitVector.from_bytes(vector.fuzzy_hash()))
        assert interests.union().positions() == case["interests_bits"]
        assert interests.union().encode().hex() == case["interests_serialized"]
        assert needs.intersection().to_bytes().hex() == case["needs"]


# Properties


@given(vectors())
def test_encoding_reads_back(vector):
    encoded = vector.encode()
    assert BitVector.decode(encoded) == vector
    assert BitVector.decode(encoded, vector.length) == vector
    flags, length, data = cbor2.loads(encoded)
    assert length == vector.length
    assert len(data) <= length // 8
    assert flags in (0, 1, 3)


@given(vectors())
def test_positions_are_the_bits_that_are_set(vector):
    assert BitVector.at(vector.positions(), vector.length) == vector
    assert vector.positions() == [at for at in range(vector.length) if vector.bits >> at & 1]
    assert vector.popcount == len(vector.positions())
    assert vector.fill == vector.popcount / vector.length


@given(several(2))
def test_fuzzy_hash_keeps_inclusion(pair):
    a, b = pair
    both = a | b
    small, large = (int.from_bytes(vector.fuzzy_hash(), "little") for vector in (a, both))
    assert not small & ~large


@given(vectors())
def test_fuzzy_hash_equals_that_computed_word_by_word(vector):
    words = [int.from_bytes(vector.to_bytes()[at : at + 8], "little") for at in range(0, vector.length // 8, 8)]
    folded = 0
    for word in words:
        folded |= word

    def smeared(rotations):
        x = folded
        for shift in rotations:
            x |= (x << shift | x >> (64 - shift)) % 2**64
        return x

    p = vector.popcount
    expected = [smeared((7, 31)), smeared((11, 29, 37)), smeared((13, 17, 19, 41)), 2 ** min(p, 62) - 1]
    if p >= 63:
        expected[3] = 2**64 - 1
    assert vector.fuzzy_hash() == b"".join(word.to_bytes(8, "little") for word in expected)


@given(several(3))
def test_set_operations_equal_those_of_the_positions(trio):
    a, b, c = trio
    sets = [set(vector.positions()) for vector in (a, b, c)]
    assert set((a | b).positions()) == sets[0] | sets[1]
    assert set((a & b).positions()) == sets[0] & sets[1]
    assert set((a ^ b).positions()) == sets[0] ^ sets[1]
    assert a.includes(b) == (bool(sets[0]) and sets[1] <= sets[0])
    assert (a == c) == (sets[0] == sets[2])


@given(several(6), st.lists(st.integers(0, 5), max_size=40))
def test_counting_vector_counts(pool, steps):
    counting = CountingVector(pool[0].length)
    members = []
    for step in steps:
        if step in members and steps.count(step) % 2:
            members.remove(step)
            counting.remove(pool[step])
        else:
            members.append(step)
            counting.add(pool[step])
    union, every = 0, 2 ** pool[0].length - 1 if members else 0
    for step in members:
        union |= pool[step].bits
        every &= pool[step].bits
    assert counting.entries == len(members)
    assert counting.union().bits == union
    assert counting.intersection().bits == every
    assert counting.count(7) == sum(pool[step].bits >> 7 & 1 for step in members)
    for step in members:
        rest = counting.without(pool[step])
        assert rest.entries == len(members) - 1
        rest.add(pool[step])
        assert (rest.union(), rest.intersection()) == (counting.union(), counting.intersection())


def test_removing_what_was_never_added_changes_nothing():
    counting = CountingVector(64)
    counting.add(BitVector(64, 6))
    with pytest.raises(ParameterError, match="remove only vectors that were added"):
        counting.remove(BitVector(64, 1))
    assert (counting.entries, counting.union().bits) == (1, 6)
    counting.remove(BitVector(64, 6))
    with pytest.raises(ParameterError):
        counting.remove(BitVector(64))
    assert counting.entries == 0


def test_publication_is_routed_for_one_of_many_subscriptions():
    filters = [BitVector.of(subscription_items(topic)) for topic in ("a/+/c", "x/y/z", "news/#")]
    interests, needs = CountingVector(), CountingVector(256)
    for vector in filters:
        interests.add(vector)
        needs.add(BitVector.from_bytes(vector.fuzzy_hash()))
    common = needs.intersection().to_bytes()
    assert routes(filter_of("a/b/c"), interests.union(), common)
    assert not filter_of("a/b/c").includes(interests.union())
    assert not routes(filter_of("q/r"), filters[0], filters[0].fuzzy_hash())


def test_publications_without_common_bits_are_not_routed():
    assert not routes(filter_of("a"), BitVector(), bytes(32))
    assert not routes(BitVector(), filter_of("a"), bytes(32))


def test_copy_is_independent():
    vector = BitVector.at([1], 64)
    copy = vector.copy()
    copy.add("a")
    assert vector.positions() == [1]
    assert BitVector(64).is_empty
    assert not vector.is_empty


# Bad input


@pytest.mark.parametrize("length", [0, -64, 63, 65, LONGEST + 64, 64.0, "64"])
def test_length_is_a_multiple_of_64(length):
    with pytest.raises(ParameterError, match="multiple of 64"):
        BitVector(length)


@pytest.mark.parametrize("hashes", [0, 9, -1, 2.0])
def test_hashes_are_1_to_8(hashes):
    with pytest.raises(ParameterError, match="1 to 8"):
        BitVector().add("a", hashes)


def test_vectors_of_different_lengths_cannot_be_combined():
    for mixed in (BitVector.__or__, BitVector.__and__, BitVector.__xor__, BitVector.includes):
        with pytest.raises(ParameterError, match="64 and 128 bits"):
            mixed(BitVector(64), BitVector(128))
    assert BitVector(64) != BitVector(128)
    with pytest.raises(ParameterError, match="128 bits"):
        CountingVector(64).add(BitVector(128))


def test_bit_outside_of_the_vector_is_refused():
    with pytest.raises(ParameterError, match="bit 64 is outside"):
        BitVector.at([64], 64)
    with pytest.raises(ParameterError, match="bit 64 is outside"):
        BitVector(64, 1 << 64)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ([1, 8192], "has 2 items"),
        ([1, 8192, b"", 0], "has 4 items"),
        ([4, 8192, b""], "flags"),
        ([1, 100, b""], "multiple of 64"),
        ([1, 0, b""], "multiple of 64"),
        ([3, 2**40, b""], "length"),
        ([0, 64, bytes(7)], "7 bytes"),
        ([0, 64, bytes(9)], "9 bytes"),
        ([1, 64, b"\x00" * 16 + b"\x80"], "end within a code"),
        ([1, 64, b"\xff" * 9], "exceed its 64 bits"),
        ([1, 64, b"\x80\xff\x7f"], "exceed its 64 bits"),
        ([1, 64, "text"], "must be a byte string"),
        ([1, -64, b""], "must be an unsigned integer"),
    ],
)
def test_bad_vector_is_a_decode_error(item, reason):
    with pytest.raises(DecodeError, match=reason):
        BitVector.decode(cbor2.dumps(item))


def test_vector_of_another_length_is_refused_before_it_is_unpacked():
    with pytest.raises(DecodeError, match="this mesh uses 128"):
        BitVector.decode(BitVector(64).encode(), 128)


def test_bytes_after_a_vector_are_refused():
    with pytest.raises(DecodeError, match="1 bytes too many"):
        BitVector.decode(BitVector(64).encode() + b"\x00")


def test_vector_with_complement_of_bytes_is_read():
    assert BitVector.decode(cbor2.dumps([2, 64, bytes(8)])).popcount == 64


@given(st.binary(max_size=40), st.sampled_from((64, 8192)))
def test_any_run_lengths_are_read_or_refused(data, length):
    try:
        vector = BitVector.decode(cbor2.dumps([1, length, data]))
    except DecodeError:
        return
    assert vector.bits >> length == 0
    assert BitVector.decode(vector.encode()) == vector


def test_positions_of_an_empty_vector_are_empty():
    assert positions_of(0) == []
