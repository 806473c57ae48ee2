"""Link traces: each listed link has the measured ratios at exact times, and no other link changes."""

from math import sqrt

import numpy as np
import pandas as pd
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
from workbench.sim.changes.measured import LinkQualities

PAIR = row_of_nodes(2)


def trace(*measured):
    """Return the item of rows (time_s, transmitter, receiver, pdr)."""
    return wb.link_trace(LinkQualities(*zip(*measured, strict=True)))


def test_ratio_of_zero_removes_the_link_until_its_next_row():
    workload = [subscription([0, 1]), readings([0, 1]), trace((10, 1, 0, 0), (20, 1, 0, 1))]
    run = play(PAIR, workload, 30, protocol=wb.Flooding(ttl=1))
    from_neighbor = [row["time_us"] // SECOND for row in rows(run, "delivered", node=0, origin=1)]
    assert from_neighbor == [*range(10), *range(20, 30)]
    # The other direction is not in the trace.
    assert len(rows(run, "delivered", node=1, origin=0)) == 30
    assert not rows(run, "lost")


@pytest.mark.parametrize(("earlier_us", "is_received"), [(1, True), (0, False), (-1, False)])
def test_ratio_changes_at_its_microsecond(earlier_us, is_received):
    publication = wb.publish(1, "TEMP IS 25", start_s=3 - (FRAME_US + earlier_us) / 1e6)
    run = play(PAIR, [subscription(), publication, trace((3, 1, 0, 0))])
    assert len(delivered_s(run)) == is_received


def test_unicast_over_a_removed_link_is_lost_with_the_reason_link():
    protocol = wb.Diffusion(refresh_s=0, blacklist_loss=1.0)
    run = play(PAIR, [subscription(), readings(1, start_s=4.5), trace((8, 1, 0, 0), (12, 1, 0, 1))], 15, protocol)
    assert delivered_s(run) == [*middles(4, 8), *middles(12, 15)]
    assert [(row["time_us"] // SECOND, row["node"], row["peer"], row["detail"]) for row in rows(run, "lost")] == [
        (second, 0, 1, "link") for second in range(8, 12)
    ]


def test_unlisted_links_and_listed_links_before_their_first_row_have_the_ratio_of_the_topology():
    topology = row_of_nodes(4)
    run = play(topology, [subscription(), readings(3), trace((5, 1, 0, 0), (8, 3, 2, 0.0), (6, 1, 0, 1))])
    assert delivered_s(run) == [*middles(0, 5), *middles(6, 8)]


def test_link_that_the_topology_lacks_exists_from_its_first_row_on():
    topology = row_of_nodes(3, radius_m=5)  # no links
    run = play(topology, [subscription(), readings(2), trace((4, 2, 0, 1), (8, 2, 0, 0))])
    assert delivered_s(run) == middles(4, 8)
    assert run.metrics["expected"] == 10  # The link exists at some time.


def test_measured_ratio_is_the_share_of_received_frames():
    count, ratio = 4000, 0.7
    run = play(PAIR, [readings(), trace((0, 1, 0, ratio))], count, protocol=wb.Flooding(ttl=1, max_events=1))
    received = len(rows(run, "received", node=0))
    assert abs(received / count - ratio) < 4 * sqrt(ratio * (1 - ratio) / count)
    assert {row["detail"] for row in rows(run, "lost", node=0)} == {"link"}


def test_factors_apply_to_measured_ratios_and_partitions_remove_measured_links():
    run = play(
        PAIR,
        [subscription(), readings(), trace((2, 1, 0, 0), (4, 1, 0, 1)), wb.partition(0, 6, 8)],
    )
    assert delivered_s(run) == [*middles(0, 2), *middles(4, 6), *middles(8, 10)]


def test_traced_link_of_a_moving_node_follows_the_trace():
    topology = row_of_nodes(3, radius_m=20)
    workload = [subscription([0, 2]), readings(1), wb.move(1, [(2, 10, 0), (3, 500, 0)]), trace((0, 1, 2, 1))]
    run = play(topology, workload, protocol=wb.Flooding(ttl=1))
    assert delivered_s(run, 0) == middles(0, 3) and delivered_s(run, 2) == middles(0, 10)


def test_table_and_file_give_the_same_item(tmp_path):
    table = pd.DataFrame({"time_s": [5, 0], "transmitter": [1, 0], "receiver": [0, 1], "pdr": [0.25, 1.0]})
    file = tmp_path / "links.csv"
    table.to_csv(file, index=False)
    item = trace((0, 0, 1, 1), (5, 1, 0, 0.25))
    assert wb.link_trace(table) == wb.link_trace(str(file)) == item
    assert np.array(item.trace.times_us).tolist() == [0, 5 * SECOND] and item.at == (0, 1)
