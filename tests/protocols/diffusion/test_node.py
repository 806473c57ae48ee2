"""TinyDiffusion's node: forwarding of data, waiting samples, the black list, and invalid frames."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import examples
from tests.neighbor import data, data_hops, gradients, hear, interest, listed_hops, make_node, of, reasons, sent
from tests.network import SECOND, Network, taken
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError, DecodeError, EncodeError, ParameterError
from workbench.protocols.contract import Delivered, Dropped, Forwarded, Held, Originated
from workbench.protocols.diffusion import Diffusion, wire
from workbench.protocols.diffusion.events import Blacklisted, GradientRemoved, HeadSet, InterestRemoved
from workbench.protocols.diffusion.filters import Filter
from workbench.protocols.diffusion.wire import encode_data

LINE = [(0, 1), (1, 2), (2, 3)]

# Start


def test_neighbors_treat_messages_of_a_restarted_node_as_new():
    neighbor = make_node(address=2)
    for boot in (0, 1):
        node = make_node(address=1)
        node.start(0, boot)
        node.subscribe(parse("TEMP GE 25"), 0)
        ((_, frame),) = node.take_frames()
        neighbor.receive(frame, 1, 0)
        assert [type(event).__name__ for event in neighbor.take_events()][-1] == "Forwarded"


# Invalid subscriptions and publications


def test_wrong_subscription_does_not_change_the_node():
    node = make_node(profile="strict", max_interests=1, max_attributes=5)
    for wrong, error in [
        ("TEMP IS 25", AttributeFormatError),
        ("TEMP GE 1, TEMP LE 2, TEMP NE 3, TEMP NE 4, TEMP NE 5", EncodeError),
        ("TEMP GE 1, TEMP LE 2, TEMP NE 3, TEMP NE 4, TEMP NE 5, TEMP NE 6", AttributeFormatError),
    ]:
        with pytest.raises(error):
            node.subscribe(parse(wrong), 0)
    assert not node.outbox and not node.events and node.next_wake is None
    node.subscribe(parse("TEMP GE 25"), 0)
    with pytest.raises(
        ParameterError, match="node 5 already has 1 different subscriptions, the most that max_interests allows"
    ):
        node.subscribe(parse("TEMP GE 26"), 0)


def test_wrong_publication_does_not_change_the_node():
    node = make_node(profile="strict", max_attributes=5)
    for wrong, error in [
        ("", AttributeFormatError),
        ("TEMP GE 25", AttributeFormatError),
        ("TEMP IS 1, X IS 1, Y IS 1, Z IS 1, INSTANCE IS 1", EncodeError),
        ("TEMP IS 1, X IS 1, Y IS 1, Z IS 1, INSTANCE IS 1, TIME IS 1", AttributeFormatError),
    ]:
        with pytest.raises(error):
            node.publish(parse(wrong), 0)
    assert not node.samples and not node.events
    assert node.publish(parse("TEMP IS 1"), 0) == 0


def test_subscription_without_constraints_may_be_explicit():
    network = Network(Diffusion(), LINE)
    everything = network.subscribe(0, "INTERVAL IS 5", match_all=True)
    network.publish(3, "HUMIDITY IS 6")
    assert taken(everything) == ["HUMIDITY IS 6"]


@pytest.mark.parametrize(
    "wrong",
    [{"max_interests": 0}, {"ttl": 256}, {"profile": "huge"}, {"max_data": 1.5}, {"hops": 3}, {"blacklist_loss": 2}],
)
def test_parameter_out_of_its_range_is_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Diffusion(**wrong)


def test_invalid_filters_are_refused():
    with pytest.raises(ParameterError, match="filters"):
        Diffusion(filters=("running_mean",))


# Data: destinations


def test_data_goes_only_to_the_head_of_the_gradient_list():
    node = make_node()
    for hop in (2, 3, 4):
        hear(node, interest(hop=hop))
    sent(node)
    events = hear(node, data(hop=7, ttl=50))
    assert sent(node) == [(2, data(hop=5, ttl=49))]
    assert of(Forwarded, events) == [Forwarded(7, "data", 8, 1, 1, "")]


def test_exploratory_gradients_carry_data_too():
    node = make_node(exploratory_gradients=2)
    for hop in (2, 3, 4):
        hear(node, interest(hop=hop))
    hear(node, data(hop=7))
    assert data_hops(node) == [2, 3]


def test_exploration_pauses_while_data_arrives_faster_than_it_can_be_remembered():
    node = make_node(exploratory_gradients=2, max_data=3)
    for hop in (2, 3):
        hear(node, interest(hop=hop))
    sent(node)
    hops = []
    for sequence, now_s in enumerate((1, 1.1, 1.2, 1.3, 3, 3.1, 3.2)):
        hear(node, data(hop=7, sequence=sequence), now=int(now_s * SECOND))
        hops.append(data_hops(node))
    assert hops == [[2, 3], [2, 3], [2], [2], [2, 3], [2, 3], [2]]


def test_data_goes_once_to_each_neighbor_of_matching_interests_and_never_back():
    node = make_node()
    for sink, hop, constraints in [
        (10, 1, "TEMP GE 20"), (11, 1, "TEMP GE 21"), (12, 2, "TEMP GE 20"), (13, 3, "TEMP GE 22"),
        (14, 4, "TEMP GE 27"), (15, 6, "HUMIDITY GE 5"),
    ]:  # fmt: skip
        hear(node, interest(constraints, sink=sink, hop=hop))
    hear(node, data("TEMP IS 26", hop=3))
    assert sorted(data_hops(node)) == [1, 2]
    hear(node, data("TEMP IS 27", hop=7, sequence=2))
    assert sorted(data_hops(node)) == [1, 2, 3, 4]


def test_data_whose_only_path_leads_back_is_dropped_with_a_reason():
    node = make_node()
    hear(node, interest(hop=3))
    events = hear(node, data(hop=3))
    assert data_hops(node) == []
    assert reasons(events) == ["no_gradient"]


def test_data_without_a_matching_interest_is_dropped_with_a_reason():
    node = make_node()
    hear(node, interest("TEMP GE 30"))
    sent(node)
    assert reasons(hear(node, data("TEMP IS 26"))) == ["no_interest"]
    assert sent(node) == []


def test_data_that_matches_a_local_subscription_is_delivered_and_forwarded():
    node = make_node(reinforce_after=0)
    subscription = node.subscribe(parse("TEMP GE 20"), 0)
    hear(node, interest("TEMP GE 25", hop=2))
    events = hear(node, data("TEMP IS 26", hop=3))
    assert taken(subscription) == ["TEMP IS 26"]
    assert of(Delivered, events) == [Delivered(3, "data", 8, 1, 0, parse("TEMP IS 26"))]
    assert data_hops(node) == [2]
    assert reasons(events) == []


# 0 --- 1 --- 2 --- 3
def test_source_that_is_a_sink_delivers_to_itself():
    network = Network(Diffusion(), LINE)
    own, far = network.subscribe(3, "TEMP GE 25"), network.subscribe(0, "TEMP GE 25")
    network.publish(3, "TEMP IS 26")
    assert taken(own) == taken(far) == ["TEMP IS 26"]
    assert len(network.hops("data")) == 3


@pytest.mark.parametrize("ttl", [3, 50, 254, 255])
def test_data_counts_its_hops_up_to_its_ttl(ttl):
    network = Network(Diffusion(ttl=ttl), [(a, a + 1) for a in range(min(ttl, 60))])
    source = min(ttl, 60)
    subscriptions = [network.subscribe(node, "TEMP GE 25") for node in (0, source)]
    network.publish(source, "TEMP IS 26")
    assert [taken(subscription) for subscription in subscriptions] == [["TEMP IS 26"]] * 2
    assert [(node, event.value) for node, event in network.events if isinstance(event, Held)] == [
        (source, 0),
        (0, source),
    ]


def test_data_with_one_hop_left_is_delivered_and_not_passed_on():
    node = make_node(reinforce_after=0)
    subscription = node.subscribe(parse("TEMP GE 25"), 0)
    hear(node, interest())
    assert reasons(hear(node, data(ttl=1))) == ["ttl"]
    assert taken(subscription) == ["TEMP IS 26"]
    assert data_hops(node) == []


# Data: duplicates


def test_duplicate_data_is_dropped():
    node = make_node()
    hear(node, interest())
    hear(node, data(hop=3))
    sent(node)
    assert reasons(hear(node, data(hop=4))) == ["duplicate"]
    assert sent(node) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [((0x0107, 1), (0x0007, 1)), ((8, 1), (8, 0x01000001)), ((8, 1), (1, 8)), ((1, 0), (0, 1))],
)
def test_sources_and_sequence_numbers_are_distinguished_by_all_their_bits(first, second):
    node = make_node()
    hear(node, interest())
    for source, sequence in (first, second):
        assert reasons(hear(node, data(source=source, sequence=sequence))) == []


def test_first_message_of_node_zero_counts_as_new():
    node = make_node()
    hear(node, interest(sink=0, sequence=0))
    assert gradients(node) == [[(0, 2)]]
    hear(node, interest(sink=9))
    assert reasons(hear(node, data(source=0, sequence=0))) == []


def test_data_list_forgets_the_oldest_first():
    node = make_node(max_data=2)
    hear(node, interest())
    outcomes = [reasons(hear(node, data(sequence=sequence))) for sequence in (1, 2, 1, 3, 2, 1)]
    assert outcomes == [[], [], ["duplicate"], [], ["duplicate"], []]


def test_data_that_returns_too_soon_for_a_loop_is_a_duplicate():
    node = make_node(5)
    hear(node, interest(hop=2))
    node.publish(parse("TEMP IS 26"), 0)
    _, (_, first) = sent(node)
    assert reasons(hear(node, data(source=5, sequence=first.sequence, ttl=49))) == ["duplicate"]
    hear(node, data(ttl=40))
    assert data_hops(node) == [2]
    assert reasons(hear(node, data(hop=4, ttl=38))) == ["duplicate"]
    assert not node.outbox


@pytest.mark.parametrize("max_data", [1, 20])
def test_data_that_returns_from_a_loop_is_forwarded_although_its_source_has_forgotten_it(max_data):
    node = make_node(5, max_data=max_data)
    for hop in (2, 3):
        hear(node, interest(hop=hop))
    sent(node)
    for value in (26, 27):
        node.publish(parse(f"TEMP IS {value}"), 0)
    first = sent(node)[0][1]
    # Reinforcements have led the path back to this node and, meanwhile, from this node to another neighbor.
    hear(node, interest(hop=3, sequence=7), unicast=True)
    assert reasons(hear(node, data(hop=2, source=5, sequence=first.sequence, ttl=48))) == []
    assert data_hops(node) == [3]
    assert not [event for event in node.events if isinstance(event, (Delivered, Held))]


@pytest.mark.parametrize("is_circle", [False, True])
def test_copies_for_two_sinks_are_forwarded_although_both_return_from_a_loop(is_circle):
    """The copy for sink 6 arrives for the first time or from its own loop; that for sink 0 returns from a loop."""
    node = make_node()
    for sink in (0, 6):
        hear(node, interest(sink=sink, hop=2 + sink, sequence=sink))
    sent(node)
    hear(node, data(source=20, ttl=40, others=() if is_circle else (6,)))
    hear(node, data(source=20, ttl=33, hop=3, others=(0,)))
    hear(node, data(source=20, ttl=34, hop=3, others=(6,)))
    assert data_hops(node) == ([2, 8] if is_circle else [2]) + [8, 2]


def test_data_that_stays_in_a_loop_is_dropped():
    node = make_node()
    hear(node, interest(hop=2))
    sent(node)
    hops = []
    for ttl in range(50, 1, -3):
        hear(node, data(hop=3, ttl=ttl))
        hops += data_hops(node)
    assert hops == [2, 2, 2, 2]


# Data: waiting samples, aggregation


# 0 --- 1 --- 2 --- 3
def test_sample_without_an_interest_waits_and_is_sent_a_tick_after_an_interest_arrives():
    network = Network(Diffusion(), LINE)
    network.publish(3, "TEMP IS 26")
    network.advance(50)
    assert network.nodes[3].next_wake == 60 * SECOND
    unmatched = network.subscribe(0, "HUMIDITY GE 5")
    subscription = network.subscribe(0, "TEMP GE 25")
    network.advance(0.999)
    assert network.hops("data") == []
    network.advance(0.001)
    assert (taken(subscription), taken(unmatched)) == (["TEMP IS 26"], [])


def test_sample_that_has_waited_too_long_is_dropped_on_time_and_not_delivered():
    network = Network(Diffusion(sample_lifetime_s=20), LINE)
    network.publish(3, "TEMP IS 26")
    network.advance(5)
    network.publish(3, "TEMP IS 27")
    network.advance(14.999)
    assert network.drops(3) == {}
    network.advance(0.001)
    assert network.drops(3) == {"expired": 1}
    subscription = network.subscribe(0, "TEMP GE 25")
    network.advance(100)
    assert taken(subscription) == ["TEMP IS 27"] and network.drops(3) == {"expired": 1}
    assert network.nodes[3].next_wake is None and not network.nodes[3].samples


def test_sample_too_old_is_not_sent_by_a_node_that_was_woken_late():
    node = make_node(sample_lifetime_s=20)
    node.publish(parse("TEMP IS 26"), 0)
    node.publish(parse("TEMP IS 27"), 19 * SECOND)
    hear(node, interest(), now=30 * SECOND)
    node.wake(31 * SECOND)
    assert [to_text(message.attributes) for _, message in sent(node) if isinstance(message, wire.Data)] == [
        "TEMP IS 27"
    ]
    assert node.drops == {"expired": 1}


def test_waiting_sample_is_delivered_to_a_new_subscription_of_the_same_node():
    network = Network(Diffusion(), LINE)
    network.publish(3, "TEMP IS 26")
    subscription = network.subscribe(3, "TEMP GE 25")
    network.advance(1)
    assert taken(subscription) == ["TEMP IS 26"]


def test_oldest_sample_is_dropped_when_too_many_wait():
    network = Network(Diffusion(max_data=2), LINE)
    for value in (26, 27, 28):
        network.publish(3, f"TEMP IS {value}")
    assert network.drops(3) == {"no_interest": 1}
    subscription = network.subscribe(0, "TEMP GE 25")
    network.advance(1)
    assert taken(subscription) == ["TEMP IS 27", "TEMP IS 28"]


# 0 --- 1 --- 2 --- 3
def test_samples_are_aggregated_and_the_sink_gets_the_matching_ones():
    network = Network(Diffusion(), LINE)
    for value in (26, 10, 30):
        network.publish(3, f"TEMP IS {value}, INSTANCE IS 7")
    hot, cold = network.subscribe(0, "TEMP GE 25"), network.subscribe(0, "TEMP LE 15")
    network.advance(1)
    assert network.hops("data") == [(3, 2), (2, 1), (1, 0)]
    assert taken(hot) == ["TEMP IS 26, INSTANCE IS 7", "TEMP IS 30, INSTANCE IS 7"]
    assert taken(cold) == ["TEMP IS 10, INSTANCE IS 7"]
    originated = [(e.sequence, e.value) for _, e in network.events if isinstance(e, Originated)]
    assert originated == [(0, 0), (0, 1), (0, 2)]


def test_samples_that_are_too_long_or_start_with_another_key_are_not_aggregated():
    node = make_node(profile="strict")
    for reading in ("TEMP IS 1, X IS 1", "TEMP IS 2, X IS 2", "TEMP IS 3", "HUMIDITY IS 4", "TEMP IS 5"):
        node.publish(parse(reading), 0)
    hear(node, interest("INSTANCE IS 0"))
    sent(node)
    node.wake(SECOND)
    assert [to_text(message.attributes) for _, message in sent(node)] == [
        "TEMP IS 1, X IS 1, TEMP IS 2, X IS 2",
        "TEMP IS 3",
        "HUMIDITY IS 4",
        "TEMP IS 5",
    ]


# 0 --- 1 --- 2 --- 3
def test_reading_with_its_first_key_twice_is_not_aggregated_and_arrives_complete():
    network = Network(Diffusion(), LINE)
    for reading in ("TEMP IS 26", "TEMP IS 1, HUMIDITY IS 2, TEMP IS 30", "TEMP IS 27"):
        network.publish(3, reading)
    both, warm = network.subscribe(0, "TEMP GE 28, HUMIDITY GE 1"), network.subscribe(0, "TEMP GE 25")
    network.advance(1)
    assert taken(both) == ["TEMP IS 1, HUMIDITY IS 2, TEMP IS 30"]
    assert taken(warm) == ["TEMP IS 26", "TEMP IS 1, HUMIDITY IS 2, TEMP IS 30", "TEMP IS 27"]
    assert len(network.hops("data")) == 3 * 3


def test_relay_preserves_the_aggregate_flag_and_filters_get_single_readings():
    halved = Filter("running_minimum", 200, "TEMP GE 25", window=9)
    for is_aggregate, expected in (
        (True, "TEMP IS 26, TEMP IS 10, TEMP IS 26"),
        (False, "TEMP IS 26, TEMP IS 10, TEMP IS 40"),
    ):
        node = make_node(filters=(halved,))
        hear(node, interest("TEMP EQ_ANY"))
        sent(node)
        hear(node, data("TEMP IS 26, TEMP IS 10, TEMP IS 40", is_aggregate=is_aggregate))
        ((_, message),) = sent(node)
        assert (message.is_aggregate, to_text(message.attributes)) == (is_aggregate, expected)


def test_relay_neither_splits_nor_merges_messages():
    node = make_node()
    hear(node, interest("TEMP GE 25"))
    sent(node)
    mixed = "TEMP IS 26, X IS 1, TEMP IS 10, X IS 2"
    hear(node, data(mixed, sequence=1, is_aggregate=True))
    hear(node, data("TEMP IS 27", sequence=2))
    assert [to_text(message.attributes) for _, message in sent(node)] == [mixed, "TEMP IS 27"]


# Black list


def test_neighbor_is_blacklisted_above_the_limit_and_released_below_it_minus_the_hysteresis():
    node = make_node(blacklist_loss=0.5, blacklist_hysteresis=0.1)
    changes = []
    for inbound, outbound in [(1, 0.5), (0.7, 0.7), (0.7, 0.8), (1, 0.6), (1, 0.61), (0.7, 0.8), (0.1, 1), (1, 0.5)]:
        node.link_quality(3, inbound, outbound, 0)
        changes.append([event.value for event in of(Blacklisted, node.take_events())])
    assert changes == [[], [1], [], [], [0], [], [1], []]


def test_everything_from_a_blacklisted_neighbor_is_dropped_and_counted():
    node = make_node(blacklist_loss=0.5)
    hear(node, interest(hop=2, sink=10))
    sent(node)
    node.link_quality(3, 0.1, 1, 0)
    node.take_events()
    assert reasons(hear(node, interest(hop=3))) == ["blacklisted"]
    assert reasons(hear(node, interest(hop=3), unicast=True)) == ["blacklisted"]
    assert reasons(hear(node, data(hop=3))) == ["blacklisted"]
    assert sent(node) == [] and gradients(node) == [[(10, 2)]]
    assert reasons(hear(node, data(hop=4))) == []


def test_blacklisted_neighbor_loses_its_gradients_and_the_next_one_takes_over():
    node = make_node(blacklist_loss=0.5)
    hear(node, interest(hop=2))
    hear(node, interest(hop=3))
    node.link_quality(2, 0.1, 0.1, 0)
    assert of(GradientRemoved, node.take_events()) == [GradientRemoved(2, "interest", 9, 1, 0, "blacklisted")]
    hear(node, data(hop=7, sequence=1))
    assert data_hops(node) == [3]
    node.link_quality(3, 0.1, 0.1, 0)
    assert reasons(hear(node, data(hop=7, sequence=2))) == ["no_gradient"]


def test_no_neighbor_is_blacklisted_at_a_limit_of_one():
    node = make_node(blacklist_loss=1.0)
    node.link_quality(3, 0, 0, 0)
    assert node.take_events() == []


# Invalid frames


def test_frame_whose_previous_hop_is_not_its_sender_is_dropped():
    node = make_node()
    node.receive(wire.encode_interest(interest(hop=2)), 3, 0)
    assert reasons(node.take_events()) == ["previous_hop"]
    assert gradients(node) == []


small = st.integers(0, 4)
texts = st.sampled_from(
    ["TEMP GE 25", "TEMP GE 30", "TEMP GE 25, X EQ 1", "X EQ_ANY", "INTERVAL IS 5", "TEMP NE 1" + ", TEMP NE 2" * 10]
)
readings = st.sampled_from(
    ["TEMP IS 26", "TEMP IS 31, X IS 1", "X IS 1", 'PAYLOAD IS "aa"', "TEMP IS 26" + ", X IS 1" * 11]
)
lifetimes = st.sampled_from([0, 1, 2, 65535])
interests = st.builds(
    interest, texts, small, small, small, round=st.integers(0, 255), ttl=small, expiration_s=lifetimes
)
messages = interests | st.builds(data, readings, small, small, small, ttl=small)


def encode(message):
    return (wire.encode_data if isinstance(message, wire.Data) else wire.encode_interest)(message)


@st.composite
def received_frames(draw):
    """Draw (frame, previous hop, broadcast): mostly valid, sometimes from another node, damaged, truncated or noise."""
    message = draw(messages)
    frame, previous_hop = bytearray(encode(message)), message.previous_hop
    damage = draw(st.integers(0, 9))
    if damage == 0:
        previous_hop = draw(small)
    elif damage == 1:
        frame[draw(st.integers(0, len(frame) - 1))] ^= 1 << draw(st.integers(0, 7))
    elif damage == 2:
        frame = frame[: draw(st.integers(0, len(frame) - 1))]
    elif damage == 3:
        frame = draw(st.binary(max_size=40))
    return bytes(frame), previous_hop, draw(st.booleans())


def test_data_goes_to_a_limited_number_of_neighbors():
    node = make_node(max_next_hops=2)
    for sink in (6, 7, 8, 9):
        hear(node, interest(f"TEMP GE {sink}", hop=sink, sink=sink))
    sent(node)
    assert reasons(hear(node, data(hop=3, source=30))) == ["full"]
    # Neither copy lists the omitted sinks: both neighbors try to serve them.
    assert [(hop, message.listed_sinks) for hop, message in sent(node)] == [(6, (7,)), (7, (6,))]
    assert reasons(hear(node, data(hop=6, source=30, sequence=2))) == ["full"]
    assert data_hops(node) == [7, 8]


def test_subscription_beyond_the_limit_is_refused():
    node = make_node(max_subscriptions=2)
    first, _ = (node.subscribe(parse("TEMP GE 25"), 0) for _ in range(2))
    node.take_frames()
    with pytest.raises(
        ParameterError, match="node 5 already has 2 subscriptions, the most that max_subscriptions allows"
    ):
        node.subscribe(parse("TEMP GE 25"), 0)
    assert not node.outbox
    first.unsubscribe(0)
    assert node.subscribe(parse("TEMP GE 25"), 0).number == 2


def test_neighbor_is_counted_but_not_added_to_a_full_black_list():
    node = make_node(max_black=1)
    for neighbor in (3, 4):
        node.link_quality(neighbor, 0, 0, 0)
    assert reasons(node.take_events()) == ["full"]
    assert node.black_list == [3]


def assert_within_its_sizes(node):
    assert len(node.cache.entries) <= 2
    assert len(node.samples) <= 2 and len(node.seen_data) <= 2 and len(node.seen_interests) <= 3
    for owner in node.cache.entries + node.own_interests:
        assert len(owner.data_gradients.list) <= 2
        assert all(len(gradient.reinforced_for) <= 1 for gradient in owner.data_gradients.list)
    for entry in node.cache.entries:
        assert len(entry.gradients) <= 2


SMALL = {
    "max_interests": 2,
    "max_gradients": 2,
    "max_reinforcements": 2,
    "max_sinks": 1,
    "max_data": 2,
    "max_seen_interests": 3,
}


@settings(max_examples=examples(150))
@given(st.lists(received_frames(), max_size=25), st.sampled_from(["strict", "wide"]), st.integers(1, 3))
def test_all_received_frames_are_accounted_for_and_all_memory_is_bounded(all_heard, profile, exploratory):
    filters = (Filter("running_mean", 200, "TEMP EQ_ANY"), Filter("rate_limit", 201, "X EQ_ANY"))
    node = make_node(
        0, profile=profile, exploratory_gradients=exploratory, filters=filters, blacklist_loss=0.5, **SMALL
    )
    node.link_quality(4, 0, 0, 0)
    node.subscribe(parse("TEMP GE 26"), 0)
    node.publish(parse("TEMP IS 1"), 0)
    node.take_events()
    for now, (frame, previous_hop, broadcast) in enumerate(all_heard):
        node.receive(frame, previous_hop, now * SECOND // 2, broadcast)
        assert node.take_events(), "a frame was lost without a word"
        assert all(destination != 4 for destination, _ in node.take_frames())
        assert_within_its_sizes(node)


@given(st.binary(max_size=40) | messages.map(lambda message: encode(message)[:-1]))
def test_malformed_frame_is_counted_and_dropped(frame):
    node = make_node()
    node.receive(frame, 3, 0)
    try:
        wire.decode(frame)
    except DecodeError:
        assert node.take_events() == [Dropped(3, "", -1, 0, 0, "malformed")]
        assert node.drops == {"malformed": 1} and not node.outbox


# The whole network


@st.composite
def networks(draw):
    """Draw a connected random network; frames of different links arrive in any order, those of one link in order."""
    nx = pytest.importorskip("networkx")
    size = draw(st.integers(2, 12))
    graph = nx.connected_watts_strogatz_graph(size, min(4, size), 0.5, seed=draw(st.integers(0, 999)))
    pick = draw(st.randoms(use_true_random=False))
    return Network(Diffusion(max_gradients=draw(st.integers(4, 10))), graph.edges, choose=pick.randrange)


@settings(max_examples=examples(60))
@given(networks(), st.data())
def test_every_sink_gets_every_matching_reading_once_and_nothing_when_it_has_unsubscribed(network, draw):
    nodes = st.sampled_from(sorted(network.nodes))
    sinks = draw.draw(st.lists(nodes, min_size=1, max_size=4))
    sources = draw.draw(st.lists(nodes, min_size=1, max_size=4, unique=True))
    limits = [draw.draw(st.sampled_from([20, 25, 30])) for _ in sinks]
    subscriptions = [
        network.nodes[sink].subscribe(parse(f"TEMP GE {limit}"), 0) for sink, limit in zip(sinks, limits, strict=True)
    ]
    network.settle()
    published = []
    for number in range(6):
        for source in sources:
            value = 15 + (7 * number + source) % 20
            published.append(value)
            network.nodes[source].publish(parse(f"TEMP IS {value}"), network.now)
            # One at a time: a reading may be lost to a reinforcement that overtakes it (see the node's limits).
            network.settle()
        network.advance(8)  # interests are refreshed every fourth time
    for subscription, limit in zip(subscriptions, limits, strict=True):
        expected = sorted(f"TEMP IS {value}" for value in published if value >= limit)
        assert sorted(taken(subscription)) == expected
    for sink, subscription in zip(sinks, subscriptions, strict=True):
        network.nodes[sink].unsubscribe(subscription, network.now)
    network.settle()
    before = len(network.hops("data"))
    for source in sources:
        network.publish(source, "TEMP IS 40")
    network.advance(200)
    assert len(network.hops("data")) == before
    assert all(not node.cache.entries for node in network.nodes.values())


# Several sinks


def two_sinks(**settings):
    """Return a node with gradients to sink 9 by neighbors 2 and 4, and to sink 6 by neighbors 3 and 4.

    Neighbor 4 is as near to the sinks as the heads.
    """
    node = make_node(**settings)
    for sink, hop in ((9, 2), (6, 3), (9, 4), (6, 4)):
        hear(node, interest(f"TEMP GE {sink}", hop=hop, sink=sink))
    sent(node)
    return node


def test_sinks_share_a_neighbor_that_is_as_near_to_both_as_the_heads():
    node = two_sinks()
    hear(node, data(hop=7))
    assert listed_hops(node) == {4: ()}


def test_sinks_share_no_neighbor_that_is_farther_than_a_head_or_against_a_reinforcement():
    node = make_node()
    for sink, hop, ttl in ((9, 2, 50), (6, 3, 50), (9, 4, 49), (6, 4, 50)):
        hear(node, interest(f"TEMP GE {sink}", hop=hop, sink=sink, ttl=ttl))
    sent(node)
    hear(node, data(hop=7))
    assert listed_hops(node) == {2: (6,), 3: (9,)}
    node = two_sinks()
    hear(node, interest("TEMP GE 9", hop=2, sink=9, sequence=5), unicast=True)
    sent(node)
    hear(node, data(hop=7))
    assert listed_hops(node) == {2: (6,), 3: (9,)}


def test_sink_served_by_another_copy_is_skipped_and_remains_listed():
    node = two_sinks()
    hear(node, data(hop=7, others=(9, 11)))
    assert listed_hops(node) == {3: (9, 11)}
    # The node serves the remaining sinks with the next copy for other sinks.
    assert reasons(hear(node, data(hop=8, others=(6,)))) == []
    assert listed_hops(node) == {2: (6,)}
    assert reasons(hear(node, data(hop=8, others=(6,)))) == ["duplicate"]
    assert reasons(hear(node, data(hop=8))) == ["duplicate"]
    assert not sent(node)


def test_data_ends_at_a_node_if_all_its_sinks_have_copies():
    node = two_sinks()
    assert reasons(hear(node, data(hop=7, others=(6, 9)))) == ["no_gradient"]
    assert not sent(node)


def test_sink_on_the_path_lists_itself_and_a_receiver_is_never_listed():
    node = make_node()
    node.subscribe(parse("TEMP GE 20"), 0)
    for sink in (3, 4):
        hear(node, interest(f"TEMP GE {sink}", hop=sink, sink=sink))
    sent(node)
    hear(node, data(hop=7))
    assert listed_hops(node) == {3: (4, 5), 4: (3, 5)}


@pytest.mark.parametrize(("profile", "room"), [("strict", 7), ("wide", 22)])
def test_list_that_is_too_long_loses_the_sinks_that_this_node_does_not_serve(profile, room):
    node = make_node(profile=profile)
    for sink in (100, 101):
        hear(node, interest(f"TEMP GE {sink - 90}", hop=sink, sink=sink))
    sent(node)
    hear(node, data(hop=7, others=tuple(range(10, 10 + room))))
    other_sinks = tuple(range(10, 9 + room))
    assert listed_hops(node) == {100: (101,) + other_sinks, 101: (100,) + other_sinks}


def test_filter_that_changes_data_decides_for_all_sinks_and_for_later_copies():
    node = two_sinks(filters=(Filter("running_mean", 200, window=2),))
    hear(node, data(hop=7, others=(9,)))
    assert listed_hops(node) == {3: (9,)}  # The first value is its own mean.
    hear(node, data("TEMP IS 30", hop=7, sequence=2, others=(9,)))
    assert sent(node) == [(4, data("TEMP IS 28", hop=5, sequence=2, ttl=49))]
    assert reasons(hear(node, data("TEMP IS 30", hop=7, sequence=2, others=(6,)))) == ["duplicate"]
    hear(node, data("TEMP IS 32", hop=7, sequence=3, others=(9, 6)))
    assert sent(node) == [(4, data("TEMP IS 31", hop=5, sequence=3, ttl=49))]


def test_filter_that_drops_data_drops_its_later_copies_too():
    node = two_sinks(filters=(Filter("rate_limit", 200, interval_s=9.0),))
    hear(node, data(hop=7, others=(9,)))
    assert listed_hops(node) == {3: (9,)}
    assert reasons(hear(node, data(hop=8, others=(6,)))) == []  # like the first copy
    assert listed_hops(node) == {2: (6,)}
    assert reasons(hear(node, data(hop=7, sequence=2, others=(9,)))) == ["filter"]
    assert reasons(hear(node, data(hop=8, sequence=2, others=(6,)))) == ["duplicate"]
    assert not sent(node)


def test_exploration_sends_copies_to_each_sink_and_lists_sinks_served_elsewhere():
    node = two_sinks(exploratory_gradients=2)
    hear(node, data(hop=7))
    assert listed_hops(node) == {4: (), 2: (6,), 3: (9,)}


def test_bit_of_a_removed_sink_is_reused():
    node = make_node(max_interests=1, max_gradients=1)
    hear(node, interest(sink=9, hop=2))
    hear(node, data(hop=7))
    hear(node, interest(sink=9, hop=2, round=1, expiration_s=0))
    hear(node, interest(sink=10, hop=3))
    sent(node)
    hear(node, data(hop=7))
    assert data_hops(node) == [3]
    assert reasons(hear(node, data(hop=7))) == ["duplicate"]


# Reports of the radio


def failed(node, now=0):
    """Report that the frames sent since the last time were not acknowledged; return when the node wakes."""
    for destination, frame in node.take_frames():
        node.sent(destination, frame, False, now)
    return node.next_wake


def test_unacknowledged_data_is_sent_again_through_other_neighbors_at_most_three_times():
    node = make_node()
    for hop in (2, 7, 4):
        hear(node, interest(hop=hop))
    sent(node)
    hear(node, data(hop=7, others=(3,)))
    hops = [node.outbox[0][0]]
    for _ in range(3):
        now = failed(node)
        assert 0 < now <= 2 * SECOND
        node.wake(now)
        ((hop, message),) = sent(node)
        assert message == data(hop=5, ttl=49, others=(3,))
        hops.append(hop)
        node.outbox.append((hop, encode_data(message)))
    assert hops == [2, 4, 2, 4]
    assert failed(node) is None and not node.outbox


def test_data_is_resent_to_the_only_neighbor_but_never_to_its_previous_hop():
    node = make_node()
    for hop in (2, 7):
        hear(node, interest(hop=hop))
    sent(node)
    hear(node, data(hop=7))
    node.wake(failed(node))
    assert data_hops(node) == [2]


def test_acknowledged_or_forgotten_data_and_other_frames_are_not_sent_again():
    node = make_node(max_data=1)
    hear(node, interest(hop=2))
    node.sent(2, b"", False, 0)
    node.sent(2, encode_data(data(hop=3)), False, 0)  # A frame of another node.
    node.sent(2, sent_interest(node), False, 0)
    hear(node, data(hop=7))
    ((hop, frame),) = node.take_frames()
    node.sent(hop, frame, True, 0)
    hear(node, data(hop=7, sequence=2))
    node.sent(hop, frame, False, 0)
    sent(node)
    assert node.next_wake is None and not node.waiting


def sent_interest(node):
    ((_, frame),) = node.take_frames()
    return frame


def test_fifth_waiting_frame_is_sent_again_at_once():
    node = make_node()
    hear(node, interest(hop=2))
    sent(node)
    for sequence in range(5):
        hear(node, data(hop=7, sequence=sequence))
        failed(node)
    assert [message.sequence for _, message in sent(node)] == [4]
    assert len(node.waiting) == 4


# Evicted interests


def test_data_for_an_evicted_interest_is_dropped_with_that_reason():
    node = make_node(max_interests=1)
    hear(node, interest("TEMP GE 25", sink=9))
    assert reasons(hear(node, data("HUMIDITY IS 50", hop=7))) == ["no_interest"]
    events = hear(node, interest("HUMIDITY GE 5", sink=8, sequence=3))
    assert of(InterestRemoved, events) == [InterestRemoved(-1, "interest", 9, 1, 0, "evicted")]
    assert reasons(hear(node, data("TEMP IS 26", hop=7, sequence=2))) == ["evicted"]


# The first gradient of a sink


def test_first_gradient_of_a_sink_is_reported_when_it_changes():
    node = make_node()
    assert of(HeadSet, hear(node, interest(hop=2))) == [HeadSet(2, "interest", 9, 1, 0, "")]
    assert of(HeadSet, hear(node, interest(hop=3))) == []
    assert of(HeadSet, hear(node, interest(hop=3, sequence=4), unicast=True)) == [HeadSet(3, "interest", 9, 1, 1, "")]
    assert of(HeadSet, hear(node, interest(hop=3, sequence=5), unicast=True)) == []
    assert of(HeadSet, hear(node, interest(hop=3, round=1))) == [HeadSet(3, "interest", 9, 1, 0, "")]
    assert of(HeadSet, hear(node, interest(hop=3, round=2))) == []
    hear(node, interest(hop=2, round=2))
    node.link_quality(3, 0.0, 0.0, 0)
    assert of(HeadSet, node.take_events()) == [HeadSet(2, "interest", 9, 1, 0, "")]
    node.link_quality(2, 0.0, 0.0, 0)
    assert of(HeadSet, node.take_events()) == []


def test_gradient_set_by_a_reinforcement_gets_the_number_of_the_next_interest():
    node = make_node()
    hear(node, interest("TEMP GE 20", hop=2, sequence=1))
    events = hear(node, interest("TEMP GE 25", hop=2, sequence=7), unicast=True)
    assert of(HeadSet, events) == [HeadSet(2, "interest", 9, 0, 1, "")]
    events = hear(node, interest("TEMP GE 25", hop=2, sequence=3, round=1))
    assert [event.sequence for event in of(GradientRemoved, events)] == [0]
    assert of(HeadSet, events) == [HeadSet(2, "interest", 9, 3, 0, "")]
