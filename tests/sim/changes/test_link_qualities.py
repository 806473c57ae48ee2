"""Delivery ratios that change reach the nodes: known ratios at once, learned ratios from beacons."""

import pytest

import workbench as wb
from tests.families import family_except
from tests.sim.changes.playing import SECOND, delivered_s, middles, play, readings, row_of_nodes, rows, subscription
from tests.talker import Talker
from workbench.sim.changes.measured import LinkQualities

PAIR = row_of_nodes(2)


def trace(*measured):
    return wb.link_trace(LinkQualities(*zip(*measured, strict=True)))


def reports(topology, *items, duration_s=10, **radio):
    """Return (time in s, node, neighbor, inbound, outbound) of the reported ratios; only the reference engine plays."""
    scenario = wb.Scenario(topology, Talker(), list(items), wb.Radio(**radio), duration_s)
    return [
        (row["time_us"] / SECOND, row["node"], row["peer"], row["value"] / 1000, float(row["detail"]))
        for row in rows(scenario.run(engine="reference"), "held", message="quality")
    ]


def test_both_ends_of_a_link_get_a_known_ratio_when_it_changes():
    assert reports(PAIR, trace((4, 1, 0, 0.5), (6, 1, 0, 0), (6, 0, 1, 0.25))) == [
        (0, 0, 1, 1, 1),
        (0, 1, 0, 1, 1),
        (4, 1, 0, 1, 0.5),
        (4, 0, 1, 0.5, 1),
        (6, 1, 0, 0.25, 0),
        (6, 0, 1, 0, 0.25),
    ]


def test_node_that_was_down_gets_the_ratios_when_it_comes_up():
    of_0 = [report for report in reports(PAIR, trace((4, 1, 0, 0.5)), wb.outage(0, 3, 5)) if report[1] == 0]
    assert of_0 == [(0, 0, 1, 1, 1), (5, 0, 1, 0.5, 1)]
    of_0 = [report for report in reports(PAIR, trace((4, 1, 0, 0)), wb.outage(0, 3, 5)) if report[1] == 0]
    assert of_0 == [(0, 0, 1, 1, 1), (5, 0, 1, 0, 1)]
    # A node that starts anew knows no links, so it gets no report of a link that does not exist.
    of_0 = [report for report in reports(PAIR, trace((4, 1, 0, 0), (4, 0, 1, 0)), wb.crash(0, 3, 5)) if report[1] == 0]
    assert of_0 == [(0, 0, 1, 1, 1)]


def test_partition_and_movement_report_a_ratio_of_zero():
    assert reports(PAIR, wb.partition(0, 4, 6))[2:] == [
        (4, 1, 0, 0, 0),
        (4, 0, 1, 0, 0),
        (6, 1, 0, 1, 1),
        (6, 0, 1, 1, 1),
    ]
    assert reports(PAIR, wb.move(1, [(4, 10, 0), (5, 100, 0)]))[2:] == [(5, 1, 0, 0, 0), (5, 0, 1, 0, 0)]


def test_black_list_of_diffusion_follows_known_ratios():
    workload = [subscription(), readings(start_s=4.5), trace((20, 1, 0, 0.2), (40, 1, 0, 1.0))]
    run = play(PAIR, workload, 60, protocol=wb.Diffusion(refresh_s=2))
    assert [(row["time_us"] // SECOND, row["node"], row["peer"], row["value"]) for row in rows(run, "blacklisted")] == [
        (20, 1, 0, 1),
        (20, 0, 1, 1),
        (40, 1, 0, 0),
        (40, 0, 1, 0),
    ]
    delivered = delivered_s(run)
    assert set(middles(4, 20)) | set(middles(44, 60)) <= set(delivered)
    assert not [time_s for time_s in delivered if 22 < time_s < 40 - 1]


def test_black_list_of_diffusion_follows_learned_ratios():
    workload = [subscription(), wb.publish(1, "TEMP IS 25", every_s=5, start_s=4), trace((300, 1, 0, 0.1))]
    run = play(PAIR, workload, 2500, protocol=wb.Diffusion(), link_quality="learned")
    blacklisted = rows(run, "blacklisted", value=1)
    # Samples of .1 lower the estimate, a weighted mean, to .25 after seven windows of ten beacons each, one every 8 to
    # 16 s; samples of 0 after five.
    assert blacklisted and 700 < blacklisted[0]["time_us"] / SECOND < 2400
    assert {row["node"] for row in blacklisted} == {0, 1}


def test_learned_ratios_start_anew_after_a_crash():
    workload = [subscription(), wb.publish(1, "TEMP IS 25", every_s=5, start_s=4), wb.crash(0, 100, 110)]
    run = play(PAIR, workload, 300, protocol=wb.Diffusion(), link_quality="learned")
    beacons = [row["time_us"] / SECOND for row in rows(run, "sent", message="beacon", node=0)]
    assert not [time_s for time_s in beacons if 100 < time_s < 110]
    # Its first beacons follow each other as quickly as those after the start of the run.
    for start_s in (0, 110):
        first, second, third = [time_s - start_s for time_s in beacons if time_s >= start_s][:3]
        assert 0.5 <= first <= 1.01 and 1 <= second - first <= 2.01 and 2 <= third - second <= 4.01
    assert not rows(run, "blacklisted")
    assert {row["detail"] for row in rows(run, "lost")} <= {"down"}


def test_mesh_of_dps_drops_a_link_that_gets_poor_and_uses_one_that_gets_good():
    # The direct link of nodes 0 and 2 gets poor at 100 s. Then node 1 is the relay.
    topology = row_of_nodes(3, radius_m=25)
    poor = [(100, a, b, 0.2) for a, b in ((0, 2), (2, 0))]
    workload = [subscription(), readings(2, every_s=5, start_s=20), trace(*poor, (300, 0, 2, 1), (300, 2, 0, 1))]
    run = play(topology, workload, 500, protocol=wb.DPS(worst_link=0.5))
    ended = [row for row in rows(run, "link_set", detail="gone") if {row["node"], row["peer"]} == {0, 2}]
    assert not [row for row in ended if row["time_us"] < 100 * SECOND]
    delivered = delivered_s(run)
    published = [row["time_us"] / SECOND for row in rows(run, "published")]
    # The known ratio makes both ends stop using the link.
    assert ended or rows(run, "link_set", detail="muted")
    assert len(set(delivered)) > 0.9 * len(published)


@pytest.mark.parametrize("link_quality", family_except(["true", "learned"], "learned"))
@pytest.mark.parametrize("protocol", [wb.Diffusion(), wb.DPS(crowd=3, best_links=2)], ids=["Diffusion", "DPS"])
def test_engines_agree_while_ratios_vary(protocol, link_quality):
    topology = wb.topology.random_geometric(10, 50, 50, seed=5)
    workload = [
        subscription(),
        wb.publish([5, 9], "TEMP IS 25", every_s=2, stagger=True),
        wb.burst_loss(20, 10, 0.3),
        wb.move([2, 3], wb.mobility.RandomWaypoint(fastest_m_s=5)),
        wb.crash(4, 30, 40),
        wb.join(7, 20),
    ]
    play(topology, workload, 120, protocol, retries=3, collisions=True, csma=True, link_quality=link_quality)
