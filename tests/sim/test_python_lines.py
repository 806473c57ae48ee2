"""A scenario as lines of Python: executed, they give the same scenario."""

import networkx as nx
import pytest

import workbench as wb
from workbench.sim.python_lines import python_lines


def again(scenario):
    """Return the scenario that the lines create."""
    names = {"wb": wb}
    exec(python_lines(scenario), names)
    return names["scenario"]


def _edited():
    graph = nx.DiGraph(wb.topology.grid(2, 3))
    graph.remove_edge(0, 1)
    graph.edges[1, 2]["pdr"] = 0.75
    return graph


SCENARIOS = {
    "defaults": wb.Scenario(wb.topology.grid(2, 2), wb.Flooding()),
    "all kinds of items": wb.Scenario(
        wb.topology.disc(12, 60, 60, radius_m=25, seed=4),
        wb.TinyMQ(roots=(0, 3), dimensions=("TEMP -20 50", "HUMIDITY"), publish="own"),
        [
            wb.subscribe([0, 5], "TEMP GE 20", start_s=1, expires_s=40),
            wb.publish("all", wb.SensorField(base=19.5, seed=3), every_s=5, stagger=True),
            wb.publish(2, 'TEMP IS 21, PAYLOAD IS "so, so"', payload=b"\x00\xff", start_s=3),
            wb.outage(7, start_s=5, stop_s=9.25),
        ],
        wb.Radio(loss=0.1, retries=3, csma=True, jitter_ms=(0, 2.5)),
        duration_s=33.125,
        seed=99,
    ),
    "filters": wb.Scenario(
        wb.topology.line(3),
        wb.Diffusion(
            refresh_s=10.0,
            filters=[
                wb.Filter("suppress_unchanged", match="TEMP GE 3", at=[1]),
                wb.Filter("running_mean", key=201, window=3),
            ],
        ),
    ),
    "a network that changes": wb.Scenario(
        wb.topology.disc(9, 30, 30, radius_m=15),
        wb.Flooding(),
        [
            wb.move(1, along=wb.mobility.Waypoints([(5 + k, 10.0 * k, 1.5) for k in range(6)])),
            wb.move([2, 3], along=wb.mobility.RandomWaypoint(width_m=30)),
            wb.move(4, along=wb.mobility.GaussMarkov()),
            wb.link_trace(wb.LinkQualities([0, 6], [0, 0], [1, 1], [0.9, 0.2])),
            wb.partition(at=[0, 1], start_s=3, stop_s=6),
            wb.crash(at=5, start_s=8, stop_s=10),
            wb.burst_loss(good_s=10, bad_s=0.5, at=[2, 3]),
            wb.jam(10.0, 20.0, radius_m=5, every_s=4, for_s=1),
        ],
    ),
    "an edited network": wb.Scenario(_edited(), wb.Gossip(forwarding_probability=0.5)),
    "an office with walls": wb.Scenario(wb.topology.office(seed=2), wb.DPS(filter_bits=512)),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_lines_give_the_same_scenario(name):
    assert again(SCENARIOS[name]).hash == SCENARIOS[name].hash


def test_defaults_are_not_written():
    assert python_lines(SCENARIOS["defaults"]) == (
        "scenario = wb.Scenario(\n"
        "    topology=wb.topology.grid(rows=2, columns=2, spacing_m=10.0),\n"
        "    protocol=wb.Flooding(),\n"
        "    workload=[],\n"
        "    duration_s=60.0,\n"
        "    seed=1,\n"
        ")\n"
    )


def test_the_users_keys_are_registered_first():
    wb.register_key(130, "SMOKE", "ppm", 1, "int16", 0, 1000)
    scenario = wb.Scenario(wb.topology.line(2), wb.Flooding(), [wb.publish(0, "SMOKE IS 7")])
    assert python_lines(scenario).startswith("wb.register_key(130, 'SMOKE', 'ppm'")
    assert again(scenario).hash == scenario.hash
