"""Explanations of a low delivery ratio of coded diffusion: each sentence appears for a run in which it is true."""

import networkx as nx
import pytest

import workbench as wb

IDEAL = wb.Radio(loss="none")
WORKLOAD = (wb.subscribe(0, "TEMP GE 1"), wb.publish(3, "TEMP IS 5", start_s=10))
LINE = wb.topology.line(4)


def explained(graph=LINE, workload=WORKLOAD, radio=IDEAL, record="trace", **settings):
    scenario = wb.Scenario(graph, wb.CodedDiffusion(**settings), workload, radio, duration_s=20, seed=1)
    return scenario.run(engine="reference", record=record).explain().sentences


def test_sink_without_requests_is_reported_to_lack_combinations():
    short, few = explained(max_requests=0)
    assert few == (
        "The neighbors of node 3 send 2 combinations (1 neighbor, bootstrap_factor 2) of each reading of 2 chunks: "
        "all must arrive and be independent."
    )
    assert short == (
        "Reading 0 of node 3, published at 10 s, did not reach node 0: node 0 had 1 of 2 combinations and got no more; "
        "it hears 1 neighbor, and with max_requests=0 it sends no requests."
    )


def test_sink_whose_requests_no_neighbor_hears_is_reported():
    graph = nx.DiGraph(LINE)
    graph.remove_edge(0, 1)
    sentence = explained(graph)[0]
    assert sentence.endswith("it hears 1 neighbor, none of which hears its requests.")


def test_sink_whose_requests_are_lost_is_reported_to_get_no_answer():
    graph = nx.DiGraph(LINE)
    graph.edges[0, 1]["pdr"] = 0.001
    sentences = explained(graph, radio=wb.Radio(loss="links"))
    assert sentences[0].endswith("it hears 1 neighbor, and received no answer to its requests.")


@pytest.mark.parametrize("record", ["trace", "metrics"])
def test_source_of_lost_events_is_named_if_its_neighbors_send_too_few_combinations(record):
    few = explained(generation_size=3, max_requests=0, record=record)[-1]
    assert few.startswith("The neighbors of node 3 send 2 combinations") and few.endswith(
        "a node that hears only these cannot decode."
    )
    assert explained(generation_size=3, record=record) == ()
