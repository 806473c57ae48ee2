"""The workload's reinforcements: a sink reinforces sources that it selects by constraints, for example a region."""

import pytest

import workbench as wb
from tests.both_engines import assert_same_trace
from workbench.errors import ScenarioError
from workbench.sim.conditions import conditions, warnings
from workbench.sim.python_lines import python_lines
from workbench.sim.rows import Columns

# A line of five nodes, ten metres apart: node 0 is the sink, the others publish their position every second.
SINK, SOURCES = 0, (1, 2, 3, 4)


def scenario(*reinforcements, duration_s=30, protocol=None):
    workload = [
        wb.subscribe(SINK, "TEMP GE 0, INTERVAL IS 10"),
        *(wb.publish(node, f"TEMP IS 20, X IS {10 * node}", every_s=1, start_s=1) for node in SOURCES),
        *reinforcements,
    ]
    protocol = protocol or wb.Diffusion(reinforce_after=0, refresh_s=0)
    return wb.Scenario(wb.topology.line(5), protocol, workload, duration_s=duration_s)


def deliveries_after(run, time_s):
    """Return {source: number of its readings that were delivered after a time}."""
    rows = [row for row in Columns(run.trace).of("delivered") if row.time_us > time_s * 1_000_000]
    return {node: sum(row.origin == node for row in rows) for node in SOURCES}


def test_sources_in_the_region_send_at_the_interval_of_the_reinforcement():
    region = wb.reinforce(SINK, "TEMP GE 0, X GE 25, X LE 45, INTERVAL IS 1", start_s=11.5)
    assert deliveries_after(scenario().run(), 12) == dict.fromkeys(SOURCES, 1)
    assert deliveries_after(scenario(region).run(), 12) == {1: 1, 2: 1, 3: 18, 4: 18}


def test_reinforcement_lasts_as_long_as_its_gradients_and_can_be_repeated():
    protocol = wb.Diffusion(reinforce_after=0, refresh_s=5, gradient_lifetime_s=10)
    once = wb.reinforce(SINK, "TEMP GE 0, X GE 35, INTERVAL IS 1", start_s=1.5)
    often = wb.reinforce(SINK, "TEMP GE 0, X GE 35, INTERVAL IS 1", start_s=1.5, every_s=10)
    ran_once, ran_often = (scenario(item, protocol=protocol).run() for item in (once, often))
    assert deliveries_after(ran_once, 22)[4] < deliveries_after(ran_often, 22)[4] == 8


@pytest.mark.parametrize("every_s", [None, 2.5])
def test_both_engines_reinforce_alike(every_s):
    items = [
        wb.reinforce(SINK, "TEMP GE 0, X GE 25, INTERVAL IS 1", every_s, start_s=5),
        wb.reinforce(SINK, "TEMP GE 0", every_s, start_s=7, stop_s=20),
    ]
    assert_same_trace(scenario(*items))
    grid = scenario(*items).replace(topology=wb.topology.grid(3, 3), protocol=wb.Diffusion(exploratory_gradients=2))
    assert_same_trace(grid)


def test_reinforcement_survives_a_file_and_is_python_again():
    item = wb.reinforce(SINK, "TEMP GE 0, X GE 25", 10, start_s=5, stop_s=20)
    composed = scenario(item)
    assert wb.Scenario.from_json(composed.to_json()) == composed
    assert "wb.reinforce(" in python_lines(composed)


@pytest.mark.parametrize(("node", "constraints"), [(SINK, "TEMP GE -5"), (3, "TEMP GE 0")])
def test_run_warns_of_a_reinforcement_that_lies_within_no_subscription_of_its_node(node, constraints):
    composed = scenario(wb.reinforce(node, constraints))
    with pytest.warns(UserWarning, match=f"item 5 has no effect at node {node}: a reinforcement must be at least"):
        run = composed.run(engine="reference")
    assert run.metrics.sent_data == scenario().run().metrics.sent_data


def test_other_protocols_ignore_reinforcements_and_their_conditions_say_so():
    composed = scenario(wb.reinforce(SINK, "TEMP GE 0, X GE 25", start_s=5))
    flooding = composed.replace(protocol=wb.Flooding())
    assert_same_trace(flooding)
    assert conditions(flooding).ignored == ("INTERVAL", "reinforcements")
    assert conditions(composed).ignored == ()
    assert "INTERVAL" in warnings([conditions(composed), conditions(flooding)])[0]


def test_motes_refuse_reinforcements_before_they_start():
    with pytest.raises(ScenarioError, match="workload item 5 is a reinforcement, for which motes have no command"):
        scenario(wb.reinforce(SINK, "TEMP GE 0")).run(on=wb.motes.virtual())
