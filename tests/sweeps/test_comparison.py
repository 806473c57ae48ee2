"""Comparisons of protocols: paired points, nodes with roles, conditions, statistics and charts."""

import math
from itertools import pairwise

import networkx as nx
import pytest

import workbench as wb
from workbench.errors import ParameterError, ScenarioError
from workbench.sim.conditions import conditions, warnings
from workbench.sim.workload import Publish, Subscribe
from workbench.sweeps.comparison import Comparison
from workbench.sweeps.comparison import design as designs
from workbench.views.drawing import Text

NETWORK = wb.topology.disc(20, 60, 60, radius_m=25, seed=2)
WORKLOAD = [
    wb.subscribe(0, "TEMP GE 20", start_s=10),
    wb.publish([7, 9], "TEMP IS 25", start_s=20, every_s=5),
    wb.outage(5, start_s=30),
]


@pytest.fixture(scope="module")
def scenario():
    """Return a scenario of twenty nodes with CC2420 radios, a sink, two sources, and a node that fails."""
    return wb.Scenario(NETWORK, wb.Flooding(), WORKLOAD, wb.radios.cc2420(), duration_s=60)


@pytest.fixture(scope="module")
def compared(scenario):
    """Return the comparison of three protocols with one and three sinks and three seeds."""
    protocols = [wb.Flooding(), wb.Gossip(forwarding_probability=0.2), wb.TinyMQ(dimensions=("TEMP 0 50",))]
    return wb.compare(scenario, protocols, {"sinks": (1, 3)}, seeds=3, runner=wb.LocalRunner(), progress=False)


def texts(drawing):
    return " ".join(item.text for item in drawing.items if isinstance(item, Text))


def test_all_protocols_have_the_same_network_and_workload_for_a_seed(compared):
    plan = compared.table.plan
    points = {(*plan.labels(number).values(),): plan.scenario_of(number) for number in range(len(plan))}
    for sinks in (1, 3):
        for seed in (1, 2, 3):
            same = [points[name, sinks, seed] for name in compared.protocols]
            assert len({wb.topology.digest(each.topology) for each in same}) == 1
            assert len({each.workload for each in same}) == 1 and {each.seed for each in same} == {seed}
            subscribers = {node for item in same[0].workload if isinstance(item, Subscribe) for node in item.at}
            assert len(subscribers) == sinks and 0 in subscribers and not subscribers & {7, 9}
    networks = {wb.topology.digest(points["Flooding", 1, seed].topology) for seed in (1, 2, 3)}
    assert len(networks) == 3


def test_a_smaller_set_of_sinks_is_a_subset_of_a_larger_one():
    sinks = [set(designs.change_workload(WORKLOAD, NETWORK, seed=4, sinks=count)[0].at) for count in range(1, 19)]
    assert all(fewer < more for fewer, more in pairwise(sinks))
    changed = designs.change_workload(WORKLOAD, NETWORK, seed=4, sources=5, every_s=2)
    publish = next(item for item in changed if isinstance(item, Publish))
    assert publish.at[:2] == (7, 9) and len(publish.at) == 5 and 0 not in publish.at and publish.every_s == 2
    assert changed[2] == WORKLOAD[2]


def test_roots_are_chosen_by_the_rule_and_not_by_hand():
    by_hand = wb.TinyMQ(roots=(3, 4))
    degree = dict(NETWORK.degree())
    first, second = designs.with_roles(by_hand, NETWORK, "degree", seed=1).roots
    assert degree[first] == max(degree.values()) and not NETWORK.has_edge(first, second)
    center, far = designs.with_roles(by_hand, NETWORK, "center", seed=1).roots
    positions = dict(NETWORK.nodes(data="pos"))
    assert math.dist(positions[center], (30, 30)) < 15 and math.dist(positions[center], positions[far]) > 25
    drawn = {designs.with_roles(by_hand, NETWORK, "random", seed=seed).roots for seed in range(5)}
    assert len(drawn) == 5
    assert designs.with_roles(wb.Flooding(ttl=4), NETWORK, "degree", 1) == wb.Flooding(ttl=4)
    complete = nx.complete_graph(4)
    assert len(designs.by_degree(wb.topology.check(complete), 3, 1)) == 3


def test_summary_has_means_medians_and_the_bounds_possible_for_the_number_of_runs(compared):
    summary = compared.summary("transmissions", "sinks")
    assert summary["protocol"].tolist() == [name for name in compared.protocols for _ in (1, 3)]
    frame = compared.to_pandas()
    own = frame[(frame["protocol"] == "TinyMQ") & (frame["sinks"] == 3)]["transmissions"]
    row = summary[(summary["protocol"] == "TinyMQ") & (summary["sinks"] == 3)].iloc[0]
    assert row["mean"] == pytest.approx(own.mean()) and row["median"] == sorted(own)[1] and row["runs"] == 3
    assert row["low"] < row["mean"] < row["high"] and math.isnan(row["median_low"])
    late = compared.summary("latency_all_ms_max").set_index("protocol")
    assert late.loc["Gossip", "mean"] == math.inf and late.loc["Gossip", "finite"] < 1


def test_differences_are_paired_and_protocols_that_do_not_deliver_cannot_win(compared):
    paired = compared.paired("transmissions").set_index("protocol")
    frame = compared.to_pandas().groupby("protocol")["transmissions"].mean()
    assert paired.loc["TinyMQ", "difference"] == pytest.approx(frame["TinyMQ"] - frame["Flooding"])
    winners = compared.winners("transmissions", "sinks")
    assert winners["sinks"].tolist() == [1, 3] and "Gossip" not in set(winners["best"]) | set(winners["second"])
    assert compared.winners("transmissions", delivering=0)["best"].tolist() == ["Gossip"]
    assert compared.winners("transmissions", delivering=1.1)["best"].tolist() == [""]
    with pytest.raises(ParameterError, match="neither more nor less"):
        compared.winners("expected")


def test_conditions_are_displayed_below_the_chart_and_the_table(compared):
    for text in (texts(compared.plot("transmissions")), compared._repr_html_().replace("&#x27;", "'")):
        assert "drawn for each seed; CC2420; 60 s; seeds 1 to 3" in text
        assert "With retries of their own, besides the radio's: TinyMQ. Without: Flooding, Gossip." in text
        assert "roots (1) of highest degree" in text and "forwarding_probability=0.2" in text
    assert "such values: Gossip" in texts(compared.plot("latency_all_ms_max", "sinks"))
    assert "too few runs" in texts(compared.plot("latency_all_ms_max"))
    assert "3 seeds" not in repr(compared) and "18 runs" in repr(compared)


def test_errors_and_ages_are_in_the_table_if_a_protocol_has_filters(scenario, compared):
    assert "<th>age</th>" not in compared._repr_html_()
    filtered = wb.Diffusion(filters=[wb.Filter("rate_limit", interval_s=5)])
    html = wb.compare(scenario, {"all": wb.Diffusion(), "few": filtered}, seeds=1, progress=False)._repr_html_()
    assert "<th>age</th>" in html and "<th>error" in html


def test_without_axes_protocols_are_the_categories(scenario):
    protocols = {"a flood": wb.Flooding(), "short": wb.Flooding(ttl=2)}
    comparison = wb.compare(scenario, protocols, seeds=[4, 8], runner=wb.LocalRunner(), progress=False)
    assert comparison.protocols == ("a flood", "short") and comparison.axes == ()
    assert "a flood" in texts(comparison.plot()) and isinstance(comparison, Comparison)
    assert comparison.to_pandas()["seed"].tolist() == [4, 8, 4, 8]


def test_axes_change_the_generator_and_the_radio(scenario):
    over = {"topology.nodes": [20, 25], "radio.retries": [0, 3]}
    plan = wb.compare(scenario, [wb.Flooding()], over, seeds=1, runner=wb.LocalRunner(), progress=False).table.plan
    scenarios = [plan.scenario_of(number) for number in range(len(plan))]
    assert [(len(variant.topology), variant.radio.retries) for variant in scenarios] == [
        (20, 0),
        (20, 3),
        (25, 0),
        (25, 3),
    ]


def test_a_network_that_is_not_random_is_used_unchanged(scenario):
    grid = scenario.replace(topology=wb.topology.grid(4, 5))
    plan = wb.compare(grid, [wb.Flooding()], seeds=2, runner=wb.LocalRunner(), progress=False).table.plan
    assert all(plan.scenario_of(number).topology is grid.topology for number in range(2))


def test_comparison_survives_a_stop_and_continues_in_its_folder(scenario, tmp_path):
    protocols = [wb.Flooding(), wb.Gossip()]
    first = wb.compare(scenario, protocols, seeds=2, out=tmp_path, runner=wb.LocalRunner(), progress=False)
    again = wb.compare(scenario, protocols, seeds=3, out=tmp_path / "more", runner=wb.LocalRunner(), progress=False)
    same = wb.compare(scenario, protocols, seeds=2, out=tmp_path, runner=wb.LocalRunner(), progress=False)
    assert same.to_pandas().equals(first.to_pandas()) and len(again.table) == 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocols": []}, "empty"),
        ({"protocols": wb.Flooding()}, "must be a list"),
        ({"protocols": ["Flooding"]}, "must be an instance"),
        ({"over": {"protocol.ttl": [1]}}, "protocol.ttl"),
        ({"over": {"sinks": [0]}}, "sinks is 0"),
        ({"over": {"sinks": [100]}}, "18 nodes that can be sinks"),
        ({"over": {"topology.node": [3]}}, "topology.nodes"),
        ({"roles": "hand"}, "degree, center, random"),
    ],
)
def test_invalid_comparisons_are_refused(scenario, changes, words):
    arguments = {"protocols": [wb.Flooding()], "seeds": 1, "runner": wb.LocalRunner(), "progress": False, **changes}
    with pytest.raises(ScenarioError) as error:
        wb.compare(scenario, **arguments)
    assert words in str(error.value)


def test_unknown_metrics_and_axes_are_named(compared):
    with pytest.raises(ParameterError, match="transmissions"):
        compared.summary("transmission")
    with pytest.raises(ParameterError, match="it must be an axis of this comparison: sinks"):
        compared.plot("transmissions", "sink")


def test_conditions_name_oracles_filters_and_settings(scenario):
    office = scenario.replace(topology=wb.topology.office(40), radio=wb.Radio(), protocol=wb.Diffusion(ttl=9))
    known = conditions(office)
    assert known.link_quality == "known" and known.changed == ("ttl=9",) and "an oracle" in str(known)
    learned = conditions(office.replace(radio=wb.radios.cc2420()))
    assert learned.link_quality == "learned" and "125 B" in learned.frame
    ideal = conditions(office.replace(topology=wb.topology.grid(4, 4)))
    assert ideal.link_quality == "unused"
    filtering = conditions(office.replace(protocol=wb.Diffusion(filters=[wb.Filter("rate_limit")])), "B")
    assert filtering.filters == ("rate_limit",) and str(filtering).startswith("B: ")
    flooding = conditions(office.replace(protocol=wb.Flooding()))
    assert warnings([filtering, flooding]) == [
        "With the true link qualities from the start (an oracle): B. Without: Flooding.",
        "With filters, which change what is sent: B. Without: Flooding.",
    ]
    assert warnings([flooding, flooding]) == []
    roots = conditions(scenario.replace(protocol=wb.TinyMQ(roots=(0, 3))))
    assert "roots (2) given: 0 and 3" in str(roots)


def test_a_map_names_the_best_protocol_of_each_cell(scenario):
    over = {"sinks": (1, 2), "radio.retries": (0, 3)}
    protocols = [wb.Flooding(), wb.Flooding(ttl=1)]
    compared = wb.compare(scenario, protocols, over, seeds=2, runner=wb.LocalRunner(), progress=False)
    winners = compared.winners("transmissions", "sinks", "radio.retries")
    assert list(zip(winners["sinks"], winners["radio.retries"], strict=True)) == [(1, 0), (1, 3), (2, 0), (2, 3)]
    drawing = compared.map("transmissions", "sinks", "radio.retries")
    names = [item.text for item in drawing.items if isinstance(item, Text)]
    assert names.count("Flooding") == 4 and "Flooding 2: " in texts(drawing)
    nobody = compared.map("transmissions", "sinks", "radio.retries", delivering=1.01)
    assert [item.text for item in nobody.items if isinstance(item, Text)].count("none") == 4


@pytest.mark.parametrize(
    ("network", "nodes", "changes"),
    [
        (NETWORK, 80, {"nodes": 80, "width_m": 120.0, "height_m": 120.0}),
        (wb.topology.grid(4, 5), 80, {"rows": 8, "columns": 10}),
        (wb.topology.line(4), 8, {"nodes": 8}),
        (wb.topology.office(64, rooms=16), 128, {"nodes": 128, "rooms": 32}),
    ],
)
def test_a_larger_network_has_the_same_density(network, nodes, changes):
    assert designs.resized(network, nodes) == changes
    assert len(designs.network_of(network, changes, seed=3)) == nodes


@pytest.mark.parametrize(
    ("network", "nodes", "words"),
    [
        (wb.topology.grid(4, 4), 17, "use 16 nodes"),
        (wb.topology.from_positions({0: (0, 0), 1: (5, 5)}), 5, "cannot be generated with another size"),
        (NETWORK, 0, "nodes is 0"),
    ],
)
def test_an_impossible_size_of_a_network_is_refused(network, nodes, words):
    with pytest.raises(ScenarioError, match=words):
        designs.resized(network, nodes)


@pytest.mark.family
def test_all_protocols_run_on_64_400_and_1500_nodes_in_one_call():
    workload = [wb.subscribe(0, "TEMP GE 0"), wb.publish(1, "TEMP IS 26", every_s=10, start_s=60)]
    network = wb.topology.disc(64, 200, 200, radius_m=50, seed=1)
    radio = wb.Radio(loss="links", collisions=True, csma=True, retries=3)
    scenario = wb.Scenario(network, wb.Diffusion(), workload, radio=radio, duration_s=120)
    protocols = [wb.Diffusion(), wb.Flooding(), wb.Gossip(), wb.CodedDiffusion(), wb.TinyMQ(), wb.Pub2Sub(), wb.DPS()]
    frame = wb.compare(scenario, protocols, over={"nodes": (64, 400, 1500)}, seeds=1).to_pandas()
    assert len(frame) == 21 and set(frame["error"]) == {None}
    assert (frame["delivery_ratio"] > 0).all()
    by_protocol = frame.pivot_table(index="protocol", columns="nodes", values="transmissions", aggfunc="sum")
    assert (by_protocol.diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
