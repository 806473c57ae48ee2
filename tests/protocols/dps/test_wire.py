"""DPS's messages: byte for byte those of the C implementation, and decoded as strictly."""

import contextlib
import itertools

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DecodeError, EncodeError
from workbench.protocols.dps import wire as dps
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.topics import publication_items
from workbench.protocols.dps.wire import coap

# Frames sent by nodes of the C implementation.
SUBSCRIBED = bytes.fromhex(
    "850102a601199c42040107020850b11e8df37cce43026388d39ad0850b99095820000000000000000000000000000000000000000000000000"
    "00000000000000000a830119200040a0a0"
)
ANSWERED = bytes.fromhex(
    "850104a701199c41040107030850d82a4f026ed2790eb68ba71cb2d854a209582020108040402040208848c00254011a9051a58a5055a5aa0a"
    "07000000000000000a83011920004800882de0030081020d01a0a0"
)
UNLINKED = bytes.fromhex("850102a401199c42040207060850b11e8df37cce43026388d39ad0850b99a0a0")
PUBLISHED = bytes.fromhex(
    "850101a301199c4202000f00a50200035081c9861e289203008c9f2c2f305dc134040105f50683011920005832004b00e9003700f3003c0340"
    "024000f880126c508020c044004b2201b409e807ec01440310005005ec0074079e009b801b34a20b8165612f622f630c4668656c6c6f00"
)
ACKNOWLEDGED = bytes.fromhex(
    "850103a0a2035081c9861e289203008c9f2c2f305dc1340d01a10c58235468697320697320616e2041434b2066726f6d203132372e302e302e"
    "313a3430303031"
)
FRAMES = {
    "subscription": SUBSCRIBED,
    "subscription ack": ANSWERED,
    "unlink": UNLINKED,
    "publication": PUBLISHED,
    "acknowledgement": ACKNOWLEDGED,
}
IDENTITY = bytes.fromhex("81c9861e289203008c9f2c2f305dc134")
MESH = bytes.fromhex("b11e8df37cce43026388d39ad0850b99")

U16, U32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)
IDS = st.binary(min_size=16, max_size=16)
VECTORS = st.lists(st.integers(0, 8191), max_size=40).map(BitVector.at)
PORT_OR_PATH = st.one_of(st.tuples(U16, st.none()), st.tuples(st.none(), st.text(max_size=20)))
TTLS = st.integers(-(2**15), 2**15 - 1)
PUBLICATIONS = st.builds(
    lambda place, *rest: dps.Publication(*place, *rest),
    PORT_OR_PATH,
    TTLS,
    U16,
    TTLS,
    IDS,
    st.integers(1, 2**32 - 1),
    st.booleans(),
    VECTORS,
    st.lists(st.text(max_size=20), max_size=4).map(tuple),
    st.binary(max_size=50),
)
ACKNOWLEDGEMENTS = st.builds(
    lambda *fields: dps.Acknowledgement(*fields), IDS, st.integers(1, 2**32 - 1), st.binary(max_size=50)
)
INTERESTS = st.tuples(st.binary(min_size=32, max_size=32), VECTORS)
SUBSCRIPTIONS = st.builds(
    lambda place, sequence, flags, mesh_id, interests: dps.Subscription(*place, sequence, flags, mesh_id, *interests),
    PORT_OR_PATH,
    U32,
    st.integers(0, 255).map(lambda flags: flags | dps.SAK_REQUESTED),
    IDS,
    INTERESTS,
)
ANSWERS = st.builds(
    lambda place, sequence, flags, mesh_id, interests, acknowledged: dps.SubscriptionAcknowledgement(
        *place, sequence, flags, mesh_id, *interests, acknowledged
    ),
    PORT_OR_PATH,
    U32,
    st.integers(0, 255).map(lambda flags: flags & ~dps.SAK_REQUESTED),
    IDS,
    st.one_of(INTERESTS, st.just((None, None))),
    U32,
)
MESSAGES = st.one_of(PUBLICATIONS, ACKNOWLEDGEMENTS, SUBSCRIPTIONS, ANSWERS)


def plain(message):
    """Return the message without its received bytes."""
    return message._replace(protected=b"", body=b"") if hasattr(message, "protected") else message


def changed(frame, index, change):
    """Return the frame with one of its five items changed by a function."""
    items = cbor2.loads(frame)
    items[index] = change(items[index])
    return cbor2.dumps(items)


def without(key):
    return lambda fields: {k: value for k, value in fields.items() if k != key}


def with_field(key, value):
    return lambda fields: dict(sorted((fields | {key: value}).items()))


# Messages of the C implementation


def test_subscription_is_read():
    expected = dps.Subscription(40002, None, 1, dps.SAK_REQUESTED, MESH, bytes(32), BitVector())
    assert dps.decode(SUBSCRIBED) == expected
    assert dps.encode(expected) == SUBSCRIBED


def test_answer_with_interests_is_read():
    message = dps.decode(ANSWERED)
    assert (message.port, message.sequence, message.acknowledged) == (40001, 1, 1)
    assert message.flags == dps.DELTA | dps.SAK_REQUESTED
    assert message.interests.positions() == [2775, 2854, 7270]
    assert message.needs == message.interests.fuzzy_hash()
    assert dps.encode(message) == ANSWERED


def test_unlink_has_no_interests():
    expected = dps.Subscription(40002, None, 2, dps.UNLINK | dps.SAK_REQUESTED, MESH, None, None)
    assert dps.decode(UNLINKED) == expected
    assert dps.encode(expected) == UNLINKED


def test_publication_is_decoded_and_encoded_again():
    vector = BitVector.of(publication_items("a/b/c"))
    ours = dps.Publication(40002, None, 0, 0, 0, IDENTITY, 1, True, vector, ("a/b/c",), b"hello\x00")
    message = dps.decode(PUBLISHED)
    assert plain(message) == ours
    assert dps.encode(ours) == dps.encode(message) == PUBLISHED


def test_acknowledgement_is_decoded_and_encoded_again():
    ours = dps.Acknowledgement(IDENTITY, 1, b"This is an ACK from 127.0.0.1:40001")
    assert plain(dps.decode(ACKNOWLEDGED)) == ours
    assert dps.encode(ours) == ACKNOWLEDGED


def test_all_captured_messages_decode_and_encode_to_the_same_bytes(dps_captured):
    names = {"pub": "publication", "sub": "subscription", "sak": "subscription ack", "ack": "acknowledgement"}
    for captured in dps_captured["messages"]:
        datagram = bytes.fromhex(captured["hex"])
        envelope = captured["decoded"].get("coap_envelope")
        frame = coap.unwrap(datagram) if envelope else datagram
        message = dps.decode(frame, filter_bits=8192)
        assert dps.encode(message) == frame, captured["name"]
        if getattr(message, "data", b"") is not None:
            assert dps.encode(plain(message)) == frame, captured["name"]
        assert dps.describe(frame)[0] == names[captured["decoded"]["type_name"]]
        if envelope:
            assert coap.wrap(frame, 1) == datagram


def test_captured_forwarding_equals_ours(dps_captured):
    messages_by_id = {}
    for captured in dps_captured["messages"]:
        if captured["decoded"]["type_name"] == "pub" and "coap_envelope" not in captured["decoded"]:
            message = dps.decode(bytes.fromhex(captured["hex"]))
            messages_by_id.setdefault((message.publication_id, message.sequence), []).append(message)
    chains = [messages for messages in messages_by_id.values() if len({message.hops for message in messages}) > 1]
    assert chains
    for messages in chains:
        for previous, next_one in itertools.pairwise(messages):
            if next_one.hops == previous.hops + 1:
                ours = dps.with_next_hop(previous, next_one.port, next_one.ttl_s)
                assert dps.encode(ours) == dps.encode(next_one)


# Properties


@given(MESSAGES)
def test_message_reads_back(message):
    frame = dps.encode(message)
    assert plain(dps.decode(frame)) == message
    assert dps.encode(dps.decode(frame)) == frame
    # Only shortest integers, definite lengths and ascending keys, as cbor2 writes them.
    assert cbor2.dumps(cbor2.loads(frame)) == frame


@given(MESSAGES, st.binary(max_size=8))
def test_bytes_after_a_message_are_ignored(message, behind):
    assert plain(dps.decode(dps.encode(message) + behind)) == message


@given(MESSAGES, st.data())
def test_truncated_message_is_a_decode_error(message, data):
    frame = dps.encode(message)
    with pytest.raises(DecodeError):
        dps.decode(frame[: data.draw(st.integers(0, len(frame) - 1))])


@given(st.sampled_from(sorted(FRAMES)), st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=4)), max_size=4))
def test_mutated_message_is_read_or_refused(name, edits):
    frame = FRAMES[name]
    for at, data in edits:
        frame = frame[:at] + data + frame[at + len(data) :] if len(data) % 2 else frame[:at] + data + frame[at + 1 :]
    try:
        message = dps.decode(frame)
    except DecodeError:
        return
    assert plain(dps.decode(dps.encode(plain(message)))) == plain(message) or message.data is None


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(data):
    for frame in (data, b"\x85\x01" + data):
        with contextlib.suppress(DecodeError):
            dps.decode(frame)
    with contextlib.suppress(DecodeError):
        coap.unwrap(data)


@given(PUBLICATIONS, U16, TTLS)
def test_forwarded_publication_is_the_same_inside(publication, port, ttl_s):
    received = dps.decode(dps.encode(publication._replace(hops=publication.hops % 2**15)))
    ours = dps.decode(dps.encode(dps.with_next_hop(received, port, ttl_s)))
    assert (ours.port, ours.path, ours.ttl_s, ours.hops) == (port, None, ttl_s, received.hops + 1)
    assert (ours.protected, ours.body) == (received.protected, received.body)


@given(
    st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), st.binary(min_size=8, max_size=8), st.integers(1, 2**32 - 1)
)
def test_trace_gets_the_origin_from_the_publication_id(address, series, draw, number):
    identity = dps.make_publication_id(address, series, draw)
    assert dps.origin_of(identity) == (address, series)
    publication = dps.decode(PUBLISHED)._replace(publication_id=identity, sequence=number, protected=b"")
    expected = (address, series << 32 | number)
    assert dps.describe(dps.encode(publication)) == ("publication", *expected)
    acknowledgement = dps.Acknowledgement(identity, number, b"")
    assert dps.describe(dps.encode(acknowledgement)) == ("acknowledgement", *expected)


@pytest.mark.parametrize(("name", "sequence"), [("subscription", 1), ("subscription ack", 1), ("unlink", 2)])
def test_trace_gets_the_revision_of_a_subscription(name, sequence):
    message = "subscription" if name == "unlink" else name
    assert dps.describe(FRAMES[name]) == (message, dps.NOBODY, sequence)


# Strict as the C implementation


@pytest.mark.parametrize("name", sorted(FRAMES))
def test_four_or_six_items_are_refused(name):
    items = cbor2.loads(FRAMES[name])
    for wrong in (items[:4], [*items, {}]):
        with pytest.raises(DecodeError, match="must have 5"):
            dps.decode(cbor2.dumps(wrong))


@pytest.mark.parametrize(("index", "value"), [(0, 0), (0, 2), (1, 0), (1, 5)])
def test_other_versions_and_types_are_refused(index, value):
    with pytest.raises(DecodeError, match="version|type"):
        dps.decode(changed(SUBSCRIBED, index, lambda _: value))


@pytest.mark.parametrize(
    ("name", "index", "key"),
    [
        *[("subscription", 2, key) for key in (1, 4, 7, 8, 9, 10)],
        *[("subscription ack", 2, key) for key in (1, 4, 7, 8, 9, 10)],
        *[("unlink", 2, key) for key in (1, 4, 7, 8)],
        *[("publication", 2, key) for key in (1, 2, 15)],
        *[("publication", 3, key) for key in (2, 3, 4, 5, 6)],
        *[("publication", 4, key) for key in (11, 12)],
        *[("acknowledgement", 3, key) for key in (3, 13)],
        *[("acknowledgement", 4, key) for key in (12,)],
    ],
)
def test_missing_field_is_refused(name, index, key):
    with pytest.raises(DecodeError, match="lacks|only one|neither|port or a path"):
        dps.decode(changed(FRAMES[name], index, without(key)))


@pytest.mark.parametrize(
    ("name", "index", "key", "value"),
    [
        ("subscription", 2, 1, 65536),
        ("subscription", 2, 4, 2**32),
        ("subscription", 2, 7, 256),
        ("subscription", 2, 7, 0),  # it must request an answer
        ("subscription", 2, 8, bytes(15)),
        ("subscription", 2, 9, bytes(31)),
        ("subscription", 2, 9, bytes(33)),
        ("subscription", 2, 10, b""),
        ("subscription", 2, 14, "a path and a port"),
        ("publication", 2, 2, 32768),
        ("publication", 2, 2, -32769),
        ("publication", 2, 15, 65536),
        ("publication", 2, 15, -1),
        ("publication", 3, 3, bytes(17)),
        ("publication", 3, 4, 0),
        ("publication", 3, 5, 1),
        ("publication", 3, 6, [1, 100, b""]),
        ("publication", 4, 11, "a"),
        ("publication", 4, 11, [b"a"]),
        ("publication", 4, 12, "a"),
        ("acknowledgement", 3, 13, 0),
        ("acknowledgement", 4, 12, None),
    ],
)
def test_field_out_of_range_is_refused(name, index, key, value):
    with pytest.raises(DecodeError):
        dps.decode(changed(FRAMES[name], index, with_field(key, value)))


@pytest.mark.parametrize(
    ("name", "index"),
    [("subscription", 2), ("subscription ack", 2), ("publication", 2), ("publication", 3), ("publication", 4)],
)
def test_keys_that_do_not_ascend_are_refused(name, index):
    with pytest.raises(DecodeError, match="must ascend"):
        dps.decode(changed(FRAMES[name], index, lambda fields: dict(reversed(fields.items()))))


def test_repeated_key_is_refused():
    frame = UNLINKED.replace(bytes.fromhex("a401199c42"), bytes.fromhex("a501199c4201199c42"))
    assert frame != UNLINKED
    with pytest.raises(DecodeError, match="key 1 follows key 1"):
        dps.decode(frame)


@pytest.mark.parametrize(
    ("name", "index"),
    [(name, index) for name in FRAMES for index in (2, 3, 4) if cbor2.loads(FRAMES[name])[index]],
)
@pytest.mark.parametrize("key", [-1, 0, 3000])
def test_unknown_key_is_skipped(name, index, key):
    frame = changed(FRAMES[name], index, with_field(key, {1: [b"", "x", None, 1.5]}))
    assert plain(dps.decode(frame)) == plain(dps.decode(FRAMES[name]))


def test_content_of_a_map_that_should_be_empty_is_skipped():
    assert dps.decode(changed(SUBSCRIBED, 3, lambda _: {1: 2})) == dps.decode(SUBSCRIBED)
    assert plain(dps.decode(changed(ACKNOWLEDGED, 2, lambda _: {1: 2}))) == plain(dps.decode(ACKNOWLEDGED))
    with pytest.raises(DecodeError, match="must be a map"):
        dps.decode(changed(SUBSCRIBED, 3, lambda _: []))


def test_indefinite_lengths_are_refused():
    frame = UNLINKED.replace(b"\xa4\x01\x19", b"\xbf\x01\x19")[:-2] + b"\xff\xa0\xa0"
    with pytest.raises(DecodeError, match="indefinite"):
        dps.decode(frame)
    with pytest.raises(DecodeError, match="indefinite"):
        dps.decode(b"\x9f" + SUBSCRIBED[1:] + b"\xff")


def test_longer_encodings_of_integers_are_decoded():
    frame = b"\x85\x18\x01\x19\x00\x02" + UNLINKED[3:].replace(b"\x04\x02\x07", b"\x04\x1a\x00\x00\x00\x02\x07")
    assert dps.decode(frame) == dps.decode(UNLINKED)


def test_answer_without_acknowledged_number_has_0():
    frame = changed(ANSWERED, 2, without(13))
    assert dps.decode(frame).acknowledged == 0


def test_publication_may_have_port_and_path():
    frame = changed(PUBLISHED, 2, with_field(14, "/tmp/socket"))
    assert dps.decode(frame).port == 40002


def test_filter_of_another_mesh_is_refused():
    assert dps.decode(PUBLISHED, 8192).filter.length == 8192
    for frame in (PUBLISHED, SUBSCRIBED):
        with pytest.raises(DecodeError, match="this mesh uses 128"):
            dps.decode(frame, 128)


@pytest.mark.parametrize("tag", [16, 18, 96])
def test_encrypted_items_are_stored_unchanged(tag):
    secured = cbor2.CBORTag(tag, [b"\xa1\x01\x03", {5: bytes(12)}, b"secret"])
    for frame in (PUBLISHED, ACKNOWLEDGED):
        message = dps.decode(changed(frame, 4, lambda _: secured))
        assert message.data is None
        assert message.body == cbor2.dumps(secured)
        assert dps.encode(message) == changed(frame, 4, lambda _: secured)


def test_tag_other_than_those_of_cose_is_refused():
    with pytest.raises(DecodeError, match="tag 99"):
        dps.decode(changed(PUBLISHED, 4, lambda _: cbor2.CBORTag(99, {})))


def test_topic_that_is_not_utf8_keeps_its_bytes():
    frame = PUBLISHED.replace(b"\x65a/b/c", b"\x65a/\xff/c")
    message = dps.decode(frame)
    assert message.topics == ("a/\udcff/c",)
    assert dps.encode(plain(message)) == frame


# Messages that cannot be encoded


@pytest.mark.parametrize(
    "message",
    [
        dps.decode(SUBSCRIBED)._replace(port=65536),
        dps.decode(SUBSCRIBED)._replace(port=None),
        dps.decode(SUBSCRIBED)._replace(path="both"),
        dps.decode(SUBSCRIBED)._replace(sequence=-1),
        dps.decode(SUBSCRIBED)._replace(flags=256),
        dps.decode(SUBSCRIBED)._replace(mesh_id=b""),
        dps.decode(SUBSCRIBED)._replace(needs=None),
        dps.decode(SUBSCRIBED)._replace(needs=bytes(31)),
        dps.decode(PUBLISHED)._replace(ttl_s=40000),
        dps.decode(PUBLISHED)._replace(ttl_s=1.5),
        dps.decode(PUBLISHED)._replace(hops=65536),
        dps.decode(PUBLISHED)._replace(publication_id=bytes(15), protected=b""),
        dps.decode(PUBLISHED)._replace(data="text", body=b""),
        dps.decode(PUBLISHED)._replace(topics=("\ud800",), body=b""),
        dps.decode(ACKNOWLEDGED)._replace(acknowledged=2**32, protected=b""),
        (1, 2, 3),
    ],
)
def test_message_out_of_range_is_an_encode_error(message):
    with pytest.raises(EncodeError):
        dps.encode(message)


def test_publication_id_stores_31_bits_of_node_and_sequence():
    with pytest.raises(EncodeError, match="0 to 2147483647"):
        dps.make_publication_id(2**31, 0, bytes(8))


# The envelope of a multicast


def test_envelope_is_that_of_the_c_implementation():
    assert coap.wrap(PUBLISHED, 1) == bytes.fromhex("50030001b86470732f70756200113cff") + PUBLISHED
    assert coap.wrap(b"x", 3)[:4].hex() == "50030003"


def test_all_vectors_of_envelopes(dps_reference):
    for number, case in enumerate(dps_reference["coap_wrap"], start=1):
        assert coap.wrap(b"", number).hex() == case["header"]


@given(st.binary(min_size=1, max_size=50), U16)
def test_frame_is_extracted_from_its_envelope(frame, number):
    assert coap.unwrap(coap.wrap(frame, number)) == frame


@pytest.mark.parametrize("options", ["", "b0", "bd0061", "be000061", "d40061626364", "e1000061"])
def test_options_are_skipped(options):
    data = bytes.fromhex("50020001" + options)
    if options.startswith("bd"):
        data += bytes(12)
    if options.startswith("be"):
        data += bytes(268)
    assert coap.unwrap(data + b"\xffframe") == b"frame"


def test_token_is_skipped():
    assert coap.unwrap(b"\x52\x03\x00\x01ab\xfff") == b"f"


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        ("", "non-confirmable CoAP messages begin"),
        ("500300", "non-confirmable CoAP messages begin"),
        ("40030001ff00", "non-confirmable CoAP messages begin"),  # confirmable
        ("90030001ff00", "non-confirmable CoAP messages begin"),  # version 2
        ("59030001000000000000000000ff00", "token has 9"),
        ("50030001", "has no payload"),
        ("50030001ff", "has no payload"),
        ("50030001b86470", "has no payload"),
        ("50030001f0ff00", "reserved"),
        ("500300010fff00", "reserved"),
        ("50030001bd", "cut short"),
        ("50030001be00", "cut short"),
    ],
)
def test_other_datagrams_are_refused(datagram, reason):
    with pytest.raises(DecodeError, match=reason):
        coap.unwrap(bytes.fromhex(datagram))
