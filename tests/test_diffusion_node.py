"""TinyDiffusion's node: interests, their cache and its gradients, data on its way to the sinks, the black list."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbor import data, hear, interest, make_node, of, reasons, sent
from network import SECOND, Network, taken

from workbench.attributes import parse, to_text
from workbench.errors import AttributeFormatError, EncodeError, ParameterError
from workbench.protocols.contract import (
    Blacklisted,
    Delivered,
    Dropped,
    Forwarded,
    GradientRemoved,
    GradientSet,
    Held,
    InterestCached,
    InterestRemoved,
    Originated,
)
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.filters import Filter
from workbench.wire import tiny_diffusion as wire

LINE = [(0, 1), (1, 2), (2, 3)]


def gradients(node):
    """[(sink, neighbor), ...] of each cached interest."""
    return [[(gradient.sink, gradient.neighbor) for gradient in entry.gradients] for entry in node.cache.entries]


def data_hops(node):
    return [destination for destination, message in sent(node) if isinstance(message, wire.Data)]


# Interests: flooding


def test_subscription_floods_an_interest():
    node = make_node(5, ttl=7)
    node.subscribe(parse("TEMP GE 25"), 0, expires_s=20)
    assert sent(node) == [(None, wire.Interest(0, 5, 0, 5, 7, 20, parse("TEMP GE 25")))]


@pytest.mark.parametrize(
    ("expires_s", "refresh_s", "expiration_s"),
    [
        (None, 30.0, 150),
        (1000, 30.0, 150),
        (20, 30.0, 20),
        (0.2, 30.0, 1),
        (20.1, 30.0, 21),
        (None, 0.0, 65535),
        (100_000, 0.0, 65535),
        (1000, 0.0, 1000),
    ],
)
def test_expiration_is_relative_and_fits_16_bits(expires_s, refresh_s, expiration_s):
    node = make_node(refresh_s=refresh_s)
    node.subscribe(parse("TEMP GE 25"), 777 * SECOND, expires_s=expires_s)
    assert sent(node)[0][1].expiration_s == expiration_s


def test_new_interest_is_cached_and_passed_on_with_one_hop_less():
    node = make_node(5)
    events = hear(node, interest(hop=2, ttl=50, expiration_s=100), now=SECOND)
    assert [type(event) for event in events] == [InterestCached, GradientSet, Forwarded]
    assert of(GradientSet, events) == [GradientSet(2, "interest", 9, 1, 101 * SECOND, "interest")]
    assert sent(node) == [(None, interest(hop=5, ttl=49, expiration_s=100))]
    assert gradients(node) == [[(9, 2)]]


def test_duplicate_is_dropped_but_its_neighbor_becomes_a_spare_gradient():
    node = make_node()
    hear(node, interest(hop=2))
    sent(node)
    assert reasons(hear(node, interest(hop=3))) == ["duplicate"]
    assert sent(node) == []
    assert gradients(node) == [[(9, 2), (9, 3)]]


def test_own_interest_that_comes_back_is_dropped_and_sets_no_gradient():
    node = make_node(9)
    node.subscribe(parse("TEMP GE 25"), 0)
    sent(node)
    assert reasons(hear(node, interest(sink=9, sequence=0, hop=2))) == ["duplicate"]
    assert reasons(hear(node, interest(sink=9, sequence=77, hop=2))) == ["duplicate"]
    assert sent(node) == [] and gradients(node) == []


# 0 - 1 - 2
# |   |   |
# 3 - 4 - 5
# |   |   |
# 6 - 7 - 8
def test_each_node_sends_an_interest_once():
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3))
    network = Network(Diffusion(), grid.edges)
    network.subscribe(0, "TEMP GE 25")
    assert sorted(sender for sender, _ in network.hops("interest")) == list(range(9))
    # Every node but the sink hears it from each neighbor; the sink hears all of its own copies back.
    assert network.drops() == {"duplicate": 2 * grid.number_of_edges() - 8}


# 0 --- 1 --- 2 --- 3
def test_interest_goes_as_far_as_its_ttl():
    network = Network(Diffusion(ttl=2), LINE)
    network.subscribe(0, "TEMP GE 25")
    assert [len(network.nodes[a].cache.entries) for a in range(4)] == [0, 1, 1, 0]
    assert network.drops(2) == {"ttl": 1}


def test_message_with_no_hop_left_is_not_even_looked_at():
    node = make_node()
    assert reasons(hear(node, interest(ttl=0))) == ["ttl"]
    assert reasons(hear(node, data(ttl=0))) == ["ttl"]
    assert gradients(node) == [] and sent(node) == []


# Interests: rounds


@pytest.mark.parametrize(
    ("known", "heard", "reason"),
    [
        (0, 1, None),
        (255, 0, None),
        (250, 3, None),
        (10, 137, None),
        (10, 138, "stale"),
        (0, 255, "stale"),
        (1, 0, "stale"),
        (3, 250, "stale"),
        (7, 7, "duplicate"),
    ],
)
def test_newer_round_replaces_the_gradients_and_an_older_one_is_dropped(known, heard, reason):
    node = make_node()
    hear(node, interest(hop=2, round=known))
    sent(node)
    events = hear(node, interest(hop=3, round=heard))
    if reason is None:
        assert gradients(node) == [[(9, 3)]]
        assert of(GradientRemoved, events) == [GradientRemoved(2, "interest", 9, 0, 0, "round")]
        assert [message.round for _, message in sent(node)] == [heard]
    else:
        assert reasons(events) == [reason]
        assert sent(node) == []
        assert gradients(node)[0][0] == (9, 2)


def test_newer_round_leaves_the_gradients_of_other_sinks():
    node = make_node()
    hear(node, interest(sink=8, hop=4))
    hear(node, interest(sink=9, hop=2))
    hear(node, interest(sink=9, hop=3, round=1))
    assert gradients(node) == [[(8, 4), (9, 3)]]


# 0 --- 1 --- 2 --- 3
def test_interest_is_refreshed_for_ever_and_its_round_wraps_around():
    network = Network(Diffusion(refresh_s=1), LINE)
    subscription = network.subscribe(0, "TEMP GE 25")
    network.advance(300)
    assert len(network.hops("interest")) == 301 * 4
    rounds = [event.value for node, event in network.events if node == 3 and isinstance(event, InterestCached)]
    assert rounds == [i % 256 for i in range(301)]
    network.publish(3, "TEMP IS 26")
    assert taken(subscription) == ["TEMP IS 26"]


def test_interest_is_not_refreshed_when_that_is_not_wanted():
    network = Network(Diffusion(refresh_s=0), LINE)
    network.subscribe(0, "TEMP GE 25")
    network.advance(10_000)
    assert len(network.hops("interest")) == 4


# 0 --- 1 --- 2 --- 3, then the link 1-2 fails and 1-4-2 is there
def test_refresh_finds_the_way_around_a_link_that_failed():
    network = Network(Diffusion(), [*LINE, (1, 4), (4, 2)])
    subscription = network.subscribe(0, "TEMP GE 25")
    network.links -= {(1, 2), (2, 1)}
    network.publish(3, "TEMP IS 26")
    assert taken(subscription) == []
    network.advance(30)
    network.publish(3, "TEMP IS 27")
    assert taken(subscription) == ["TEMP IS 27"]


# Interests: overlap


# 0 --- 1 --- 2 --- 3 --- 4
def test_two_sinks_with_the_same_constraints_share_an_entry_and_both_are_served():
    network = Network(Diffusion(), [*LINE, (3, 4)])
    one = network.subscribe(0, "TEMP GE 25, HUMIDITY LE 50, INTERVAL IS 10")
    other = network.subscribe(4, "INTERVAL IS 5, HUMIDITY LE 50, TEMP GE 25")
    assert len(network.nodes[2].cache.entries) == 1
    network.publish(2, "TEMP IS 26, HUMIDITY IS 40")
    assert taken(one) == taken(other) == ["TEMP IS 26, HUMIDITY IS 40"]
    assert sorted(network.hops("data")) == [(1, 0), (2, 1), (2, 3), (3, 4)]


def test_subscriptions_of_one_node_with_the_same_constraints_share_an_interest():
    network = Network(Diffusion(), LINE)
    one, other = network.subscribe(0, "TEMP GE 25"), network.subscribe(0, "TEMP GE 25, INTERVAL IS 5")
    network.publish(3, "TEMP IS 26")
    assert taken(one) == taken(other) == ["TEMP IS 26"]
    assert len(network.nodes[3].cache.entries) == 1
    assert len(network.hops("data")) == 3


def test_interest_that_another_one_covers_is_cached_and_flooded_all_the_same():
    node = make_node()
    hear(node, interest("TEMP GE 25", sink=9))
    sent(node)
    events = hear(node, interest("TEMP GE 30", sink=8, hop=3))
    assert reasons(events) == []
    assert len(sent(node)) == 1
    assert gradients(node) == [[(9, 2)], [(8, 3)]]


@pytest.mark.parametrize(("first", "second"), [(100, 10), (10, 100)])
def test_gradient_lives_as_long_as_the_longest_interest_that_set_it(first, second):
    node = make_node()
    hear(node, interest(expiration_s=first))
    hear(node, interest(expiration_s=second))
    hear(node, data(sequence=1), now=99 * SECOND)
    assert data_hops(node) == [2]
    hear(node, data(sequence=2), now=100 * SECOND)
    assert data_hops(node) == []


# 0 --- 1 --- 2 --- 3
@pytest.mark.parametrize("longer_s", [100, None])
def test_second_and_longer_subscription_is_told_to_the_whole_network(longer_s):
    network = Network(Diffusion(), LINE)
    short = network.subscribe(0, "TEMP GE 25", expires_s=5)
    long = network.subscribe(0, "TEMP GE 25", expires_s=longer_s)
    network.advance(10)
    network.publish(3, "TEMP IS 26")
    assert (taken(short), taken(long)) == ([], ["TEMP IS 26"])


# Interests: expiry and limits


def test_each_gradient_expires_by_itself_and_the_entry_with_the_last():
    node = make_node()
    hear(node, interest(sink=8, hop=2, expiration_s=10))
    hear(node, interest(sink=9, hop=3, expiration_s=20))
    events = hear(node, data(sequence=1), now=10 * SECOND)
    assert of(GradientRemoved, events) == [GradientRemoved(2, "interest", 8, 0, 0, "expired")]
    assert gradients(node) == [[(9, 3)]]
    events = hear(node, data(sequence=2), now=20 * SECOND)
    assert [event.detail for event in of(InterestRemoved, events)] == ["expired"]
    assert reasons(events) == ["no_interest"]
    assert gradients(node) == []


def test_longest_expiration_is_65535_seconds():
    node = make_node()
    hear(node, interest(expiration_s=65535))
    hear(node, data(sequence=1, hop=4), now=65535 * SECOND - 1)
    assert data_hops(node) == [2]
    hear(node, data(sequence=2, hop=4), now=65535 * SECOND)
    assert data_hops(node) == []


def test_oldest_interest_leaves_a_full_cache_and_is_not_flooded_again():
    node = make_node(max_interests=2)
    for number in (1, 2, 3):
        events = hear(node, interest(f"TEMP GE {number}", sink=number))
    assert [event.detail for event in of(InterestRemoved, events)] == ["evicted"]
    assert [to_text(entry.attributes) for entry in node.cache.entries] == ["TEMP GE 2", "TEMP GE 3"]
    sent(node)
    assert reasons(hear(node, interest("TEMP GE 1", sink=1, hop=4))) == ["duplicate"]
    assert sent(node) == [] and len(node.cache.entries) == 2


@pytest.mark.parametrize(("replacement", "kept"), [("newcomer", [(9, 1), (9, 2)]), ("oldest", [(9, 2), (9, 3)])])
def test_full_gradient_list_drops_the_newcomer_or_by_choice_the_oldest(replacement, kept):
    node = make_node(max_gradients=2, replacement=replacement)
    for hop in (1, 2, 3):
        hear(node, interest(hop=hop))
    assert gradients(node) == [kept]


def test_first_gradient_of_a_further_sink_takes_the_place_of_a_spare_one_only():
    node = make_node(max_gradients=3)
    for sink, hop in ((7, 1), (7, 2), (8, 1)):
        hear(node, interest(sink=sink, hop=hop))
    hear(node, interest(sink=9, hop=4))
    assert gradients(node) == [[(7, 1), (8, 1), (9, 4)]]
    hear(node, interest(sink=6, hop=4))
    assert gradients(node) == [[(7, 1), (8, 1), (9, 4)]]


# The end of a subscription


# 0 --- 1 --- 2 --- 3
def test_unsubscribing_cancels_the_interest_in_the_whole_network():
    network = Network(Diffusion(), LINE)
    subscription = network.subscribe(0, "TEMP GE 25")
    network.nodes[0].unsubscribe(subscription, network.now)
    network.settle()
    assert [network.nodes[a].cache.entries for a in range(4)] == [[], [], [], []]
    network.publish(3, "TEMP IS 26")
    network.advance(1000)
    assert network.hops("data") == []
    assert len(network.hops("interest")) == 8
    assert network.nodes[0].next_wake is None


def test_unsubscribing_leaves_other_sinks_and_other_subscriptions_alone():
    network = Network(Diffusion(), LINE)
    first, second = network.subscribe(0, "TEMP GE 25"), network.subscribe(0, "TEMP GE 25")
    other_sink, other_interest = network.subscribe(1, "TEMP GE 25"), network.subscribe(0, "HUMIDITY GE 5")
    network.nodes[0].unsubscribe(first, network.now)
    network.publish(3, "TEMP IS 26")
    network.nodes[0].unsubscribe(second, network.now)
    network.settle()
    network.publish(3, "TEMP IS 27")
    network.publish(3, "HUMIDITY IS 6")
    assert (taken(first), taken(second)) == ([], ["TEMP IS 26"])
    assert taken(other_sink) == ["TEMP IS 26", "TEMP IS 27"]
    assert taken(other_interest) == ["HUMIDITY IS 6"]


def test_unsubscribing_twice_is_no_error_and_no_message():
    node = make_node()
    subscription = node.subscribe(parse("TEMP GE 25"), 0)
    node.unsubscribe(subscription, 0)
    sent(node)
    node.unsubscribe(subscription, 0)
    assert sent(node) == []


def test_late_cancellation_does_not_end_the_next_subscription():
    node = make_node()
    hear(node, interest(sequence=1))
    hear(node, interest(sequence=2))
    hear(node, interest(sequence=1, round=1, expiration_s=0))
    assert gradients(node) == [[(9, 2)]]
    hear(node, interest(sequence=2, round=1, expiration_s=0))
    assert gradients(node) == []


# 0 --- 1 --- 2 --- 3
def test_data_stops_when_the_subscription_expires():
    network = Network(Diffusion(), LINE)
    subscription = network.subscribe(0, "TEMP GE 25", expires_s=50)
    network.advance(49.9)
    network.publish(3, "TEMP IS 26")
    network.advance(1)  # a gradient's life is counted in whole seconds
    network.publish(3, "TEMP IS 27")
    assert taken(subscription) == ["TEMP IS 26"]
    assert len(network.hops("data")) == 3
    network.advance(200)
    assert len(network.hops("interest")) == 2 * 4
    assert network.nodes[0].next_wake is None


# What cannot be asked for or offered


def test_wrong_subscription_leaves_no_trace():
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
    with pytest.raises(ParameterError, match="node 5 already has 1 different subscriptions, which is max_interests"):
        node.subscribe(parse("TEMP GE 26"), 0)


def test_wrong_publication_leaves_no_trace():
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


def test_subscription_that_constrains_nothing_may_be_meant():
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


def test_filters_that_are_none_are_refused():
    with pytest.raises(ParameterError, match="filters"):
        Diffusion(filters=("running_mean",))


# Data: where it goes


def test_data_goes_to_the_head_of_the_gradient_list_alone():
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


def test_data_goes_once_to_each_neighbor_that_some_matching_interest_names_and_never_back():
    node = make_node()
    for sink, hop, what in [(10, 1, "TEMP GE 20"), (11, 1, "TEMP GE 21"), (12, 2, "TEMP GE 20"), (13, 3, "TEMP GE 22"),
                            (14, 4, "TEMP GE 27"), (15, 6, "HUMIDITY GE 5")]:  # fmt: skip
        hear(node, interest(what, sink=sink, hop=hop))
    hear(node, data("TEMP IS 26", hop=3))
    assert sorted(data_hops(node)) == [1, 2]
    hear(node, data("TEMP IS 27", hop=7, sequence=2))
    assert sorted(data_hops(node)) == [1, 2, 3, 4]


def test_data_with_no_way_on_but_back_is_dropped_with_a_reason():
    node = make_node()
    hear(node, interest(hop=3))
    events = hear(node, data(hop=3))
    assert data_hops(node) == []
    assert reasons(events) == ["no_gradient"]


def test_data_nobody_asked_for_is_dropped_with_a_reason():
    node = make_node()
    hear(node, interest("TEMP GE 30"))
    sent(node)
    assert reasons(hear(node, data("TEMP IS 26"))) == ["no_interest"]
    assert sent(node) == []


def test_data_the_node_subscribed_to_is_delivered_and_passed_on_to_further_sinks():
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
def test_data_counts_its_hops_and_goes_as_far_as_its_ttl(ttl):
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
    ("one", "other"),
    [((0x0107, 1), (0x0007, 1)), ((8, 1), (8, 0x01000001)), ((8, 1), (1, 8)), ((1, 0), (0, 1))],
)
def test_sources_and_sequence_numbers_are_told_apart_in_all_their_bits(one, other):
    node = make_node()
    hear(node, interest())
    for source, sequence in (one, other):
        assert reasons(hear(node, data(source=source, sequence=sequence))) == []


def test_first_message_of_node_zero_counts_as_new():
    node = make_node()
    hear(node, interest(sink=0, sequence=0))
    assert gradients(node) == [[(0, 2)]]
    assert reasons(hear(node, data(source=0, sequence=0))) == []


def test_data_list_forgets_the_oldest_first():
    node = make_node(max_data=2)
    hear(node, interest())
    outcomes = [reasons(hear(node, data(sequence=sequence))) for sequence in (1, 2, 1, 3, 2, 1)]
    assert outcomes == [[], [], ["duplicate"], [], ["duplicate"], []]


def test_own_data_that_comes_back_is_a_duplicate_however_late():
    node = make_node(5, max_data=1)
    hear(node, interest())
    for value in (26, 27):
        node.publish(parse(f"TEMP IS {value}"), 0)
    (_, first), _ = [(to, message) for to, message in sent(node) if isinstance(message, wire.Data)]
    assert reasons(hear(node, data(source=5, sequence=first.sequence))) == ["duplicate"]


# Data: samples that wait, aggregation


# 0 --- 1 --- 2 --- 3
def test_sample_nobody_wants_waits_and_is_sent_a_tick_after_an_interest_arrives():
    network = Network(Diffusion(), LINE)
    network.publish(3, "TEMP IS 26")
    network.advance(100)
    assert network.nodes[3].next_wake is None
    other = network.subscribe(0, "HUMIDITY GE 5")
    subscription = network.subscribe(0, "TEMP GE 25")
    network.advance(0.999)
    assert network.hops("data") == []
    network.advance(0.001)
    assert (taken(subscription), taken(other)) == (["TEMP IS 26"], [])


def test_sample_that_waits_is_found_by_a_subscription_of_the_same_node():
    network = Network(Diffusion(), LINE)
    network.publish(3, "TEMP IS 26")
    subscription = network.subscribe(3, "TEMP GE 25")
    network.advance(1)
    assert taken(subscription) == ["TEMP IS 26"]


def test_oldest_sample_gives_way_when_too_many_wait():
    network = Network(Diffusion(max_data=2), LINE)
    for value in (26, 27, 28):
        network.publish(3, f"TEMP IS {value}")
    assert network.drops(3) == {"no_interest": 1}
    subscription = network.subscribe(0, "TEMP GE 25")
    network.advance(1)
    assert taken(subscription) == ["TEMP IS 27", "TEMP IS 28"]


# 0 --- 1 --- 2 --- 3
def test_samples_travel_together_and_the_sink_is_handed_those_that_match():
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


def test_samples_that_do_not_fit_or_begin_otherwise_travel_by_themselves():
    node = make_node(profile="strict")
    for what in ("TEMP IS 1, X IS 1", "TEMP IS 2, X IS 2", "TEMP IS 3", "HUMIDITY IS 4", "TEMP IS 5"):
        node.publish(parse(what), 0)
    hear(node, interest("INSTANCE IS 0"))
    sent(node)
    node.wake(SECOND)
    assert [to_text(message.attributes) for _, message in sent(node)] == [
        "TEMP IS 1, X IS 1, TEMP IS 2, X IS 2",
        "TEMP IS 3",
        "HUMIDITY IS 4",
        "TEMP IS 5",
    ]


def test_relay_neither_splits_nor_merges():
    node = make_node()
    hear(node, interest("TEMP GE 25"))
    sent(node)
    mixed = "TEMP IS 26, X IS 1, TEMP IS 10, X IS 2"
    hear(node, data(mixed, sequence=1))
    hear(node, data("TEMP IS 27", sequence=2))
    assert [to_text(message.attributes) for _, message in sent(node)] == [mixed, "TEMP IS 27"]


# Black list


def test_neighbor_is_black_above_the_limit_and_good_again_below_it_less_the_hysteresis():
    node = make_node(blacklist_loss=0.5, blacklist_hysteresis=0.1)
    changes = []
    for inbound, outbound in [(1, 0.5), (0.7, 0.7), (0.7, 0.8), (1, 0.6), (1, 0.61), (0.7, 0.8), (0.1, 1), (1, 0.5)]:
        node.link_quality(3, inbound, outbound, 0)
        changes.append([event.value for event in of(Blacklisted, node.take_events())])
    assert changes == [[], [1], [], [], [0], [], [1], []]


def test_everything_from_a_black_neighbor_is_dropped_and_counted():
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


def test_neighbor_that_turns_black_loses_its_gradients_and_the_next_one_takes_over():
    node = make_node(blacklist_loss=0.5)
    hear(node, interest(hop=2))
    hear(node, interest(hop=3))
    node.link_quality(2, 0.1, 0.1, 0)
    assert of(GradientRemoved, node.take_events()) == [GradientRemoved(2, "interest", 9, 0, 0, "blacklisted")]
    hear(node, data(hop=7, sequence=1))
    assert data_hops(node) == [3]
    node.link_quality(3, 0.1, 0.1, 0)
    assert reasons(hear(node, data(hop=7, sequence=2))) == ["no_gradient"]


def test_no_neighbor_is_black_at_a_limit_of_one():
    node = make_node(blacklist_loss=1.0)
    node.link_quality(3, 0, 0, 0)
    assert node.take_events() == []


# Frames that are wrong


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
interests = st.builds(interest, texts, hop=small, sink=small, sequence=small, round=st.integers(0, 255), ttl=small,
                      expiration_s=st.sampled_from([0, 1, 2, 65535]))  # fmt: skip
all_data = st.builds(data, readings, hop=small, source=small, sequence=small, ttl=small)
frames = interests.map(wire.encode_interest) | all_data.map(wire.encode_data)


@st.composite
def heard(draw):
    """(frame, previous hop, broadcast): a sound frame, one with a flipped bit or cut short, or noise."""
    frame = bytearray(draw(frames | st.binary(max_size=40)))
    damage = draw(st.integers(0, 7))
    if damage == 0 and frame:
        frame[draw(st.integers(0, len(frame) - 1))] ^= 1 << draw(st.integers(0, 7))
    if damage == 1:
        del frame[draw(st.integers(0, len(frame))) :]
    return bytes(frame), draw(small), draw(st.booleans())


def assert_within_its_sizes(node):
    assert len(node.cache.entries) <= 2
    assert len(node.samples) <= 2 and len(node.seen_data) <= 2 and len(node.seen_interests) <= 3
    for owner in [*node.cache.entries, *node.own_interests]:
        assert len(owner.data_gradients.list) <= 2
    for entry in node.cache.entries:
        assert len(entry.gradients) <= 2


SMALL = {"max_interests": 2, "max_gradients": 2, "max_reinforcements": 2, "max_data": 2, "max_seen_interests": 3}


@settings(max_examples=150)
@given(st.lists(heard(), max_size=25), st.sampled_from(["strict", "wide"]), st.sampled_from(["newcomer", "oldest"]))
def test_whatever_is_heard_is_accounted_for_and_no_memory_outgrows_its_size(all_heard, profile, replacement):
    filters = (Filter("running_mean", 200, "TEMP EQ_ANY"), Filter("rate_limit", 201, "X EQ_ANY"))
    node = make_node(0, profile=profile, replacement=replacement, filters=filters, blacklist_loss=0.5, **SMALL)
    node.link_quality(4, 0, 0, 0)
    node.subscribe(parse("TEMP GE 26"), 0)
    node.publish(parse("TEMP IS 1"), 0)
    node.take_events()
    for now, (frame, previous_hop, broadcast) in enumerate(all_heard):
        node.receive(frame, previous_hop, now * SECOND // 2, broadcast)
        assert node.take_events(), "a frame was lost without a word"
        assert all(destination != 4 for destination, _ in node.take_frames())
        assert_within_its_sizes(node)
        try:
            wire.decode(frame)
        except wire.DecodeError:
            continue


@given(
    st.binary(max_size=40)
    | frames.flatmap(lambda frame: st.integers(0, len(frame) - 1).map(frame.__getitem__).map(lambda _: frame[:-1]))
)
def test_malformed_frame_is_counted_and_dropped(frame):
    node = make_node()
    node.receive(frame, 3, 0)
    events = node.take_events()
    try:
        wire.decode(frame)
    except wire.DecodeError:
        assert events == [Dropped(3, "", -1, 0, 0, "malformed")]


# The whole network


@st.composite
def networks(draw):
    """A connected random graph whose links deliver in any order, each first in first out."""
    size = draw(st.integers(2, 12))
    graph = nx.connected_watts_strogatz_graph(size, min(4, size), 0.5, seed=draw(st.integers(0, 999)))
    pick = draw(st.randoms(use_true_random=False))
    return Network(Diffusion(max_gradients=draw(st.integers(4, 10))), graph.edges, choose=pick.randrange)


@settings(max_examples=60)
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
        network.settle()
        network.advance(8)  # every fourth time the interests are refreshed
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
