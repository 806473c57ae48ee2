"""DPS on a radio: in a dense neighborhood a node has few links, the network stays connected, and little is sent."""

from itertools import combinations

import pytest

import workbench as wb
from tests.network import SECOND, Network
from tests.protocols.dps.checks import active, mesh, muted, parts, states
from workbench import draws
from workbench.protocols.contract import Forwarded
from workbench.protocols.dps import DPS, rules, wire
from workbench.protocols.dps.automaton import ACTIVE, MUTED

QUICK = {"update_s": 1.0, "link_loss_s": 4.0, "relink_s": 2.0, "recheck_s": 10.0, "crowd": 4}
CLIQUE = list(combinations(range(20), 2))
# Two dense neighborhoods, which two nodes join by a link that is worse than all others.
TWO = [*combinations(range(8), 2), *combinations(range(8, 16), 2), (3, 12)]


def dense_network(links, seconds=40, poor=(), **settings):
    """Return a network of ideal links whose qualities are reported to both ends: 0.6 for links in `poor`, else 1.0."""
    network = Network(DPS(**{**QUICK, **settings}), links, draws.Stream(1).below)
    for node in network.nodes.values():
        node.start(0)
    for a, b in links:
        quality = 0.6 if (a, b) in poor else 1.0
        network.nodes[a].link_quality(b, quality, quality, 0)
        network.nodes[b].link_quality(a, quality, quality, 0)
    network.settle()
    network.advance(seconds)
    return network


def requested(node):
    return {address for address, remote in node.links.remotes.items() if remote.is_requester}


def lonely_node(neighbors, **settings):
    """Return a node without a network, and the times of its requests; `neighbors` maps neighbors to link qualities."""
    node = DPS(**{**QUICK, "recheck_s": 0.0, **settings}).make_node(50, draws.Stream(1))
    node.start(0)
    for neighbor, quality in neighbors.items():
        node.link_quality(neighbor, quality, quality, 0)
    times = {}
    while node.next_wake is not None and node.next_wake < 6 * SECOND:
        now = node.next_wake
        node.wake(now)
        for destination, _ in node.take_frames():
            times.setdefault(destination, now)
    return node, times


def test_a_node_with_few_neighbors_requests_links_from_all_with_higher_addresses():
    node, times = lonely_node({10: 0.9, 20: 0.6, 60: 1.0, 70: 0.5, 80: 0.4})
    assert not node.context.is_crowded
    # Nodes with lower addresses request links themselves, and get a request if they did not.
    assert {neighbor for neighbor, at_us in times.items() if at_us <= SECOND} == {60, 70}
    assert {neighbor for neighbor, at_us in times.items() if at_us > 4 * SECOND} == {10, 20}


def test_a_node_with_many_neighbors_requests_links_only_from_the_best_in_order():
    qualities = {neighbor: 0.5 + neighbor % 5 / 10 for neighbor in range(20)}
    node, times = lonely_node(qualities, best_links=4)
    assert node.context.is_crowded
    assert len(times) == 4 and all(qualities[neighbor] == 0.9 for neighbor in times)
    ranked = sorted(times, key=lambda candidate: rules.rank(qualities[candidate], 50, candidate, 20))
    assert sorted(times, key=times.__getitem__) == ranked
    assert max(times.values()) > 3 * SECOND


@pytest.mark.parametrize("neighbors", [16, 64, 256])
def test_about_the_square_root_of_nodes_are_hubs_which_get_the_first_requests(neighbors):
    hubs = [node for node in range(neighbors) if rules.is_hub(node, neighbors)]
    assert neighbors**0.5 / 2 <= len(hubs) <= neighbors**0.5 * 2
    firsts = {}
    for node in range(neighbors):
        neighbors_ = [neighbor for neighbor in range(neighbors) if neighbor != node]
        firsts[node] = min(neighbors_, key=lambda neighbor: rules.rank(1.0, node, neighbor, neighbors))
    assert set(firsts.values()) <= set(hubs)
    # Hubs agree on the best hub, other nodes do not.
    assert len({firsts[hub] for hub in hubs}) <= 2 < len(set(firsts.values()))


def test_a_dense_network_is_one_tree_of_few_links_with_few_frames():
    network = dense_network(CLIQUE)
    everybody = mesh(DPS(**{**QUICK, "crowd": 99}), CLIQUE, seconds=40)
    assert len(parts(network)) == len(parts(everybody)) == 1
    link_states = list(states(network).values())
    assert link_states.count((ACTIVE, ACTIVE)) == len(network.nodes) - 1
    assert len(link_states) <= 20 * (QUICK.get("best_links", 3) + 1) < len(CLIQUE) / 2
    assert len(network.sent) < len(everybody.sent) * 2 / 3


def test_publications_in_a_dense_network_arrive_once_at_all_subscribers():
    network = dense_network(CLIQUE)
    subscriptions = [network.nodes[address].subscribe_topics("a/b", network.now) for address in (3, 9, 17)]
    network.settle()
    network.advance(20)
    before = len(network.sent)
    network.nodes[12].publish_topics("a/b", b"x", network.now)
    network.settle()
    network.advance(2)
    assert [len(subscription.take()) for subscription in subscriptions] == [1, 1, 1]
    sent_kinds = [wire.describe(frame)[0] for _, _, frame in network.sent[before:]]
    assert sent_kinds.count("publication") <= 8  # not to nodes that have muted links to them


@pytest.mark.parametrize("recheck_s", [0.0, 5.0])
def test_a_scout_joins_parts_that_the_best_links_leave_apart(recheck_s):
    network = dense_network(TWO, 150, poor={(3, 12)}, recheck_s=recheck_s, best_links=2)
    assert len(parts(network)) == (2 if recheck_s == 0 else 1)


def test_a_scouts_link_that_joins_nothing_is_ended_at_both_ends():
    network = dense_network(CLIQUE, 30)
    before = {(address, neighbor) for address, node in network.nodes.items() for neighbor in requested(node)}
    network.advance(200)
    after = {(address, neighbor) for address, node in network.nodes.items() for neighbor in requested(node)}
    assert len(after) <= 20 * 4 and after != before
    remotes = sum(len(node.links.remotes) for node in network.nodes.values())
    assert remotes <= 2 * len(after)
    assert len(parts(network)) == 1


def test_neighbors_of_a_dead_hub_request_links_from_others():
    network = dense_network(CLIQUE)
    hub = max(network.nodes, key=lambda address: len(active(network.nodes[address])))
    network.links = {link for link in network.links if hub not in link}
    network.advance(120)
    rest = [part for part in parts(network) if part != {hub}]
    assert len(rest) == 1
    subscription = network.nodes[(hub + 1) % 20].subscribe_topics("a/b", network.now)
    network.settle()
    network.advance(20)
    network.nodes[(hub + 7) % 20].publish_topics("a/b", b"x", network.now)
    network.settle()
    network.advance(2)
    assert len(subscription.take()) == 1


def test_a_link_that_becomes_too_poor_is_replaced_by_another():
    network = dense_network(CLIQUE)
    node = network.nodes[5]
    poor = next(iter(sorted(requested(node))))
    node.link_quality(poor, 0.1, 0.9, network.now)
    network.nodes[poor].link_quality(5, 0.9, 0.1, network.now)
    network.settle()
    network.advance(60)
    assert poor not in node.links.remotes and len(parts(network)) == 1


def test_interests_of_a_muted_neighbor_are_ignored_in_a_dense_network():
    network = dense_network(CLIQUE)
    network.nodes[3].subscribe_topics("a/b", network.now)
    network.settle()
    network.advance(20)
    remotes = [remote for node in network.nodes.values() for remote in node.links.remotes.values()]
    assert muted(network)
    assert all(remote.inbound is None for remote in remotes if remote.state == MUTED)


def test_a_publication_waits_before_it_is_forwarded_in_a_dense_network():
    network = dense_network(CLIQUE)
    subscription = network.nodes[3].subscribe_topics("a/b", network.now)
    network.settle()
    network.advance(20)
    relay = next(address for address, remote in network.nodes[3].links.remotes.items() if remote.state == ACTIVE)
    source = next(address for address in network.nodes[relay].links.remotes if address != 3)
    sent_count, events = len(network.sent), len(network.events)
    network.nodes[relay].receive(_publication(b"x"), source, network.now, False)
    network.settle()
    assert len(network.sent) == sent_count
    network.advance(0.2)
    forwarded = [
        event for address, event in network.events[events:] if address == relay and isinstance(event, Forwarded)
    ]
    assert [(event.peer, event.value) for event in forwarded] == [(source, 1)]
    assert len(subscription.take()) == 1


def test_the_number_of_waiting_publications_is_limited_by_the_radios_rate():
    network = dense_network(CLIQUE)
    node, now = network.nodes[0], network.now
    neighbor = next(iter(node.links.remotes))
    for number in range(3 * rules.MOST_WAITING):
        node.receive(_publication(b"%d" % number, number), neighbor, now, False)
    before = node.drops.get("dead_end", 0)
    assert before == 2 * rules.MOST_WAITING
    network.advance(1)
    assert node.drops["dead_end"] == 3 * rules.MOST_WAITING


def _publication(data, number=0):
    sender = DPS(**QUICK).make_node(99, draws.Stream(number))
    sender.start(0)
    sender.multicasts = True
    sender.publish_topics("a/b", data, 0)
    return sender.take_frames()[0][1]


def test_a_node_without_a_link_layer_never_counts_as_dense():
    network = mesh(DPS(**QUICK), [(0, 1)])
    node = DPS(**QUICK).make_node(7, draws.Stream(1))
    node.start(0)
    for neighbor in range(100, 130):
        node.link(neighbor, 0)
    assert not node.context.is_crowded and node.context.times == rules.times_of(node.settings)
    assert network.nodes[0].context.times == rules.times_of(node.settings, 0, True)


@pytest.mark.parametrize("is_crowded", [True, False])
def test_a_link_muted_by_an_acknowledgement_is_reported_once_and_only_in_dense_networks(is_crowded):
    assert rules.announces_mute(is_crowded, False, MUTED, 0) == is_crowded
    # It was muted before; it is not muted; the neighbor reported it itself; it gets an acknowledgement that reports it.
    for was_muted, state, flags in [(True, MUTED, 0), (False, ACTIVE, 0), (False, MUTED, wire.MUTE)]:
        assert not rules.announces_mute(is_crowded, was_muted, state, flags)
    assert not rules.announces_mute(is_crowded, False, MUTED, wire.SAK_REQUESTED)


def test_keep_alives_and_rechecks_do_not_grow_with_the_density():
    settings = DPS()
    alone = rules.times_of(settings)
    few, many = (
        rules.times_of(settings, rules.FULL_RATE_NEIGHBORS),
        rules.times_of(settings, 10 * rules.FULL_RATE_NEIGHBORS),
    )
    assert few._replace(ids_us=alone.ids_us) == alone and alone.ids_us < few.ids_us
    assert many.silence_us == 10 * few.silence_us and many.recheck_s == 10 * few.recheck_s
    assert many.ids_us == 10 * few.ids_us
    assert few.update_us == many.update_us == few.tick_us < many.tick_us


def scenario(topology, duration_s=180):
    nodes = sorted(topology)
    workload = [
        wb.subscribe(nodes[:: len(nodes) // 5][:5], "TEMP GE 25"),
        wb.publish(nodes[3::3], "TEMP IS 26", every_s=10, start_s=60, stop_s=duration_s - 10, stagger=True),
    ]
    radio = wb.Radio(collisions=True, csma=True, retries=3)
    return wb.Scenario(topology, wb.DPS(), workload, radio, duration_s)


# All nodes hear each other in Strasbourg; on the disc frames also collide that carrier sense cannot separate.
@pytest.mark.family
@pytest.mark.parametrize(("name", "least"), [("disc", 0.85), ("strasbourg", 0.95)])
def test_a_dense_network_with_collisions_and_carrier_sense_is_settled_after_a_minute(name, least, request):
    if name == "strasbourg":
        request.getfixturevalue("real_data")
        topology = wb.topology.testbed(name)
    else:
        topology = wb.topology.disc(60, width_m=60, height_m=60, seed=2, radius_m=50)
    metrics = scenario(topology).run("reference").metrics
    assert metrics["delivery_ratio"] >= least
    # Links with all neighbors would need about 60,000 frames.
    assert metrics["transmissions"] < 10000
