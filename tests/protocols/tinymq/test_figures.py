"""Figures of TinyMQ's overlay, and steps for teaching."""

from itertools import pairwise

import pytest

import workbench as wb
from figures.facts import paper_facts
from lessons.figures import mapping as overlay_mapping
from lessons.figures import repair as overlay_repair
from lessons.figures import zones as overlay_zone_drawing
from tests.protocols.tinymq.overlay_run import failing_grid
from workbench.errors import ParameterError
from workbench.protocols.tinymq.views import (
    example as overlay_example,
)
from workbench.protocols.tinymq.views import overlay as overlays
from workbench.protocols.tinymq.views import (
    routes as overlay_routes,
)
from workbench.protocols.tinymq.views import stills
from workbench.protocols.tinymq.views import (
    zones as overlay_zones,
)
from workbench.views.drawing import Polygon, Text
from workbench.views.layers import as_spans

SECOND = 1_000_000


@pytest.fixture(scope="module")
def run():
    return failing_grid()


def texts(drawing):
    return [item.text for item in drawing.items if isinstance(item, Text)]


def test_trees_are_drawn_with_roots_keys_and_rekeyed_nodes(run):
    overlay = overlays.overlay_of(run)
    drawing = stills.overlay_drawing(run)
    written = texts(drawing)
    for place in overlay.places_at(20 * SECOND):
        assert f"{place.node}: {place.key or 'root'}" in written
    assert "tree of root 0" in written and "tree of root 11" in written and "failed node" in written
    assert "other key than before the failure" in written
    assert "other key than before the failure" not in texts(stills.overlay_drawing(run, 5))
    assert "has no place yet" in texts(stills.overlay_drawing(run, 0))
    assert drawing.to_svg().count("</text>") == len(written)


def test_keys_are_omitted_on_request_and_in_large_networks(run):
    assert "0: root" not in texts(stills.overlay_drawing(run, keys=False))
    large = wb.Scenario(wb.topology.grid(8, 8), wb.TinyMQ(), duration_s=2).run()
    assert "0: root" not in texts(stills.overlay_drawing(large))
    assert "0: root" in texts(stills.overlay_drawing(large, keys=True))


def test_keys_are_written_for_a_single_tree_if_nodes_are_in_all_trees():
    run = wb.Scenario(wb.topology.grid(2, 3), wb.Pub2Sub(roots=(0, 5)), duration_s=2).run()
    overlay = overlays.overlay_of(run)
    assert len(overlay.places_at(SECOND)) == 12 and not overlay.orphans_at(SECOND)
    every = texts(stills.overlay_drawing(run))
    assert {str(node) for node in range(6)} <= set(every) and "5: root" not in every
    for tree in (0, 1):
        expected = {f"{p.node}: {p.key or 'root'}" for p in overlay.places_at(SECOND) if p.tree == tree}
        assert expected <= set(texts(stills.overlay_drawing(run, tree=tree)))
    with pytest.raises(ParameterError, match="tree is 2; this run has the trees 0 to 1"):
        stills.overlay_drawing(run, tree=2)


@pytest.mark.parametrize("key_bits", [1, 12, 64, 127])
def test_key_spaces_of_any_width_are_drawn(key_bits):
    subscription = wb.subscribe(3, "TEMP GE 20, TEMP LE 30", start_s=1)
    protocol = wb.TinyMQ(roots=(0, 5), key_bits=key_bits, dimensions=("TEMP 0 50",))
    run = wb.Scenario(wb.topology.grid(2, 3), protocol, [subscription], duration_s=2).run()
    assert "root 5" in texts(overlay_zone_drawing.zones_drawing(run))


def test_bars_show_the_zones_of_nodes_and_the_queries_in_them(run):
    written = texts(overlay_zone_drawing.zones_drawing(run, 6))
    assert {"root 0", "root 11", "query 0 of node 2: TEMP GE 20, TEMP LE 30"} <= set(written)
    bare = texts(overlay_zone_drawing.zones_drawing(run, 1))
    assert not [text for text in bare if text.startswith("query")]


def test_many_queries_are_shaded_by_their_number():
    subscriptions = [wb.subscribe(i, f"TEMP GE {i}, TEMP LE {i + 20}", start_s=1) for i in range(8)]
    run = wb.Scenario(wb.topology.grid(3, 3), wb.TinyMQ(dimensions=("TEMP 0 50",)), subscriptions, duration_s=4).run()
    assert "queries on a string (of 8; darker: more)" in texts(overlay_zone_drawing.zones_drawing(run))


@pytest.mark.parametrize("key_bits", [4, 17, 62])
def test_many_queries_are_counted_per_string_in_key_spaces_of_any_width(key_bits):
    subscriptions = [wb.subscribe(i, f"TEMP GE {i}, TEMP LE {i + 20}", start_s=1) for i in range(8)]
    protocol = wb.TinyMQ(dimensions=("TEMP 0 50",), key_bits=key_bits)
    run = wb.Scenario(wb.topology.grid(3, 3), protocol, subscriptions, duration_s=4).run(engine="reference")
    overlay = overlays.overlay_of(run)
    boxes = [
        box
        for box in as_spans(
            overlay_zones.BoxSpan,
            overlay_zones.stored_boxes(overlay, overlay_zones.zone_table(overlay), protocol.mapping),
        )
        if box.until_us == 4 * SECOND
    ]
    runs = overlay_zone_drawing.queries_on_strings(boxes, key_bits)
    assert runs[0][0] == 0 and runs[-1][1] == 1 << key_bits
    assert all(low < high == following_low for (low, high, _), (following_low, _, _) in pairwise(runs))
    for low, high, count in runs:
        assert all(count == sum(box.low <= string <= box.high for box in boxes) for string in (low, high - 1))
    assert max(count for _, _, count in runs) == 8  # those from 7 to 20 degrees
    shades = {overlay_zone_drawing.load_colour(count / 8) for _, _, count in runs if count}
    drawn = overlay_zone_drawing.zones_drawing(run).items
    assert shades <= {item.fill for item in drawn if isinstance(item, Polygon)}


def test_a_plane_names_the_number_of_omitted_queries():
    subscriptions = [wb.subscribe(i, f"TEMP GE {i}, TEMP LE {i + 20}", start_s=1) for i in range(8)]
    protocol = wb.TinyMQ(dimensions=("TEMP 0 50", "HUMIDITY"))
    run = wb.Scenario(wb.topology.grid(3, 3), protocol, subscriptions, duration_s=4).run(engine="reference")
    written = texts(overlay_zone_drawing.plane_drawing(run))
    assert "… and 2 more, not drawn" in written
    assert len([text for text in written if text.startswith("query")]) == 6


def test_planes_are_for_two_dimensions(run):
    drawing = overlay_zone_drawing.plane_drawing(run, 6)
    assert {"tree of root 0", "HUMIDITY (%)", "TEMP (°C)"} <= set(texts(drawing))
    assert any(isinstance(item, Polygon) and item.stroke == overlay_zone_drawing.QUERIES[0] for item in drawing.items)
    with pytest.raises(ParameterError, match="this run has 1 dimensions; a plane has two"):
        overlay_zone_drawing.plane_drawing(wb.Scenario(wb.topology.grid(2, 2), wb.TinyMQ(), duration_s=1).run())


def test_routes_are_drawn_with_their_order_and_events(run):
    route = overlay_routes.route(run, ("event", 9, 0))
    written = texts(stills.route_drawing(run, ("event", 9, 0)))
    assert {"publisher", "event", "event matched", "notification", "delivered"} <= set(written)
    assert {str(number) for number in range(1, 1 + sum(hop.arrived for hop in route.hops))} <= set(written)
    query_texts = texts(stills.route_drawing(run, ("query", 2, 0), until_s=4))
    assert {"sink", "query", "query stored"} <= set(query_texts) and "notification" not in query_texts


def test_repair_is_drawn_over_one_time_axis(run):
    written = texts(overlay_repair.repair_chart(run, 4, 20))
    assert {"down", "without a key", "with another key", "delivered"} <= set(written)
    assert written.count("20") == 2
    with pytest.raises(ParameterError, match="from_s is 20"):
        overlay_repair.repair_chart(run, 20)
    with pytest.raises(ParameterError, match="every_s is 0"):
        overlay_repair.repair_chart(run, every_s=0)


@pytest.mark.parametrize("draw", [stills.overlay_drawing, overlay_zone_drawing.zones_drawing])
def test_times_outside_of_the_run_and_runs_without_an_overlay_are_refused(run, draw):
    with pytest.raises(ParameterError, match="this run lasts from 0 to 20 s"):
        draw(run, 21)
    with pytest.raises(ParameterError, match="protocol is Flooding, which builds no overlay"):
        draw(wb.Scenario(wb.topology.grid(2, 2), wb.Flooding(), duration_s=1).run())


# Steps and examples


def test_route_slides_add_one_hop_each_and_have_the_same_size(run):
    slides = stills.route_slides(run, ("event", 9, 0))
    hops = sum(hop.arrived for hop in overlay_routes.route(run, ("event", 9, 0)).hops)
    assert slides.names == tuple(map(str, range(hops + 1)))
    for count, drawing in enumerate(slides.drawings):
        hop_count = "1 hop" if count == 1 else f"{count} hops"
        assert any(text.startswith(f"{hop_count} within") for text in texts(drawing))
    assert len({(drawing.width, drawing.height) for drawing in slides.drawings}) == 1
    assert slides.description == "hops"


def test_overlay_slides_are_the_trees_at_each_time(run):
    slides = stills.overlay_slides(run, [0, 20])
    assert "t = 0.000 s" in texts(slides.drawings[0]) and "t = 20.000 s" in texts(slides.drawings[1])
    with pytest.raises(ParameterError, match="times_s is empty"):
        stills.overlay_slides(run, [])


COLD_CHAIN = wb.TinyMQ(roots=(6, 9), key_bits=4, dimensions=("TEMP 0 1", "HUMIDITY"), info_s=2.0)
COLD = "TEMP GT 0, TEMP LT 0.5, HUMIDITY GT 85, HUMIDITY LT 90"


def test_the_cold_chain_is_mapped_as_in_the_corrected_example():
    assert overlay_mapping.mapping_strings(COLD_CHAIN, COLD) == ["0011", "0111", "1011"]
    assert overlay_mapping.mapping_strings(COLD_CHAIN, "TEMP IS 0.25, HUMIDITY IS 88") == ["0111"]
    table = overlay_mapping.mapping_table(COLD_CHAIN, COLD)
    assert table[["from", "to", "h(from)", "h(to)", "cells"]].values.tolist() == [
        [0, 0.5, 0, 2, "00, 01, 10"],
        [85, 90, 3, 3, "11"],
    ]
    bare = overlay_mapping.mapping_table(COLD_CHAIN, "TEMP GE 0.8").to_dict("records")
    assert (bare[0]["from"], bare[0]["to"], bare[0]["cells"]) == (0.8, 1.0, "11")
    assert bare[1]["cells"] == "00, 01, 10, 11"


def test_the_mapping_is_drawn_with_the_strings_of_query_and_event():
    drawing = overlay_mapping.mapping_drawing(COLD_CHAIN, COLD, "TEMP IS 0.25, HUMIDITY IS 88")
    bold = {item.text for item in drawing.items if isinstance(item, Text) and item.bold}
    assert bold == {"From values to strings", "0011", "0111", "1011"}
    assert (
        sum(isinstance(item, Text) and len(item.text) == 4 and set(item.text) <= {"0", "1"} for item in drawing.items)
        == 16
    )


def test_key_spaces_too_large_to_list_are_refused():
    with pytest.raises(ParameterError, match="two dimensions of at most 4 bits each can be drawn"):
        overlay_mapping.mapping_drawing(wb.TinyMQ(), "TEMP GE 20")
    with pytest.raises(ParameterError, match="has 65,536 strings; at most 256 can be listed"):
        overlay_mapping.mapping_strings(wb.TinyMQ(key_bits=16), "TEMP EQ_ANY")


def paper_run(workload, duration_s, **options):
    protocol = wb.TinyMQ(**{**COLD_CHAIN.settings, **options})
    graph, seed = overlay_example.paper_network(), overlay_example.PAPER_SEED
    return wb.Scenario(graph, protocol, workload, wb.Radio(loss="none"), duration_s=duration_s, seed=seed).run()


def test_the_papers_example_has_its_keys_and_the_routes_of_its_figure():
    subscription = wb.subscribe(at=13, what="TEMP GE 0.3, TEMP LE 0.4, HUMIDITY LE 20", start_s=3)
    publication = wb.publish(at=[21, 18], what="TEMP IS 0.35, HUMIDITY IS 10", start_s=5)
    run = paper_run([subscription, publication], 6, publish="own")
    facts = paper_facts(run, 2)
    assert len(facts) == 7 and all(facts.values())
    assert not any(paper_facts(run, 0)[f"node {node} has the key 01"] for node in (4, 7))
    query = overlay_routes.route(run, ("query", 13, 0))
    assert query.path("query", 13, 7) == [13, 6, 7] and query.path("query", 13, 4) == [13, 6, 2, 1, 4]
    for publisher, event_path, notification_path in ((21, [21, 14, 7], [7, 6, 13]), (18, [18, 9, 4], [4, 1, 2, 6, 13])):
        route = overlay_routes.route(run, ("event", publisher, 0))
        assert route.nodes("matched") == [event_path[-1]] and route.nodes("delivered") == [13]
        assert (
            route.path("event", publisher, event_path[-1]) == event_path
            and route.path("notification", event_path[-1], 13) == notification_path
        )


def test_published_algorithms_never_store_the_cold_chain_and_send_its_event_in_a_loop():
    workload = [wb.subscribe(13, COLD, start_s=3), wb.publish(18, "TEMP IS 0.25, HUMIDITY IS 88", start_s=5)]
    run = paper_run(workload, 6, literal=True, refresh_s=0.0)
    assert all(paper_facts(run, 2).values())
    assert overlay_routes.route(run, ("query", 13, 0)).nodes("stored") == []
    route = overlay_routes.route(run)
    assert ("loop" in {mark.text for mark in route.marks}) and {(1, 2), (2, 1)} <= set(route.links("event"))
    assert run.metrics["delivered"] == 0 < run.metrics["expected"]
