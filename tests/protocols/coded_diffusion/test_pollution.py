"""A hostile node that sends noise with correct checksums: all events arrive unchanged, and the traffic ends."""

import pytest

import workbench as wb
from lessons.figures.pollution import pollution_chart, spoiled_by_distance
from workbench.protocols.coded_diffusion.views.pollution import PollutedDiffusion
from workbench.views.drawing import Polyline

SOURCE, HOSTILE = 12, 14  # in the middle of a grid of 5 x 5, and at its edge


def polluted_run(hostile=HOSTILE, seed=1, events=4, radio="none", **settings):
    protocol = PollutedDiffusion(hostile=hostile, **settings)
    event = wb.publish(SOURCE, "TEMP IS 26", start_s=1, every_s=2, stop_s=1 + 2 * events, payload=bytes(range(100)))
    workload = [wb.subscribe("all", "TEMP GE 1"), event]
    graph = wb.topology.grid(5, 5)
    return wb.Scenario(graph, protocol, workload, wb.Radio(loss=radio), 2 * events + 5, seed=seed).run()


@pytest.mark.parametrize("generation_size", [2, 4])
@pytest.mark.parametrize("hostile", [13, HOSTILE, 7, 24])
def test_every_event_arrives_unchanged_despite_a_hostile_node(hostile, generation_size):
    run = polluted_run(hostile, generation_size=generation_size, bootstrap_factor=generation_size)
    assert run.metrics["delivery_ratio"] == 1 and run.metrics["wrong_deliveries"] == 0
    assert run.metrics["duplicate_deliveries"] == 0


@pytest.mark.parametrize("max_requests", [0, 3])
def test_on_lossy_links_polluted_events_are_not_delivered_and_the_traffic_ends(max_requests):
    for seed in range(5):
        run = polluted_run(seed=seed, radio=0.2, generation_size=3, max_requests=max_requests)
        assert run.metrics["wrong_deliveries"] == 0
        sent_us = run.trace.column("time_us").to_numpy()[run.trace.column("event").to_numpy() == "sent"]
        assert sent_us.max() < 7_000_000 + 2_500_000  # the last event is published at 7 s


def test_a_distant_hostile_node_affects_only_its_neighbors():
    near, far = (spoiled_by_distance(polluted_run(hostile), hostile) for hostile in (HOSTILE, 24))
    assert near[1] > 0 and max(near) == 6
    assert all(share == 0 for hops, share in far.items() if hops > 2)
    assert spoiled_by_distance(wb.Scenario(wb.topology.line(4), wb.CodedDiffusion()).run(), 0) == {1: 0, 2: 0, 3: 0}


def test_pollution_chart_has_a_line_for_each_name():
    run = polluted_run()
    page = pollution_chart({"one": [run], "two": [run, polluted_run(seed=2)]}, HOSTILE)
    assert len([item for item in page.items if isinstance(item, Polyline)]) == 2
    with pytest.raises(wb.ParameterError, match="'none' has no runs"):
        pollution_chart({"none": []}, HOSTILE)


def test_an_unknown_hostile_node_is_refused():
    with pytest.raises(wb.ScenarioError, match="hostile has node 99"):
        polluted_run(99)
