"""TinyDiffusion's interests: how they are flooded, cached, merged, refreshed and ended."""

import pytest

from tests.neighbor import data, data_hops, gradients, hear, interest, make_node, of, reasons, sent
from tests.network import SECOND, Network, taken
from workbench.attributes.text import parse, to_text
from workbench.errors import ParameterError
from workbench.protocols.contract import Forwarded
from workbench.protocols.diffusion import Diffusion, wire
from workbench.protocols.diffusion.events import GradientRemoved, GradientSet, HeadSet, InterestCached, InterestRemoved

LINE = [(0, 1), (1, 2), (2, 3)]

# Flooding


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
    assert [type(event) for event in events] == [InterestCached, GradientSet, HeadSet, Forwarded]
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


def test_own_interest_that_returns_is_dropped_and_sets_no_gradient():
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
    nx = pytest.importorskip("networkx")
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3))
    network = Network(Diffusion(), grid.edges)
    network.subscribe(0, "TEMP GE 25")
    assert sorted(sender for sender, _ in network.hops("interest")) == list(range(9))
    # Each node except the sink hears it from each neighbor; the sink hears all of its own copies.
    assert network.drops() == {"duplicate": 2 * grid.number_of_edges() - 8}


# 0 --- 1 --- 2 --- 3
def test_interest_travels_as_many_hops_as_its_ttl():
    network = Network(Diffusion(ttl=2), LINE)
    network.subscribe(0, "TEMP GE 25")
    assert [len(network.nodes[a].cache.entries) for a in range(4)] == [0, 1, 1, 0]
    assert network.drops(2) == {"ttl": 1}


def test_message_without_remaining_hops_is_ignored():
    node = make_node()
    assert reasons(hear(node, interest(ttl=0))) == ["ttl"]
    assert reasons(hear(node, data(ttl=0))) == ["ttl"]
    assert gradients(node) == [] and sent(node) == []


# Rounds


@pytest.mark.parametrize(
    ("known", "round_", "reason"),
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
def test_newer_round_replaces_the_gradients_and_an_older_one_is_dropped(known, round_, reason):
    node = make_node()
    hear(node, interest(hop=2, round=known))
    sent(node)
    events = hear(node, interest(hop=3, round=round_))
    if reason is None:
        assert gradients(node) == [[(9, 3)]]
        assert of(GradientRemoved, events) == [GradientRemoved(2, "interest", 9, 1, 0, "round")]
        assert [message.round for _, message in sent(node)] == [round_]
    else:
        assert reasons(events) == [reason]
        assert sent(node) == []
        assert gradients(node)[0][0] == (9, 2)


@pytest.mark.parametrize("missed", [1, 127, 128, 160, 255, 256, 300])
def test_round_after_an_outage_of_any_length_is_new(missed):
    node = make_node(refresh_s=30)
    hear(node, interest(hop=2, round=0))
    events = hear(node, interest(hop=3, round=(missed + 1) % 256), now=30 * (missed + 1) * SECOND)
    assert reasons(events) == [] and gradients(node) == [[(9, 3)]]


def test_late_old_round_is_dropped_until_two_refreshes_have_passed():
    node = make_node(refresh_s=30)
    hear(node, interest(hop=2, round=5))
    assert reasons(hear(node, interest(hop=3, round=4), now=60 * SECOND - 1)) == ["stale"]
    assert reasons(hear(node, interest(hop=3, round=4), now=60 * SECOND)) == []


def test_repeated_interest_is_not_evicted_by_interests_heard_once():
    node = make_node(max_seen_interests=3)
    for round_ in range(4):
        now = 2 * round_
        assert reasons(hear(node, interest(hop=2, round=round_), now=now)) == []
        hear(node, interest("TEMP GE 26", sink=20 + round_, hop=2), now=now + 1)
        assert reasons(hear(node, interest(hop=3, round=round_), now=now + 1)) == ["duplicate"]


def test_of_interests_heard_at_once_the_lower_number_is_forgotten():
    node = make_node(max_seen_interests=2)
    for sink in (8, 7, 9):
        hear(node, interest(sink=sink))
    assert [reasons(hear(node, interest(sink=sink))) for sink in (8, 9)] == [["duplicate"], ["duplicate"]]
    assert reasons(hear(node, interest(sink=7))) == []


def test_newer_round_does_not_change_gradients_of_other_sinks():
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


@pytest.mark.parametrize(("most", "sent_interests"), [(0, 1), (1, 2), (3, 4)])
def test_interest_that_no_neighbor_forwards_is_sent_again(most, sent_interests):
    node = make_node(5, max_repeats=most, refresh_s=100)
    node.subscribe(parse("TEMP GE 25"), 0, expires_s=1000)
    sent_messages, times = sent(node), [0]
    while node.next_wake < 100 * SECOND:
        times.append(node.next_wake)
        node.wake(node.next_wake)
        sent_messages += sent(node)
    assert [message.round for _, message in sent_messages] == [0] * sent_interests
    waits = [times[i + 1] - times[i] for i in range(len(times) - 1)]
    assert all(SECOND // 2 <= wait < 3 * SECOND // 2 for wait in waits)
    node.wake(100 * SECOND)
    assert [message.round for _, message in sent(node)] == [1]
    assert (node.next_wake < 102 * SECOND) == (most > 0)


def test_interest_that_a_neighbor_forwards_is_sent_once_per_round():
    node = make_node(5, refresh_s=100)
    node.subscribe(parse("TEMP GE 25"), 0)
    hear(node, interest(sink=5, sequence=0, hop=2, round=255))  # of another round
    hear(node, interest(sink=5, sequence=1, hop=2))  # of another interest
    assert node.next_wake < 2 * SECOND
    hear(node, interest(sink=5, sequence=0, hop=2))
    assert node.next_wake == 100 * SECOND


def test_interest_is_not_refreshed_if_refreshes_are_off():
    network = Network(Diffusion(refresh_s=0), LINE)
    network.subscribe(0, "TEMP GE 25")
    network.advance(10_000)
    assert len(network.hops("interest")) == 4


# 0 --- 1 --- 2 --- 3, then the link 1-2 fails and the path 1-4-2 appears
def test_refresh_finds_a_path_around_a_failed_link():
    network = Network(Diffusion(), LINE + [(1, 4), (4, 2)])
    subscription = network.subscribe(0, "TEMP GE 25")
    network.links -= {(1, 2), (2, 1)}
    network.publish(3, "TEMP IS 26")
    assert taken(subscription) == []
    network.advance(30)
    network.publish(3, "TEMP IS 27")
    assert taken(subscription) == ["TEMP IS 27"]


# Interests with the same constraints


# 0 --- 1 --- 2 --- 3 --- 4
def test_two_sinks_with_the_same_constraints_share_an_entry_and_both_are_served():
    network = Network(Diffusion(), LINE + [(3, 4)])
    first = network.subscribe(0, "TEMP GE 25, HUMIDITY LE 50, INTERVAL IS 10")
    second = network.subscribe(4, "INTERVAL IS 5, HUMIDITY LE 50, TEMP GE 25")
    assert len(network.nodes[2].cache.entries) == 1
    network.publish(2, "TEMP IS 26, HUMIDITY IS 40")
    assert taken(first) == taken(second) == ["TEMP IS 26, HUMIDITY IS 40"]
    assert sorted(network.hops("data")) == [(1, 0), (2, 1), (2, 3), (3, 4)]


def test_subscriptions_of_one_node_with_the_same_constraints_share_an_interest():
    network = Network(Diffusion(), LINE)
    first, second = network.subscribe(0, "TEMP GE 25"), network.subscribe(0, "TEMP GE 25, INTERVAL IS 5")
    network.publish(3, "TEMP IS 26")
    assert taken(first) == taken(second) == ["TEMP IS 26"]
    assert len(network.nodes[3].cache.entries) == 1
    assert len(network.hops("data")) == 3


def test_interest_covered_by_another_one_is_cached_and_flooded_too():
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
def test_second_and_longer_subscription_is_flooded_through_the_network(longer_s):
    network = Network(Diffusion(), LINE)
    short = network.subscribe(0, "TEMP GE 25", expires_s=5)
    long = network.subscribe(0, "TEMP GE 25", expires_s=longer_s)
    network.advance(10)
    network.publish(3, "TEMP IS 26")
    assert (taken(short), taken(long)) == ([], ["TEMP IS 26"])


# Expiry and limits


def test_gradients_expire_separately_and_the_entry_with_the_last_one():
    node = make_node()
    hear(node, interest(sink=8, hop=2, expiration_s=10))
    hear(node, interest(sink=9, hop=3, expiration_s=20))
    events = hear(node, data(sequence=1), now=10 * SECOND)
    assert of(GradientRemoved, events) == [GradientRemoved(2, "interest", 8, 1, 0, "expired")]
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


def test_oldest_interest_is_evicted_from_a_full_cache_and_not_flooded_again():
    node = make_node(max_interests=2)
    for number in (1, 2, 3):
        events = hear(node, interest(f"TEMP GE {number}", sink=number))
    assert [event.detail for event in of(InterestRemoved, events)] == ["evicted"]
    assert [to_text(entry.attributes) for entry in node.cache.entries] == ["TEMP GE 2", "TEMP GE 3"]
    sent(node)
    assert reasons(hear(node, interest("TEMP GE 1", sink=1, hop=4))) == ["duplicate"]
    assert sent(node) == [] and len(node.cache.entries) == 2


def test_new_gradient_is_dropped_if_the_list_is_full():
    node = make_node(max_gradients=2)
    for hop in (1, 2, 3):
        hear(node, interest(hop=hop))
    assert gradients(node) == [[(9, 1), (9, 2)]]


def test_removed_setting_of_old_files_is_ignored_unless_it_dropped_the_path_to_the_sink():
    assert Diffusion(replacement="newcomer") == Diffusion()
    with pytest.raises(ParameterError, match="the parameter replacement was removed; leave it out"):
        Diffusion(replacement="oldest")


def test_first_gradient_of_another_sink_replaces_only_a_spare_one():
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


def test_unsubscribing_does_not_affect_other_sinks_and_subscriptions():
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


def test_unsubscribing_again_sends_nothing_and_raises_nothing():
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
