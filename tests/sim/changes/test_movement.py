"""Nodes that move: the links, strengths and readings of each step, computed by hand or by the topology's own rule."""

import numpy as np
import pytest

import workbench as wb
from tests.sim.changes.playing import (
    FRAME_US,
    SECOND,
    delivered_s,
    middles,
    play,
    readings,
    row_of_nodes,
    rows,
    subscription,
)
from workbench.attributes.text import parse, to_text
from workbench.errors import ScenarioError
from workbench.mobility import GaussMarkov, RandomWaypoint
from workbench.sim.capture import strengths_ddB
from workbench.sim.changes import arcs
from workbench.topology.edits import link_rule, linked_again, moved

PAIR = row_of_nodes(2, radius_m=20.0)


def test_node_that_leaves_at_second_30_loses_exactly_the_readings_published_afterwards():
    path = [(29, 10, 0), (30, 100, 0)]
    run = play(PAIR, [subscription(), readings(), wb.move(1, path)], 60)
    assert delivered_s(run) == middles(0, 30)
    assert run.metrics["expected"] == 60 and not rows(run, "lost")


def test_node_that_returns_receives_again():
    path = [(29, 10, 0), (30, 100, 0), (59, 100, 0), (60, 10, 0)]
    run = play(PAIR, [subscription(), readings(), wb.move(1, path)], 90)
    assert delivered_s(run) == [*middles(0, 30), *middles(60, 90)]


@pytest.mark.parametrize(("step_s", "unlinked_s"), [(0.25, 10.25), (1, 11), (4, 12), (7, 14), (11, 11)])
def test_radius_is_crossed_at_the_first_step_beyond_it(step_s, unlinked_s):
    # The distance is 10 m + 1 m/s: exactly the radius after 10 s, and a link up to this distance.
    movement = wb.move(1, [(0, 10, 0), (30, 40, 0)], step_s)
    run = play(PAIR, [subscription(), readings(every_s=0.125, start_s=0.0625), movement], 16)
    assert delivered_s(run) == [time_s for time_s in np.arange(0.0625, 16, 0.125) if time_s < unlinked_s]


def test_frame_is_received_only_over_a_link_that_lasts_to_its_end():
    leaving = wb.move(1, [(4, 10, 0), (5, 100, 0)])
    start_s = 5 - FRAME_US / 1e6
    for earlier_us, is_received in ((1, True), (0, False), (-1, False)):
        item = wb.publish(1, "TEMP IS 25", start_s=start_s - earlier_us / 1e6)
        run = play(PAIR, [subscription(), item, leaving])
        assert [row["time_us"] for row in rows(run, "sent", node=1)] == [5 * SECOND - earlier_us]
        assert len(rows(run, "received", node=0)) == is_received


def test_movement_that_ends_between_two_steps_is_complete_at_the_next():
    run = play(PAIR, [subscription(), readings(every_s=0.25, start_s=0.125), wb.move(1, [(2.5, 100, 0), (2.6, 15, 0)])])
    # Links are computed at 0 s (10 m), 1 s (46 m), 2 s (82 m) and 3 s (15 m).
    assert delivered_s(run) == [time_s for time_s in np.arange(0.125, 10, 0.25) if time_s < 1 or time_s >= 3]


def test_relay_that_travels_between_two_nodes_connects_them_while_it_is_near_both():
    topology = wb.topology.from_positions({0: (0, 0), 1: (100, 0), 2: (20, 0)}, radius_m=12)
    # Within 12 m of both ends (0 m and 20 m) is [8 m, 12 m]: the relay comes from 100 m, 10 m/s.
    run = play(topology, [subscription(), readings(2, 0.1, 0.05), wb.move(1, [(0, 100, 0), (10, 0, 0)], 0.1)], 12)
    delivered = delivered_s(run)
    assert delivered and set(delivered) == {round(k / 10 + 0.05, 2) for k in range(88, 93)}


def test_links_between_nodes_that_do_not_move_stay_as_they_are():
    topology = wb.topology.random_geometric(20, 60, 60, seed=4)
    scenario = wb.Scenario(topology, wb.Flooding(), [wb.move([3, 7], RandomWaypoint())], duration_s=30)
    changes, nodes = arcs.link_changes(scenario), np.array(sorted(topology))
    changed = np.unique(changes.rows["subject"])
    ends = np.stack((nodes[changes.senders], nodes[changes.receivers]))
    assert np.isin(ends[:, changed], [3, 7]).any(axis=0).all()
    at_start = {tuple(arc): pdr for *arc, pdr in zip(*ends.tolist(), changes.ratios.tolist(), strict=True)}
    for sender, receiver, pdr in topology.edges(data="pdr"):
        assert {sender, receiver} & {3, 7} or at_start[sender, receiver] == pdr


TOPOLOGIES = {
    "disc": lambda seed: wb.topology.disc(25, 80, 60, 22, seed=seed),
    "random_geometric": lambda seed: wb.topology.random_geometric(25, 90, 60, seed=seed),
    "office": lambda seed: wb.topology.office(30, seed=seed),
    "from_positions": lambda seed: wb.topology.from_positions(
        {4 * node + 1: (7 * node, 3 * node % 11) for node in range(15)},
        propagation=wb.topology.Propagation(),
        walls=[((40, -10), (40, 20))],
        seed=seed,
    ),
}


@pytest.mark.parametrize("kind", TOPOLOGIES)
@pytest.mark.parametrize("model", [RandomWaypoint(fastest_m_s=8), GaussMarkov(mean_m_s=4)])
def test_links_at_each_step_are_those_of_the_topology_rule_at_these_positions(kind, model):
    topology = TOPOLOGIES[kind](3)
    moving = sorted(topology)[::2] if kind != "disc" else sorted(topology)
    scenario = wb.Scenario(topology, wb.Flooding(), [wb.move(moving, model, step_s=2)], duration_s=21)
    for second in range(0, 21, 2):
        positions_m = {node: arcs.position_at(scenario, node, second * SECOND) for node in topology}
        expected = linked_again(moved(topology, positions_m), link_rule(topology))
        is_moved = set(moving)
        expected_pdr = {
            (a, b): pdr if {a, b} & is_moved else topology.edges[a, b]["pdr"]
            for a, b, pdr in expected.edges(data="pdr")
        }
        actual_pdr = links_at(scenario, second * SECOND)
        assert actual_pdr.keys() == expected_pdr.keys()
        for arc, pdr in expected_pdr.items():
            assert abs(actual_pdr[arc] - pdr) < arcs.RESOLUTION


def links_at(scenario, time_us):
    """Return {(sender, receiver): delivery ratio} of the arcs that exist at ``time_us``, by the changes up to then."""
    changes, nodes = arcs.link_changes(scenario), sorted(scenario.topology)
    ratios = changes.ratios.copy()
    for row in changes.rows[changes.rows["time_us"] <= time_us]:
        if row["kind"] == arcs.RATIO:
            ratios[row["subject"]] = row["ratio"]
    ends = changes.senders.tolist(), changes.receivers.tolist(), ratios.tolist()
    return {(nodes[a], nodes[b]): ratio for a, b, ratio in zip(*ends, strict=True) if ratio >= 0}


def test_movement_with_a_radius_links_the_nodes_of_a_network_without_a_rule():
    topology = wb.topology.line(3)  # 10 m apart
    path = [(4, 20, 0), (5, 40, 0)]
    run = play(topology, [subscription(), readings(2), wb.move(2, path, radius_m=12)])
    assert delivered_s(run) == middles(0, 5)
    with pytest.raises(ScenarioError, match=r"^workload item 0 moves nodes, but their positions do not determine"):
        wb.Scenario(topology, wb.Flooding(), [wb.move(2, path)])


def test_strength_of_frames_follows_the_positions():
    # Node 1 stays 10 m from the receiver; node 2 comes from 100 m to 1 m at second 5.
    topology = wb.topology.from_positions({0: (0, 0), 1: (10, 0), 2: (0, 100)}, radius_m=200)
    workload = [readings(1), readings(2), wb.move(2, [(4, 0, 100), (5, 0, 1)])]
    run = play(topology, workload, protocol=wb.Flooding(ttl=1), collisions=True, capture_dB=10)
    senders = {row["time_us"] // SECOND: row["peer"] for row in rows(run, "received", node=0)}
    assert senders == dict.fromkeys(range(5), 1) | dict.fromkeys(range(5, 10), 2)
    assert {row["detail"] for row in rows(run, "lost", node=0)} == {"collision"}
    # At the same distance, neither frame is stronger.
    run = play(
        topology,
        [*workload[:2], wb.move(2, [(0, 0, 10), (9, 0, 10)])],
        protocol=wb.Flooding(ttl=1),
        collisions=True,
        capture_dB=10,
    )
    assert not rows(run, "received", node=0)


def test_strength_of_each_arc_is_that_of_the_positions_at_each_step():
    topology = wb.topology.disc(12, 60, 60, 25, seed=5)
    radio = wb.Radio(collisions=True, capture_dB=6)
    scenario = wb.Scenario(topology, wb.Flooding(), [wb.move("all", RandomWaypoint(fastest_m_s=6))], radio, 12)
    changes, nodes = arcs.link_changes(scenario), sorted(topology)
    strengths, ratios = changes.strengths_ddB.copy(), changes.ratios.copy()
    for second in range(12):
        for row in changes.rows[changes.rows["time_us"] == second * SECOND]:
            ratios[row["subject"]], strengths[row["subject"]] = row["ratio"], row["strength_ddB"]
        positions_m = np.array([arcs.position_at(scenario, node, second * SECOND) for node in nodes])
        assert (strengths == strengths_ddB(positions_m, changes.senders, changes.receivers))[ratios >= 0].all()


def test_sensor_is_read_at_the_moved_position():
    field = wb.SensorField(noise_sigma=0)
    path = [(0, 10, 0), (20, 30, 40)]
    workload = [subscription(), wb.publish([0, 1], field, every_s=1.5), wb.move(1, path)]
    run = play(row_of_nodes(2, radius_m=100), workload, 20)
    extent_m = run.scenario.extent_m
    published = rows(run, "published")
    assert len(published) == 28
    for row in published:
        time_s = row["time_us"] / SECOND
        x_m, y_m = (10 + time_s, 2 * time_s) if row["node"] == 1 else (0.0, 0.0)
        assert row["detail"] == to_text(parse(field.attributes(row["node"], x_m, y_m, time_s, extent_m)))


def test_two_items_cannot_move_one_node_or_have_different_radii():
    path = [(1, 5, 5)]
    with pytest.raises(ScenarioError, match=r"^workload items 0 and 1 both move node 1; leave one out$"):
        wb.Scenario(PAIR, wb.Flooding(), [wb.move("all", path), wb.move(1, path)])
    with pytest.raises(
        ScenarioError, match=r"^workload item 1 has radius_m 5\.0, and item 0 has None; all movements must"
    ):
        wb.Scenario(PAIR, wb.Flooding(), [wb.move(0, path), wb.move(1, path, radius_m=5)])


def test_each_item_moves_its_nodes_at_its_own_steps():
    # Node 1 takes steps of 4 s, node 2 of 1 s: the links of node 1 do not change between its steps.
    topology = wb.topology.from_positions({0: (0, 0), 1: (10, 0), 2: (0, 10)}, radius_m=20)
    workload = [wb.subscribe(0, "TEMP GE 20"), readings(1), readings(2, start_s=0.6)]
    workload += [wb.move(1, [(0, 10, 0), (30, 40, 0)], 4), wb.move(2, [(0, 0, 10), (30, 0, 40)], 1)]
    run = play(topology, workload, 16, protocol=wb.Flooding(ttl=1))
    assert delivered_s(run) == sorted([*middles(0, 12), *(round(time_s + 0.1, 1) for time_s in middles(0, 11))])
