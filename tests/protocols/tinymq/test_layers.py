"""Layers of TinyMQ in the player: their arrays equal a replay row by row, and the layers agree with the run."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.protocols.tinymq import replay
from tests.protocols.tinymq.checks import graphs_with_roots
from tests.protocols.tinymq.overlay_run import failing_grid, troubled
from workbench.protocols.tinymq.views import layers as overlay_layers
from workbench.protocols.tinymq.views import routes
from workbench.protocols.tinymq.views.overlay import overlay_of
from workbench.protocols.tinymq.views.zones import BoxSpan, ZoneSpan, stored_boxes, zone_table
from workbench.sim.rows import Columns
from workbench.views.event import of_event
from workbench.views.layers import Curves, Layer, MessagePaths, Recorded, as_spans
from workbench.views.layout import lay_out
from workbench.views.player.playback import make_clock
from workbench.views.protocols import layers_of, message_colours, quiet_messages

SECOND = 1_000_000


def recorded(run, columns=None):
    clock = make_clock(np.zeros(0), np.zeros(0), round(run.scenario.duration_s * 1e6))
    plan, columns = lay_out(run.scenario.topology), Columns(run.trace) if columns is None else columns
    return Recorded(run, columns, plan, clock, message_colours(run.scenario.protocol))


def parts_of(run, columns=None):
    return list(layers_of(run.scenario.protocol)(recorded(run, columns)))


def layer(parts, name, mark):
    """Return the only layer with a name and a mark."""
    (match,) = [part for part in parts if isinstance(part, Layer) and (part.name, part.mark) == (name, mark)]
    return match


def shown(layer_, time_us, *names):
    """Return columns of the rows at a time, sorted; looks and texts are replaced by their words."""
    rows = layer_.alive(time_us)
    columns = []
    for name in names:
        values = layer_.column(name)[rows].tolist()
        if name == "text":
            values = [layer_.words[text] for text in values]
        columns.append([layer_.looks[look].label for look in values] if name == "look" else values)
    return sorted(zip(*columns, strict=True))


@pytest.fixture(scope="module")
def run():
    return failing_grid()


@pytest.fixture(scope="module")
def parts(run):
    return parts_of(run)


@pytest.fixture(scope="module")
def everywhere():
    return troubled(wb.topology.grid(3, 4), (0, 11), 1, every_tree=True)


# Arrays and replay


def assert_equals_the_replay(run):
    protocol, duration_us = run.scenario.protocol, round(run.scenario.duration_s * 1e6)
    mapping, nodes = protocol.mapping, sorted(run.scenario.topology)
    overlay = overlay_of(run)
    places, orphans, stored, intervals, failed = replay.replayed(
        run.trace, protocol.roots, duration_us, nodes, protocol.node.every_tree
    )
    assert sorted(overlay.places) == sorted(places)
    assert sorted(overlay.orphans) == sorted(orphans)
    assert sorted(overlay.stored) == sorted(stored)
    outages = zip(*(overlay.outages[name].tolist() for name in ("node", "from_us", "until_us")), strict=True)
    assert sorted(outages) == sorted(failed)
    table = zone_table(overlay)
    zones = replay.zones_of(places, intervals)
    assert sorted(tuple(span[:-1]) for span in as_spans(ZoneSpan, table, overlay.words)) == zones
    boxes = as_spans(BoxSpan, stored_boxes(overlay, table, mapping))
    assert sorted(map(tuple, boxes)) == replay.boxes_of(stored, zones, mapping)
    find_hops_and_marks = replay.find_hops_and_marks(run)
    for message_id in routes.list_messages(run.trace):
        route = routes.route(run, message_id)
        assert (sorted(route.hops), sorted(route.marks)) == find_hops_and_marks.get(message_id, ([], []))


@given(
    graph_and_roots=graphs_with_roots(most_nodes=12, most_roots=3),
    seed=st.integers(0, 99),
    every_tree=st.booleans(),
    key_bits=st.sampled_from((2, 6, 70)),
)
@settings(max_examples=25)
def test_arrays_equal_a_replay_row_by_row(graph_and_roots, seed, every_tree, key_bits):
    graph, roots = graph_and_roots
    assert_equals_the_replay(troubled(graph, roots, seed, every_tree, key_bits))


def test_arrays_equal_a_replay_with_failures_and_two_dimensions(run):
    assert_equals_the_replay(run)


# Layers


def test_trees_show_the_places_at_a_time_with_parents_keys_and_depths(run, parts):
    overlay = overlay_of(run)
    links, discs, keys = (layer(parts, *which) for which in (("trees", "line"), ("trees", "disc"), ("keys", "label")))
    for time_us in (0, 12_345, 3 * SECOND, 9 * SECOND, 20 * SECOND - 1):
        places = overlay.places_at(time_us)
        expected = [
            (p.node, p.parent, f"tree of root {overlay.roots[p.tree]}", p.key or "root", p.key.count("1"))
            for p in places
        ]
        assert shown(links, time_us, "node", "peer", "look", "text", "value") == sorted(expected)
        assert shown(keys, time_us, "node", "text") == sorted((p.node, f"{p.node}: {p.key or 'root'}") for p in places)
        squares = [n for n, look in zip(discs.column("node"), discs.column("look"), strict=True) if look >= 2]
        assert set(squares) == {0, 11}
        assert len(discs.alive(time_us)) == len(places)
    assert {discs.looks[look].marker for look in (2, 3)} == {"square"}
    children = next(part for part in parts if isinstance(part, Layer) and part.section is overlay_layers.CHILDREN)
    of_root = [(p.node, p.key) for p in overlay.places_at(3 * SECOND) if p.parent == 11]
    assert (
        of_root and [row[1:] for row in shown(children, 3 * SECOND, "node", "peer", "text") if row[0] == 11] == of_root
    )


def test_rings_mark_rekeyed_nodes_and_orphans(run, parts):
    overlay = overlay_of(run)
    rekeyed, orphaned = layer(parts, "re-keyed", "ring"), layer(parts, "without a place", "ring")
    rekeyed_count = 0
    for time_us in range(0, 20 * SECOND, SECOND // 5):
        expected_rekeyed = sorted((p.node,) for p in overlay.places_at(time_us) if p.is_rekeyed)
        orphans = overlay.orphans_at(time_us)
        expected_orphans = sorted(
            (orphan.node, "has lost its place" if orphan.had_place else "has no place yet") for orphan in orphans
        )
        assert (
            shown(rekeyed, time_us, "node") == expected_rekeyed
            and shown(orphaned, time_us, "node", "look") == expected_orphans
        )
        rekeyed_count += len(expected_rekeyed)
    assert rekeyed_count and set(orphaned.column("look").tolist()) == {0, 1}


def test_load_counts_the_frames_that_each_node_has_sent(run, parts):
    load = layer(parts, "load", "disc")
    assert not load.is_on
    rows = [(row["time_us"], row["node"]) for row in run.trace.to_pylist() if row["event"] == "sent"]
    counts = [sum(node == sender for _, sender in rows) for node in range(12)]
    assert load.scale.high == f"{max(counts):,}"
    for time_us in (0, 3 * SECOND, 9 * SECOND, 20 * SECOND - 1):
        weights = shown(load, time_us, "node", "weight")
        assert [node for node, _ in weights] == list(range(12))
        for node, weight in weights:
            count = sum(sender == node and at <= time_us for at, sender in rows)
            assert abs(weight - count / max(counts)) <= 0.5 / (overlay_layers.SHADES - 1) + 1e-6
    assert max(weight for _, weight in weights) == 1


def test_message_paths_are_routes_up_to_the_current_time(run, parts):
    (message_paths,) = [part for part in parts if isinstance(part, MessagePaths)]
    arrows, rings = layer(parts, "route", "arrow"), layer(parts, "route", "ring")
    assert message_paths.is_newest and arrows.of_path and rings.of_path
    known = routes.list_messages(run.trace)
    assert {path.frames[0] for path in message_paths.paths} == {(node, number, kind) for kind, node, number in known}
    for which, path in enumerate(message_paths.paths):
        origin, number, kind = path.frames[0]
        expected = routes.route(run, (kind, origin, number))
        assert path.label == f"{kind} {number} of node {origin}"
        assert path.description.startswith(f"{sum(hop.arrived for hop in expected.hops)} hop")
        for time_us in (5 * SECOND, 20 * SECOND - 1):
            arrived_hops = [hop for hop in expected.hops if hop.arrived and hop.arrived_us <= time_us]
            drawn_hops = [row[1:] for row in shown(arrows, time_us, "path", "node", "peer", "look") if row[0] == which]
            assert drawn_hops == sorted((hop.sender, hop.receiver, hop.message) for hop in arrived_hops)
        marks = [row[1] for row in shown(rings, 20 * SECOND - 1, "path", "node") if row[0] == which]
        assert marks == sorted(mark.node for mark in expected.marks)
    assert {look.label for look in rings.looks} == {"query stored", "event matched", "delivered", "message ended here"}


def test_zones_are_strips_that_partition_the_key_space_with_queries_below(run, parts):
    background, zones = [
        part for part in parts if isinstance(part, Layer) and (part.name, part.mark) == ("zones", "strip")
    ]
    queries = layer(parts, "queries", "strip")
    assert zones.panel == queries.panel == background.panel
    assert (zones.panel.high, zones.panel.bits, zones.panel.lanes) == (64.0, 6, ("root 0", "root 11"))
    for lane in (0, 1):
        ends = sorted((low, high) for at, low, high in shown(zones, 5 * SECOND, "lane", "low", "high") if at == lane)
        assert ends[0][0] == 0 and ends[-1][1] == 64
        assert all(previous[1] == following[0] for previous, following in pairwise(ends))
    stored = {span.node for span in overlay_of(run).stored_at(5 * SECOND)}
    assert stored and {node for (node,) in shown(queries, 5 * SECOND, "node")} == stored
    assert shown(queries, 5 * SECOND, "text")[0] == ("query 0 of node 2: TEMP GE 20, TEMP LE 30",)
    assert all(lane % 1 for (lane,) in shown(queries, 5 * SECOND, "lane"))


def test_the_inspector_shows_zone_and_stored_queries_as_text(run, parts):
    layers_by_section = {part.section: part for part in parts if isinstance(part, Layer) and part.section}
    assert set(layers_by_section) == {
        overlay_layers.PLACE,
        overlay_layers.CHILDREN,
        overlay_layers.ZONE,
        overlay_layers.STORED,
    }
    zones = layers_by_section[overlay_layers.ZONE]
    words = sorted(
        (z.node, f"{z.low:06b} – {z.high:06b}")
        for z in as_spans(ZoneSpan, zone_table(overlay_of(run)), overlay_of(run).words)
        if z.from_us <= 5 * SECOND < z.until_us
    )
    assert shown(zones, 5 * SECOND, "node", "text") == words
    stored = [(s.node, s.sink, s.number, s.text) for s in overlay_of(run).stored_at(5 * SECOND)]
    assert shown(layers_by_section[overlay_layers.STORED], 5 * SECOND, "node", "origin", "sequence", "text") == stored
    for section, part in layers_by_section.items():
        assert all(column == "from_us" or column in part.table for _, column, _ in section.columns)


def test_curves_count_repair_and_are_omitted_without_failures(parts):
    (repair,) = [part for part in parts if isinstance(part, Curves)]
    assert [line.label for line in repair.lines] == ["down", "without a key", "with another key"]
    assert repair.lines[0].values.tolist()[-1] == 1
    calm = parts_of(wb.Scenario(wb.topology.grid(2, 2), wb.TinyMQ(), duration_s=1).run())
    assert not [part for part in calm if isinstance(part, Curves)]
    assert not [part for part in calm if isinstance(part, Layer) and part.name == "re-keyed"]


def test_nodes_in_every_tree_share_discs_and_each_tree_has_its_keys(everywhere):
    overlay, parts = overlay_of(everywhere), parts_of(everywhere)
    shared = layer(parts, "in every tree", "disc")
    time_us = 5 * SECOND - 1
    whole = {node for node in range(12) if [p.node for p in overlay.places_at(time_us)].count(node) == 2}
    assert whole and {node for (node,) in shown(shared, time_us, "node")} == whole
    assert {node for (node,) in shown(layer(parts, "trees", "disc"), time_us, "node")} == {0, 11}
    for tree, root in enumerate(overlay.roots):
        keys = layer(parts, f"keys of {root}", "label")
        assert keys.is_on == (tree == 0)
        expected = sorted(
            (p.node, f"{p.node}: {p.key or 'root'}") for p in overlay.places_at(time_us) if p.tree == tree
        )
        assert shown(keys, time_us, "node", "text") == expected


def test_trees_have_chips_unless_there_is_one_or_very_many():
    def chips(roots):
        run = wb.Scenario(wb.topology.grid(3, 4), wb.TinyMQ(roots=roots), duration_s=1).run(engine="reference")
        return [look.chip for look in layer(parts_of(run), "trees", "line").looks]

    assert chips((0, 5)) == ["tree of 0", "tree of 5"]
    assert chips((7,)) == [""] and chips(tuple(range(11))) == [""] * 11


def test_some_of_many_messages_can_be_followed_spread_over_the_run(run, monkeypatch):
    def followed(**most):
        for name, value in most.items():
            monkeypatch.setattr(overlay_layers, name, value)
        parts = parts_of(run)
        (message_paths,) = [part for part in parts if isinstance(part, MessagePaths)]
        return message_paths, layer(parts, "route", "arrow").column("path")

    message_paths, _ = followed(MOST_ROUTES=4)
    assert [path.label for path in message_paths.paths] == [
        "query 0 of node 2",
        *(f"event {n} of node 9" for n in (0, 2, 5)),
    ]
    assert message_paths.notes == ("Of 8 events 3 can be followed, spread over the run.",)
    message_paths, path_column = followed(MOST_ROUTES=300, MOST_HOPS=30)
    assert (
        1 < len(message_paths.paths) < 9
        and set(path_column.tolist()) == set(range(len(message_paths.paths)))
        and len(path_column) <= 60
    )


def test_of_many_strips_the_longest_are_drawn_with_a_note(run, monkeypatch):
    monkeypatch.setattr(overlay_layers, "MOST_STRIPS", 10)
    zones = [part for part in parts_of(run) if isinstance(part, Layer) and part.panel and part.notes]
    assert [layer_.name for layer_ in zones] == ["zones", "queries"] or [layer_.name for layer_ in zones] == ["zones"]
    assert zones[0].notes[0].endswith("zones the 10 are shown that last longest.") and len(zones[0]) == 10
    every = zone_table(overlay_of(run))
    longest = np.sort(every["until_us"] - every["from_us"])[-10:]
    assert np.sort(zones[0].column("until_us") - zones[0].column("from_us")).tolist() == longest.tolist()


def test_acknowledgements_are_quiet_in_all_kinds_of_tinymq():
    for protocol in (wb.TinyMQ(), wb.Pub2Sub(), wb.TinyMQ(literal=True)):
        assert quiet_messages(protocol) == {"ack"}


LINE, QUERY_ONLY = wb.topology.line, [wb.subscribe(1, "TEMP GE 1")]


@pytest.mark.parametrize(
    ("graph", "protocol", "workload"),
    [
        (wb.topology.grid(2, 2), wb.TinyMQ(), []),
        (LINE(1), wb.TinyMQ(), []),
        (LINE(2), wb.TinyMQ(), [wb.outage(0, 0), wb.publish(1, "TEMP IS 20")]),
        (wb.topology.grid(2, 2), wb.TinyMQ(key_bits=127), QUERY_ONLY),
        (LINE(3), wb.Pub2Sub(roots=(0, 2)), QUERY_ONLY),
    ],
    ids=["no workload", "a node alone", "no root", "a wide key space", "in every tree"],
)
def test_nearly_empty_runs_have_layers(graph, protocol, workload):
    run = wb.Scenario(graph, protocol, workload, duration_s=2).run(engine="reference")
    for trace in (run.trace, run.trace.slice(0, 0)):
        for part in parts_of(run, Columns(trace)):
            if isinstance(part, Layer):
                assert len(part) and (part.column("from_us") < part.column("until_us")).all()
                assert (np.diff(part.column("from_us")) >= 0).all()
                assert part.column("look").max() < max(len(part.looks), 1)
                assert part.column("text").max() < max(len(part.words), 1)


def test_runs_of_one_event_and_of_the_published_algorithms_have_layers(run):
    event = parts_of(run, of_event(Columns(run.trace), (9, 0)))
    assert len(layer(event, "route", "arrow"))
    printed = troubled(wb.topology.grid(3, 3), (0, 8), 3, literal=True)
    assert len(layer(parts_of(printed), "trees", "line")) and len(layer(parts_of(printed), "route", "arrow"))
