"""The small pictures of topologies and scenarios in notebooks."""

import copy
import pickle
import re
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

import workbench as wb
from tests.images import with_svgs
from workbench.topology import Network
from workbench.views import palette
from workbench.views.picture import MOST_DOTS, MOST_WITH_LINKS, Picture

WORKLOAD = [
    wb.subscribe(at=[0, 3], what="TEMP GE 1"),
    wb.publish(at=[3, 5, 8], what="TEMP IS 5", every_s=1),
    wb.outage(at=[5, 7], start_s=3),
]


def scenario_on(graph, workload=()):
    return wb.Scenario(graph, wb.Flooding(), workload)


def marks(picture):
    """Return {colour: number of marks or dots on the map}; the legend does not count."""
    picture.draw()
    counts = {}
    for item in picture.drawing.items:
        shape = next(
            (getattr(item, attribute) for attribute in ("centers", "corners", "ends") if hasattr(item, attribute)), None
        )
        if shape is not None:
            colour = getattr(item, "fill", None) or item.colour
            counts[colour] = counts.get(colour, 0) + len(shape)
    return counts


def test_a_topology_is_displayed_as_a_picture_and_a_sentence():
    shown = wb.topology.grid(3, 4)._repr_mimebundle_()
    sentence = "12 nodes (grid): 17 links, delivering everything; 2.8 neighbors a node; 30 × 20 m."
    assert shown["text/plain"] == sentence
    assert shown["text/html"].endswith(f"<p>{sentence}</p>")
    ElementTree.fromstring(f"<div>{with_svgs(shown['text/html'])}</div>")


def test_the_sentence_counts_one_way_links_and_parts_and_gives_link_quality():
    graph = nx.DiGraph([(0, 1, {"pdr": 0.5}), (1, 0, {"pdr": 1.0}), (2, 3, {"pdr": 0.25})])
    graph.add_nodes_from((node, {"pos": (10.0 * node, 0.0)}) for node in range(5))
    assert wb.topology.check(graph)._repr_mimebundle_()["text/plain"] == (
        "5 nodes: 2 links, 1 of them one-way, delivering 25% to 100% of frames (median 50%); 0.8 neighbors a node; "
        "40 × 0 m. It is in 3 parts without a link between them."
    )
    graph.remove_edges_from(list(graph.edges))
    assert wb.topology.check(graph)._repr_mimebundle_()["text/plain"] == "5 nodes without a link; 40 × 0 m."


def test_the_picture_of_a_scenario_marks_sinks_sources_and_failing_nodes():
    scenario = scenario_on(wb.topology.grid(3, 3), WORKLOAD)
    counts = marks(Picture(scenario.topology, scenario.workload))
    assert (counts[palette.SINK], counts[palette.SOURCE], counts[palette.NODE]) == (2, 2, 5)
    assert counts[palette.FAILED] == 2 * 2  # two strokes for each node
    shown = scenario._repr_mimebundle_()
    assert shown["text/plain"] == repr(scenario)
    for word in ("Flooding on 9 nodes (grid)", ">sink 3<", ">source 8<", ">off for a time<", "60 s, seed 1"):
        assert word in with_svgs(shown["text/html"])


def test_all_nodes_may_publish():
    assert marks(Picture(wb.topology.line(4), [wb.publish(at="all", what="TEMP IS 5")]))[palette.SOURCE] == 4


def test_the_legend_explains_the_marks_of_the_picture():
    plain, busy = (Picture(wb.topology.grid(3, 3), workload) for workload in ((), WORKLOAD))
    words = [set(re.findall(r">([a-z][^<>]*)</text>", picture.draw().to_svg())) for picture in (plain, busy)]
    assert {"node", "link (darker: better)"} <= words[0] and not {"sink", "source", "off for a time"} & words[0]
    assert {"sink", "source", "off for a time"} <= words[1]


def test_a_large_network_is_drawn_as_dots_with_a_note():
    graph = wb.topology.grid(1, MOST_WITH_LINKS + 1)
    picture = Picture(graph, [wb.publish(at="all", what="TEMP IS 5"), wb.subscribe(at=7, what="TEMP GE 5")])
    assert marks(picture) == {palette.SOURCE: MOST_WITH_LINKS, palette.SINK: 1}
    assert picture.notes == [f"Of {MOST_WITH_LINKS:,} links, none is drawn."]


def test_the_picture_of_ten_thousand_nodes_is_small():
    graph = wb.topology.grid(100, 100)
    shown = graph._repr_mimebundle_()["text/html"]
    assert len(shown) < 350_000


def test_only_some_of_too_many_dots_are_drawn():
    graph = wb.topology.line(2 * MOST_DOTS)
    picture = Picture(graph)
    assert marks(picture) == {palette.OUTLINE: MOST_DOTS}
    assert "Of these nodes, one in 2 is drawn." in picture.notes


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: graph.clear(),
        lambda graph: graph.add_node("x"),
        lambda graph: graph.nodes[0].update(pos="here"),
        lambda graph: graph.edges[0, 1].update(pdr="good"),
    ],
)
def test_an_invalid_graph_is_displayed_as_text(change):
    graph = wb.topology.line(3)
    change(graph)
    (words,) = graph._repr_mimebundle_().values()
    assert words.startswith("Network with ") and "topology.check(graph) raises the error" in words


def test_copies_of_a_network_are_networks_and_networkx_graphs():
    graph = wb.topology.grid(2, 3)
    same = [graph.copy(), pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), nx.freeze(graph.copy())]
    for derived in [*same, graph.reverse(), graph.subgraph([0, 1]), wb.topology.check(graph)]:
        assert isinstance(derived, Network) and isinstance(derived, nx.DiGraph)
        assert "text/html" in derived._repr_mimebundle_()
    for derived in same:
        assert nx.utils.graphs_equal(derived, graph) and wb.topology.digest(derived) == wb.topology.digest(graph)
    assert type(graph.to_undirected()) is nx.Graph
    assert nx.to_numpy_array(graph).sum() == 14 and nx.is_strongly_connected(graph)
    assert str(graph) == "Network with 6 nodes and 14 edges"
    assert isinstance(scenario_on(nx.path_graph(3)).topology, Network)
    assert scenario_on(graph) == pickle.loads(pickle.dumps(scenario_on(graph)))


def test_pictures_of_any_shape_fit_their_page():
    for graph in (wb.topology.line(30), wb.topology.grid(40, 2), wb.topology.ring(3), wb.topology.grid(1, 1)):
        picture = Picture(graph)
        page = picture.draw()
        assert page.width == 400 and page.height < 400
        assert np.all((picture.x >= 0) & (picture.x <= page.width) & (picture.y >= 0) & (picture.y <= page.height))
