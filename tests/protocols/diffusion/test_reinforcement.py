"""TinyDiffusion's reinforcement: its path, its constraints, and its effect on gradients."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.neighbor import data, hear, interest, make_node, next_hops, of, reasons, sent
from tests.network import SECOND, Network, taken
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError, EncodeError
from workbench.protocols.contract import Dropped
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.events import (
    DataGradientSet,
    GradientRemoved,
    GradientSet,
    InterestRemoved,
    Reinforced,
)
from workbench.protocols.diffusion.wire import Interest

LINE = [(0, 1), (1, 2), (2, 3)]
DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]


def heads(node):
    """Return the next hops of data for each cached interest."""
    return [sorted(set(next_hops(entry))) for entry in node.cache.entries]


def reinforcements(node):
    return [destination for destination, message in sent(node) if destination is not None and type(message) is Interest]


def cached(*hops, **settings):
    """Return a node that heard an interest of sink 9 from these neighbors."""
    node = make_node(**settings)
    for hop in hops:
        hear(node, interest(hop=hop))
    sent(node)
    return node


# The path of a reinforcement


# 0 --- 1 --- 2 --- 3      sink 0, source 3
def test_reinforcement_goes_hop_by_hop_from_the_sink_to_the_source():
    network = Network(Diffusion(), LINE)
    network.subscribe(0, "TEMP GE 25")
    network.publish(3, "TEMP IS 26")
    assert network.hops("reinforcement") == [(0, 1), (1, 2), (2, 3)]
    reinforced = [(node, event.peer, event.value) for node, event in network.events if isinstance(event, Reinforced)]
    assert reinforced == [(0, 1, 3), (1, 2, 3), (2, 3, 3)]
    towards_sink = [
        (n, e.peer) for n, e in network.events if isinstance(e, GradientSet) and e.detail == "reinforcement"
    ]
    assert towards_sink == [(1, 0), (2, 1), (3, 2)]


def test_reinforcement_is_an_interest_message_sent_to_one_neighbor():
    node = make_node(5, ttl=7)
    node.subscribe(parse("TEMP GE 25, INTERVAL IS 10"), 0, expires_s=60)
    sent(node)
    hear(node, data(hop=3), now=SECOND)
    assert sent(node) == [(3, Interest(1, 5, 0, 5, 7, 59, parse("TEMP GE 25, INTERVAL IS 10")))]


#     1
#   /   \
# 0       3 --- 4      sink 0, source 4
#   \   /
#     2
def test_exploration_ends_when_a_path_is_reinforced():
    network = Network(Diffusion(exploratory_gradients=2, max_gradients=2), DIAMOND)
    subscription = network.subscribe(0, "TEMP GE 25")
    network.publish(4, "TEMP IS 26")
    explored = network.hops("data")
    assert {(3, 1), (3, 2)} <= set(explored)
    network.sent.clear()
    network.publish(4, "TEMP IS 27")
    assert network.hops("data") == [(4, 3), (3, 1), (1, 0)]
    assert taken(subscription) == ["TEMP IS 26", "TEMP IS 27"]


def test_neighbor_of_the_first_new_copy_is_reinforced():
    node = make_node()
    node.subscribe(parse("TEMP GE 25"), 0)
    sent(node)
    events = hear(node, data(hop=3, sequence=1)) + hear(node, data(hop=4, sequence=1))
    assert of(DataGradientSet, events) == [DataGradientSet(3, "data", 8, 1, 0, "")]
    assert reinforcements(node) == [3]


def test_reinforced_gradient_becomes_the_first_one():
    node = cached(2, 3, 4)
    assert heads(node) == [[2]]
    events = hear(node, interest(hop=4, sequence=2, expiration_s=50), unicast=True)
    assert of(GradientSet, events) == [GradientSet(4, "reinforcement", 9, 2, 100 * SECOND, "reinforcement")]
    assert heads(node) == [[4]]
    assert next_hops(node.cache.entries[0], exploratory=3) == [4]


def test_each_source_is_reinforced_by_its_own_first_hop():
    node = cached(2)
    for source, hop in ((7, 3), (8, 4), (6, 4), (1, 2)):
        hear(node, data(source=source, hop=hop))
    sent(node)
    hear(node, interest(hop=2, sequence=2), unicast=True)
    assert reinforcements(node) == [3, 4]  # once to each of them, never back


def test_source_is_reinforced_once_a_round():
    network = Network(Diffusion(), LINE)
    network.subscribe(0, "TEMP GE 25")
    for _ in range(5):
        network.publish(3, "TEMP IS 26")
    assert network.hops("reinforcement") == [(0, 1), (1, 2), (2, 3)]
    network.advance(30)
    for _ in range(5):
        network.publish(3, "TEMP IS 26")
    assert network.hops("reinforcement") == [(0, 1), (1, 2), (2, 3)] * 2


@pytest.mark.parametrize(("after", "expected"), [(0, []), (1, [3]), (3, [3])])
def test_source_is_reinforced_after_so_many_messages(after, expected):
    node = make_node(reinforce_after=after)
    node.subscribe(parse("TEMP GE 25"), 0)
    sent(node)
    for sequence in range(1, 4):
        assert reinforcements(node) == []
        hear(node, data(sequence=sequence))
        if sequence == max(after, 1):
            break
    assert reinforcements(node) == expected


def test_new_round_cancels_a_reinforcement_and_allows_another_one():
    node = cached(2, 3)
    hear(node, data(hop=7))
    hear(node, interest(hop=3, sequence=2), unicast=True)
    assert heads(node) == [[3]]
    events = hear(node, interest(hop=2, round=1))
    assert {(event.peer, event.detail) for event in of(GradientRemoved, events)} == {(2, "round"), (3, "round")}
    assert heads(node) == [[2]]
    sent(node)
    hear(node, interest(hop=2, sequence=3, round=1), unicast=True)
    assert reinforcements(node) == [7]


def test_reinforced_gradient_expires_like_any_other():
    node = cached()
    hear(node, interest(hop=2, expiration_s=100))
    hear(node, interest(hop=3, sequence=2, expiration_s=10), unicast=True)
    sent(node)
    for seconds, sequence, hop in ((9, 1, 3), (10, 2, 2)):
        hear(node, data(hop=7, sequence=sequence), now=seconds * SECOND)
        assert [destination for destination, _ in sent(node)] == [hop]


def test_reinforcement_that_overtakes_its_round_is_still_valid_when_the_interest_arrives():
    node = cached(2, 3)
    hear(node, data(hop=7))
    hear(node, interest(hop=3, sequence=2, round=1), unicast=True)
    events = hear(node, interest(hop=2, round=1))
    assert [(event.peer, event.detail) for event in of(GradientRemoved, events)] == [(2, "round")]
    assert heads(node) == [[3]]
    hear(node, interest(hop=2, round=2))
    assert heads(node) == [[2]]


def test_path_of_a_renewed_subscription_is_dropped_despite_the_same_round_number():
    node = cached(2, 3)
    hear(node, interest(hop=3, sequence=2), unicast=True)
    hear(node, interest(hop=2, sequence=5))
    assert heads(node) == [[2]]


def test_reinforcement_of_an_older_round_than_the_interests_is_dropped():
    node = cached(2, 3)
    hear(node, interest(hop=2, round=1))
    assert reasons(hear(node, interest(hop=3, sequence=2, round=0), unicast=True)) == ["stale"]
    assert heads(node) == [[2]]


def test_reinforcements_do_not_evict_the_interest_from_the_list_of_seen_messages():
    node = cached(2)
    for sequence in range(2, 102):
        hear(node, interest(hop=3, sequence=sequence), unicast=True)
    assert reasons(hear(node, interest(hop=4))) == ["duplicate"]
    assert heads(node) == [[3]]


# Constraints of reinforcements


@pytest.mark.parametrize(
    ("constraints", "reason"),
    [
        ("TEMP GE 25, TEMP LE 40", []),
        ("TEMP LE 40, TEMP GE 25, INTERVAL IS 1", []),
        ("TEMP GE 30, TEMP LE 40", []),
        ("TEMP EQ 30", []),
        ("TEMP GE 25, TEMP LE 40, INSTANCE EQ 3", []),
        ("TEMP GE 25", ["no_interest"]),
        ("TEMP GE 24, TEMP LE 40", ["no_interest"]),
        ("TEMP EQ_ANY", ["no_interest"]),
        ("INSTANCE EQ 3", ["no_interest"]),
        ("INTERVAL IS 1", ["no_interest"]),
    ],
)
def test_reinforcement_that_is_not_within_a_cached_interest_is_dropped(constraints, reason):
    node = make_node()
    hear(node, interest("TEMP GE 25, TEMP LE 40, INTERVAL IS 10", hop=2))
    events = hear(node, interest(constraints, hop=3, sequence=2), unicast=True)
    assert reasons(events) == reason
    assert bool(of(GradientSet, events)) is not bool(reason)


def test_reinforcement_without_an_interest_is_dropped():
    node = make_node()
    assert reasons(hear(node, interest(), unicast=True)) == ["no_interest"]
    assert node.cache.entries == []


def test_narrower_reinforcement_goes_to_its_sources_and_moves_only_their_data():
    node = cached(2)
    hear(node, data("TEMP IS 26, INSTANCE IS 3", source=7, hop=3))
    hear(node, data("TEMP IS 26, INSTANCE IS 4", source=8, hop=4))
    sent(node)
    hear(node, interest("TEMP GE 25, INSTANCE EQ 4", hop=6, sequence=2), unicast=True)
    assert reinforcements(node) == [4]
    hear(node, data("TEMP IS 27, INSTANCE IS 3", source=7, hop=3, sequence=2))
    assert [destination for destination, _ in sent(node)] == [2]
    hear(node, data("TEMP IS 27, INSTANCE IS 4", source=8, hop=4, sequence=2))
    assert sorted(destination for destination, _ in sent(node)) == [2, 6]


def test_neighbor_gets_a_reinforcement_once_for_any_number_of_covering_interests():
    node = make_node()
    hear(node, interest("TEMP GE 20", hop=2, sequence=1))
    hear(node, interest("INSTANCE EQ 4", hop=2, sequence=2))
    hear(node, data("TEMP IS 26, INSTANCE IS 4", hop=3))
    sent(node)
    events = hear(node, interest("TEMP GE 25, INSTANCE EQ 4", hop=2, sequence=3), unicast=True)
    assert reinforcements(node) == [3]
    assert len(of(Reinforced, events)) == 1


# 0 --- 1 --- 2 --- 3      sink 0, sources 2 and 3
def test_sink_reinforces_a_part_of_its_interest():
    network = Network(Diffusion(reinforce_after=0), LINE)
    subscription = network.subscribe(0, "TEMP GE 25")
    network.publish(2, "TEMP IS 26, INSTANCE IS 2")
    network.publish(3, "TEMP IS 26, INSTANCE IS 3")
    assert network.nodes[0].reinforce(subscription, 0, parse("TEMP GE 25, INSTANCE EQ 3")) == 1
    network.settle()
    assert network.hops("reinforcement") == [(0, 1), (1, 2), (2, 3)]
    assert [to_text(entry.attributes) for entry in network.nodes[3].cache.entries] == [
        "TEMP GE 25",
        "TEMP GE 25, INSTANCE EQ 3",
    ]
    network.publish(3, "TEMP IS 27, INSTANCE IS 3")
    assert len(taken(subscription)) == 3


def test_part_of_an_interest_is_reinforced_to_the_source_in_every_round():
    network = Network(Diffusion(), LINE)
    subscription = network.subscribe(0, "TEMP GE 25")
    for _ in range(4):
        network.publish(3, "TEMP IS 31")
        network.sent.clear()
        network.nodes[0].reinforce(subscription, network.now, parse("TEMP GE 30"))
        network.settle()
        assert network.hops("reinforcement") == [(0, 1), (1, 2), (2, 3)]
        network.advance(30)


def test_sink_may_reinforce_at_any_time():
    node = make_node(reinforce_after=0)
    subscription = node.subscribe(parse("TEMP GE 25"), 0)
    assert node.reinforce(subscription, 0) == 0
    hear(node, data(hop=3))
    assert node.reinforce(subscription, 0) == 1
    assert node.reinforce(subscription, 0) == 1
    assert reinforcements(node) == [3, 3]
    node.unsubscribe(subscription, 0)
    assert node.reinforce(subscription, 0) == 0


def test_sink_cannot_reinforce_more_than_its_interest_or_than_fits():
    node = make_node(profile="strict")
    subscription = node.subscribe(parse("TEMP GE 25"), 0)
    hear(node, data("TEMP IS 26, X IS 1", hop=3))
    sent(node)
    with pytest.raises(AttributeFormatError, match="TEMP GE 20 is less constrained than the subscription TEMP GE 25"):
        node.reinforce(subscription, 0, parse("TEMP GE 20"))
    with pytest.raises(EncodeError, match="strict"):
        node.reinforce(subscription, 0, parse("TEMP GE 26, X NE 5, X NE 6, X NE 7, X NE 8"))
    assert sent(node) == []


# Several reinforcements


def test_newer_reinforcement_wins_and_an_older_one_is_dropped():
    node = cached(2, 3, 4)
    hear(node, interest(hop=3, sequence=7), unicast=True)
    hear(node, interest(hop=4, sequence=9), unicast=True)
    assert heads(node) == [[4]]
    assert reasons(hear(node, interest(hop=2, sequence=8), unicast=True)) == ["stale"]
    assert heads(node) == [[4]]
    assert next_hops(node.cache.entries[0], exploratory=5) == [4]


def test_reinforcement_heard_again_is_a_duplicate():
    node = cached(2, 3)
    hear(node, interest(hop=3, sequence=2), unicast=True)
    assert reasons(hear(node, interest(hop=2, sequence=2), unicast=True)) == ["duplicate"]
    assert heads(node) == [[3]]


def test_own_reinforcement_that_returns_is_a_duplicate():
    node = make_node(9)
    node.subscribe(parse("TEMP GE 25"), 0)
    hear(node, interest(sink=8, hop=2))
    assert reasons(hear(node, interest(sink=9, hop=2, sequence=50), unicast=True)) == ["duplicate"]


def test_reinforcement_of_one_sink_does_not_change_the_gradients_of_another():
    node = make_node()
    for sink, hop in ((8, 1), (9, 2), (8, 2), (9, 1)):
        hear(node, interest(sink=sink, hop=hop))
    hear(node, interest(sink=9, hop=1, sequence=2), unicast=True)
    by_sink = {sink: [g.neighbor for g in node.cache.entries[0].gradients if g.sink == sink] for sink in (8, 9)}
    assert by_sink == {8: [1, 2], 9: [1, 2]}
    assert heads(node) == [[1]]


# Limits


def test_reinforced_gradient_replaces_the_slowest_one_of_a_full_list():
    node = cached(2, 3, max_gradients=2)
    events = hear(node, interest(hop=4, sequence=2), unicast=True)
    assert of(GradientRemoved, events) == [GradientRemoved(3, "interest", 9, 1, 0, "evicted")]
    assert [gradient.neighbor for gradient in node.cache.entries[0].gradients] == [4, 2]


def test_reinforced_gradient_does_not_replace_the_only_one_of_another_sink():
    node = make_node(max_gradients=3)
    for sink, hop in ((9, 2), (9, 3), (8, 1)):
        hear(node, interest(sink=sink, hop=hop))
    hear(node, interest(sink=9, hop=4, sequence=2), unicast=True)
    assert [(g.sink, g.neighbor) for g in node.cache.entries[0].gradients] == [(9, 4), (9, 2), (8, 1)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_data_gradients_of_the_oldest_sources_are_replaced(size):
    node = cached(2, max_reinforcements=size)
    for source in (11, 12, 13):
        hear(node, data(source=source, hop=source))
    sent(node)
    hear(node, interest(hop=2, sequence=2), unicast=True)
    assert reinforcements(node) == [11, 12, 13][-size:]


@pytest.mark.parametrize("size", [1, 2])
def test_reinforcement_of_another_sink_is_dropped_if_its_source_is_full(size):
    node = make_node(max_sinks=size)
    for sink in (7, 8, 9):
        hear(node, interest(hop=sink, sink=sink))
    hear(node, data(source=11, hop=3))
    sent(node)
    event_lists = [hear(node, interest(hop=sink, sink=sink, sequence=2), unicast=True) for sink in (7, 8, 9)]
    assert [reasons(events) for events in event_lists] == [[]] * size + [["full"]] * (3 - size)
    assert of(Dropped, event_lists[2]) == [Dropped(3, "reinforcement", 9, 2, 0, "full")]
    assert reinforcements(node) == [3] * size
    # The next round of a sink's interest frees its entry.
    hear(node, interest(hop=7, sink=7, round=1))
    assert reasons(hear(node, interest(hop=9, sink=9, sequence=3), unicast=True)) == []
    assert reinforcements(node) == [3]


def test_reinforcement_without_remaining_hops_is_dropped_instead_of_forwarded():
    node = cached(2)
    assert reasons(hear(node, interest(hop=2, sequence=2, ttl=1), unicast=True)) == []
    hear(node, data(hop=3))
    sent(node)
    assert reasons(hear(node, interest(hop=2, sequence=3, ttl=1), unicast=True)) == ["ttl"]
    assert reinforcements(node) == []


def test_reinforcement_is_forwarded_to_a_limited_number_of_neighbors():
    node = cached(2, max_next_hops=2)
    for source in (11, 12, 13, 14):
        hear(node, data(source=source, hop=min(source, 13)))
    sent(node)
    events = hear(node, interest(hop=2, sequence=2), unicast=True)
    assert [event.peer for event in of(Dropped, events)] == [13, 13]
    assert reasons(events) == ["full", "full"]
    assert reinforcements(node) == [11, 12]


def test_wrong_reinforcement_of_an_application_does_not_change_the_node():
    node = make_node(profile="strict", max_attributes=5)
    subscription = node.subscribe(parse("TEMP GE 25"), 0)
    hear(node, data(hop=3))
    sent(node)
    for wrong, error in [
        ("TEMP GE 26, X NE 5, X NE 6, X NE 7, X NE 8", EncodeError),
        ("TEMP GE 26, X NE 4, X NE 5, X NE 6, X NE 7, X NE 8", AttributeFormatError),
    ]:
        with pytest.raises(error):
            node.reinforce(subscription, 0, parse(wrong))
    assert not node.outbox and not node.take_events()
    assert node.own_interests[0].data_gradients.list[0].reinforced_for == (5,)


@pytest.mark.parametrize("unicast", [False, True])
def test_interest_message_too_long_for_the_nodes_profile_is_dropped(unicast):
    node = cached(2, profile="strict")
    hear(node, data("TEMP IS 26, X IS 1", hop=3))
    sent(node)
    long = interest("TEMP GE 25, X NE 5, X NE 6, X NE 7, X NE 8", hop=2, sequence=2)
    assert reasons(hear(node, long, unicast=unicast)) == ["too_long"]
    assert not node.outbox and len(node.cache.entries) == 1


def test_reinforcement_towards_a_blacklisted_neighbor_is_dropped_and_counted():
    node = cached(2, blacklist_loss=0.5)
    hear(node, data(source=7, hop=3))
    hear(node, data(source=8, hop=4))
    node.link_quality(3, 0.1, 0.1, 0)
    sent(node)
    assert reasons(hear(node, interest(hop=2, sequence=2), unicast=True)) == ["blacklisted"]
    assert reinforcements(node) == [4]


# The end of reinforced subscriptions


# 0 --- 1 --- 2 --- 3      sink 0, source 3
def test_unsubscribing_ends_narrower_reinforcements_too():
    network = Network(Diffusion(), LINE)
    subscription = network.subscribe(0, "TEMP GE 25")
    network.publish(3, "TEMP IS 31")
    network.nodes[0].reinforce(subscription, 0, parse("TEMP GE 30"))
    network.settle()
    assert [len(network.nodes[a].cache.entries) for a in (1, 2, 3)] == [2, 2, 2]
    network.nodes[0].unsubscribe(subscription, 0)
    network.settle()
    assert [len(network.nodes[a].cache.entries) for a in (1, 2, 3)] == [0, 0, 0]
    assert {event.detail for _, event in network.events if isinstance(event, InterestRemoved)} == {"cancelled"}
    network.sent.clear()
    network.publish(3, "TEMP IS 32")
    assert network.hops("data") == []


def test_unsubscribing_does_not_end_a_narrower_interest_of_the_same_sink():
    network = Network(Diffusion(), LINE)
    wide, narrow = network.subscribe(0, "TEMP GE 25"), network.subscribe(0, "TEMP GE 30")
    network.publish(3, "TEMP IS 31")
    network.nodes[0].unsubscribe(wide, 0)
    network.settle()
    network.publish(3, "TEMP IS 32")
    assert taken(narrow) == ["TEMP IS 31", "TEMP IS 32"]


# Any order of reinforcements


@given(st.lists(st.tuples(st.integers(2, 5), st.integers(2, 30)), min_size=1, max_size=12))
def test_gradient_of_the_newest_reinforcement_carries_data_in_any_order_of_arrival(all_heard):
    node = cached(2)
    for hop, sequence in all_heard:
        hear(node, interest(hop=hop, sequence=sequence), unicast=True)
    newest = max(sequence for _, sequence in all_heard)
    first_hop = next(hop for hop, sequence in all_heard if sequence == newest)
    assert next_hops(node.cache.entries[0], exploratory=9) == [first_hop]


def test_a_sink_reinforces_only_as_many_sources_per_round_as_it_remembers():
    node = make_node(max_reinforcements=2)
    node.subscribe(parse("TEMP GE 25"), 0)
    node.take_frames()
    for sequence in range(3):
        for source in (7, 8, 9):
            hear(node, data(source=source, sequence=sequence))
    assert len(reinforcements(node)) == 2
    node.wake(30 * SECOND)  # the next round
    node.take_frames()
    for source in (7, 8, 9):
        hear(node, data(source=source, sequence=3))
    assert len(reinforcements(node)) == 2
