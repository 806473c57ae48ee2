"""TinyMQ's overlay computed from traces: places, zones, routes, load and repair."""

import itertools
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from lessons.figures import repair as overlay_repair
from tests.families import examples
from tests.protocols.tinymq.checks import graphs_with_roots
from tests.protocols.tinymq.overlay_run import failing_grid
from workbench.errors import ParameterError
from workbench.protocols.tinymq.mapping import Mapping
from workbench.protocols.tinymq.views import layers as overlay_layers
from workbench.protocols.tinymq.views import overlay as overlays
from workbench.protocols.tinymq.views import (
    routes as overlay_routes,
)
from workbench.protocols.tinymq.views import (
    zones as overlay_zones,
)
from workbench.sim.engine import play
from workbench.sim.trace import SCHEMA, Recorder
from workbench.views.layers import as_spans

SECOND = 1_000_000
NEUTRAL = {"peer": -1, "message": "", "origin": -1, "sequence": 0, "size_B": 0, "value": 0, "detail": ""}


def trace_of(*rows):
    """Return a trace of rows given as (time in µs, node, event, {other columns})."""
    whole = [
        {**NEUTRAL, "time_us": time_us, "node": node, "event": event, **(more[0] if more else {})}
        for time_us, node, event, *more in rows
    ]
    arrays = []
    for field in SCHEMA:
        values = [row[field.name] for row in whole]
        is_text = pa.types.is_dictionary(field.type)
        arrays.append(pa.array(values, pa.string()).dictionary_encode() if is_text else pa.array(values, field.type))
    return pa.table(arrays, schema=SCHEMA)


def key(text, parent=0, tree=0):
    return {"peer": parent, "origin": tree, "detail": text, "value": len(text)}


KEY_LOST = {"origin": 0, "value": -1}
ROOT = (0, 0, "key_set", key("", -1))


def zone(low, high, tree=0):
    return {"origin": tree, "sequence": low, "value": high}


NO_ZONE = {"origin": 0, "value": -1}


def overlay(*rows, roots=(0,), nodes=(), every_tree=False):
    return overlays.overlay(trace_of(*rows), roots, 100, nodes, every_tree)


def places(recorded):
    return [
        (p.node, p.tree, p.key, p.from_us, p.until_us, p.is_rekeyed)
        for p in sorted(recorded.places, key=lambda p: (p.node, p.from_us))
    ]


@pytest.fixture(scope="module")
def run():
    return failing_grid()


# Places and orphans


def test_a_key_lasts_until_the_next_one_and_ends_with_a_row_without_a_key():
    overlay_ = overlay(ROOT, (10, 1, "key_set", key("1")), (30, 1, "key_set", key("01")), (60, 1, "key_set", KEY_LOST))
    assert places(overlay_)[1:] == [(1, 0, "1", 10, 30, False), (1, 0, "01", 30, 60, False)]
    assert [tuple(orphan) for orphan in overlay_.orphans] == [(1, 0, 10, False), (1, 60, 100, True)]


def test_a_node_that_joins_another_tree_loses_its_place_unless_nodes_are_in_all_trees():
    rows = (ROOT, (0, 5, "key_set", key("", -1, 1)), (10, 1, "key_set", key("1")), (40, 1, "key_set", key("1", 5, 1)))
    single_tree = overlay(*rows[:3], (30, 1, "key_set", KEY_LOST), rows[3], roots=(0, 5))
    assert places(single_tree)[1:3] == [(1, 0, "1", 10, 30, False), (1, 1, "1", 40, 100, False)]
    everywhere = overlay(*rows, roots=(0, 5), every_tree=True)
    assert places(everywhere)[1:3] == [(1, 0, "1", 10, 100, False), (1, 1, "1", 40, 100, False)]
    assert [tuple(orphan) for orphan in everywhere.orphans if orphan.node == 1] == [(1, 0, 40, False)]


def test_a_node_that_is_down_has_no_place_is_not_an_orphan_and_regains_its_place():
    overlay_ = overlay(ROOT, (10, 1, "key_set", key("1")), (30, 1, "failed"), (50, 1, "recovered"))
    assert places(overlay_)[1:] == [(1, 0, "1", 10, 30, False), (1, 0, "1", 50, 100, False)]
    assert [tuple(orphan) for orphan in overlay_.orphans] == [(1, 0, 10, False)]
    assert overlay_.down_at(30) == overlay_.down_at(49) == {1} and not overlay_.down_at(50)


def test_a_node_that_never_recovers_stays_without_a_place():
    overlay_ = overlay(ROOT, (10, 1, "key_set", key("1")), (30, 1, "failed"))
    assert places(overlay_)[1:] == [(1, 0, "1", 10, 30, False)]
    assert [overlay_.outages[name].tolist() for name in ("node", "from_us", "until_us")] == [[1], [30], [100]]


def test_a_node_that_never_joined_is_always_an_orphan():
    assert overlay(ROOT, nodes=(0, 7)).orphans == (overlays.OrphanSpan(7, 0, 100, False),)


def test_a_node_is_rekeyed_if_its_key_differs_from_that_before_the_last_failure():
    overlay_ = overlay(
        ROOT,
        (10, 1, "key_set", key("1")),
        (10, 2, "key_set", key("01")),
        (12, 2, "key_set", key("001")),
        (20, 9, "failed"),
        (30, 1, "key_set", KEY_LOST),
        (40, 1, "key_set", key("11")),
        (45, 2, "key_set", KEY_LOST),
        (46, 2, "key_set", key("001")),
        (70, 8, "failed"),
    )
    marked = [(node, name, start) for node, _, name, start, _, is_rekeyed in places(overlay_) if is_rekeyed]
    assert marked == [(1, "11", 40)]
    assert [p.is_rekeyed for p in overlay_.places_at(80)] == [False, False, False]


def test_a_query_is_stored_until_it_is_removed_and_not_while_its_node_is_down():
    query = {"origin": 4, "sequence": 2, "detail": "TEMP GE 20"}
    stored, removed = {**query, "value": 1}, {**query, "value": -1}
    overlay_ = overlay(
        ROOT, (10, 0, "query_stored", stored), (30, 0, "failed"), (40, 0, "recovered"), (90, 0, "query_stored", removed)
    )
    assert [(s.sink, s.number, s.text, s.from_us, s.until_us) for s in overlay_.stored] == [
        (4, 2, "TEMP GE 20", 10, 30),
        (4, 2, "TEMP GE 20", 40, 90),
    ]


def test_a_query_of_two_trees_is_stored_in_each_until_it_is_removed_there():
    query = {"origin": 4, "sequence": 2, "detail": "TEMP GE 20"}
    values = ((10, 2), (20, 3), (50, -2), (70, -3))
    rows = [(time_us, 0, "query_stored", {**query, "value": value}) for time_us, value in values]
    overlay_ = overlay(ROOT, *rows, roots=(0, 5, 6), every_tree=True)
    assert [(s.tree, s.from_us, s.until_us) for s in overlay_.stored] == [(1, 10, 50), (2, 20, 70)]


# Zones


def zones_of(overlay_):
    return as_spans(overlay_zones.ZoneSpan, overlay_zones.zone_table(overlay_), overlay_.words)


def test_zones_are_those_logged_by_nodes_with_their_keys():
    overlay_ = overlay(
        ROOT,
        (0, 0, "zone_set", zone(0, 7)),
        (9, 0, "zone_set", NO_ZONE),
        (9, 0, "zone_set", zone(0, 3)),
        (10, 1, "key_set", key("1")),
        (10, 1, "zone_set", zone(4, 7)),
        (40, 1, "zone_set", NO_ZONE),
        (40, 1, "zone_set", zone(4, 4)),
        (40, 1, "zone_set", zone(6, 7)),
        (60, 1, "key_set", key("01")),
        (60, 1, "zone_set", NO_ZONE),
        (60, 1, "zone_set", zone(2, 3)),
        (60, 1, "zone_set", NO_ZONE),
        (60, 1, "zone_set", zone(2, 2)),
        (70, 1, "failed"),
        (80, 1, "recovered"),
        (90, 1, "key_set", KEY_LOST),
        (90, 1, "zone_set", NO_ZONE),
    )
    spans = [(z.node, z.key, z.low, z.high, z.from_us, z.until_us) for z in zones_of(overlay_)]
    assert spans == [
        (0, "", 0, 7, 0, 9),
        (0, "", 0, 3, 9, 100),
        (1, "1", 4, 7, 10, 40),
        (1, "1", 4, 4, 40, 60),
        (1, "1", 6, 7, 40, 60),
        (1, "01", 2, 2, 60, 70),
        (1, "01", 2, 2, 80, 90),
    ]
    zones = overlay_zones.zone_table(overlay_)["zone"].tolist()
    assert zones[3] == zones[4] and len(set(zones)) == 6


@given(
    graph_and_roots=graphs_with_roots(), seed=st.integers(0, 99), key_bits=st.integers(1, 9), time_s=st.integers(3, 5)
)
@settings(max_examples=examples(40))
def test_zones_of_a_run_equal_those_of_its_nodes_and_partition_the_key_space(graph_and_roots, seed, key_bits, time_s):
    graph, roots = graph_and_roots
    protocol = wb.TinyMQ(roots=roots, key_bits=key_bits)
    scenario = wb.Scenario(graph, protocol, duration_s=5, seed=seed)
    recorder = Recorder()
    nodes = play(scenario, recorder)
    overlay_ = overlays.overlay(recorder.table(), roots, 5 * SECOND, graph.nodes)
    at = overlay_zones.zones_at(overlay_, overlay_zones.zone_table(overlay_), time_s * SECOND)
    for tree in range(len(roots)):
        intervals = sorted((zone.low, zone.high) for zone in at if zone.tree == tree)
        strings = [string for low, high in intervals for string in range(low, high + 1)]
        assert strings == list(range(1 << key_bits))
    if time_s == 5:
        for node in nodes:
            expected = sorted(i for place in node.overlay.positions.values() for i in place.regions(key_bits)[1])
            assert sorted((zone.low, zone.high) for zone in at if zone.node == node.address) == expected


def test_of_two_nodes_with_the_same_string_the_deeper_one_comes_last():
    overlay_ = overlay(
        ROOT,
        (0, 0, "zone_set", zone(0, 3)),
        (10, 2, "key_set", key("11", 1)),
        (10, 2, "zone_set", zone(3, 3)),
    )
    at = overlay_zones.zones_at(overlay_, overlay_zones.zone_table(overlay_), 60)
    assert [(zone.node, zone.low, zone.high) for zone in at] == [(0, 0, 3), (2, 3, 3)]


def test_stored_boxes_are_intersections_of_zones_and_queries_while_both_last():
    overlay_ = overlay(
        ROOT,
        (10, 1, "key_set", key("1")),
        (10, 0, "zone_set", zone(0, 7)),
        (10, 1, "zone_set", zone(8, 15)),
        (20, 0, "query_stored", {"origin": 4, "value": 1, "detail": "TEMP GE 4, TEMP LE 11"}),
        (50, 1, "query_stored", {"origin": 4, "value": 1, "detail": "TEMP GE 4, TEMP LE 11"}),
    )
    mapping = wb.TinyMQ(dimensions=("TEMP 0 16",), key_bits=4).mapping
    box_table = overlay_zones.stored_boxes(overlay_, overlay_zones.zone_table(overlay_), mapping)
    boxes = [(b.node, b.low, b.high, b.from_us) for b in as_spans(overlay_zones.BoxSpan, box_table)]
    assert boxes == [(0, 4, 7, 20), (1, 8, 11, 50)]


@given(bits=st.tuples(st.integers(1, 4), st.integers(1, 4)), ends=st.tuples(st.integers(0, 255), st.integers(0, 255)))
def test_blocks_contain_each_string_of_an_interval_once(bits, ends):
    low, high = sorted(end % (1 << sum(bits)) for end in ends)
    cells = [
        (row + i) * (1 << bits[1]) + column + j
        for row, column, rows, columns in overlay_zones.blocks(low, high, bits)
        for i in range(rows)
        for j in range(columns)
    ]
    assert sorted(cells) == list(range(low, high + 1))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).map(sorted).map(tuple), min_size=1, max_size=3))
def test_strings_of_a_box_are_its_cells(box):
    mapping = Mapping([(51 + i, 0, 100) for i in range(len(box))], 3 * len(box))
    region = overlay_zones.strings_of(mapping, tuple(box))
    assert [s for low, high in region for s in range(low, high + 1)] == mapping.cells(tuple(box))
    assert all(high + 1 < low for (_, high), (low, _) in itertools.pairwise(region))


# Routes

EVENT_3 = {"origin": 9, "sequence": 3, "message": "event", "value": 2}


def routed_run(*rows):
    """Return a substitute for a run with a hand-written trace, for `route`: a line of ten nodes with root 0."""
    scenario = wb.Scenario(wb.topology.line(10), wb.TinyMQ(), duration_s=1.0)
    return SimpleNamespace(trace=trace_of(*rows), scenario=scenario)


def test_a_hop_is_the_first_frame_that_arrived_and_lost_hops_are_marked():
    run = routed_run(
        (5, 9, "originated", EVENT_3),
        (10, 9, "sent", {**EVENT_3, "peer": 8}),
        (10, 8, "lost", {**EVENT_3, "peer": 9}),
        (20, 9, "sent", {**EVENT_3, "peer": 8}),
        (20, 8, "received", {**EVENT_3, "peer": 9}),
        (30, 9, "sent", {**EVENT_3, "peer": 8}),
        (30, 8, "received", {**EVENT_3, "peer": 9}),
        (40, 8, "sent", {**EVENT_3, "peer": 7}),
        (45, 8, "sent", {**EVENT_3, "peer": 6, "sequence": 4}),
    )
    route = overlay_routes.route(run)
    assert [tuple(hop) for hop in route.hops] == [(9, 8, "event", 8, 20, True), (8, 7, "event", 38, 40, False)]
    assert route.in_words("event") == "9 → 8"


def test_marks_show_where_an_event_was_matched_delivered_and_given_up():
    run = routed_run(
        (5, 9, "originated", EVENT_3),
        (5, 9, "held", EVENT_3),
        (20, 4, "held", {**EVENT_3, "peer": 5}),
        (20, 4, "event_matched", {**EVENT_3, "peer": 5, "value": 0}),
        (30, 2, "held", {**EVENT_3, "peer": 3, "message": "notification"}),
        (30, 2, "delivered", {**EVENT_3, "peer": 3, "message": "notification"}),
        (40, 3, "dropped", {**EVENT_3, "detail": "repeated"}),
        (50, 6, "dropped", {**EVENT_3, "detail": "loop"}),
    )
    route = overlay_routes.route(run, ("event", 9, 3))
    assert [(m.node, m.look, m.text) for m in route.marks] == [
        (4, "matched", ""),
        (2, "delivered", ""),
        (6, "dropped", "loop"),
    ]


def test_a_path_follows_the_first_hop_into_each_node():
    hops = [overlay_routes.Hop(*ends, "event", 0, 0) for ends in ((1, 2), (2, 3), (4, 3), (3, 1))]
    route = overlay_routes.Route(("event", 1, 0), tuple(hops), ())
    assert route.path("event", 1, 3) == [1, 2, 3]
    assert route.path("event", 1, 7) == [] and route.path("event", 3, 3) == [3] and route.path("query", 1, 2) == []


@given(
    graph_and_roots=graphs_with_roots(most_nodes=14), publish=st.sampled_from(("all", "own")), seed=st.integers(0, 99)
)
@settings(max_examples=examples(25))
def test_routes_lead_from_sink_and_publisher_to_rendezvous_nodes_and_back(graph_and_roots, publish, seed):
    graph, roots = graph_and_roots
    nodes = sorted(graph)
    protocol = wb.TinyMQ(roots=roots, publish=publish, dimensions=("TEMP 0 50",), key_bits=6)
    workload = [
        wb.subscribe(nodes[0], "TEMP GE 10, TEMP LE 30", start_s=3),
        wb.publish(nodes[-1], "TEMP IS 20", start_s=5),
    ]
    run = wb.Scenario(graph, protocol, workload, duration_s=6, seed=seed).run(engine="reference")
    query = overlay_routes.route(run, ("query", nodes[0], 0))
    stored_at = query.nodes("stored")
    assert sorted(stored_at) == sorted({span.node for span in overlays.overlay_of(run).stored})
    for node in stored_at:
        assert query.path("query", nodes[0], node)
    event = overlay_routes.route(run)
    assert event.message == ("event", nodes[-1], 0)
    assert event.nodes("delivered") == [nodes[0]]
    matched = event.nodes("matched")
    assert 1 <= len(matched) <= (len(roots) if publish == "all" else 1)
    for node in matched:
        assert node in stored_at and event.path("event", nodes[-1], node)
    assert any(event.path("notification", node, nodes[0]) for node in matched)


def test_messages_outside_of_the_run_have_no_route():
    run = routed_run((5, 9, "originated", EVENT_3))
    with pytest.raises(
        ParameterError, match=r"message is \('query', 9, 3\), which is not in this run; the run has \('event', 9, 3\)"
    ):
        overlay_routes.route(run, ("query", 9, 3))
    with pytest.raises(ParameterError, match="message is None, which is not in this run; the run has no messages"):
        overlay_routes.route(routed_run())


# Load and repair


def test_counts_of_repair_equal_the_spans_at_any_time(run):
    overlay_ = overlays.overlay_of(run)
    steps = overlay_layers.repair_steps(overlay_)
    for time_us in range(0, 20 * SECOND, SECOND // 4):
        step = steps["time_us"].searchsorted(time_us, "right") - 1
        assert steps["down"][step] == len(overlay_.down_at(time_us))
        assert steps["orphans"][step] == sum(orphan.had_place for orphan in overlay_.orphans_at(time_us))
        assert steps["rekeyed"][step] == sum(place.is_rekeyed for place in overlay_.places_at(time_us))
    assert steps["rekeyed"].max() > 0 and steps["down"].max() == 1


def test_expected_and_delivered_arrivals_give_the_delivery_ratio():
    graph = wb.topology.disc(40, 60, 60, seed=3)
    scenario = wb.Scenario(
        graph,
        wb.TinyMQ(roots=(0,), dimensions=("TEMP 0 50",), info_s=2.0, key_bits=6),
        [
            wb.subscribe(3, "TEMP GE 10, TEMP LE 40", start_s=2, stop_s=25),
            wb.subscribe(4, "TEMP GE 30", start_s=2),
            wb.publish([9, 20, 31], "TEMP IS 35", start_s=4, every_s=1),
            wb.outage([3], start_s=6, stop_s=9),
            wb.outage([1, 2, 5, 6, 7, 8, 11, 12], start_s=10),
        ],
        wb.Radio(loss="none"),
        duration_s=30,
        seed=1,
    )
    run = scenario.run(engine="reference")
    arrivals = overlay_repair.arrivals(run)
    assert len(arrivals) == run.metrics["expected"]
    assert sum(arrival.is_delivered for arrival in arrivals) == run.metrics["delivered"]
