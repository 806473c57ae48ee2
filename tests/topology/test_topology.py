"""Topologies: their normal form, the generators, measured links, the digest and JSON."""

import inspect
import json
import math
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import examples
from workbench import draws, purposes, topology
from workbench.errors import DataError, ParameterError, ScenarioError, WorkbenchError
from workbench.topology import propagation
from workbench.topology.neighborhood import pairs_within

HEADER = "transmitter,receiver,pdr\n"


def assert_normal(graph):
    """Check that a graph is in normal form.

    Nodes and arcs are in ascending order, and the digest is correct; the recipe is valid JSON. Positions and delivery
    ratios are present, rounded and in range."""
    assert isinstance(graph, nx.DiGraph)
    assert list(graph) == sorted(graph) and all(type(node) is int for node in graph)
    assert list(graph.edges) == sorted(graph.edges)
    for _, (x, y) in graph.nodes(data="pos"):
        assert x == round(x, 4) and y == round(y, 4)
    for transmitter, receiver, pdr in graph.edges(data="pdr"):
        assert transmitter != receiver and 0 < pdr <= 1 and pdr == round(pdr, 6)
    assert graph.graph["digest"] == topology.digest(graph)
    json.dumps(graph.graph["recipe"], allow_nan=False)


def good_links(graph):
    return graph.edge_subgraph([(a, b) for a, b, pdr in graph.edges(data="pdr") if pdr >= 0.5])


# --- regular networks ---


def test_grid_is_row_major_with_four_neighbors():
    # 0 - 1 - 2
    # |   |   |
    # 3 - 4 - 5
    graph = topology.grid(2, 3, spacing_m=5)
    assert_normal(graph)
    assert list(graph[4]) == [1, 3, 5]
    assert graph.nodes[5]["pos"] == (10.0, 5.0)
    assert nx.is_isomorphic(graph.to_undirected(), nx.grid_2d_graph(2, 3))


def test_line_and_ring_have_their_distances():
    line, ring = topology.line(5), topology.ring(6)
    assert_normal(line)
    assert_normal(ring)
    assert nx.diameter(line) == 4 and nx.diameter(ring) == 3
    assert math.dist(ring.nodes[0]["pos"], ring.nodes[5]["pos"]) == pytest.approx(10, abs=1e-3)


def test_a_network_of_one_node_is_a_network():
    for graph in (topology.grid(1, 1), topology.line(1), topology.disc(1, 10, 10), topology.office(1, 2)):
        assert list(graph) == [0] and graph.number_of_edges() == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: topology.grid(0, 3), "rows is 0; it must be a whole number from 1"),
        (lambda: topology.grid(2000, 2000), "at most 1,000,000"),
        (
            lambda: topology.grid(5),
            r"grid lacks the argument columns; it is called as grid\(rows, columns, spacing_m=10.0\)",
        ),
        (lambda: topology.grid(5, 5, 10, 1), "too many positional arguments.*it is called as grid"),
        (lambda: topology.disc(5, 10, 10, seed=-1), "seed is -1; it must be a whole number from 0"),
        (lambda: topology.line(2.5), "nodes is 2.5"),
        (lambda: topology.ring(2), "nodes is 2"),
        (lambda: topology.disc(10, -5, 10), "width_m is -5"),
        (lambda: topology.disc(10, math.nan, 10), "width_m is nan"),
        (lambda: topology.disc(True, 10, 10), "nodes is True"),
        (lambda: topology.disc(1_000_000, 10, 10), "use a smaller radius or a larger area"),
        (lambda: topology.office(rooms=5), "it must be even"),
        (lambda: topology.random_geometric(5, 10, 10, propagation={"power": 3}), "it must be a Propagation"),
        (lambda: topology.Propagation(exponent=0), "exponent is 0"),
        (lambda: topology.from_positions({0: (0, 0)}, radius_m="far"), "radius_m is 'far'"),
    ],
)
def test_an_argument_out_of_range_is_refused_with_a_sentence(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_network_prints_its_size_its_delivery_ratios_and_the_call_that_made_it():
    graph = topology.grid(2, 3)
    assert repr(graph) == "<Network with 6 nodes and 14 edges, grid(rows=2, columns=3, spacing_m=10.0)>"
    graph.remove_node(5)
    assert repr(graph) == "<Network with 5 nodes and 10 edges>"
    graph.edges[0, 1]["pdr"] = 0.25
    assert repr(graph) == "<Network with 5 nodes and 10 edges, delivery ratios 0.25 to 1>"
    graph.nodes[0]["pos"] = "nowhere"
    graph.graph["recipe"] = {"kind": "grid"}
    assert repr(graph) == "<Network with 5 nodes and 10 edges, delivery ratios 0.25 to 1>"
    assert repr(topology.Network()) == "<Network with 0 nodes and 0 edges>"


# --- disc ---


@settings(max_examples=25, deadline=None)
@given(nodes=st.integers(1, 60), seed=st.integers(0, 2**63 - 1))
def test_disc_is_connected_and_links_exactly_the_pairs_within_its_radius(nodes, seed):
    graph = topology.disc(nodes, 60, 40, radius_m=30, seed=seed)
    assert_normal(graph)
    assert nx.is_strongly_connected(graph)
    for a in graph:
        for b in graph:
            distance = math.dist(graph.nodes[a]["pos"], graph.nodes[b]["pos"])
            assert graph.has_edge(a, b) == (a != b and distance <= 30 + 1e-6)


def test_disc_of_1500_nodes_has_the_degree_of_its_density():
    graph = topology.disc(1500, 500, 200, radius_m=20, seed=1)
    assert nx.is_strongly_connected(graph)
    assert 16 < graph.number_of_edges() / 1500 < 19


def test_disc_depends_on_its_seed():
    assert topology.digest(topology.disc(30, 50, 50, seed=1)) != topology.digest(topology.disc(30, 50, 50, seed=2))


def test_the_error_for_a_sparse_disc_names_its_degree_and_a_sufficient_radius():
    with pytest.raises(ParameterError, match=r"mean degree of about 1\.2,.*; use radius_m=([0-9.]+)\.") as error:
        topology.disc(100, 500, 200, radius_m=20)
    radius_m = float(str(error.value).split("use radius_m=")[1].rstrip("."))
    assert nx.is_strongly_connected(topology.disc(100, 500, 200, radius_m=radius_m))


def test_the_attempts_to_connect_a_narrow_strip_end():
    with pytest.raises(ParameterError, match="use radius_m="):
        topology.disc(50, 1000, 1, radius_m=5)


@settings(max_examples=50, deadline=None)
@given(
    points=st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=1, max_size=40),
    radius_m=st.floats(0.01, 80),
)
def test_cell_lists_find_the_same_pairs_as_comparing_all(points, radius_m):
    points = np.array(points)
    pairs = {tuple(pair) for pair in pairs_within(points, radius_m).tolist()}
    apart = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    expected = {(a, b) for a in range(len(points)) for b in range(a + 1, len(points)) if apart[a, b] <= radius_m}
    borderline = {(a, b) for a, b in expected ^ pairs if abs(apart[a, b] - radius_m) < 1e-5}
    assert pairs ^ expected == borderline


# --- radio models ---


def test_array_draws_equal_the_scalar_draws():
    key = draws.make_key(-7, purposes.TOPOLOGY, propagation.POSITION, 3)
    assert propagation.key_of((-7, 3), propagation.POSITION) == key
    assert propagation.uniforms(key, np.arange(5)).tolist() == [draws.uniform(key, counter) for counter in range(5)]
    keys = propagation.link_keys((5, 0), propagation.SHADOWING, np.array([1, 2]), np.array([9, 4]))
    assert keys.tolist() == [
        draws.make_key(5, purposes.TOPOLOGY, propagation.SHADOWING, 0, a, b) for a, b in ((1, 9), (2, 4))
    ]
    assert propagation.normals(keys)[0] == pytest.approx(draws.Stream(int(keys[0])).normal())


def test_packet_reception_rises_from_0_to_1_around_the_noise_floor():
    ratio = topology.packet_reception(np.linspace(-10, 10, 81), 40)
    assert ratio[0] < 1e-6 and ratio[-1] > 1 - 1e-9
    assert np.all(np.diff(ratio) >= -1e-12)
    # IEEE Std 802.15.4-2006, figure E.2 (PER against SNR): the bit error rate is about 1e-5 at 1 dB.
    bit_error_rate = 1 - topology.packet_reception(1.0, 1) ** (1 / 8)
    assert 5e-6 < bit_error_rate < 5e-5


def test_longer_packets_are_lost_more_often():
    assert topology.packet_reception(-1.0, 20) > topology.packet_reception(-1.0, 100)


def test_random_geometric_links_fade_with_distance_and_are_asymmetric():
    graph = topology.random_geometric(150, 200, 200, seed=4)
    assert_normal(graph)
    near, far = [], []
    for a, b, pdr in graph.edges(data="pdr"):
        (near if math.dist(graph.nodes[a]["pos"], graph.nodes[b]["pos"]) < 40 else far).append(pdr)
    assert np.mean(near) > np.mean(far) + 0.02
    assert min(far) >= 0.1
    both = [(graph[a][b]["pdr"], graph[b][a]["pdr"]) for a, b in graph.edges if graph.has_edge(b, a)]
    assert any(abs(forward - backward) > 0.2 for forward, backward in both)


def test_random_geometric_without_asymmetry_is_symmetric():
    quiet = topology.Propagation(asymmetry_dB=0)
    graph = topology.random_geometric(60, 150, 150, propagation=quiet)
    assert all(graph.has_edge(b, a) and graph[b][a]["pdr"] == pdr for a, b, pdr in graph.edges(data="pdr"))


def test_no_link_is_longer_than_the_maximum_range():
    radio = topology.Propagation(shadowing_dB=6)
    reach_m = radio.range_m(0.3, radio.greatest_luck_dB)
    graph = topology.random_geometric(300, 2000, 400, min_pdr=0.3, propagation=radio)
    lengths = [math.dist(graph.nodes[a]["pos"], graph.nodes[b]["pos"]) for a, b in graph.edges]
    assert max(lengths) <= reach_m


# --- office ---


@pytest.mark.parametrize("seed", range(1, 13))
def test_office_needs_several_hops_over_good_links(seed):
    graph = topology.office(seed=seed)
    assert_normal(graph)
    assert len(graph) == 64
    links = good_links(graph)
    assert len(links) == 64 and nx.is_strongly_connected(links)
    assert 5 <= nx.diameter(links) <= 7


def test_office_nodes_are_inside_the_building_and_not_on_walls():
    graph = topology.office()
    walls = np.array(graph.graph["walls"])
    (left, bottom), (right, top) = walls.reshape(-1, 2).min(axis=0), walls.reshape(-1, 2).max(axis=0)
    for _, (x, y) in graph.nodes(data="pos"):
        assert left < x < right and bottom < y < top
        for (x0, y0), (x1, y1) in walls:
            beside = max(x0 - x, x - x1) if y0 == y1 else max(min(y0, y1) - y, y - max(y0, y1))
            away = abs(y - y0) if y0 == y1 else abs(x - x0)
            assert away > 0.3 or beside > 0


def test_walls_remove_links():
    open_plan, brick = topology.office(wall_dB=0), topology.office(wall_dB=8)
    assert open_plan.number_of_edges() > 1.2 * brick.number_of_edges()


def test_the_error_for_a_disconnected_office_recommends_changes():
    with pytest.raises(ParameterError, match="use more nodes, fewer rooms, thinner walls"):
        topology.office(8, rooms=100)


# --- positions and measured links ---


def test_from_positions_accepts_mappings_frames_and_files(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"node": [7, 3, 5], "x_m": [0.1, 0.0, 0.3], "y_m": [0, 0, 0]})
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    mapping = {7: (0.1, 0), 3: (0, 0), 5: (0.3, 0)}
    graphs = [topology.from_positions(source, radius_m=0.2) for source in (frame, mapping, tmp_path / "nodes.csv")]
    for graph in graphs:
        assert_normal(graph)
        assert list(graph.edges) == [(3, 7), (5, 7), (7, 3), (7, 5)]
    assert len({topology.digest(graph) for graph in graphs}) == 1


def test_from_links_keeps_each_direction_separate(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text(HEADER + "2,1,0.9\n1,2,0.25\n1,3,0\n3,1,0.05\n")
    graph = topology.from_links(path)
    assert_normal(graph)
    assert list(graph) == [1, 2, 3]
    assert list(graph.edges(data="pdr")) == [(1, 2, 0.25), (2, 1, 0.9)]


@pytest.mark.parametrize("make", [topology.from_links, topology.testbed, topology.office, topology.random_geometric])
def test_measured_and_generated_links_have_the_same_minimum_delivery_ratio(make):
    assert inspect.signature(make).parameters["min_pdr"].default == 0.1


def test_from_links_accepts_additional_columns_in_any_order():
    import pandas as pd

    frame = pd.DataFrame({"pdr": [1, 0.5], "channels": [16, 3], "receiver": [2, 0], "transmitter": [0.0, 2.0]})
    assert list(topology.from_links(frame).edges(data="pdr")) == [(0, 2, 1.0), (2, 0, 0.5)]


def test_a_node_without_position_is_placed_near_its_best_neighbors():
    # 1 and 2 have good links to 4, 3 has a poor one.
    import pandas as pd

    links = [(1, 4, 0.9), (4, 1, 0.9), (2, 4, 0.9), (4, 2, 0.9)]
    links += [(node, 4, 0.1) for node in range(10, 20)]
    frame = pd.DataFrame(links, columns=["transmitter", "receiver", "pdr"])
    positions = {1: (0, 0), 2: (10, 0), **dict.fromkeys(range(10, 20), (500, 500))}
    graph = topology.from_links(frame.iloc[:4], positions=positions)
    assert graph.graph["positions_estimated"] == [4]
    assert math.dist(graph.nodes[4]["pos"], (5, 0)) < 0.5
    assert graph.nodes[1]["pos"] == (0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("transmitter,receiver\n1,2\n", "links.csv has no column 'pdr'; its columns are: transmitter, receiver"),
        ("", "has no column 'transmitter'; its columns are: none"),
        (HEADER, "links.csv has no rows"),
        (
            HEADER + "1,2,0.5\n1,3,1.2\n",
            "links.csv, line 3, column pdr: '1.2'; a delivery ratio must be",
        ),
        (HEADER + "1,2,good\n", "line 2, column pdr: 'good'"),
        (HEADER + "1,2,nan\n", "line 2, column pdr: 'nan'"),
        (HEADER + "1,2\n", "line 2, column pdr: None"),
        (HEADER + "1,x,0.5\n", "line 2, column receiver: 'x'; a node must be"),
        (HEADER + "1.5,2,0.5\n", "line 2, column transmitter: '1.5'; a node must be"),
        (HEADER + "-1,2,0.5\n", "line 2, column transmitter: '-1'; a node must be"),
        (HEADER + "4,4,0.5\n", "line 2: node 4 has a link to itself"),
        (HEADER + "1,2,0.5\n\n1,2,0.6\n", r"line 4: link 1 -> 2 repeats the link of links.csv, line 2"),
    ],
)
def test_the_error_for_a_wrong_links_file_names_line_and_column(tmp_path, text, message):
    (tmp_path / "links.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        topology.from_links(tmp_path / "links.csv")


def test_links_that_are_not_a_table_are_a_data_error(tmp_path):
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 3)
    for source in (tmp_path / "absent.csv", tmp_path, tmp_path / "binary.csv", 7, None, [(1, 2, 0.5)], "a\0b"):
        with pytest.raises(DataError):
            topology.from_links(source)


@settings(max_examples=examples(60), deadline=None)
@given(content=st.binary(max_size=200))
def test_random_bytes_as_links_raise_nothing_but_a_data_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("links") / "links.csv"
    for prefix in (b"", HEADER.encode()):
        path.write_bytes(prefix + content)
        try:
            topology.from_links(path)
        except DataError as error:
            assert str(error)


def test_layout_keeps_the_shape_of_a_line_and_separates_all_nodes():
    line = topology.check(nx.path_graph(12))
    ends = math.dist(line.nodes[0]["pos"], line.nodes[11]["pos"])
    assert ends == pytest.approx(110, rel=0.1)
    for graph in (nx.complete_graph(9), nx.star_graph(9), nx.empty_graph(4), nx.path_graph(600)):
        positions = [pos for _, pos in topology.check(graph).nodes(data="pos")]
        assert len(set(positions)) == len(positions)


# --- testbeds ---


def test_strasbourg_has_its_measured_links(real_data):
    graph = topology.testbed("strasbourg")
    assert_normal(graph)
    assert len(graph) == 64 and graph.number_of_edges() == 4032
    assert graph.graph["recipe"]["name"] == "iotlab/strasbourg"
    assert any(graph[a][b]["pdr"] != graph[b][a]["pdr"] for a, b in graph.edges)
    assert topology.digest(topology.testbed("iotlab/strasbourg")) == topology.digest(graph)


def test_strasbourg_nodes_above_each_other_have_different_map_positions(real_data):
    graph = topology.testbed("strasbourg")
    assert graph.graph["positions_estimated"] == [48, 57]
    assert len(graph.graph["positions_moved"]) == 30
    assert graph.nodes[7]["pos"] == (0.0, 0.0) and graph.nodes[6]["pos"] == (0.315, 0.315)
    assert len({pos for _, pos in graph.nodes(data="pos")}) == 64


@pytest.mark.family
def test_lille_estimates_unknown_positions(real_data):
    graph = topology.testbed("lille")
    assert len(graph) == 224 and graph.number_of_edges() == 49952
    assert graph.graph["positions_estimated"] == [28, 41, 60]


@pytest.mark.parametrize("thinning", [{"max_range_m": 4.0}, {"attenuation_dB": 36.0}])
def test_a_thinned_testbed_needs_several_hops(real_data, thinning):
    graph = topology.testbed("strasbourg", **thinning)
    assert_normal(graph)
    assert nx.is_strongly_connected(graph)
    assert 4 <= nx.diameter(graph) <= 7
    full = topology.testbed("strasbourg")
    assert all(pdr <= full[a][b]["pdr"] for a, b, pdr in graph.edges(data="pdr"))
    assert graph.nodes(data="pos")[48] == full.nodes(data="pos")[48]


def test_the_error_for_a_missing_testbed_names_its_source(tmp_path, monkeypatch):
    from workbench import datasets

    monkeypatch.setattr(datasets.known, "folder_candidates", lambda: [tmp_path])
    with pytest.raises(DataError) as error:
        topology.testbed("strasbourg")
    message = str(error.value)
    assert "strasbourg.links.csv" in message and str(tmp_path) in message and "openwsn-berkeley/mercator" in message


def test_an_unknown_testbed_names_the_known_ones():
    with pytest.raises(DataError, match="Unknown data set 'grenoble'; known data sets are iotlab/strasbourg"):
        topology.testbed("grenoble")


def test_intel_lab_is_a_testbed_if_its_connectivity_file_exists(tmp_path, monkeypatch):
    folder = tmp_path / "intel-lab"
    folder.mkdir()
    (folder / "connectivity.txt").write_text("1 2 0.8\n2 1 0.6\n2 3 0.1\n3 3 1\n3 2 0.7\n")
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    graph = topology.testbed("intel-lab")
    assert list(graph.edges(data="pdr")) == [(1, 2, 0.8), (2, 1, 0.6), (2, 3, 0.1), (3, 2, 0.7)]


# --- check ---


def test_a_link_of_an_undirected_graph_becomes_two_lossless_arcs():
    graph = topology.check(nx.cycle_graph(4))
    assert list(graph.edges(data="pdr"))[:2] == [(0, 1, 1.0), (0, 3, 1.0)]
    assert graph.number_of_edges() == 8
    assert all(len(pos) == 2 for _, pos in graph.nodes(data="pos"))


def test_check_copies_and_normalises():
    mine = nx.DiGraph()
    mine.add_node(np.int64(5), pos=[1, 2.00001234])
    mine.add_node(2, pos=np.array([0.0, 0.0]))
    mine.add_edge(5, 2, pdr=1 / 3, colour="red")
    mine.add_edge(2, 5, pdr=0)
    graph = topology.check(mine)
    assert list(graph.nodes(data="pos")) == [(2, (0.0, 0.0)), (5, (1.0, 2.0))]
    assert list(graph.edges(data=True)) == [(5, 2, {"pdr": 0.333333})]
    assert mine.number_of_edges() == 2


def test_check_keeps_the_recipe_of_an_unchanged_network_only():
    graph = topology.grid(2, 2)
    assert topology.check(nx.freeze(graph)).graph["recipe"]["kind"] == "grid"
    changed = topology.grid(2, 2)
    changed[0][1]["pdr"] = 0.5
    assert "recipe" not in topology.check(changed).graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([(0, 1)], "is a list; it must be a networkx graph"),
        (nx.MultiDiGraph([(0, 1)]), "parallel links"),
        (nx.DiGraph(), "has no nodes"),
        (nx.DiGraph([("a", "b")]), "node 'a'; nodes must be whole numbers"),
        (nx.DiGraph([(-1, 2)]), "node -1"),
        (nx.DiGraph([(0, 2**31)]), "node 2147483648"),
        (nx.DiGraph([(0.5, 1)]), "node 0.5"),
        (nx.DiGraph([(3, 3)]), "link from node 3 to itself"),
        (nx.DiGraph([(0, 1, {"pdr": 1.1})]), "link 0 -> 1 has pdr 1.1; it must be a number from 0 to 1"),
        (nx.DiGraph([(0, 1, {"pdr": math.nan})]), "has pdr nan"),
        (nx.DiGraph([(0, 1, {"pdr": "1"})]), "has pdr '1'"),
    ],
)
def test_an_invalid_graph_is_refused_with_a_reason(graph, message):
    with pytest.raises(ScenarioError, match=message):
        topology.check(graph)


@pytest.mark.parametrize("pos", [(1,), (1, 2, 3), "ab", (1, math.inf), 5, (None, 1), ("1", "2")])
def test_an_invalid_position_is_refused(pos):
    graph = nx.path_graph(2)
    graph.nodes[0]["pos"] = pos
    with pytest.raises(ScenarioError, match="node 0 has pos"):
        topology.check(graph)


@pytest.mark.parametrize("walls", [7, [1], [((0, 0), (1,))], [((0, 0), (1, math.nan))], "wall", [[["a", 0], [1, 1]]]])
def test_walls_that_are_not_segments_are_refused(walls):
    graph = topology.grid(2, 2)
    graph.graph["walls"] = walls
    with pytest.raises(ScenarioError, match="walls are .*; they must be a list of segments"):
        topology.check(graph)


# --- digest, to_dict, from_dict ---

GENERATED = [
    lambda: topology.grid(3, 4),
    lambda: topology.line(5, spacing_m=2.5),
    lambda: topology.ring(7),
    lambda: topology.disc(40, 60, 60, seed=3),
    lambda: topology.random_geometric(30, 100, 80, min_pdr=0.2, seed=5),
    lambda: topology.random_geometric(9, 90, 80, propagation=topology.Propagation(exponent=3.5)),
    lambda: topology.office(30, rooms=8, seed=2),
    lambda: topology.from_positions({4: (0, 0), 2: (3, 4), 9: (100, 0)}, radius_m=5),
]


@pytest.mark.parametrize("make", GENERATED)
def test_a_generated_network_is_stored_as_its_recipe(make):
    graph = make()
    assert_normal(graph)
    stored = json.loads(json.dumps(topology.to_dict(graph)))
    assert set(stored) == {"recipe", "digest"}
    again = topology.from_dict(stored)
    assert nx.utils.graphs_equal(again, graph)
    assert topology.to_dict(again) == topology.to_dict(graph)


@pytest.mark.parametrize("make", GENERATED)
def test_a_changed_network_is_stored_link_by_link(make):
    graph = make()
    graph.nodes[next(iter(graph))]["pos"] = (1.5, 2.5)
    stored = json.loads(json.dumps(topology.to_dict(graph)))
    assert set(stored) == {"nodes", "links"} | ({"walls"} if "walls" in graph.graph else set())
    again = topology.from_dict(stored)
    assert topology.digest(again) == topology.digest(graph)
    assert again.graph.get("walls") == graph.graph.get("walls")
    assert topology.to_dict(again) == topology.to_dict(graph)


def test_measured_links_are_stored_link_by_link(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text(HEADER + "1,2,0.5\n2,1,0.75\n")
    stored = topology.to_dict(topology.from_links(path))
    assert stored["links"] == [[1, 2, 0.5], [2, 1, 0.75]] and str(tmp_path) not in json.dumps(stored)


def test_walls_added_to_a_generated_network_are_stored():
    graph = topology.grid(2, 2)
    graph.graph["walls"] = [((5, -1), (5, 11))]
    again = topology.from_dict(json.loads(json.dumps(topology.to_dict(graph))))
    assert again.graph["walls"] == [((5.0, -1.0), (5.0, 11.0))]


def test_a_testbed_is_stored_as_its_recipe(real_data):
    graph = topology.testbed("strasbourg", max_range_m=4)
    stored = json.loads(json.dumps(topology.to_dict(graph)))
    assert stored["recipe"]["max_range_m"] == 4.0
    assert nx.utils.graphs_equal(topology.from_dict(stored), graph)


@st.composite
def networks(draw):
    """Draw a directed network with positions, whose nodes and arcs are added in a random order."""
    nodes = draw(st.lists(st.integers(0, 50), min_size=1, max_size=12, unique=True))
    graph = nx.DiGraph()
    position = st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
    graph.add_nodes_from((node, {"pos": draw(position)}) for node in nodes)
    pairs = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=20, unique=True))
    graph.add_edges_from((a, b, {"pdr": draw(st.floats(0, 1))}) for a, b in pairs if a != b)
    return graph


@settings(deadline=None)
@given(graph=networks(), order=st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order_of_construction(graph, order):
    nodes, arcs = list(graph.nodes(data=True)), list(graph.edges(data=True))
    order.shuffle(nodes)
    order.shuffle(arcs)
    rebuilt = nx.DiGraph()
    rebuilt.add_nodes_from(nodes)
    rebuilt.add_edges_from(arcs)
    assert topology.digest(rebuilt) == topology.digest(graph) == topology.digest(topology.check(graph))


@settings(deadline=None)
@given(graph=networks())
def test_every_network_is_read_back_from_json(graph):
    again = topology.from_dict(json.loads(json.dumps(topology.to_dict(graph))))
    assert nx.utils.graphs_equal(topology.check(graph), again)


@settings(deadline=None)
@given(graph=networks(), step=st.floats(0.01, 0.5))
def test_the_digest_sees_every_position_and_delivery_ratio(graph, step):
    before = topology.digest(graph)
    node = next(iter(graph))
    x, y = graph.nodes[node]["pos"]
    graph.nodes[node]["pos"] = (x + step, y)
    moved = topology.digest(graph)
    assert moved != before
    for a, b, pdr in list(graph.edges(data="pdr"))[:1]:
        graph[a][b]["pdr"] = pdr + step if pdr < 0.5 else pdr - step
        assert topology.digest(graph) != moved


def test_the_digest_is_the_same_in_another_process():
    code = "from workbench import topology as t; print(t.digest(t.office(seed=3)), t.digest(t.disc(99, 99, 99)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [topology.digest(topology.office(seed=3)), topology.digest(topology.disc(99, 99, 99))]


def test_a_recipe_that_makes_another_network_now_is_refused():
    stored = topology.to_dict(topology.grid(3, 3))
    stored["recipe"] = {**stored["recipe"], "rows": 4}
    with pytest.raises(ScenarioError, match="differs from the stored one"):
        topology.from_dict(stored)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (None, "it must be an object with a recipe"),
        ([], "it must be an object"),
        ({}, "nodes are None; they must be a list"),
        ({"recipe": 3}, "the kind None; it must be one of grid"),
        ({"recipe": {"kind": ["grid"]}}, "must be one of grid"),
        ({"recipe": {"kind": "from_links", "path": "x.csv"}}, "must be one of grid"),
        ({"recipe": {"kind": "grid", "rows": 2}}, "lacks the argument columns"),
        ({"recipe": {"kind": "grid", "rows": 2, "columns": 2, "size": 1}}, "no argument 'size'; it has rows"),
        ({"recipe": {"kind": "grid", "rows": "2", "columns": 2}}, "rows is '2'"),
        ({"recipe": {"kind": "disc", "nodes": 9, "width_m": 1e9, "height_m": 1}}, "width_m is 1000000000.0"),
        ({"recipe": {"kind": "office", "propagation": [1]}}, "it must be a Propagation"),
        ({"recipe": {"kind": "from_positions", "positions": [[1, 2]]}}, r"it must be \[node, x_m, y_m\]"),
        ({"recipe": {"kind": "grid", "rows": 1, "columns": 1}, "nodes": []}, "one or the other"),
        ({"nodes": [[0, 0, 0]], "links": [], "colour": 1}, "has a field 'colour'"),
        ({"nodes": [[0, 0, 0], [0, 1, 1]], "links": []}, "repeats node 0"),
        ({"nodes": [[0, 0, 0], [1, 0, "x"]], "links": []}, "Entry 1 of the topology's nodes"),
        ({"nodes": [[0, 0, 0]]}, "links are None; they must be a list"),
        ({"nodes": [[0, 0, 0], [1, 1, 1]], "links": [[0, 1]]}, "Entry 0 of the topology's links"),
        ({"nodes": [[0, 0, 0], [1, 1, 1]], "links": [[0, 1, 1.5]]}, "Entry 0 of the topology's links"),
        ({"nodes": [[0, 0, 0], [1, 1, 1]], "links": [[0, 2, 1]]}, "must join two different nodes of the"),
        ({"nodes": [[0, 0, 0], [1, 1, 1]], "links": [[0, 0, 1]]}, "must join two different nodes of the"),
        ({"nodes": [[0, 0, 0], [1, 1, 1]], "links": [[0, 1, 1], [0, 1, 0.5]]}, "repeats 0 -> 1"),
        ({"nodes": [[0, 0, 0]], "links": [], "walls": [1]}, r"walls are \[1\]; they must be a list of segments"),
        ({"nodes": [[0, 0, 0]], "links": [], "digest": 7}, "differs from the stored one"),
    ],
)
def test_an_invalid_form_is_refused_with_a_reason(form, message):
    with pytest.raises(ScenarioError, match=message):
        topology.from_dict(form)


KINDS = ["grid", "line", "ring", "disc", "random_geometric", "office", "testbed", "from_positions"]
ARGUMENTS = [
    "kind", "rows", "columns", "nodes", "width_m", "height_m", "radius_m", "seed", "positions", "name", "rooms",
    "wall_dB", "min_pdr", "propagation", "spacing_m", "recipe", "links", "walls", "digest", "max_range_m",
]  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 40) | st.integers() | st.floats() | st.sampled_from(KINDS) | st.text()
)
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(ARGUMENTS), inner, max_size=5),
    max_leaves=20,
)
SMALL = st.integers(-1, 12) | st.floats(0, 60) | SCALARS
RECIPES = st.builds(
    lambda kind, arguments: {"recipe": {"kind": kind, **arguments}},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(ARGUMENTS[1:]), SMALL, max_size=8),
)
LISTS = st.fixed_dictionaries(
    {
        "nodes": st.lists(st.lists(SMALL, min_size=3, max_size=3), max_size=4),
        "links": st.lists(st.lists(SMALL, max_size=3), max_size=3),
    }
)


@settings(max_examples=examples(300), deadline=None)
@given(form=JSON_VALUES | RECIPES | LISTS)
def test_any_json_is_a_topology_or_a_workbench_error(form):
    try:
        graph = topology.from_dict(json.loads(json.dumps(form)))
    except (ScenarioError, DataError) as error:
        assert str(error)
    else:
        assert topology.check(graph)
    assert issubclass(ScenarioError, WorkbenchError)


# --- links of a user's own graph ---


def test_links_with_other_attributes_but_no_pdr_cause_a_warning():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 0.5, "weight")
    with pytest.warns(UserWarning, match="links have weight, but not pdr.*all links are taken as perfect"):
        assert set(nx.get_edge_attributes(topology.check(graph), "pdr").values()) == {1.0}


def test_links_without_attributes_or_with_some_pdr_cause_no_warning(recwarn):
    graph = nx.path_graph(3)
    topology.check(graph)
    graph.edges[0, 1].update(weight=2)
    graph.edges[1, 2].update(pdr=0.5)
    topology.check(graph)
    assert not recwarn.list
