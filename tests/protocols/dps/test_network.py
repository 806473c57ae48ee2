"""Meshes of DPS nodes: loops are muted, publications reach each subscriber once, and separated parts join again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import examples
from tests.network import SECOND
from tests.protocols.dps.checks import PUBLICATIONS, SUBSCRIPTIONS, active, graphs, mesh, muted, parts, states
from workbench import draws
from workbench.protocols.contract import Delivered
from workbench.protocols.dps import DPS, topics, wire
from workbench.protocols.dps.automaton import ACTIVE, MUTED
from workbench.protocols.dps.events import InterestsSet, LinkSet

QUICK = {"update_s": 1.0, "link_loss_s": 4.0, "relink_s": 5.0, "recheck_s": 10.0}
SQUARE = [(0, 1), (1, 2), (2, 3), (0, 3)]


def publish_and_check(network, subscribers, publications):
    """Check that each publication arrives once at each matching subscription that is more than a wildcard alone."""
    for index, (publisher, topic) in enumerate(publications):
        data = b"%d" % index
        publisher %= len(network.nodes)
        network.nodes[publisher].publish_topics(topic, data, network.now)
        network.settle()
        for address, wanted_topic, subscription in subscribers:
            arrived = [arrival.data for arrival in subscription]
            is_asked = topics.matches(topic, wanted_topic) and (wanted_topic != "#" or address == publisher)
            if wanted_topic == "#" and not is_asked:
                # It is not announced, but gets any publication that its node forwards.
                assert arrived in ([], [data])
            else:
                assert arrived == [data] * is_asked, (address, wanted_topic, topic)


def subscribed(network, wanted):
    subscribers = []
    for address, wanted_topic in wanted:
        address %= len(network.nodes)
        subscribers.append((address, wanted_topic, network.nodes[address].subscribe_topics(wanted_topic, network.now)))
        network.settle()
    return subscribers


wanted = st.lists(st.tuples(st.integers(0, 99), st.sampled_from(SUBSCRIPTIONS)), min_size=1, max_size=8)
published = st.lists(st.tuples(st.integers(0, 99), st.sampled_from(PUBLICATIONS)), min_size=1, max_size=8)


@given(
    links=graphs(),
    wanted=wanted,
    published=published,
    bits=st.sampled_from((64, 128, 256, 8192)),
    count_muted=st.booleans(),
    seconds=st.sampled_from((4, 60)),
    seed=st.integers(0, 999),
)
@settings(max_examples=examples(60))
def test_publications_arrive_once_at_all_matching_subscribers_and_no_others(
    links, wanted, published, bits, count_muted, seconds, seed
):
    # This holds before loops are muted, too: after four seconds interests have reached all nodes once.
    network = mesh(DPS(filter_bits=bits, count_muted=count_muted, **QUICK), links, seed)
    subscribers = subscribed(network, wanted)
    network.advance(seconds + len(network.nodes))
    publish_and_check(network, subscribers, published)


@given(links=graphs(), wanted=wanted, seed=st.integers(0, 999))
@settings(max_examples=examples(25))
def test_active_links_become_a_tree_of_the_whole_mesh(links, wanted, seed):
    network = mesh(DPS(**QUICK), links, seed)
    subscribed(network, wanted)
    network.advance(6 * len(network.nodes))
    assert len(parts(network)) == 1
    assert len(muted(network)) == len(links) - len(network.nodes) + 1
    assert set(states(network).values()) <= {(ACTIVE, ACTIVE), (MUTED, MUTED)}


@given(
    links=graphs(8),
    wanted=wanted,
    later=wanted,
    published=published,
    outages=st.lists(st.tuples(st.integers(1, 1023), st.integers(1, 30), st.integers(0, 20)), min_size=1, max_size=2),
    seed=st.integers(0, 999),
)
@settings(max_examples=examples(30))
def test_after_links_drop_and_return_everything_arrives_again(links, wanted, later, published, outages, seed):
    network = mesh(DPS(**QUICK), links, seed)
    subscribers = subscribed(network, wanted)
    everything = set(network.links)
    for which, down_s, up_s in outages:
        cut = [link for index, link in enumerate(links) if which >> index % 10 & 1]
        network.links = everything - {end for a, b in cut for end in ((a, b), (b, a))}
        network.advance(down_s)
        # Interests change meanwhile, which only some nodes notice.
        address, _, subscription = subscribers.pop(0)
        network.nodes[address].unsubscribe(subscription, network.now)
        subscribers += subscribed(network, later[:1])
        network.links = set(everything)
        network.advance(up_s)
    network.advance(100)
    assert len(parts(network)) == 1
    for _, _, subscription in subscribers:
        subscription.take()
    publish_and_check(network, subscribers, published)


@given(links=graphs(8), wanted=wanted, published=published, loss_period=st.integers(2, 9), seed=st.integers(0, 999))
@settings(max_examples=examples(20))
def test_the_mesh_recovers_from_lost_messages(links, wanted, published, loss_period, seed):
    network = mesh(DPS(**QUICK), links, seed)
    settle, count = network._collect, [0]

    def lossy():
        for node in network.nodes.values():
            remaining = []
            for frame in node.outbox:
                count[0] += 1
                if count[0] % loss_period:
                    remaining.append(frame)
            node.outbox[:] = remaining
        settle()

    network._collect = lossy
    subscribers = subscribed(network, wanted)
    network.advance(30)
    network._collect = settle
    network.advance(100)
    publish_and_check(network, subscribers, published)


@pytest.mark.parametrize("is_beside", [True, False])
@pytest.mark.parametrize("recheck_s", [0.0, 10.0])
def test_a_square_mutes_one_link_and_unmutes_it_when_another_is_lost(is_beside, recheck_s):
    network = mesh(DPS(**{**QUICK, "recheck_s": recheck_s}), SQUARE)
    (subscriber,) = subscribed(network, [(0, "a/b")])
    network.advance(40)
    (loop,) = muted(network)
    gone = next(link for link in SQUARE if link != loop and bool(set(link) & set(loop)) == is_beside)
    network.links -= {gone, gone[::-1]}
    network.advance(60)
    unmuted = [event for _, event in network.events if isinstance(event, LinkSet) and event.detail == "unmuting"]
    if is_beside or recheck_s:
        assert not muted(network) and len(parts(network)) == 1
        publish_and_check(network, [subscriber], [(2, "a/b"), (1, "a/b"), (3, "a/b")])
        assert bool(unmuted) == is_beside
    else:
        # As in the reference: a node with the muted link has lost no link, and a node that lost one has no muted link.
        assert muted(network) == [loop] and len(parts(network)) == 2


@pytest.mark.parametrize("links", [SQUARE, [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]])
@pytest.mark.parametrize("crashed", range(4))
def test_a_node_that_restarts_without_its_memory_joins_the_mesh_again(crashed, links):
    protocol = DPS(**QUICK)
    network = mesh(protocol, links)
    subscribers = subscribed(network, [(address, "a/b") for address in range(4) if address != crashed])
    network.advance(30)
    fresh = network.nodes[crashed] = protocol.make_node(crashed, draws.Stream(draws.make_key(99)))
    fresh.start(network.now, 1)
    for a, b in links:
        if crashed in (a, b):
            fresh.link_quality(a + b - crashed, 1.0, 1.0, network.now)
    subscribers += subscribed(network, [(crashed, "a/b")])
    network.advance(60)
    assert len(parts(network)) == 1
    publish_and_check(network, subscribers, [(address, "a/b") for address in range(4)])


def test_muted_interests_cause_dead_ends_unless_they_are_ignored_or_rechecked():
    dead_ends = []
    # Without rechecks, the keep-alive over a muted link also ends dead ends.
    for count_muted, link_loss_s in ((True, 200.0), (False, 4.0), (True, 4.0)):
        settings = {**QUICK, "link_loss_s": link_loss_s, "count_muted": count_muted, "recheck_s": 0.0}
        network = mesh(DPS(**settings), SQUARE[:-1])
        (subscriber,) = subscribed(network, [(1, "a/b")])
        network.advance(10)
        network.links |= {(0, 3), (3, 0)}
        network.nodes[3].link(0, network.now)
        network.advance(60)
        publish_and_check(network, [subscriber], [(node, "a/b") for node in range(4)])
        dead_ends.append(network.drops().get("dead_end", 0))
    assert dead_ends[0] > 0 and dead_ends[1:] == [0, 0]


def test_ended_interests_disappear_from_the_mesh():
    network = mesh(DPS(**QUICK), [(0, 1), (1, 2), (2, 3)])
    ((_, _, subscription),) = subscribed(network, [(0, "a/b")])
    network.advance(5)
    assert network.nodes[3].links.remotes[2].inbound[0].popcount == 3
    network.nodes[0].unsubscribe(subscription, network.now)
    network.settle()
    network.advance(5)
    assert all(remote.inbound is None for node in network.nodes.values() for remote in node.links.remotes.values())
    bit_counts = [event.value for address, event in network.events if isinstance(event, InterestsSet) and address == 3]
    assert max(bit_counts) > 0 and bit_counts[-1] == 0


def test_short_filters_send_frames_in_vain_and_still_deliver_correctly():
    network = mesh(DPS(filter_bits=64, hashes=1, **QUICK), [(0, 1), (1, 2)])
    subscribers = subscribed(network, [(0, f"s/{number}") for number in range(20)])
    network.advance(5)
    publish_and_check(network, subscribers, [(2, f"s/{number}") for number in range(40)])
    drops = network.drops()
    # The middle node forwards everything that the subscriber's filter includes: one drop for each frame in vain.
    matched = 20
    came = [wire.describe(frame)[0] for sender, _, frame in network.sent if sender == 1].count("publication")
    assert drops == {"no_match": came - matched} and came > matched


@pytest.mark.parametrize("acknowledge", [False, True])
def test_attributes_are_routed_by_topics_and_matched_at_the_sink(acknowledge):
    network = mesh(DPS(acknowledge=acknowledge, **QUICK), [(0, 1), (1, 2)])
    warm = network.subscribe(0, "TEMP GE 25, TEMP LE 30")
    network.advance(5)
    for text in ("TEMP IS 24", "TEMP IS 26.5", "HUMIDITY IS 27", "TEMP IS 30, X IS 1"):
        network.publish(2, text)
    assert len(warm.take()) == 2
    assert network.drops(0) == {"out_of_range": 1}
    names = [wire.describe(frame)[0] for _, _, frame in network.sent]
    assert names.count("acknowledgement") == (4 if acknowledge else 0)


def test_subscription_of_attributes_ends_when_it_expires():
    network = mesh(DPS(**QUICK), [(0, 1)])
    subscription = network.subscribe(0, "TEMP GE 25", expires_s=10)
    network.publish(1, "TEMP IS 26")
    network.advance(10)
    network.publish(1, "TEMP IS 27")
    assert len(subscription.take()) == 1
    assert active(network.nodes[1]) == []


def test_retained_publication_reaches_later_subscribers_until_it_expires():
    network = mesh(DPS(**QUICK), [(0, 1), (1, 2)])
    early = network.nodes[0].subscribe_topics("a/+", network.now, expired=True)
    network.settle()
    network.advance(3)
    series = network.nodes[2].publish_topics("a/b", b"first", network.now, ttl_s=60)
    network.settle()
    network.advance(5)
    late = network.nodes[1].subscribe_topics("a/b", network.now)
    network.settle()
    assert [(publication.data, publication.ttl_s) for publication in late] == [(b"first", 55)]
    series.expire(network.now)
    network.settle()
    assert [(publication.data, publication.is_expiry) for publication in early] == [(b"first", False), (b"", True)]
    assert late.take() == []
    assert [len(node.publications.retained) for node in network.nodes.values()] == [0, 0, 0]


def test_retained_publication_expires_on_all_nodes():
    network = mesh(DPS(**QUICK), [(0, 1), (1, 2)])
    subscription = network.nodes[0].subscribe_topics("a/+", network.now, expired=True)
    network.settle()
    network.advance(3)
    network.nodes[2].publish_topics("a/b", b"first", network.now, ttl_s=7)
    network.settle()
    assert [len(node.publications.retained) for node in network.nodes.values()] == [1, 1, 1]
    network.advance(8)
    assert [publication.is_expiry for publication in subscription] == [False, True]
    assert [len(node.publications.retained) for node in network.nodes.values()] == [0, 0, 0]


def test_delivered_events_have_hops_and_topics():
    network = mesh(DPS(**QUICK), [(0, 1), (1, 2)])
    subscription = network.nodes[0].subscribe_topics(("a/+", "b"), network.now)
    network.settle()
    network.advance(3)
    network.nodes[2].publish_topics(("a/1", "b"), b"", network.now)
    network.settle()
    (arrival,) = subscription
    assert (arrival.topics, arrival.hops, arrival.neighbor) == (("a/1", "b"), 2, 1)
    (delivery,) = [event for _, event in network.events if isinstance(event, Delivered)]
    assert (delivery.peer, delivery.origin, delivery.detail) == (1, 2, "a/1 b")
    assert network.now > SECOND
