"""Views of TinyMQ's overlay: places, zones, routes, load and repair out of traces, and what is drawn of them."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tinymq_checks import graphs_with_roots

import workbench as wb
from workbench.errors import ParameterError
from workbench.protocols.tinymq.mapping import Mapping
from workbench.sim.kernel import Kernel
from workbench.sim.trace import SCHEMA, Recorder
from workbench.views import overlay as overlays
from workbench.views import overlay_drawing, overlay_zone_drawing, overlay_zones
from workbench.views.drawing import Polygon, Text

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


def overlay(*rows, roots=(0,), nodes=(), every_tree=False):
    return overlays.overlay(trace_of(*rows), roots, 100, nodes, every_tree)


def places(seen):
    return [
        (p.node, p.tree, p.key, p.from_us, p.until_us, p.is_rekeyed)
        for p in sorted(seen.places, key=lambda p: (p.node, p.from_us))
    ]


# Places and orphans


def test_a_key_is_held_until_the_next_one_and_lost_with_a_row_that_has_none():
    seen = overlay(ROOT, (10, 1, "key_set", key("1")), (30, 1, "key_set", key("01")), (60, 1, "key_set", LOST))
    assert places(seen)[1:] == [(1, 0, "1", 10, 30, False), (1, 0, "01", 30, 60, False)]
    assert [tuple(one) for one in seen.orphans] == [(1, 0, 10, False), (1, 60, 100, True)]


def test_a_node_that_joins_another_tree_has_left_its_own_but_not_where_all_nodes_are_in_all_trees():
    rows = (ROOT, (0, 5, "key_set", key("", -1, 1)), (10, 1, "key_set", key("1")), (40, 1, "key_set", key("1", 5, 1)))
    assert places(overlay(*rows, roots=(0, 5)))[1:3] == [(1, 0, "1", 10, 40, False), (1, 1, "1", 40, 100, False)]
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
    assert seen.failed == ((1, 30, 100),)


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
    stored, removed = {**query, "value": 1}, query
    seen = overlay(
        ROOT, (10, 0, "query_stored", stored), (30, 0, "failed"), (40, 0, "recovered"), (90, 0, "query_stored", removed)
    )
    assert [(s.sink, s.number, s.text, s.from_us, s.until_us) for s in seen.stored] == [
        (4, 2, "TEMP GE 20", 10, 30),
        (4, 2, "TEMP GE 20", 40, 90),
    ]


# Zones


def test_zones_are_cut_when_children_come_and_grown_together_when_they_go():
    seen = overlay(ROOT, (10, 1, "key_set", key("1")), (40, 2, "key_set", key("11", 1)), (60, 2, "key_set", LOST))
    spans = [(z.node, z.low, z.high, z.from_us, z.until_us) for z in overlay_zones.zone_spans(seen, 2)]
    assert spans == [
        (0, 0, 3, 0, 10),
        (0, 0, 1, 10, 100),
        (1, 2, 3, 10, 40),
        (1, 2, 2, 40, 60),
        (2, 3, 3, 40, 60),
        (1, 2, 3, 60, 100),
    ]


@given(where=graphs_with_roots(), seed=st.integers(0, 99), key_bits=st.integers(1, 9), time_s=st.integers(0, 5))
@settings(max_examples=40)
def test_zones_of_a_run_are_those_of_its_nodes_and_partition_the_key_space(where, seed, key_bits, time_s):
    graph, roots = where
    protocol = wb.TinyMQ(roots=roots, key_bits=key_bits)
    scenario = wb.Scenario(graph, protocol, duration_s=5, seed=seed)
    recorder = Recorder()
    kernel = Kernel(scenario, recorder)
    kernel.run(5 * SECOND, None)
    seen = overlays.overlay(recorder.table(), roots, 5 * SECOND, graph.nodes)
    zones = overlay_zones.zone_spans(seen, key_bits)
    at = overlay_zones.alive_zones(zones, time_s * SECOND, 5 * SECOND)
    for tree in range(len(roots)):
        found = sorted((zone.low, zone.high) for zone in at if zone.tree == tree)
        strings = [string for low, high in found for string in range(low, high + 1)]
        assert strings == list(range(1 << key_bits))
    if time_s == 5:
        for address, node in zip(kernel.addresses, kernel.nodes, strict=True):
            expected = sorted(i for place in node.overlay.places.values() for i in place.regions(key_bits)[1])
            assert sorted((zone.low, zone.high) for zone in at if zone.node == address) == expected


def test_stored_boxes_are_what_a_zone_and_a_query_have_in_common_while_both_last():
    seen = overlay(
        ROOT,
        (10, 1, "key_set", key("1")),
        (20, 0, "query_stored", {"origin": 4, "value": 1, "detail": "TEMP GE 4, TEMP LE 11"}),
        (50, 1, "query_stored", {"origin": 4, "value": 1, "detail": "TEMP GE 4, TEMP LE 11"}),
    )
    mapping = wb.TinyMQ(dimensions=("TEMP 0 16",), key_bits=4).mapping
    zones = overlay_zones.zone_spans(seen, 4)
    boxes = [(b.node, b.low, b.high, b.from_us) for b in overlay_zones.stored_boxes(seen, zones, mapping)]
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


# Figures


@pytest.fixture(scope="module")
def run():
    """A line of six nodes with roots at both ends, two dimensions, and a failure in the middle of the left tree."""
    return wb.Scenario(
        wb.topology.grid(3, 4),
        wb.TinyMQ(roots=(0, 11), dimensions=("TEMP 0 50", "HUMIDITY"), key_bits=6, info_s=1.0),
        [
            wb.subscribe(2, "TEMP GE 20, TEMP LE 30", start_s=2),
            wb.publish(9, "TEMP IS 25, HUMIDITY IS 40", start_s=4, every_s=2),
            wb.outage(1, start_s=8),
        ],
        wb.Radio(loss="none"),
        duration_s=20,
        seed=2,
    ).run(engine="reference")


def texts(drawing):
    return [item.text for item in drawing.items if isinstance(item, Text)]


def test_trees_are_drawn_with_roots_keys_and_who_has_a_new_one(run):
    seen = overlays.overlay_of(run)
    drawing = overlay_drawing.overlay_drawing(run)
    written = texts(drawing)
    for place in seen.places_at(20 * SECOND):
        assert f"{place.node}: {place.key or 'root'}" in written
    assert "tree of root 0" in written and "tree of root 11" in written and "failed node" in written
    assert "other key than before the failure" in written
    assert "other key than before the failure" not in texts(overlay_drawing.overlay_drawing(run, 5))
    assert "has no place yet" in texts(overlay_drawing.overlay_drawing(run, 0))
    assert drawing.to_svg().count("</text>") == len(written)


def test_keys_are_left_out_on_request_and_in_large_networks(run):
    assert "0: root" not in texts(overlay_drawing.overlay_drawing(run, keys=False))
    large = wb.Scenario(wb.topology.grid(8, 8), wb.TinyMQ(), duration_s=2).run()
    assert "0: root" not in texts(overlay_drawing.overlay_drawing(large))
    assert "0: root" in texts(overlay_drawing.overlay_drawing(large, keys=True))


def test_bars_show_whose_strings_are_whose_and_which_queries_lie_on_them(run):
    written = texts(overlay_zone_drawing.zones_drawing(run, 6))
    assert {"root 0", "root 11", "query 0 of node 2: TEMP GE 20, TEMP LE 30"} <= set(written)
    bare = texts(overlay_zone_drawing.zones_drawing(run, 1))
    assert not [text for text in bare if text.startswith("query")]


def test_many_queries_are_shaded_by_their_number():
    asked = [wb.subscribe(i, f"TEMP GE {i}, TEMP LE {i + 20}", start_s=1) for i in range(8)]
    run = wb.Scenario(wb.topology.grid(3, 3), wb.TinyMQ(dimensions=("TEMP 0 50",)), asked, duration_s=4).run()
    assert "queries on a string (of 8; darker: more)" in texts(overlay_zone_drawing.zones_drawing(run))


def test_planes_are_for_two_dimensions(run):
    drawing = overlay_zone_drawing.plane_drawing(run, 6)
    assert {"tree of root 0", "HUMIDITY (%)", "TEMP (°C)"} <= set(texts(drawing))
    assert any(isinstance(item, Polygon) and item.stroke == overlay_zone_drawing.QUERIES[0] for item in drawing.items)
    with pytest.raises(ParameterError, match="this run has 1 dimensions; a plane has two"):
        overlay_zone_drawing.plane_drawing(wb.Scenario(wb.topology.grid(2, 2), wb.TinyMQ(), duration_s=1).run())


@pytest.mark.parametrize("draw", [overlay_drawing.overlay_drawing, overlay_zone_drawing.zones_drawing])
def test_times_outside_of_the_run_and_runs_without_an_overlay_are_refused(run, draw):
    with pytest.raises(ParameterError, match="this run lasts from 0 to 20 s"):
        draw(run, 21)
    with pytest.raises(ParameterError, match="a run of Flooding, which builds no overlay"):
        draw(wb.Scenario(wb.topology.grid(2, 2), wb.Flooding(), duration_s=1).run())
