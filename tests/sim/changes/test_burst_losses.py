"""Gilbert-Elliott links: shares, means and correlations within four standard deviations of their parameters."""

from math import exp, sqrt

import numpy as np
import pytest

import workbench as wb
from tests.sim.changes.playing import SECOND, delivered_s, middles, play, readings, row_of_nodes, rows, subscription
from workbench.sim.changes import arcs

PAIR = row_of_nodes(2)
GOOD_S, BAD_S = 2.0, 1.0
BAD_SHARE = BAD_S / (GOOD_S + BAD_S)
# The state of a link after a time t is correlated with that at its begin by exp(-t / MEMORY_S).
MEMORY_S = 1 / (1 / GOOD_S + 1 / BAD_S)
DEVIATIONS = 4


def changes_of(topology, *items, duration_s=20_000, seed=1):
    radio = wb.Radio(loss="links")
    return arcs.link_changes(wb.Scenario(topology, wb.Flooding(), list(items), radio, duration_s, seed))


def stays_s(changes, arc):
    """Return (times in s in the good state, times in the bad state) of an arc, without the first stay and the last."""
    rows_of_arc = changes.rows[changes.rows["subject"] == arc]
    stays = np.diff(rows_of_arc["time_us"]) / SECOND
    is_bad = rows_of_arc["ratio"][:-1] < 1
    return stays[~is_bad], stays[is_bad]


def states_at(changes, times_s):
    """Return for each arc whether it is in the bad state at each of these times, bool (arcs, times)."""
    states = []
    for arc in range(len(changes.ratios)):
        of_arc = changes.rows[changes.rows["subject"] == arc]
        ratios = np.append(changes.ratios[arc], of_arc["ratio"])
        states.append(ratios[np.searchsorted(of_arc["time_us"], np.array(times_s) * SECOND, side="right")] < 1)
    return np.array(states)


def test_stays_have_the_means_of_the_parameters_and_are_exponential():
    changes = changes_of(PAIR, wb.burst_loss(GOOD_S, BAD_S))
    for stays, mean_s in zip(stays_s(changes, 0), (GOOD_S, BAD_S), strict=True):
        assert len(stays) > 6000
        assert abs(stays.mean() - mean_s) < DEVIATIONS * mean_s / sqrt(len(stays))
        # Of an exponential distribution, the variance of the squared deviation is 8 times the mean to the fourth.
        assert abs(stays.var() - mean_s**2) < DEVIATIONS * sqrt(8 / len(stays)) * mean_s**2
        longer_share = float((stays > mean_s).mean())
        assert abs(longer_share - exp(-1)) < DEVIATIONS * sqrt(exp(-1) * (1 - exp(-1)) / len(stays))


def test_link_is_bad_for_the_stationary_share_of_the_time():
    duration_s = 20_000
    changes = changes_of(PAIR, wb.burst_loss(GOOD_S, BAD_S), duration_s=duration_s)
    of_arc = changes.rows[changes.rows["subject"] == 0]
    times_s = np.concatenate(([0], of_arc["time_us"] / SECOND, [duration_s]))
    is_bad = np.append(changes.ratios[0], of_arc["ratio"]) < 1
    share = float((np.diff(times_s) * is_bad).sum() / duration_s)
    sigma = sqrt(2 * BAD_SHARE * (1 - BAD_SHARE) * MEMORY_S / duration_s)
    assert abs(share - BAD_SHARE) < DEVIATIONS * sigma


@pytest.mark.family
@pytest.mark.parametrize("bad_pdr", [0.0, 0.4])
def test_run_loses_the_stationary_share_of_its_frames(bad_pdr):
    count, every_s = 8000, 1.0
    burst = wb.burst_loss(GOOD_S, BAD_S, bad_pdr)
    run = play(PAIR, [subscription(), readings(), burst], count, protocol=wb.Flooding(ttl=1, max_events=1))
    loss = BAD_SHARE * (1 - bad_pdr)
    still_bad_share = exp(-every_s / MEMORY_S)
    covariances = (1 - bad_pdr) ** 2 * BAD_SHARE * (1 - BAD_SHARE) * still_bad_share / (1 - still_bad_share)
    sigma = sqrt((loss * (1 - loss) + 2 * covariances) / count)
    lost = rows(run, "lost", node=0)
    assert abs(len(lost) / count - loss) < DEVIATIONS * sigma
    assert {row["detail"] for row in lost} == {"link"}
    if bad_pdr == 0:
        # A burst of lost frames goes on with the probability that the link is bad after a period, too.
        going_on = BAD_SHARE + (1 - BAD_SHARE) * still_bad_share
        seconds = np.array([row["time_us"] // SECOND for row in lost])
        bursts = 1 + int(np.count_nonzero(np.diff(seconds) > 1))
        mean = 1 / (1 - going_on)
        assert abs(len(lost) / bursts - mean) < DEVIATIONS * sqrt(going_on) * mean / sqrt(bursts)


def test_delivery_ratio_of_a_link_is_multiplied_in_the_bad_state():
    topology = wb.topology.random_geometric(12, 60, 60, seed=2)
    changes = changes_of(topology, wb.burst_loss(5, 5, 0.25), duration_s=100)
    pdr = np.array([topology.edges[a, b]["pdr"] for a, b in zip(changes.senders, changes.receivers, strict=True)])
    subjects, ratios = changes.rows["subject"], changes.rows["ratio"]
    assert set(np.unique(subjects)) == set(range(len(pdr)))
    assert (np.isclose(ratios, pdr[subjects]) | np.isclose(ratios, 0.25 * pdr[subjects])).all()


def test_both_directions_of_a_link_share_its_state():
    workload = [readings([0, 1], every_s=0.1), wb.burst_loss(0.5, 0.5)]
    run = play(PAIR, workload, 60, protocol=wb.Flooding(ttl=1))
    lost_us = [{row["time_us"] for row in rows(run, "lost", node=node)} for node in (0, 1)]
    assert lost_us[0] == lost_us[1] and 200 < len(lost_us[0]) < 400
    changes = changes_of(wb.topology.grid(4, 4), wb.burst_loss(2, 1), duration_s=50)
    ends = list(zip(changes.senders.tolist(), changes.receivers.tolist(), strict=True))
    states = states_at(changes, np.arange(0, 50, 0.5))
    for arc, (sender, receiver) in enumerate(ends):
        assert (states[arc] == states[ends.index((receiver, sender))]).all()


def test_links_are_independent_of_each_other_and_of_the_seed():
    item = wb.burst_loss(GOOD_S, BAD_S)
    times_s = np.arange(5, 20_000, 5.0)  # The state after five seconds is correlated by less than .001.
    star = wb.topology.from_positions({0: (0, 0), 1: (10, 0), 2: (-10, 0), 3: (0, 10)}, radius_m=12)
    states = states_at(changes_of(star, item), times_s)[:3]  # from node 0 to the others
    other_seed = states_at(changes_of(star, item, seed=2), times_s)[:1]
    other_item = states_at(changes_of(star, wb.outage(1, 3, 3), item), times_s)[:1]
    correlations = np.corrcoef(np.concatenate((states, other_seed, other_item)))
    assert (np.abs(correlations[~np.eye(5, dtype=bool)]) < DEVIATIONS / sqrt(len(times_s))).all()
    # The same two nodes in another network have the same states.
    pair = wb.topology.from_positions({0: (0, 0), 2: (3, 4)}, radius_m=12)
    assert (states_at(changes_of(pair, item), times_s)[0] == states[1]).all()


@pytest.mark.parametrize("start_s", [0.0, 7.5])
def test_state_at_the_start_is_stationary(start_s):
    topology = wb.topology.grid(40, 40)
    changes = changes_of(topology, wb.burst_loss(GOOD_S, BAD_S, start_s=start_s), duration_s=20)
    ends = zip(changes.senders.tolist(), changes.receivers.tolist(), strict=True)
    is_first_direction = np.array([sender < receiver for sender, receiver in ends])
    before, *after = states_at(changes, [start_s - 1e-6, start_s, start_s + 0.3, start_s + 8])[is_first_direction].T
    if start_s:
        assert not before.any()
    count = int(is_first_direction.sum())
    sigma = sqrt(BAD_SHARE * (1 - BAD_SHARE) / count)
    for states in after:
        assert abs(states.mean() - BAD_SHARE) < DEVIATIONS * sigma
    # Of the links that are bad at the start, these are still (or again) bad 0.3 s later.
    still_bad_share = BAD_SHARE + (1 - BAD_SHARE) * exp(-0.3 / MEMORY_S)
    still_bad = after[1][after[0]]
    assert abs(still_bad.mean() - still_bad_share) < DEVIATIONS * sqrt(
        still_bad_share * (1 - still_bad_share) / len(still_bad)
    )


def test_bursts_occur_only_in_their_interval_and_between_their_nodes():
    workload = [subscription(0), readings(1), readings(3, start_s=0.6), wb.burst_loss(0.3, 3, 0, [0, 1, 2], 10, 20)]
    run = play(row_of_nodes(4), workload, 30, protocol=wb.Flooding(ttl=1))
    delivered = delivered_s(run)
    assert set(middles(0, 10)) | set(middles(20, 30)) <= set(delivered)
    assert len([time_s for time_s in delivered if 10 < time_s < 20]) < 5
    assert len(rows(run, "received", node=2, peer=3)) == 30  # Node 3 is not among the nodes of the item.


def test_two_processes_on_a_link_multiply_their_factors():
    items = wb.burst_loss(2, 2, 0.5), wb.burst_loss(3, 1, 0.4)
    changes = changes_of(PAIR, *items, duration_s=3000)
    ratios, counts = np.unique(np.round(changes.rows["ratio"], 9), return_counts=True)
    assert ratios.tolist() == [0.2, 0.4, 0.5, 1.0] and (counts > 50).all()


def test_bursts_on_a_radio_with_a_fixed_loss_multiply_that_ratio():
    scenario = wb.Scenario(PAIR, wb.Flooding(), [wb.burst_loss(2, 2, 0.5)], wb.Radio(loss=0.2), 1000)
    assert set(np.round(arcs.link_changes(scenario).rows["ratio"], 9)) == {0.4, 0.8}
