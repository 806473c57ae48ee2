"""Where readings ended that did not arrive."""

import workbench as wb
from workbench.sim.why_not import ends

LINE = wb.topology.line(5)
ASKED = [wb.subscribe(0, "TEMP GE 1"), wb.publish(4, "TEMP IS 5", start_s=5)]


def run(protocol, *more, graph=LINE, **radio):
    return wb.Scenario(graph, protocol, [*ASKED, *more], wb.Radio(**radio), duration_s=20).run(engine="reference")


def test_nothing_is_told_of_a_run_in_which_all_arrived():
    assert ends(run(wb.Flooding(), loss="none")) == []


def test_a_frame_that_a_link_lost_is_told_with_its_link():
    graph = wb.topology.line(5).copy()
    graph.edges[2, 1]["pdr"] = 0.000001
    (end,) = ends(run(wb.Flooding(), graph=graph))
    assert (end.publisher, end.sink, end.node) == (4, 0, 2)
    assert end.reason == "it sent it to node 1, and the link lost it"
    assert str(end).startswith("Reading 0 of node 4, of 5 s, did not come to node 0: node 2 had it last, at 5.0")


def test_a_node_that_was_down_is_told():
    (end,) = ends(run(wb.Flooding(), wb.outage(1, start_s=1), loss="none"))
    assert (end.node, end.reason) == (2, "it sent it to node 1, and that node was down")


def test_a_drop_is_told_by_its_reason():
    (end,) = ends(run(wb.Flooding(ttl=3), loss="none"))
    assert (end.node, end.reason) == (1, "it dropped it: ttl")


def test_a_publisher_that_knew_of_nobody_sent_nothing():
    (end,) = ends(run(wb.Diffusion(), wb.outage(2, start_s=0), loss="none"))
    assert end.node == 4 and end.reason.startswith("it sent nothing")


def test_of_copies_that_went_everywhere_the_nearest_is_told():
    star = wb.topology.grid(3, 3).copy()
    for neighbor in (1, 3):
        star.edges[neighbor, 0]["pdr"] = 0.000001
    (end,) = ends(run(wb.Flooding(), graph=star))
    assert end.node in (1, 3) and end.reason.startswith("it sent it to node 0")
