"""The coded diffusion node: source, bootstrap and intermediate node, its timer and its memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.families import family_except
from workbench import draws
from workbench.attributes.model import PAYLOAD
from workbench.attributes.text import parse
from workbench.coding import rlnc
from workbench.errors import AttributeFormatError, EncodeError, ParameterError
from workbench.protocols.coded_diffusion import CodedDiffusion, wire
from workbench.protocols.coded_diffusion.node import Decoded, GenerationBegun, Innovative
from workbench.protocols.contract import NOBODY, Delivered, Dropped, Forwarded, Held, Originated

SECOND = 1000000
COLLECTING_US = 50000
HOT = parse("TEMP IS 26")
FIELDS = wire.FIELD_ORDERS


class Chances(draws.Stream):
    """A stream whose `uniform` returns the given draws in turn, and then zeros, with which every draw succeeds."""

    def __init__(self, *chances):
        draws.Stream.__init__(self, draws.make_key(7))
        self.chances = list(chances)

    def uniform(self):
        return self.chances.pop(0) if self.chances else 0.0


def make_node(address=1, random=None, max_requests=0, **options):
    """Return a node as published, which sends no requests and stores nothing to answer them."""
    protocol = CodedDiffusion(max_requests=max_requests, **options)
    return protocol.make_node(address, random or draws.Stream(draws.make_key(3, address)))


def event(source=9, sequence=0, attributes=HOT):
    return wire.encode_event(wire.Event(source, sequence, attributes))


def packets(count, source=9, sequence=0, attributes=HOT, generation_size=2, order=256, hops=1, seed=0):
    """Return frames of coded packets of an event; the first `generation_size` of them are linearly independent."""
    data = wire.coded_bytes(source, sequence, attributes)
    chunks = rlnc.split(data, generation_size, order)
    encoder = rlnc.Encoder(chunks, order, draws.Stream(draws.make_key(seed, sequence)), systematic=True)
    length_B = len(wire.event_bytes(attributes))
    return [
        wire.encode_coded(wire.Coded(source, sequence, hops, generation_size, order, length_B, *encoder.encode()))
        for _ in range(count)
    ]


def hear(node, frames, now=0, neighbor=4):
    """Pass frames to a node at a time, and return the events."""
    for frame in frames if isinstance(frames, list) else [frames]:
        node.receive(frame, neighbor, now)
    return node.take_events()


def wake(node, now):
    """Wake a node that is due, as a driver does, and return the messages that it sends."""
    assert node.next_wake == now
    node.wake(now)
    assert node.next_wake is None or node.next_wake > now
    return sent(node)


def sent(node):
    return [wire.decode(frame) for destination, frame in node.take_frames() if destination is None]


def kinds(events):
    return [type(event_) for event_ in events]


def reasons(events):
    return [event_.detail for event_ in events if isinstance(event_, Dropped)]


# --- source ---


def test_source_broadcasts_its_complete_event_and_holds_it():
    node = make_node()
    everything = node.subscribe(parse("TEMP EQ_ANY"), 0)
    assert [node.publish(HOT, 0, payload=b"hi"), node.publish(HOT, 0)] == [0, 1]
    with_payload = parse('TEMP IS 26, PAYLOAD IS "hi"')
    assert sent(node) == [wire.Event(1, 0, with_payload), wire.Event(1, 1, HOT)]
    events = node.take_events()
    assert kinds(events) == [Originated, Held, Delivered] * 2
    assert events[:2] == [Originated(NOBODY, "event", 1, 0, 0, ""), Held(NOBODY, "event", 1, 0, 0, "")]
    assert everything.take() == [with_payload, HOT]
    assert node.next_wake is None


def test_source_ignores_its_own_event_at_any_time():
    node = make_node(address=9)
    everything = node.subscribe(parse("TEMP EQ_ANY"), 0)
    node.publish(HOT, 0)
    node.take_events()
    for now in (0, 3600 * SECOND):
        assert reasons(hear(node, [event()] + packets(2), now)) == ["duplicate", "decoded", "decoded"]
    assert len(everything.take()) == 1 and node.next_wake is None


def test_invalid_publications_and_subscriptions_do_not_change_the_node():
    node = make_node()
    for wrong in ("TEMP GE 26", ""):
        with pytest.raises(AttributeFormatError):
            node.publish(parse(wrong), 0)
    for attributes, payload in [(HOT * 256, b""), (HOT, bytes(255 * 255)), (HOT, bytes(254 * 255))]:
        with pytest.raises(EncodeError):
            node.publish(attributes, 0, payload=payload)
    with pytest.raises(AttributeFormatError):
        node.subscribe(HOT, 0)
    assert not node.outbox and not node.events
    assert node.publish(HOT, 0) == 0


def test_restarted_node_uses_new_sequence_numbers():
    node = make_node()
    node.start(0, boot=2)
    assert node.publish(HOT, 0) == 2 << 24
    assert node.subscribe(parse("TEMP GE 25"), 0).number == 2 << 24


# --- bootstrap node ---


@pytest.mark.parametrize("order", FIELDS)
@pytest.mark.parametrize(("generation_size", "factor"), [(1, 1), (2, 2), (3, 5), (16, 4)])
def test_bootstrap_node_holds_the_event_and_sends_combinations_at_once(order, generation_size, factor):
    node = make_node(generation_size=generation_size, bootstrap_factor=factor, field=order, forwarding_probability=0)
    wanted = node.subscribe(parse("TEMP GE 25"), 0)
    events = hear(node, event(), now=5)
    assert events == [
        Held(4, "event", 9, 0, 1, ""),
        Delivered(4, "event", 9, 0, wanted.number, HOT),
        Forwarded(4, "coded", 9, 0, 0, str(factor)),
    ]
    messages = sent(node)
    data = wire.coded_bytes(9, 0, HOT)
    rows = [rlnc.Encoder(rlnc.split(data, generation_size, order), order).combine(m.encoding_vector) for m in messages]
    length_B = len(wire.event_bytes(HOT))
    assert messages == [wire.Coded(9, 0, 1, generation_size, order, length_B, *row) for row in rows]
    assert len(messages) == factor
    assert node.next_wake is None and not node.generations


def test_bootstrap_node_drops_its_earlier_timer():
    node = make_node(generation_size=3)
    hear(node, packets(1, generation_size=3))
    assert node.next_wake == COLLECTING_US
    assert kinds(hear(node, event(), now=100)) == [Held, Forwarded]
    assert node.next_wake is None and not node.generations
    assert reasons(hear(node, packets(3, generation_size=3)[1:], now=200)) == ["decoded", "decoded"]


def test_event_heard_again_or_after_decoding_is_a_duplicate():
    node = make_node()
    wanted = node.subscribe(parse("TEMP GE 25"), 0)
    hear(node, event())
    assert reasons(hear(node, event(), 10)) == ["duplicate"]
    hear(node, packets(2, sequence=1))
    due = node.next_wake
    assert reasons(hear(node, event(sequence=1), 20)) == ["duplicate"]
    assert len(wanted.take()) == 2 and node.next_wake == due


def test_counting_driver_gets_no_events_of_drops_and_sent_packets():
    node = make_node()
    node.tells_all = False
    assert kinds(hear(node, [event(), event(), b"?"])) == [Held]
    assert node.drops == {"duplicate": 1, "malformed": 1}


# --- intermediate node ---


@pytest.mark.parametrize("order", FIELDS)
@pytest.mark.parametrize("generation_size", family_except([1, 2, 7], 2))
@pytest.mark.parametrize("size_B", family_except([0, 1000, 20000], 1000))
def test_intermediate_node_decodes_from_what_is_innovative(order, generation_size, size_B):
    attributes = parse("TEMP IS 26") + make_payload(size_B)
    node = make_node(generation_size=generation_size, field=order)
    wanted, unmatched = node.subscribe(parse("TEMP GE 25"), 0), node.subscribe(parse("TEMP LT 25"), 0)
    frames = packets(generation_size, attributes=attributes, generation_size=generation_size, order=order, hops=6)
    for rank, frame in enumerate(frames, 1):
        events = hear(node, [frame, frame])
        if rank == 1:
            assert events.pop(0) == GenerationBegun(4, "coded", 9, 0, generation_size, "")
        repeated = "decoded" if rank == generation_size else "not_innovative"
        assert events[0] == Innovative(4, "coded", 9, 0, rank, str(rank - 1))
        assert events[-1] == Dropped(4, "coded", 9, 0, 0, repeated)
        if rank < generation_size:
            assert len(events) == 2 and wanted.take() == []
    assert events[1:4] == [
        Decoded(4, "coded", 9, 0, generation_size, ""),
        Held(4, "coded", 9, 0, 7, ""),
        Delivered(4, "coded", 9, 0, wanted.number, attributes),
    ]
    assert wanted.take() == [attributes] and unmatched.take() == []


def make_payload(size_B):
    data = bytes([index * 7 & 255 for index in range(size_B)])
    return tuple([type(HOT[0])(PAYLOAD, HOT[0].operator, data[i : i + 255]) for i in range(0, size_B, 255)])


def test_hops_are_one_more_than_the_minimum_of_the_packets():
    node = make_node()
    first, second = packets(2, hops=9)[0], packets(2, hops=3)[1]
    held_events = [event_ for event_ in hear(node, [first, second]) if isinstance(event_, Held)]
    assert [event_.value for event_ in held_events] == [4]
    assert [message.hops for message in wake(node, COLLECTING_US)] == [4]


def test_hops_stop_at_the_maximum_of_the_header_field():
    node = make_node()
    hear(node, packets(1, hops=65535))
    assert [message.hops for message in wake(node, COLLECTING_US)] == [65534]


def test_packets_keep_their_field_and_size_regardless_of_the_nodes_settings():
    node = make_node(generation_size=2, field=256)
    hear(node, packets(2, generation_size=3, order=16))
    for message in wake(node, COLLECTING_US):
        assert (message.generation_size, message.field, message.length_B) == (3, 16, len(wire.event_bytes(HOT)))
        assert message.encoding_vector[2] == 0  # it received no combination of the third chunk


def test_several_events_of_several_sources_are_decoded_side_by_side():
    node = make_node(generation_size=3)
    wanted = node.subscribe(parse("INSTANCE EQ_ANY"), 0)
    ids = [(source, sequence) for source in (9, 10) for sequence in (0, 1, 2)]
    readings = {event_id: parse(f"INSTANCE IS {event_id[0] * 10 + event_id[1]}") for event_id in ids}
    frames = {event_id: packets(3, event_id[0], event_id[1], readings[event_id], 3) for event_id in ids}
    for turn in range(3):
        for index, event_id in enumerate(ids):
            hear(node, frames[event_id][turn], now=10 * turn + index)
    assert wanted.take() == [readings[event_id] for event_id in ids]
    assert [message.sequence for message in wake(node, 20 + COLLECTING_US)] == [0, 0]
    assert len(node.generations) == 5
    messages = []
    while node.next_wake is not None:
        messages += wake(node, node.next_wake)
    assert [(message.origin, message.sequence) for message in messages] == [
        event_id for event_id in ids[1:] for _ in range(2)
    ]
    assert not node.generations


# --- the timer ---


def test_successful_draw_sets_the_timer_to_the_collecting_time_and_moves_it():
    node = make_node(generation_size=4, collecting_time_ms=20)
    frames = packets(4, generation_size=4)
    for now, frame in [(0, frames[0]), (7000, frames[1]), (26999, frames[2])]:
        hear(node, frame, now)
        assert node.next_wake == now + 20000


def test_failed_draw_leaves_the_timer_as_it_is():
    node = make_node(random=Chances(0.9, 0.1, 0.9), generation_size=4, forwarding_probability=0.5)
    frames = packets(3, generation_size=4)
    hear(node, frames[0], 0)
    assert node.next_wake is None
    hear(node, frames[1], 10)
    assert node.next_wake == 10 + COLLECTING_US
    hear(node, frames[2], 20)
    assert node.next_wake == 10 + COLLECTING_US
    # All three are counted, even those with a failed draw.
    assert len(wake(node, 10 + COLLECTING_US)) == 2


def test_packets_that_are_not_innovative_draw_nothing_and_move_no_timer():
    node = make_node(generation_size=3)
    [frame] = packets(1, generation_size=3)
    hear(node, frame, 0)
    drawn = node.random.counter
    assert reasons(hear(node, frame, 30)) == ["not_innovative"]
    assert (node.next_wake, node.random.counter) == (COLLECTING_US, drawn)


def test_node_whose_draws_all_fail_decodes_and_delivers_but_sends_nothing():
    node = make_node(forwarding_probability=0)
    wanted = node.subscribe(parse("TEMP GE 25"), 0)
    hear(node, packets(2))
    assert node.next_wake is None and wanted.take() == [HOT]
    assert not node.generations and sent(node) == []


@pytest.mark.parametrize(
    ("factor", "fresh", "expected"),
    [
        (0.5, 1, 1),
        (0.5, 2, 1),
        (0.5, 3, 2),
        (0.51, 2, 2),
        (1, 5, 5),
        (0.1, 10, 1),
        (0.1, 30, 3),
        (1 / 3, 6, 2),
        (0.28, 25, 7),
    ]
    + [(0.001, 40, 1), (0.7, 10, 7), (0.6, 5, 3)],
)
def test_node_sends_forwarding_factor_times_innovative_packets_rounded_up(factor, fresh, expected):
    node = make_node(generation_size=40, forwarding_factor=factor)
    hear(node, packets(fresh, generation_size=40))
    assert len(wake(node, COLLECTING_US)) == expected
    assert node.take_events() == [Forwarded(NOBODY, "coded", 9, 0, 0, str(expected))]


def test_combinations_cover_all_packets_of_a_node_and_only_new_packets_are_counted():
    node = make_node(generation_size=6, forwarding_factor=1)
    frames = packets(6, generation_size=6)
    hear(node, frames[:4])
    assert len(wake(node, COLLECTING_US)) == 4
    hear(node, frames[4], 2 * COLLECTING_US)
    [message] = wake(node, 3 * COLLECTING_US)
    assert all(message.encoding_vector[:5]) and message.encoding_vector[5] == 0


def test_one_shot_node_sends_once_for_an_event_and_still_decodes():
    node = make_node(generation_size=3, rearm=False)
    wanted = node.subscribe(parse("TEMP GE 25"), 0)
    frames = packets(3, generation_size=3)
    hear(node, frames[0])
    assert len(wake(node, COLLECTING_US)) == 1
    hear(node, frames[1:], 2 * COLLECTING_US)
    assert node.next_wake is None and wanted.take() == [HOT]
    assert not node.generations
    hear(node, packets(1, sequence=1, generation_size=3), 2 * COLLECTING_US)
    assert node.next_wake == 3 * COLLECTING_US


def test_decoded_event_is_stored_until_the_timer_has_fired():
    node = make_node()
    hear(node, packets(2))
    assert list(node.generations) == [(9, 0)]
    assert reasons(hear(node, packets(3)[2], 10)) == ["decoded"]
    [message] = wake(node, COLLECTING_US)
    assert len([coefficient for coefficient in message.encoding_vector if coefficient]) == 2
    assert not node.generations and node.next_wake is None


def test_decoded_event_is_stored_for_the_timer_of_an_earlier_packet():
    node = make_node(random=Chances(0.1, 0.9), forwarding_probability=0.5)
    first, second = packets(2)
    hear(node, first)
    hear(node, second, 10)
    assert len(wake(node, COLLECTING_US)) == 1 and not node.generations


# --- requests ---

REQUEST_US = 4 * COLLECTING_US
KEEP_US = COLLECTING_US + 4 * REQUEST_US


def request(rank, source=9, sequence=0):
    return wire.encode_request(wire.Request(source, sequence, rank))


def play(node, until_us):
    """Wake a node whenever it is due; return (time, destination or None, message) of everything that it sends."""
    played = []
    while node.next_wake is not None and node.next_wake <= until_us:
        now = node.next_wake
        node.wake(now)
        played += [(now, destination, wire.decode(frame)) for destination, frame in node.take_frames()]
    return played


def requests(played):
    return [(now, to, message.rank) for now, to, message in played if isinstance(message, wire.Request)]


def test_node_short_of_packets_sends_requests_to_the_last_sender_and_then_to_all():
    node = make_node(max_requests=3)
    hear(node, packets(1), neighbor=7)
    played = play(node, 3600 * SECOND)
    assert requests(played) == [(REQUEST_US, 7, 1), (2 * REQUEST_US, None, 1), (3 * REQUEST_US, None, 1)]
    assert node.next_wake is None and len(node.generations) == 1


def test_innovative_packet_postpones_requests_and_resets_their_number():
    node = make_node(max_requests=1, generation_size=3)
    frames = packets(3, generation_size=3)
    hear(node, frames[0])
    assert requests(play(node, 9 * REQUEST_US)) == [(REQUEST_US, 4, 1)]
    hear(node, frames[:2], 9 * REQUEST_US, neighbor=5)
    assert requests(play(node, 20 * REQUEST_US)) == [(10 * REQUEST_US, 5, 2)]
    hear(node, frames[2], 20 * REQUEST_US)
    assert requests(play(node, 3600 * SECOND)) == [] and not node.generations


@pytest.mark.parametrize("has_given_up", [False, True])
def test_packet_that_is_not_innovative_allows_one_more_request(has_given_up):
    node = make_node(max_requests=2)
    hear(node, packets(1))
    now = 9 * REQUEST_US if has_given_up else 2 * REQUEST_US + COLLECTING_US
    assert len(requests(play(node, now))) == 2
    assert reasons(hear(node, packets(1) * 2, now)) == ["not_innovative"] * 2
    again_us = 10 * REQUEST_US if has_given_up else 3 * REQUEST_US
    assert requests(play(node, 3600 * SECOND)) == [(again_us, None, 1)] and node.next_wake is None


def test_packet_that_is_not_innovative_changes_nothing_before_the_last_request():
    node = make_node(max_requests=2)
    hear(node, packets(1) * 2)
    play(node, REQUEST_US)
    hear(node, packets(1), REQUEST_US)
    assert requests(play(node, 3600 * SECOND)) == [(2 * REQUEST_US, None, 1)]


def test_decoded_event_is_stored_for_requests_and_then_forgotten():
    node = make_node(max_requests=3)
    hear(node, packets(2))
    assert len(play(node, KEEP_US - 1)) == 1 and list(node.generations) == [(9, 0)]
    play(node, KEEP_US)
    assert not node.generations and node.next_wake is None
    assert reasons(hear(node, request(1), KEEP_US + 1)) == ["not_at_hand"]


@pytest.mark.parametrize("is_bootstrap_node", [False, True])
def test_node_with_the_event_sends_the_missing_packets_once_for_all_requests(is_bootstrap_node):
    node = make_node(max_requests=3, generation_size=3, bootstrap_factor=1)
    hear(node, event() if is_bootstrap_node else packets(3, generation_size=3))
    play(node, SECOND // 10)
    sent(node), node.take_events()
    now = SECOND // 10
    assert hear(node, [request(2), request(0), request(1)], now) == []
    answer = play(node, SECOND // 2)
    assert [(sent_us, to) for sent_us, to, _ in answer] == [(now + COLLECTING_US, None)] * 3
    assert kinds(hear(make_node(), [wire.encode_coded(message) for _, _, message in answer]))[-2:] == [Decoded, Held]


def test_packets_sent_by_the_timer_count_as_answers_to_a_request():
    node = make_node(max_requests=3)
    hear(node, packets(2))
    hear(node, request(1), COLLECTING_US // 2)
    assert [now for now, _, _ in play(node, KEEP_US)] == [COLLECTING_US]


def test_node_answers_a_request_as_soon_as_it_has_decoded():
    node = make_node(max_requests=3, generation_size=4)
    frames = packets(4, generation_size=4)
    hear(node, frames[:3])
    play(node, COLLECTING_US)
    hear(node, request(0), 2 * COLLECTING_US)
    assert play(node, REQUEST_US - 1) == []
    hear(node, frames[3], REQUEST_US - 1)
    assert len(play(node, REQUEST_US + COLLECTING_US)) == 4


def test_answers_end_regardless_of_the_number_of_requests():
    node = make_node(max_requests=3)
    hear(node, event())
    answers = 0
    for now in range(0, 100 * REQUEST_US, COLLECTING_US // 10):
        hear(node, request(0), now)
        answers += len(play(node, now))
    assert answers <= 2 + 2 * (KEEP_US // COLLECTING_US + 1)
    assert not node.generations and node.next_wake is None


def test_request_for_an_unavailable_event_is_dropped():
    node = make_node(address=9, max_requests=3)
    node.publish(HOT, 0)
    hear(node, packets(1, source=8))
    frames = [request(0), request(0, source=7), request(2, source=8), request(254, source=8)]
    assert hear(node, frames) == [Dropped(4, "request", origin, 0, 0, "not_at_hand") for origin in (9, 7, 8, 8)]
    assert (7, 0) not in node.known


def test_node_as_published_answers_no_request():
    node = make_node()
    hear(node, packets(2))
    assert reasons(hear(node, request(0), 10)) == ["not_at_hand"]
    assert len(wake(node, COLLECTING_US)) == 1 and not node.generations


def test_a_new_event_replaces_one_stored_only_for_requests():
    node = make_node(max_requests=3, max_events=2)
    hear(node, [event(sequence=0), event(sequence=1), event(sequence=2)])
    assert sorted(node.generations) == [(9, 1), (9, 2)]
    hear(node, packets(1, sequence=3) + packets(1, sequence=4))
    assert sorted(node.generations) == [(9, 3), (9, 4)]
    assert reasons(hear(node, packets(1, sequence=5))) == ["full"]
    # A bootstrap node needs no matrix to send; without one it has no answers.
    assert kinds(hear(node, event(sequence=6))) == [Held, Forwarded]
    assert reasons(hear(node, request(0, sequence=6))) == ["not_at_hand"]


# --- memory of events ---


def test_id_is_forgotten_only_after_its_quiet_time():
    node = make_node(forget_after_s=2, forwarding_probability=0)
    wanted = node.subscribe(parse("TEMP GE 25"), 0)
    frames = packets(2)
    hear(node, frames)
    for now in (SECOND, 3 * SECOND - 1, 5 * SECOND - 2):
        assert reasons(hear(node, frames[0], now)) == ["decoded"]
    assert len(wanted.take()) == 1
    assert kinds(hear(node, frames, 7 * SECOND - 2)) == [
        GenerationBegun,
        Innovative,
        Innovative,
        Decoded,
        Held,
        Delivered,
    ]


def test_id_is_stored_as_long_as_neighbors_may_collect():
    node = make_node(forget_after_s=0, generation_size=3)
    frames = packets(3, generation_size=3)
    hear(node, frames)
    wake(node, COLLECTING_US)
    node.take_events()
    assert reasons(hear(node, frames[0], 7 * COLLECTING_US - 1)) == ["decoded"]
    assert kinds(hear(node, frames[0], 13 * COLLECTING_US - 1)) == [GenerationBegun, Innovative]


def test_another_event_is_refused_until_a_matrix_is_free():
    node = make_node(max_events=2)
    halves = [packets(1, sequence=sequence)[0] for sequence in range(3)]
    assert kinds(hear(node, halves)) == [GenerationBegun, Innovative, GenerationBegun, Innovative, Dropped]
    assert reasons(hear(node, halves[2])) == ["full"]
    assert kinds(hear(node, event(sequence=5))) == [Held, Forwarded]  # a bootstrap node needs no matrix
    hear(node, packets(2, sequence=0)[1])
    wake(node, COLLECTING_US)
    node.take_events()
    assert kinds(hear(node, halves[2], COLLECTING_US)) == [GenerationBegun, Innovative]


def test_matrix_of_a_quiet_event_is_reused():
    node = make_node(max_events=2, forget_after_s=1, forwarding_probability=0)
    halves = [packets(1, sequence=sequence)[0] for sequence in range(3)]
    hear(node, halves[0], 0)
    hear(node, halves[1], SECOND // 2)
    assert reasons(hear(node, halves[2], SECOND - 1)) == ["full"]
    assert hear(node, halves[2], SECOND) == [
        Dropped(NOBODY, "coded", 9, 0, 0, "expired"),
        GenerationBegun(4, "coded", 9, 2, 2, ""),
        Innovative(4, "coded", 9, 2, 1, "0"),
    ]
    assert sorted(node.generations) == [(9, 1), (9, 2)]


def test_known_ids_are_limited_and_quiet_ids_are_replaced():
    node = make_node(max_known=3, forget_after_s=1)
    for sequence in range(5):
        hear(node, event(sequence=sequence), now=sequence * 1000)
    assert node.drops == {"full": 2} and len(node.known) == 3
    assert reasons(hear(node, packets(1, sequence=7), 5000)) == ["full"]
    assert kinds(hear(node, event(sequence=6), SECOND)) == [Held, Forwarded]
    assert sorted(node.known) == [(9, 1), (9, 2), (9, 6)]
    node.publish(HOT, SECOND)
    assert len(node.known) == 3  # its own id needs no memory


@given(
    st.sampled_from([0, 1, 3]),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 3 * SECOND)), max_size=60),
)
def test_memory_is_bounded_and_a_known_event_is_held_once(max_requests, steps):
    node = make_node(max_events=2, max_known=4, forget_after_s=1, max_requests=max_requests)
    now = 0
    held_us = {}
    for sequence, kind, pause_us in steps:
        now += pause_us // 50
        while node.next_wake is not None and node.next_wake <= now:
            wake(node, node.next_wake)
        other_frames = [event(sequence=sequence), forged(sequence), request(0, 9, sequence)]
        for event_ in hear(node, (packets(2, sequence=sequence) + other_frames)[kind], now):
            if isinstance(event_, Held):
                assert sequence not in held_us or now - held_us[sequence] >= SECOND
                held_us[sequence] = now
        assert len(node.generations) <= 2 and len(node.known) <= 4
        assert set(node.generations) <= set(node.known)


# --- wrong and forged frames ---


def forged(sequence=0, generation_size=2, order=256, length_B=None, seed=0):
    """Return a coded packet of random content with the id of the event and a correct checksum."""
    random = draws.Stream(draws.make_key(99, seed, sequence))
    length_B = len(wire.event_bytes(HOT)) if length_B is None else length_B
    field = rlnc.Decoder(generation_size, order).field
    vector = rlnc.draw_coefficients(field, generation_size, random)
    symbols = 8 * wire.information_B(length_B, generation_size, order) // field.symbol_bits
    information = bytes(field.pack(rlnc.draw_coefficients(field, symbols, random)))
    return wire.encode_coded(wire.Coded(9, sequence, 1, generation_size, order, length_B, vector, information))


@pytest.mark.parametrize("fields", [{"generation_size": 3}, {"order": 16}, {"length_B": 9}])
def test_packet_of_another_generation_under_the_same_id_starts_a_new_generation(fields):
    node = make_node()
    wanted = node.subscribe(parse("TEMP GE 25"), 0)
    first, second, third = packets(3)
    assert kinds(hear(node, forged(**fields))) == [GenerationBegun, Innovative]
    events = hear(node, first, 10)
    assert events == [
        Dropped(4, "coded", 9, 0, 0, "corrupt"),
        GenerationBegun(4, "coded", 9, 0, 2, ""),
        Innovative(4, "coded", 9, 0, 1, "0"),
    ]
    assert kinds(hear(node, second, 20)) == [Innovative, Decoded, Held, Delivered]
    # A decoded event is not changed by later packets.
    assert reasons(hear(node, [forged(**fields), third], 30)) == ["decoded", "decoded"]
    assert wanted.take() == [HOT]


@pytest.mark.parametrize("order", FIELDS)
def test_generation_with_a_forged_packet_is_dropped_and_collected_again(order):
    node = make_node(field=order)
    wanted = node.subscribe(parse("TEMP EQ_ANY"), 0)
    # Over GF(2) a random vector may equal that of the genuine packet, so this forged vector is fixed.
    size_B = wire.information_B(len(wire.event_bytes(HOT)), 2, order)
    forgery = wire.encode_coded(wire.Coded(9, 0, 1, 2, order, len(wire.event_bytes(HOT)), (1, 1), bytes(size_B)))
    events = hear(node, [forgery, packets(2, order=order)[0]])
    assert kinds(events) == [GenerationBegun, Innovative, Innovative, Dropped, GenerationBegun]
    assert reasons(events) == ["corrupt"]
    assert wanted.take() == [] and node.next_wake is None  # suspect packets are not forwarded
    [generation] = node.generations.values()
    assert generation.decoder.rank == 0
    assert kinds(hear(node, packets(2, order=order), 10)) == [Innovative, Innovative, Decoded, Held, Delivered]
    assert wanted.take() == [HOT]
    assert len(wake(node, 10 + COLLECTING_US)) == 1 and not node.generations


def test_node_that_dropped_packets_sends_nothing_before_it_has_decoded():
    node = make_node(generation_size=3)
    hear(node, [forged(generation_size=3)] + packets(2, generation_size=3))
    assert node.drops == {"corrupt": 1} and node.next_wake is None
    hear(node, packets(2, generation_size=3), 10)
    assert node.next_wake is None
    hear(node, packets(3, generation_size=3)[2], 20)
    assert len(wake(node, 20 + COLLECTING_US)) == 2


def test_packets_of_another_event_under_the_same_id_are_not_delivered():
    node = make_node()
    wanted = node.subscribe(parse("TEMP EQ_ANY"), 0)
    renumbered = [wire.decode(frame) for frame in packets(2, sequence=1, attributes=parse("TEMP IS 99"))]
    frames = [wire.encode_coded(wire.Coded(9, 0, *message[2:])) for message in renumbered]
    assert reasons(hear(node, frames)) == ["corrupt"]
    assert wanted.take() == []


def test_chunks_with_nonzero_padding_are_corrupt():
    node = make_node()
    wanted = node.subscribe(parse("TEMP EQ_ANY"), 0)
    for sequence, padding in enumerate([b"\x01", b"\x00"]):
        data = wire.coded_bytes(9, sequence, HOT) + padding
        rows = [((1, 0), data[:5]), ((0, 1), data[5:])]
        hear(node, [wire.encode_coded(wire.Coded(9, sequence, 1, 2, 256, 5, *row)) for row in rows])
    assert node.drops == {"corrupt": 1} and wanted.take() == [HOT]


def test_rows_without_whole_bytes_are_corrupt():
    node = make_node(field=257)
    size_B = wire.information_B(5, 1, 257)
    symbols_of_256 = b"\x00\x01" * (size_B // 2)
    frame = wire.encode_coded(wire.Coded(9, 0, 1, 1, 257, 5, (1,), symbols_of_256))
    assert reasons(hear(node, frame)) == ["corrupt"]
    assert node.next_wake is None


def test_every_event_arrives_unchanged_despite_one_forged_packet_each():
    # The forged packet comes first, second or last; genuine packets come once, and again on a request.
    random = draws.Stream(draws.make_key(5))
    node = make_node(max_requests=3)
    wanted = node.subscribe(parse("TEMP EQ_ANY"), 0)
    for sequence in range(200):
        now = sequence * SECOND
        frames = packets(2, sequence=sequence, seed=1)
        frames.insert(random.below(3), forged(sequence, seed=2))
        hear(node, frames, now)
        while node.next_wake is not None:
            now = node.next_wake
            if any(isinstance(message, wire.Request) for message in wake(node, now)):
                hear(node, packets(4, sequence=sequence, seed=3)[2:], now)
    samples = wanted.take()
    assert samples == [HOT] * 200
    assert node.drops["corrupt"] >= 100


@given(st.binary(max_size=40), st.sampled_from([b"", b"E", b"C", b"R"]))
def test_malformed_frame_is_counted_and_dropped(rest, begin):
    node = make_node()
    node.subscribe(parse("TEMP GE 0"), 0)
    assert hear(node, begin + rest) == [Dropped(4, "", NOBODY, 0, 0, "malformed")]
    assert not node.outbox and node.next_wake is None and not node.generations and not node.known


# --- subscriptions ---


def test_subscription_ends_when_it_expires_or_is_cancelled():
    node = make_node()
    short, long = node.subscribe(parse("TEMP GE 25"), 0, expires_s=5), node.subscribe(parse("TEMP GE 25"), 0)
    assert (short.number, long.number) == (0, 1)
    hear(node, packets(2, sequence=0), 5 * SECOND - 1)
    hear(node, packets(2, sequence=1), 5 * SECOND)
    node.unsubscribe(long, 6 * SECOND)
    node.unsubscribe(long, 6 * SECOND)
    hear(node, packets(2, sequence=2), 6 * SECOND)
    assert (len(short.take()), len(long.take())) == (1, 2)


def test_subscription_gets_only_later_events():
    node = make_node()
    hear(node, packets(2, sequence=0))
    late = node.subscribe(parse("TEMP GE 25"), 10)
    assert late.take() == []
    first, second = packets(2, sequence=1)
    hear(node, first, 20)
    later = node.subscribe(parse("TEMP GE 25"), 30)
    hear(node, second, 40)
    assert (late.take(), later.take()) == ([HOT], [HOT])


@pytest.mark.parametrize(
    "wrong",
    [{"generation_size": 0}, {"generation_size": 256}, {"field": 7}, {"bootstrap_factor": 0}, {"max_known": 0}]
    + [{"forwarding_probability": 1.5}, {"forwarding_factor": 0}, {"collecting_time_ms": 0}, {"rearm": 1}],
)
def test_setting_out_of_range_is_refused_by_name(wrong):
    [name] = wrong
    with pytest.raises(ParameterError, match=name):
        CodedDiffusion(**wrong)
