"""TinyMQ's overlay out of traces: places, zones, routes, load and repair."""

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
    """A trace from rows written as (time in µs, node, event, other columns)."""
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


LOST = {"origin": 0, "value": -1}
ROOT = (0, 0, "key_set", key("", -1))


def zone(low, high, tree=0):
    return {"origin": tree, "sequence": low, "value": high}


NO_ZONE = {"origin": 0, "value": -1}


def overlay(*rows, roots=(0,), nodes=(), every_tree=False):
    return overlays.overlay(trace_of(*rows), roots, 100, nodes, every_tree)


def places(seen):
    return [
        (p.node, p.tree, p.key, p.from_us, p.until_us, p.is_rekeyed)
        for p in sorted(seen.places, key=lambda p: (p.node, p.from_us))
    ]


@pytest.fixture(scope="module")
def run():
    return failing_grid()


# Places and orphans


def test_a_key_is_held_until_the_next_one_and_lost_with_a_row_that_has_none():
    seen = overlay(ROOT, (10, 1, "key_set", key("1")), (30, 1, "key_set", key("01")), (60, 1, "key_set", LOST))
    assert places(seen)[1:] == [(1, 0, "1", 10, 30, False), (1, 0, "01", 30, 60, False)]
    assert [tuple(one) for one in seen.orphans] == [(1, 0, 10, False), (1, 60, 100, True)]


def test_a_node_that_joins_another_tree_has_lost_its_own_place_but_not_where_all_nodes_are_in_all_trees():
    rows = (ROOT, (0, 5, "key_set", key("", -1, 1)), (10, 1, "key_set", key("1")), (40, 1, "key_set", key("1", 5, 1)))
    left = overlay(*rows[:3], (30, 1, "key_set", LOST), rows[3], roots=(0, 5))
    assert places(left)[1:3] == [(1, 0, "1", 10, 30, False), (1, 1, "1", 40, 100, False)]
    everywhere = overlay(*rows, roots=(0, 5), every_tree=True)
    assert places(everywhere)[1:3] == [(1, 0, "1", 10, 100, False), (1, 1, "1", 40, 100, False)]
    assert [tuple(one) for one in everywhere.orphans if one.node == 1] == [(1, 0, 40, False)]


def test_a_node_that_is_down_has_no_place_and_is_no_orphan_and_finds_its_place_again():
    seen = overlay(ROOT, (10, 1, "key_set", key("1")), (30, 1, "failed"), (50, 1, "recovered"))
    assert places(seen)[1:] == [(1, 0, "1", 10, 30, False), (1, 0, "1", 50, 100, False)]
    assert [tuple(one) for one in seen.orphans] == [(1, 0, 10, False)]
    assert seen.down_at(30) == seen.down_at(49) == {1} and not seen.down_at(50)


def test_a_node_that_never_comes_back_stays_without_a_place():
    seen = overlay(ROOT, (10, 1, "key_set", key("1")), (30, 1, "failed"))
    assert places(seen)[1:] == [(1, 0, "1", 10, 30, False)]
    assert [seen.outages[name].tolist() for name in ("node", "from_us", "until_us")] == [[1], [30], [100]]


def test_a_node_that_never_joined_is_an_orphan_from_beginning_to_end():
    assert overlay(ROOT, nodes=(0, 7)).orphans == (overlays.OrphanSpan(7, 0, 100, False),)


def test_rekeyed_is_who_has_another_key_than_before_the_last_failure():
    seen = overlay(
        ROOT,
        (10, 1, "key_set", key("1")),
        (10, 2, "key_set", key("01")),
        (12, 2, "key_set", key("001")),
        (20, 9, "failed"),
        (30, 1, "key_set", LOST),
        (40, 1, "key_set", key("11")),
        (45, 2, "key_set", LOST),
        (46, 2, "key_set", key("001")),
        (70, 8, "failed"),
    )
    marked = [(node, name, start) for node, _, name, start, _, is_rekeyed in places(seen) if is_rekeyed]
    assert marked == [(1, "11", 40)]
    assert [p.is_rekeyed for p in seen.places_at(80)] == [False, False, False]


def test_a_query_is_stored_until_it_is_removed_and_not_while_its_node_is_down():
    query = {"origin": 4, "sequence": 2, "detail": "TEMP GE 20"}
    stored, removed = {**query, "value": 1}, {**query, "value": -1}
    seen = overlay(
        ROOT, (10, 0, "query_stored", stored), (30, 0, "failed"), (40, 0, "recovered"), (90, 0, "query_stored", removed)
    )
    assert [(s.sink, s.number, s.text, s.from_us, s.until_us) for s in seen.stored] == [
        (4, 2, "TEMP GE 20", 10, 30),
        (4, 2, "TEMP GE 20", 40, 90),
    ]


def test_a_query_of_two_trees_is_stored_in_each_until_it_is_removed_there():
    query = {"origin": 4, "sequence": 2, "detail": "TEMP GE 20"}
    values = ((10, 2), (20, 3), (50, -2), (70, -3))
    rows = [(time_us, 0, "query_stored", {**query, "value": value}) for time_us, value in values]
    seen = overlay(ROOT, *rows, roots=(0, 5, 6), every_tree=True)
    assert [(s.tree, s.from_us, s.until_us) for s in seen.stored] == [(1, 10, 50), (2, 20, 70)]


# Zones


def zones_of(seen):
    return as_spans(overlay_zones.ZoneSpan, overlay_zones.zone_table(seen), seen.words)


def test_zones_are_those_that_nodes_log_with_the_keys_that_they_had():
    seen = overlay(
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
        (90, 1, "key_set", LOST),
        (90, 1, "zone_set", NO_ZONE),
    )
    spans = [(z.node, z.key, z.low, z.high, z.from_us, z.until_us) for z in zones_of(seen)]
    assert spans == [
        (0, "", 0, 7, 0, 9),
        (0, "", 0, 3, 9, 100),
        (1, "1", 4, 7, 10, 40),
        (1, "1", 4, 4, 40, 60),
        (1, "1", 6, 7, 40, 60),
        (1, "01", 2, 2, 60, 70),
        (1, "01", 2, 2, 80, 90),
    ]
    zones = overlay_zones.zone_table(seen)["zone"].tolist()
    assert zones[3] == zones[4] and len(set(zones)) == 6


@given(where=graphs_with_roots(), seed=st.integers(0, 99), key_bits=st.integers(1, 9), time_s=st.integers(3, 5))
@settings(max_examples=examples(40))
def test_zones_of_a_run_are_those_of_its_nodes_and_partition_the_key_space(where, seed, key_bits, time_s):
    graph, roots = where
    protocol = wb.TinyMQ(roots=roots, key_bits=key_bits)
    scenario = wb.Scenario(graph, protocol, duration_s=5, seed=seed)
    recorder = Recorder()
    nodes = play(scenario, recorder)
    seen = overlays.overlay(recorder.table(), roots, 5 * SECOND, graph.nodes)
    at = overlay_zones.zones_at(seen, overlay_zones.zone_table(seen), time_s * SECOND)
    for tree in range(len(roots)):
        found = sorted((zone.low, zone.high) for zone in at if zone.tree == tree)
        strings = [string for low, high in found for string in range(low, high + 1)]
        assert strings == list(range(1 << key_bits))
    if time_s == 5:
        for node in nodes:
            expected = sorted(i for place in node.overlay.positions.values() for i in place.regions(key_bits)[1])
            assert sorted((zone.low, zone.high) for zone in at if zone.node == node.address) == expected


def test_of_two_nodes_that_claim_a_string_the_deeper_one_comes_last():
    seen = overlay(
        ROOT,
        (0, 0, "zone_set", zone(0, 3)),
        (10, 2, "key_set", key("11", 1)),
        (10, 2, "zone_set", zone(3, 3)),
    )
    at = overlay_zones.zones_at(seen, overlay_zones.zone_table(seen), 60)
    assert [(zone.node, zone.low, zone.high) for zone in at] == [(0, 0, 3), (2, 3, 3)]


def test_stored_boxes_are_what_a_zone_and_a_query_have_in_common_while_both_last():
    seen = overlay(
        ROOT,
        (10, 1, "key_set", key("1")),
        (10, 0, "zone_set", zone(0, 7)),
        (10, 1, "zone_set", zone(8, 15)),
        (20, 0, "query_stored", {"origin": 4, "value": 1, "detail": "TEMP GE 4, TEMP LE 11"}),
        (50, 1, "query_stored", {"origin": 4, "value": 1, "detail": "TEMP GE 4, TEMP LE 11"}),
    )
    mapping = wb.TinyMQ(dimensions=("TEMP 0 16",), key_bits=4).mapping
    found = overlay_zones.stored_boxes(seen, overlay_zones.zone_table(seen), mapping)
    boxes = [(b.node, b.low, b.high, b.from_us) for b in as_spans(overlay_zones.BoxSpan, found)]
    assert boxes == [(0, 4, 7, 20), (1, 8, 11, 50)]


@given(bits=st.tuples(st.integers(1, 4), st.integers(1, 4)), ends=st.tuples(st.integers(0, 255), st.integers(0, 255)))
def test_blocks_are_the_strings_of_an_interval_each_once(bits, ends):
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

SENT = {"origin": 9, "sequence": 3, "message": "event", "value": 2}


def routed_run(*rows):
    """What `route` needs of a run, with a trace written by hand: a line of ten nodes with root 0."""
    scenario = wb.Scenario(wb.topology.line(10), wb.TinyMQ(), duration_s=1.0)
    return SimpleNamespace(trace=trace_of(*rows), scenario=scenario)


def test_a_hop_is_the_first_frame_that_arrived_and_a_link_that_lost_it_is_told():
    run = routed_run(
        (5, 9, "originated", SENT),
        (10, 9, "sent", {**SENT, "peer": 8}),
        (10, 8, "lost", {**SENT, "peer": 9}),
        (20, 9, "sent", {**SENT, "peer": 8}),
        (20, 8, "received", {**SENT, "peer": 9}),
        (30, 9, "sent", {**SENT, "peer": 8}),
        (30, 8, "received", {**SENT, "peer": 9}),
        (40, 8, "sent", {**SENT, "peer": 7}),
        (45, 8, "sent", {**SENT, "peer": 6, "sequence": 4}),
    )
    way = overlay_routes.route(run)
    assert [tuple(hop) for hop in way.hops] == [(9, 8, "event", 8, 20, True), (8, 7, "event", 38, 40, False)]
    assert way.in_words("event") == "9 → 8"


def test_marks_tell_where_an_event_was_matched_delivered_and_given_up():
    run = routed_run(
        (5, 9, "originated", SENT),
        (5, 9, "held", SENT),
        (20, 4, "held", {**SENT, "peer": 5}),
        (20, 4, "event_matched", {**SENT, "peer": 5, "value": 0}),
        (30, 2, "held", {**SENT, "peer": 3, "message": "notification"}),
        (30, 2, "delivered", {**SENT, "peer": 3, "message": "notification"}),
        (40, 3, "dropped", {**SENT, "detail": "repeated"}),
        (50, 6, "dropped", {**SENT, "detail": "loop"}),
    )
    way = overlay_routes.route(run, ("event", 9, 3))
    assert [(m.node, m.look, m.text) for m in way.marks] == [
        (4, "matched", ""),
        (2, "delivered", ""),
        (6, "dropped", "loop"),
    ]


def test_a_path_follows_the_first_hop_into_each_node():
    hops = [overlay_routes.Hop(*ends, "event", 0, 0) for ends in ((1, 2), (2, 3), (4, 3), (3, 1))]
    way = overlay_routes.Route(("event", 1, 0), tuple(hops), ())
    assert way.path("event", 1, 3) == [1, 2, 3]
    assert way.path("event", 1, 7) == [] and way.path("event", 3, 3) == [3] and way.path("query", 1, 2) == []


@given(where=graphs_with_roots(most_nodes=14), publish=st.sampled_from(("all", "own")), seed=st.integers(0, 99))
@settings(max_examples=examples(25))
def test_routes_lead_from_sink_and_publisher_to_rendezvous_nodes_and_back(where, publish, seed):
    graph, roots = where
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


def test_what_is_not_in_the_run_has_no_route():
    run = routed_run((5, 9, "originated", SENT))
    with pytest.raises(
        ParameterError, match=r"message is \('query', 9, 3\), which is not in this run; the run has \('event', 9, 3\)"
    ):
        overlay_routes.route(run, ("query", 9, 3))
    with pytest.raises(ParameterError, match="message is None, which is not in this run; the run has none"):
        overlay_routes.route(routed_run())


# Load and repair


def test_counts_of_repair_are_what_the_spans_say_at_any_time(run):
    seen = overlays.overlay_of(run)
    steps = overlay_layers.repair_steps(seen)
    for time_us in range(0, 20 * SECOND, SECOND // 4):
        step = steps["time_us"].searchsorted(time_us, "right") - 1
        assert steps["down"][step] == len(seen.down_at(time_us))
        assert steps["orphans"][step] == sum(orphan.had_place for orphan in seen.orphans_at(time_us))
        assert steps["rekeyed"][step] == sum(place.is_rekeyed for place in seen.places_at(time_us))
    assert steps["rekeyed"].max() > 0 and steps["down"].max() == 1


def test_what_was_due_and_came_adds_up_to_the_delivery_ratio():
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
    found = overlay_repair.arrivals(run)
    assert len(found) == run.metrics["expected"]
    assert sum(arrival.is_delivered for arrival in found) == run.metrics["delivered"]
