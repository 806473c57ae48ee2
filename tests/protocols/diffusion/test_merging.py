"""Merged interests: a sink does not flood an interest that another of its interests covers (A16).

This file runs under MicroPython too.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.neighbor import data, gradients, hear, make_node, sent
from tests.network import SECOND, Network, taken
from workbench.attributes.text import parse, to_text
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.events import DataGradientSet
from workbench.protocols.diffusion.wire import Interest

LINE = [(0, 1), (1, 2), (2, 3)]
WIDE, NARROW = "TEMP GE 20", "TEMP GE 25, TEMP LE 30"


def flooded(node):
    """Return (constraints, expiration in s) of each interest that the node broadcast since the previous call."""
    return [
        (to_text(message.attributes), message.expiration_s)
        for destination, message in sent(node)
        if isinstance(message, Interest) and destination is None
    ]


def subscribed(node, wanted, now_s=0, expires_s=None):
    return node.subscribe(parse(wanted), now_s * SECOND, expires_s)


def merging_node(*subscriptions, **settings):
    """Return a node with these subscriptions, (constraints, lifetime in s), and the interests that it flooded."""
    node = make_node(merge_interests=True, **settings)
    for wanted, expires_s in subscriptions:
        subscribed(node, wanted, 0, expires_s)
    return node, [wanted for wanted, _ in flooded(node)]


# Which interests are flooded


@pytest.mark.parametrize("order", [(WIDE, NARROW), (NARROW, WIDE)])
@pytest.mark.parametrize("merges", [False, True])
def test_sink_floods_one_interest_for_a_wide_and_a_narrow_subscription(order, merges):
    network = Network(Diffusion(merge_interests=merges), LINE)
    subscriptions = {wanted: network.subscribe(0, wanted) for wanted in order}
    for degrees in (22, 27, 32):
        network.publish(3, f"TEMP IS {degrees}")
    assert taken(subscriptions[WIDE]) == ["TEMP IS 22", "TEMP IS 27", "TEMP IS 32"]
    assert taken(subscriptions[NARROW]) == ["TEMP IS 27"]
    floods = 1 if merges and order[0] == WIDE else 2
    assert len(network.hops("interest")) == 4 * floods
    # Later refreshes are of the wide interest alone.
    network.sent.clear()
    network.advance(30)
    assert len(network.hops("interest")) == (4 if merges else 8)


def test_interest_is_covered_through_a_covered_one_and_not_by_itself():
    node, _ = merging_node((NARROW, None), ("TEMP EQ 26", None))
    assert flooded(node) == []
    subscribed(node, WIDE)
    assert flooded(node) == [(WIDE, 150)]
    node.wake(30 * SECOND)
    assert flooded(node) == [(WIDE, 150)]


def test_of_two_interests_that_cover_each_other_the_older_one_is_flooded():
    first, second = "TEMP GE 25", "TEMP GE 25, TEMP GE 20"
    assert merging_node((first, None), (second, None))[1] == [first]
    assert merging_node((second, None), (first, None))[1] == [second]
    # Unless the newer one lasts longer.
    node, floods = merging_node((first, 100), (second, 200))
    assert floods == [first, second]
    node.wake(30 * SECOND)
    assert [wanted for wanted, _ in flooded(node)] == [second]


def test_interest_of_another_sink_is_forwarded_and_flooded():
    network = Network(Diffusion(merge_interests=True), LINE)
    network.subscribe(0, WIDE)
    narrow = network.subscribe(2, NARROW)
    assert len(network.hops("interest")) == 8
    network.publish(3, "TEMP IS 27")
    assert taken(narrow) == ["TEMP IS 27"]


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ("TEMP GE 20", "TEMP GE 25", True),
        ("TEMP GE 20", "TEMP GE 25, INTERVAL IS 5", True),
        ("TEMP GE 20, INTERVAL IS 5", "TEMP GE 25", False),
        ("TEMP GE 20, INTERVAL IS 5", "TEMP GE 25, INTERVAL IS 10", False),
        ("TEMP GE 20, INSTANCE IS 1", "TEMP GE 25", False),
    ],
)
def test_wider_interest_covers_if_it_has_no_interval_and_the_same_is_attributes(wide, narrow, covered):
    assert merging_node((wide, None), (narrow, None))[1] == ([wide] if covered else [wide, narrow])


def test_reading_that_a_wider_interest_with_an_interval_would_withhold_arrives():
    network = Network(Diffusion(merge_interests=True), LINE)
    network.subscribe(0, "TEMP GE 20, INTERVAL IS 2")
    narrow = network.subscribe(0, "TEMP GE 25, INTERVAL IS 2")
    # Whenever a warm reading comes, the wider interest has just brought a cold one.
    for degrees in (21, 26, 22, 27, 23, 28):
        network.publish(3, f"TEMP IS {degrees}")
        network.advance(1)
    assert taken(narrow) == ["TEMP IS 26", "TEMP IS 27", "TEMP IS 28"]


@pytest.mark.parametrize(
    ("wide_s", "narrow_s", "covered"),
    [(None, None, True), (None, 9, True), (9, None, False), (9, 9, True), (9, 9.5, False), (500, 400, True)],
)
def test_wider_interest_covers_if_it_lasts_as_long(wide_s, narrow_s, covered):
    assert merging_node((WIDE, wide_s), (NARROW, narrow_s))[1] == ([WIDE] if covered else [WIDE, NARROW])


@pytest.mark.parametrize(("matching", "covered"), [("any", False), ("strict", True)])
def test_data_of_a_covered_interest_matches_the_wider_one_by_the_rule_of_matching(matching, covered):
    network = Network(Diffusion(merge_interests=True, matching=matching), LINE)
    network.subscribe(0, "TEMP EQ 30")
    subscription = network.subscribe(0, "TEMP GE 30, TEMP LE 30")
    assert len(network.hops("interest")) == (4 if covered else 8)
    network.publish(3, "TEMP IS 20, TEMP IS 35")
    assert taken(subscription) == ([] if covered else ["TEMP IS 20, TEMP IS 35"])


# When the wider interest begins, changes or ends


def test_covered_interest_is_flooded_before_the_wider_one_is_cancelled():
    node = make_node(merge_interests=True)
    wide, narrow = subscribed(node, WIDE), subscribed(node, NARROW)
    assert flooded(node) == [(WIDE, 150)]
    node.unsubscribe(wide, SECOND)
    assert flooded(node) == [(NARROW, 150), (WIDE, 0)]
    assert narrow.request.round == 0
    node.wake(31 * SECOND)
    assert flooded(node) == [(NARROW, 150)]


def test_no_reading_is_lost_when_the_wider_interest_ends():
    network = Network(Diffusion(merge_interests=True), LINE)
    wide, narrow = network.subscribe(0, WIDE), network.subscribe(0, NARROW)
    network.publish(3, "TEMP IS 25")
    network.nodes[0].unsubscribe(wide, network.now)
    network.publish(3, "TEMP IS 26")  # the flood and the reading cross
    for degrees in (27, 40):
        network.publish(3, f"TEMP IS {degrees}")
    assert taken(narrow) == ["TEMP IS 25", "TEMP IS 26", "TEMP IS 27"]
    # No node keeps the wide interest, so the last reading waits at its source.
    assert [len(node.cache.entries) for node in network.nodes.values()] == [0, 1, 1, 1]
    assert len(network.nodes[3].samples) == 1


def test_wider_interest_that_ends_sooner_than_before_uncovers_the_longer_one():
    node = make_node(merge_interests=True)
    subscribed(node, WIDE, expires_s=50)
    longer = subscribed(node, WIDE, expires_s=500)
    narrow = subscribed(node, NARROW, expires_s=100)
    flooded(node)
    node.unsubscribe(longer, SECOND)
    assert flooded(node) == [(NARROW, 99)]
    assert narrow.request.is_flooded
    # Its end is now the later one, and a further subscription that lasts longer covers it again.
    subscribed(node, WIDE, 2, 500)
    assert flooded(node) == [(WIDE, 150)] and not narrow.request.is_flooded


def test_covered_interest_whose_end_is_put_off_is_flooded():
    node = make_node(merge_interests=True)
    subscribed(node, WIDE, expires_s=50)
    subscribed(node, NARROW, expires_s=40)
    assert flooded(node) == [(WIDE, 50)]
    subscribed(node, NARROW, expires_s=60)
    assert flooded(node) == [(NARROW, 60)]


def test_wider_interest_that_expires_leaves_no_covered_one():
    node, _ = merging_node((WIDE, 50), (NARROW, 50), ("TEMP EQ 26", 20))
    node.wake(20 * SECOND)
    assert len(node.own_interests) == 2
    node.wake(50 * SECOND)
    assert node.own_interests == [] and node.next_wake is None
    # Only the refresh of the wide interest, whose time had come.
    assert len(flooded(node)) == 1


def test_interest_that_becomes_covered_expires_in_the_network_and_is_cancelled_if_it_ends():
    network = Network(Diffusion(merge_interests=True, gradient_lifetime_s=40), LINE)
    narrow = network.subscribe(0, NARROW)
    wide = network.subscribe(0, WIDE)
    assert [len(gradients(network.nodes[node])) for node in (1, 2, 3)] == [2, 2, 2]
    network.nodes[0].unsubscribe(network.subscribe(0, "TEMP EQ 27"), network.now)
    network.settle()
    assert len(network.hops("interest")) == 8, "an interest that was never flooded is not cancelled"
    network.advance(41)
    network.publish(3, "TEMP IS 26")
    assert [len(gradients(network.nodes[node])) for node in (1, 2, 3)] == [1, 1, 1]
    assert taken(narrow) == taken(wide) == ["TEMP IS 26"]
    before = len(network.hops("interest"))
    network.nodes[0].unsubscribe(narrow, network.now)
    network.settle()
    assert len(network.hops("interest")) == before + 4
    network.publish(3, "TEMP IS 26")
    assert taken(wide) == ["TEMP IS 26"]


def test_covered_interest_without_neighbors_is_not_repeated():
    node, _ = merging_node((NARROW, None), (WIDE, None))
    node.wake(2 * SECOND)
    assert flooded(node) == [(WIDE, 150)]


# Reinforcements


@pytest.mark.parametrize("merges", [False, True])
def test_sink_reinforces_a_path_once_for_all_interests_that_it_has_merged(merges):
    network = Network(Diffusion(merge_interests=merges), LINE)
    for wanted in (WIDE, NARROW, "TEMP EQ 26"):
        network.subscribe(0, wanted)
    for _ in range(3):
        network.publish(3, "TEMP IS 26")
    path = [(0, 1), (1, 2), (2, 3)]
    assert sorted(network.hops("reinforcement")) == sorted(path * (1 if merges else 3))
    assert network.drops() == {"duplicate": 9 if not merges else 3}


def test_covered_subscription_can_be_reinforced_explicitly():
    network = Network(Diffusion(merge_interests=True, reinforce_after=0), LINE)
    network.subscribe(0, WIDE)
    narrow = network.subscribe(0, NARROW)
    network.publish(3, "TEMP IS 27")
    assert network.nodes[0].reinforce(narrow, network.now) == 1
    network.settle()
    assert network.hops("reinforcement") == [(0, 1), (1, 2), (2, 3)]
    assert "no_interest" not in network.drops()
    assert [to_text(entry.attributes) for entry in network.nodes[3].cache.entries] == [WIDE, NARROW]
    network.publish(3, "TEMP IS 28")
    assert taken(narrow) == ["TEMP IS 27", "TEMP IS 28"]


def test_reinforcement_of_the_workload_is_sent_once_for_merged_interests():
    protocol = Diffusion(merge_interests=True, reinforce_after=0)
    network = Network(protocol, LINE)
    for wanted in (WIDE, NARROW):
        network.subscribe(0, wanted)
    network.publish(3, "TEMP IS 27")
    protocol.reinforce(network.nodes[0], parse("TEMP EQ 27"), network.now)
    network.settle()
    assert network.hops("reinforcement") == [(0, 1), (1, 2), (2, 3)]


def test_interest_that_is_no_longer_covered_reinforces_the_known_path():
    node = make_node(merge_interests=True)
    wide, _narrow = subscribed(node, WIDE), subscribed(node, NARROW)
    events = hear(node, data("TEMP IS 26", hop=3))
    assert len([event for event in events if isinstance(event, DataGradientSet)]) == 2
    assert [(to, to_text(message.attributes)) for to, message in sent(node) if to is not None] == [(3, WIDE)]
    node.unsubscribe(wide, SECOND)
    sent(node)
    hear(node, data("TEMP IS 26", hop=3, sequence=2))
    assert [(to, to_text(message.attributes)) for to, message in sent(node) if to is not None] == [(3, NARROW)]


# Every subscription gets wanted it gets without merging


INTERESTS = [
    "TEMP GE 20",
    "TEMP GT 19",
    "TEMP GE 25",
    "TEMP GE 20, TEMP LE 30",
    "TEMP LE 30, TEMP GE 25",
    "TEMP EQ 26",
    "TEMP NE 26",
    "TEMP NE 26, TEMP GE 20",
    "TEMP GE 26, TEMP LE 26",
    "TEMP EQ_ANY",
    "X GE 1, TEMP GE 20",
    "X EQ_ANY",
    "TEMP GE 20, X IS 1",
    'PAYLOAD EQ "a"',
    'PAYLOAD NE "b"',
]
PACED = INTERESTS + ["TEMP GE 20, INTERVAL IS 2", "TEMP GE 25, INTERVAL IS 3", "TEMP EQ 26, INTERVAL IS 1"]
READINGS = [
    "TEMP IS 26",
    "TEMP IS 26",
    "TEMP IS 20, TEMP IS 35",
    "TEMP IS 28, X IS 2",
    "TEMP IS 40",
    "X IS 1, TEMP IS 22",
    'PAYLOAD IS "a"',
    'TEMP IS 26, PAYLOAD IS "b"',
]
NETWORKS = [
    LINE,
    [(0, 1), (1, 2), (2, 3), (3, 0)],
    [(0, 1), (0, 2), (0, 3)],
    [(0, 1), (1, 2), (2, 0), (2, 3)],
    [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)],
]


def subscribe(interests):
    sink, expires_s = st.sampled_from([0, 0, 0, 1]), st.sampled_from([None, None, 4, 9])
    return st.tuples(st.just("subscribe"), sink, st.sampled_from(interests), expires_s)


publish = st.tuples(st.just("publish"), st.integers(0, 3), st.sampled_from(READINGS))
advance = st.tuples(st.just("advance"), st.sampled_from([1, 1, 3, 40]))
unsubscribe = st.tuples(st.just("unsubscribe"), st.integers(0, 9))
MOST_STEPS = 30


def delivered(protocol, links, steps):
    """Return the samples of each subscription after these steps."""
    network = Network(protocol, links)
    subscriptions = []
    for step in steps:
        if step[0] == "subscribe":
            subscriptions.append(network.subscribe(step[1], step[2], expires_s=step[3]))
        elif step[0] == "publish":
            network.publish(step[1], step[2])
        elif step[0] == "advance":
            network.advance(step[1])
        elif subscriptions:
            subscription = subscriptions[step[1] % len(subscriptions)]
            subscription.unsubscribe(network.now)
            network.settle()
    network.advance(2)
    return [taken(subscription) for subscription in subscriptions]


def assert_merging_changes_no_delivery(links, steps, settings):
    without = delivered(Diffusion(max_interests=20, **settings), links, steps)
    assert delivered(Diffusion(max_interests=20, merge_interests=True, **settings), links, steps) == without


SETTINGS = [{}, {"matching": "strict"}, {"reinforce_after": 0}, {"refresh_s": 2.0, "gradient_lifetime_s": 5.0}]


@given(
    st.sampled_from(NETWORKS),
    st.lists(
        subscribe(INTERESTS) | subscribe(INTERESTS) | publish | publish | advance | unsubscribe, max_size=MOST_STEPS
    ),
    st.sampled_from(SETTINGS),
)
def test_every_subscription_gets_the_readings_that_it_gets_without_merging(links, steps, settings):
    assert_merging_changes_no_delivery(links, steps, settings)


@given(
    st.sampled_from(NETWORKS),
    st.lists(subscribe(PACED) | subscribe(PACED) | publish | publish | publish | advance, max_size=MOST_STEPS),
    st.sampled_from(SETTINGS),
)
def test_subscriptions_with_an_interval_get_the_readings_that_they_get_without_merging(links, steps, settings):
    # The first reading after a flood is always due, so no subscription is ended here while others continue.
    assert_merging_changes_no_delivery(links, steps, settings)
