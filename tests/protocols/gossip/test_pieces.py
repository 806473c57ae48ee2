"""Gossip of pieces: their frames, the node that joins them, and whole networks."""

import struct
from binascii import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network import Network, taken
from workbench import draws
from workbench.attributes.event_bytes import LONGEST_EVENT_B, event_bytes
from workbench.attributes.text import parse
from workbench.errors import AttributeFormatError, DecodeError, EncodeError
from workbench.protocols.contract import NOBODY, Delivered, Dropped, Forwarded, Held, Originated
from workbench.protocols.flooding import wire as flooding
from workbench.protocols.gossip import Gossip, wire
from workbench.protocols.gossip.node import GossipNode
from workbench.protocols.gossip.pieces import PiecesGossipNode
from workbench.protocols.gossip.wire import Piece

SECOND = 1000000
HOT = parse("TEMP IS 26")  # 5 bytes: 01 33 01 28 0a
LINE = [(0, 1), (1, 2), (2, 3)]

# --- the frame ---

GOLDEN = [
    ("50 04030201 08070605 0500 03 01 0500  0128  645c96fa", Piece(0x01020304, 0x05060708, 5, 3, 1, 5, b"\x01\x28")),
    ("50 04030201 08070605 ffff 03 02 0500  0a  2dcfa637", Piece(0x01020304, 0x05060708, 0xFFFF, 3, 2, 5, b"\x0a")),
]


def with_checksum(text):
    """Return a frame of these hexadecimal bytes with a correct checksum."""
    body = bytes.fromhex(text)
    return body + struct.pack("<I", crc32(body))


@pytest.mark.parametrize(("text", "piece"), GOLDEN)
def test_frames_encode_their_pieces_and_decode_to_them(text, piece):
    frame = bytes.fromhex(text)
    assert wire.encode(piece) == frame
    assert wire.decode(frame) == piece
    assert wire.decode(wire.with_ttl(frame, 700)) == Piece(*piece[:2], 700, *piece[3:])
    assert PiecesGossipNode.describe(frame) == ("piece", piece.origin, piece.sequence)


@pytest.mark.parametrize(
    "piece",
    [
        Piece(-1, 2, 3, 2, 0, 5, b"abc"),
        Piece(1, 1 << 32, 3, 2, 0, 5, b"abc"),
        Piece(1, 2, 0x10000, 2, 0, 5, b"abc"),
        Piece(1, 2, 3, 0, 0, 5, b"abc"),
        Piece(1, 2, 3, 256, 0, 500, b"ab"),
        Piece(1, 2, 3, 2, 2, 5, b""),
        Piece(1, 2, 3, 2, 0, 0, b""),
        Piece(1, 2, 3, 1, 0, LONGEST_EVENT_B + 1, bytes(LONGEST_EVENT_B + 1)),
        Piece(1, 2, 3, 2, 0, 5, b"ab"),
        Piece(1, 2, 3, 2, 1, 5, b"abc"),
        Piece(1, 2, 3, 4, 3, 5, b""),
    ],
)
def test_piece_that_does_not_fit_is_an_encode_error(piece):
    with pytest.raises(EncodeError):
        wire.encode(piece)


@pytest.mark.parametrize(
    "text",
    [
        "50 01000000 02000000 0300 02 02 0500 6162",
        "50 01000000 02000000 0300 00 00 0500 6162",
        "50 01000000 02000000 0300 01 00 0000",
        "50 01000000 02000000 0300 04 03 0500",
        "50 01000000 02000000 0300 02 00 0500 6162",
        "50 01000000 02000000 0300 02 01 0500 616263",
        "50 01000000 02000000 0300 02 01 05",
        "46 01000000 02000000 0300 02 00 0500 616263",
    ],
)
def test_impossible_frame_with_a_correct_checksum_is_a_decode_error(text):
    with pytest.raises(DecodeError) as caught:
        wire.decode(with_checksum(text))
    assert "wrong checksum" not in str(caught.value)


@pytest.mark.parametrize(("text", "piece"), GOLDEN)
def test_every_truncation_longer_frame_and_flipped_bit_is_a_decode_error(text, piece):
    frame = bytes.fromhex(text)
    wrong = [frame[:length] for length in range(len(frame))] + [frame + b"\x00"]
    for bit in range(8 * len(frame)):
        flipped = bytearray(frame)
        flipped[bit // 8] ^= 1 << bit % 8
        wrong.append(bytes(flipped))
    for wrong_frame in wrong:
        with pytest.raises(DecodeError):
            wire.decode(wrong_frame)


@given(st.binary(max_size=60), st.booleans())
def test_random_bytes_reencode_or_are_a_decode_error(rest, is_sealed):
    frame = b"P" + rest
    if is_sealed:
        frame += struct.pack("<I", crc32(frame))
    try:
        piece = wire.decode(frame)
    except DecodeError:
        return
    assert wire.encode(piece) == frame


@given(st.integers(1, LONGEST_EVENT_B), st.integers(1, 255))
def test_pieces_are_consecutive_and_none_is_empty(length_B, wanted):
    pieces = wire.number_of_pieces(length_B, wanted)
    bounds = [wire.piece_bounds(length_B, pieces, number) for number in range(pieces)]
    assert 1 <= pieces <= wanted
    assert bounds[0][0] == 0 and bounds[-1][1] == length_B
    assert [begin for begin, _ in bounds[1:]] == [end for _, end in bounds[:-1]]
    sizes = [end - begin for begin, end in bounds]
    assert min(sizes) > 0 and sizes[:-1] == sizes[:1] * (pieces - 1) and sizes[-1] <= sizes[0]
    assert wanted > length_B or sizes[0] == -(-length_B // wanted)


# --- the node ---


def make_node(random=None, address=7, **options):
    random = random or draws.Stream(draws.make_key(1))
    return Gossip(**dict([("pieces", 3), ("forwarding_probability", 1)] + list(options.items()))).make_node(
        address, random
    )


def frames_of(sequence=0, attributes=HOT, pieces=3, ttl=9, source=1):
    data = event_bytes(attributes)
    bounds = [wire.piece_bounds(len(data), pieces, number) for number in range(pieces)]
    return [
        wire.encode(Piece(source, sequence, ttl, pieces, number, len(data), data[begin:end]))
        for number, (begin, end) in enumerate(bounds)
    ]


def hear(node, frames, now=0):
    for frame in frames:
        node.receive(frame, 4, now)
    return node.take_events()


def reasons(events):
    return [event.detail for event in events if isinstance(event, Dropped)]


def test_publisher_always_sends_all_pieces_and_holds_its_event():
    node = make_node(forwarding_probability=0, ttl=20)
    wanted = node.subscribe(parse("TEMP GE 25"), 0)
    assert node.publish(HOT, 0) == 0
    assert [wire.decode(frame) for _, frame in node.take_frames()] == [
        Piece(7, 0, 20, 3, 0, 5, b"\x01\x33"),
        Piece(7, 0, 20, 3, 1, 5, b"\x01\x28"),
        Piece(7, 0, 20, 3, 2, 5, b"\x0a"),
    ]
    assert node.take_events() == [
        Originated(NOBODY, "piece", 7, 0, 0, ""),
        Held(NOBODY, "piece", 7, 0, 0, ""),
        Delivered(NOBODY, "piece", 7, 0, 0, HOT),
    ]
    assert taken(wanted) == ["TEMP IS 26"]
    assert reasons(hear(node, frames_of(source=7))) == ["duplicate"] * 3


def test_an_event_of_one_piece_is_a_frame_of_flooding():
    node = Gossip().make_node(7, draws.Stream(1))
    node.publish(HOT, 0, payload=bytes(1000))
    [(_, frame)] = node.take_frames()
    assert flooding.decode(frame).origin == 7
    assert GossipNode.describe(frame) == ("flood", 7, 0)


def test_invalid_publications_do_not_change_the_node():
    node = make_node()
    for wrong in ("TEMP GE 26", ""):
        with pytest.raises(AttributeFormatError):
            node.publish(parse(wrong), 0)
    with pytest.raises(EncodeError):
        node.publish(HOT, 0, payload=bytes(255 * 255))
    assert not node.outbox and not node.events and node.publish(HOT, 0) == 0


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_node_holds_and_delivers_with_the_last_piece_in_any_order(order):
    node = make_node(ttl=9)
    wanted, unmatched = node.subscribe(parse("TEMP GE 25"), 0), node.subscribe(parse("TEMP LT 25"), 0)
    frames = [frames_of(ttl=9 - number)[number] for number in range(3)]
    first, second, last = [frames[number] for number in order]
    assert [type(event) for event in hear(node, [first, second])] == [Forwarded, Forwarded]
    assert hear(node, [last]) == [
        Held(4, "piece", 1, 0, 3, ""),
        Delivered(4, "piece", 1, 0, wanted.number, HOT),
        Forwarded(4, "piece", 1, 0, 0, ""),
    ]
    assert taken(wanted) == ["TEMP IS 26"] and taken(unmatched) == []
    assert [wire.decode(frame).ttl for _, frame in node.take_frames()] == [8 - number for number in order]
    assert reasons(hear(node, frames)) == ["duplicate"] * 3 and not node.partial


@given(st.floats(0, 1), st.integers(0, 2**32))
def test_forwarding_of_pieces_is_decided_by_the_nodes_random_stream(probability, seed):
    node = make_node(draws.Stream(draws.make_key(seed)), forwarding_probability=probability)
    stream = draws.Stream(draws.make_key(seed))
    for sequence in range(5):
        for frame in frames_of(sequence):
            events = hear(node, [frame, frame])
            passed_on = stream.uniform() < probability
            assert [f for _, f in node.take_frames()] == [wire.with_ttl(frame, 8)] * passed_on
            assert reasons(events) == ([] if passed_on else ["chance"]) + ["duplicate"]


def test_last_hop_draws_no_random_number():
    node = make_node()
    assert reasons(hear(node, frames_of(ttl=1))) == ["ttl"] * 3
    assert node.take_frames() == [] and node.random.counter == 0


def test_piece_of_another_publication_under_the_same_id_is_malformed_and_changes_nothing():
    node = make_node()
    wanted = node.subscribe(parse("TEMP EQ_ANY"), 0)
    mine = frames_of()
    hear(node, mine[:1])
    other_frames = frames_of(pieces=2) + frames_of(attributes=HOT + HOT)
    assert reasons(hear(node, other_frames)) == ["malformed"] * 5
    hear(node, mine[1:])
    assert reasons(hear(node, other_frames)) == ["malformed"] * 5
    assert taken(wanted) == ["TEMP IS 26"]


def test_pieces_of_no_event_are_malformed():
    node = make_node()
    wanted = node.subscribe(parse("TEMP EQ_ANY"), 0)
    frames = [wire.encode(Piece(1, 0, 9, 2, number, 4, b"??")) for number in range(2)]
    assert reasons(hear(node, frames)) == ["malformed"]
    assert taken(wanted) == [] and not node.partial


def test_evicted_partial_event_is_still_forwarded_but_not_started_again():
    node = make_node(max_partial=2)
    hear(node, [frames_of(sequence)[0] for sequence in (0, 1)])
    assert hear(node, frames_of(2)[:1])[0] == Dropped(NOBODY, "piece", 1, 0, 0, "evicted")
    assert [type(event) for event in hear(node, frames_of(0)[1:])] == [Forwarded, Forwarded]
    assert sorted(node.partial) == [(1, 1), (1, 2)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=60))
def test_memory_is_bounded_and_delivered_events_are_unchanged(steps):
    node = make_node(max_events=3, max_partial=2)
    wanted = node.subscribe(parse("INSTANCE EQ_ANY"), 0)
    for sequence, number in steps:
        hear(node, frames_of(sequence, parse(f"INSTANCE IS {sequence}"))[number : number + 1])
        assert len(node.partial) <= 2
    assert "malformed" not in node.drops
    assert set(taken(wanted)) <= {f"INSTANCE IS {sequence}" for sequence, _ in steps}


@given(st.binary(max_size=40), st.sampled_from([b"", b"P", b"F"]))
def test_malformed_frame_is_counted_and_dropped(rest, begin):
    node = make_node()
    node.subscribe(parse("TEMP GE 0"), 0)
    assert hear(node, [begin + rest]) == [Dropped(4, "", NOBODY, 0, 0, "malformed")]
    assert not node.outbox and not node.partial


def test_counting_driver_gets_no_events_of_drops_and_forwarding():
    node = make_node()
    node.tells_all = False
    assert [type(event) for event in hear(node, frames_of() + frames_of())] == [Held]
    assert node.drops == {"duplicate": 3}


# --- the network ---


def test_publication_of_a_kilobyte_reaches_every_node_unchanged():
    network = Network(Gossip(pieces=4, forwarding_probability=1), LINE)
    everything = [network.subscribe(address, "TEMP EQ_ANY") for address in range(4)]
    payload = bytes([index & 255 for index in range(1024)])
    network.publish(1, "TEMP IS 26", payload=payload)
    for subscription in everything:
        [sample] = subscription.take()
        assert b"".join([attribute.value for attribute in sample[1:]]) == payload
    assert len(network.hops("piece")) == 4 * 4
    assert {node: event.value for node, event in network.events if isinstance(event, Held)} == {0: 1, 1: 0, 2: 1, 3: 2}


def test_subscription_ends_when_it_expires():
    network = Network(Gossip(pieces=2, forwarding_probability=1), LINE)
    short = network.subscribe(3, "TEMP GE 25", expires_s=5)
    network.publish(0, "TEMP IS 26")
    network.advance(5)
    network.publish(0, "TEMP IS 27")
    assert taken(short) == ["TEMP IS 26"]


@settings(max_examples=25)
@given(st.integers(2, 10), st.integers(0, 1000), st.integers(2, 9), st.sampled_from([0.5, 0.8, 1.0]), st.data())
def test_every_event_is_held_once_and_right_in_whatever_order_links_deliver(size, seed, pieces, probability, data):
    nx = pytest.importorskip("networkx")
    graph = nx.connected_watts_strogatz_graph(size, min(4, size), 0.5, seed=seed)
    pick = data.draw(st.randoms(use_true_random=False))
    protocol = Gossip(pieces=pieces, forwarding_probability=probability)
    network = Network(protocol, graph.edges, choose=pick.randrange)
    subscriptions = [network.subscribe(node, "INSTANCE EQ_ANY") for node in graph]
    for node in graph:
        network.nodes[node].publish(parse(f"INSTANCE IS {node}"), 0, payload=bytes([node]) * 40)
    network.settle()
    holdings = [(node, event.origin) for node, event in network.events if isinstance(event, Held)]
    assert len(set(holdings)) == len(holdings) and (probability < 1 or len(holdings) == size * size)
    for node, subscription in zip(graph, subscriptions, strict=True):
        payloads = {sample[0].value: sample[1].value for sample in subscription}
        assert payloads == {origin: bytes([origin]) * 40 for holder, origin in holdings if holder == node}
