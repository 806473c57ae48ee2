"""The views of DPS's meshes, computed from traces, as layers and as figures."""

from collections import Counter

import numpy as np
import pytest

import workbench as wb
from lessons.figures import publications as dps_publications
from tests.protocols.dps import replay
from workbench.errors import DataError, ParameterError, ScenarioError
from workbench.protocols.dps import automaton
from workbench.protocols.dps.views import filters as dps_filters
from workbench.protocols.dps.views import layers as dps_layers
from workbench.protocols.dps.views import looks, paths
from workbench.protocols.dps.views import mesh as dps
from workbench.sim.rows import Columns
from workbench.views.drawing import Text
from workbench.views.layers import Curves, Layer, MessagePaths
from workbench.views.seeing import see

SECOND = 1_000_000


@pytest.fixture(scope="module")
def run():
    """Return a run on a grid with loops: two subscribers, publications for both, one and neither, a failure at 30 s."""
    return wb.Scenario(
        wb.topology.grid(3, 4),
        wb.DPS(filter_bits=256, update_s=0.5, acknowledge=True),
        [
            wb.subscribe(2, 'TOPIC EQ "house/+/temp"', start_s=8),
            wb.subscribe(11, 'TOPIC EQ "house/kitchen/#"', start_s=10),
            wb.publish(4, 'TOPIC IS "house/kitchen/temp"', start_s=25),
            wb.publish(4, 'TOPIC IS "house/bath/temp"', start_s=26),
            wb.publish(6, 'TOPIC IS "garden/pump"', start_s=27),
            wb.outage(9, start_s=30),
        ],
        wb.Radio(loss="none"),
        duration_s=50,
        seed=2,
    ).run(engine="reference")


def texts(drawing):
    return [item.text for item in drawing.items if isinstance(item, Text)]


def rows(run, **equal):
    table = run.trace.to_pandas()
    for name, value in equal.items():
        table = table[table[name] == value]
    return table


# The mesh


def test_links_have_the_last_states_announced_by_their_ends(run):
    mesh = dps.mesh_of(run)
    for time_us in (0, 5 * SECOND, 20 * SECOND, 49 * SECOND):
        states_by_link = {}
        for row in rows(run, event="link_set").itertuples():
            if row.time_us <= time_us:
                states_by_link.setdefault(frozenset((row.node, row.peer)), {})[row.node] = row.detail
        expected = {}
        for ends, states in states_by_link.items():
            last_states = [state for state in states.values() if state != "gone"]
            if last_states:
                expected[tuple(sorted(ends))] = replay.both_ends(last_states)
        assert mesh.links_at(time_us) == expected
    assert {"active", "muted"} == set(mesh.links_at(20 * SECOND).values())


def test_filters_have_the_last_announced_bits(run):
    mesh = dps.mesh_of(run)
    for time_us in (5 * SECOND, 9 * SECOND, 24 * SECOND):
        filters_by_ends = {}
        for row in rows(run, event="interests_set").itertuples():
            if row.time_us <= time_us:
                filters_by_ends[row.node, row.peer] = row.value, int(row.detail)
        filters_by_ends = {ends: values for ends, values in filters_by_ends.items() if values[0]}
        assert mesh.sums_at(time_us) == {node: values for (node, peer), values in filters_by_ends.items() if peer < 0}
        assert mesh.filters_at(time_us) == {ends: values for ends, values in filters_by_ends.items() if ends[1] >= 0}


def test_the_filter_of_a_neighbor_ends_with_its_link(run):
    mesh = dps.mesh_of(run)
    gone = rows(run, event="link_set", detail="gone").iloc[0]
    ends = (gone.node, gone.peer)
    assert ends in mesh.filters_at(gone.time_us - 1) and ends not in mesh.filters_at(gone.time_us)
    assert tuple(sorted(ends)) in mesh.links_at(gone.time_us - 1)


def test_links_have_the_owner_of_the_last_id_received_over_them(run):
    mesh = dps.mesh_of(run)
    own = {row.value: row.node for row in rows(run, event="mesh_id_set", peer=-1).itertuples()}
    assert len(own) >= 12
    alive = (mesh.link_ends["from_us"] <= 20 * SECOND) & (mesh.link_ends["until_us"] > 20 * SECOND)
    columns = [mesh.link_ends[name][alive].tolist() for name in ("node", "peer", "origin")]
    shown = {(node, peer): owner for node, peer, owner in zip(*columns, strict=True)}
    expected = {}
    for row in rows(run, event="mesh_id_set").itertuples():
        if row.peer >= 0 and row.time_us <= 20 * SECOND:
            expected[row.node, row.peer] = own[row.value]
    assert shown == expected
    assert len(set(shown.values())) > 1


def test_steps_equal_the_state_of_the_mesh_at_each_time(run):
    mesh = dps.mesh_of(run)
    table = dps.steps(mesh, 12)
    assert (np.diff(table["time_us"]) > 0).all()
    for time_us, mean, most, muted in zip(*(table[name] for name in ("time_us", "mean", "most", "muted")), strict=True):
        fills = [mesh.fill(filter_.bits) for filter_ in mesh.sums_at(int(time_us)).values()]
        assert mean == pytest.approx(sum(fills) / 12) and most == pytest.approx(max(fills, default=0))
        assert muted == Counter(mesh.links_at(int(time_us)).values())["muted"]
    few = dps.steps(mesh, 12, most=5)
    index = np.searchsorted(table["time_us"], few["time_us"])
    assert len(index) == 5 and all((table[name][index] == few[name]).all() for name in table)


def test_runs_of_other_protocols_and_invalid_tables_are_refused(run):
    flooding_run = wb.Scenario(wb.topology.line(2), wb.Flooding(), duration_s=1).run()
    for view in (dps.mesh_of, dps_filters.filters_drawing, dps_filters.fill_chart, paths.publication_path):
        with pytest.raises(ParameterError, match="protocol is Flooding; this view needs a run of DPS"):
            view(flooding_run)
    with pytest.raises(DataError, match="is not a trace"):
        dps.mesh(run.trace.drop_columns(["peer"]), 256, SECOND)


# Arrays compared with single rows


def wanderer(nodes, **settings):
    """Return a run in which links are lost and return: nodes fail, and some recover."""
    workload = [
        wb.subscribe([1, nodes - 1], 'TOPIC EQ "house/+/temp"', start_s=1),
        wb.subscribe(nodes // 2, 'TOPIC EQ "#"', start_s=6),
        wb.publish([0, nodes - 2], 'TOPIC IS "house/attic/temp"', start_s=1.5, every_s=1.5, stop_s=33),
        wb.publish(3, 'TOPIC IS "garden/pump"', start_s=21),
        wb.outage(2, start_s=12, stop_s=30),
        wb.outage(nodes // 3, start_s=15),
    ]
    protocol = wb.DPS(filter_bits=256, update_s=0.3, link_loss_s=5.0, **settings)
    graph = wb.topology.disc(nodes, 60, 60, radius_m=25, seed=nodes)
    return wb.Scenario(graph, protocol, workload, wb.Radio(loss=0.15), 45, seed=nodes).run(engine="reference")


@pytest.fixture(scope="module", params=[{}, {"count_muted": False}, {"acknowledge": True}], ids=str)
def wild(request):
    return wanderer(14, **request.param)


def replayed(run):
    replay_ = replay.Replay(round(run.scenario.duration_s * 1e6))
    replay_.run(Columns(run.trace))
    return replay_


def test_arrays_of_the_mesh_equal_a_replay_row_by_row(wild):
    mesh, expected = dps.mesh_of(wild), replayed(wild)
    spans = [*expected.links, *expected.filters]
    times = sorted({span.from_us for span in spans} | {span.until_us for span in spans})
    assert len(times) > 100
    for time_us in [*times[::7], *(time_us - 1 for time_us in times[::11]), 45 * SECOND]:
        at = min(time_us, 45 * SECOND - 1)
        links = [span for span in expected.links if span.from_us <= at < span.until_us]
        ends = {tuple(sorted((link.node, link.peer))) for link in links}
        states = {pair: [link.state for link in links if {link.node, link.peer} == set(pair)] for pair in ends}
        assert mesh.links_at(time_us) == {pair: replay.both_ends(link_states) for pair, link_states in states.items()}
        alive_filters = [span for span in expected.filters if span.from_us <= at < span.until_us and span.bits]
        assert mesh.filters_at(time_us) == {
            (span.node, span.peer): (span.bits, span.needs) for span in alive_filters if span.peer >= 0
        }
        assert mesh.sums_at(time_us) == {span.node: (span.bits, span.needs) for span in alive_filters if span.peer < 0}


def test_filters_from_before_a_link_was_muted_remain_only_if_they_count(wild):
    sights = dps.mesh_of(wild).link_ends
    stands = sights["value"][sights["look"] == automaton.MUTED] > 0
    assert len(stands) > 10 and stands.any() == wild.scenario.protocol.count_muted


def test_counts_over_time_equal_a_replay_row_by_row(wild):
    mesh = dps.mesh_of(wild)
    expected = np.array(replay.steps(replayed(wild), mesh.fill, 14))
    table = dps.steps(mesh, 14)
    for time_us in np.union1d(expected[:, 0], table["time_us"]):
        row = expected[np.searchsorted(expected[:, 0], time_us, "right") - 1]
        index = np.searchsorted(table["time_us"], time_us, "right") - 1
        assert [table[name][index] for name in ("mean", "most", "muted")] == pytest.approx(row[1:].tolist())


def test_arrays_of_publications_equal_a_replay_row_by_row(wild):
    columns = Columns(wild.trace)
    every = np.ones(columns.rows, bool)
    frames, marks = replay.frames(columns, every), replay.marks(columns, every)
    found_paths = paths.paths(wild)
    assert len(found_paths) > 5 and {hop.look for path in found_paths for hop in path.hops} >= {
        "useful",
        "lost",
        "in vain",
    }
    for path in found_paths:
        publication_id = (path.publication.node, path.publication.sequence)
        expected = replay.path(path.publication, frames.get(publication_id, []), marks.get(publication_id, []))
        assert (path.hops, path.matches) == (expected.hops, expected.matches)
        assert sorted(path.marks) == sorted(expected.marks)


# Layers


def parts(run, kind):
    return [part for part in dps_layers.layers(recorded(run)) if isinstance(part, kind)]


def recorded(run):
    from workbench.views.layers import Recorded
    from workbench.views.layout import lay_out

    return Recorded(run, Columns(run.trace), lay_out(run.scenario.topology), None)


def ends_at(layer, time_us):
    alive = layer.alive(time_us)
    return sorted(zip(layer.column("node")[alive].tolist(), layer.column("peer")[alive].tolist(), strict=True))


def test_each_link_is_in_the_layer_of_the_state_of_both_ends(wild):
    mesh, shown = dps.mesh_of(wild), see(wild)
    layers = {"active": "links of the mesh", "muted": "muted links", "pending": "links on their way"}
    layer_names = set()
    for time_us in range(0, 45 * SECOND, SECOND // 3):
        states = mesh.links_at(time_us)
        for state, name in layers.items():
            assert ends_at(shown.layer(name), time_us) == [
                ends for ends, link_state in states.items() if link_state == state
            ]
        layer_names |= set(states.values())
    assert layer_names == set(layers)


def test_halves_of_active_links_have_the_shade_of_the_filter_at_their_end(wild):
    mesh, halves = dps.mesh_of(wild), see(wild).layer("links of the mesh", "half")
    shades = looks.shades(mesh.fewest_bits, mesh.most_bits)
    for time_us in range(0, 45 * SECOND, SECOND // 3):
        filters, expected = mesh.filters_at(time_us), {}
        for (a, b), state in mesh.links_at(time_us).items():
            for ends in ((a, b), (b, a)):
                if state == "active" and ends in filters and filters[ends].bits:
                    expected[ends] = shades[filters[ends].bits] / looks.DARKEST
        assert ends_at(halves, time_us) == sorted(expected)
        for row in halves.alive(time_us):
            ends = (halves.column("node")[row], halves.column("peer")[row])
            assert halves.column("weight")[row] == pytest.approx(expected[ends])


def test_a_node_has_the_shade_of_its_smallest_filter_at_a_neighbor(wild):
    mesh, discs = dps.mesh_of(wild), see(wild).layer("filters")
    shades = looks.shades(mesh.fewest_bits, mesh.most_bits)
    for time_us in range(0, 45 * SECOND, SECOND // 3):
        filters, sums = mesh.filters_at(time_us), mesh.sums_at(time_us)
        bits_by_node = {}
        for (a, b), state in mesh.links_at(time_us).items():
            for node, peer in ((a, b), (b, a)):
                if state == "active":
                    bits = filters[peer, node].bits if (peer, node) in filters else 0
                    bits_by_node.setdefault(node, []).append(bits)
        expected = {node: min(bits_by_node.get(node, [filter_.bits])) for node, filter_ in sums.items()}
        expected |= {node: min(bits) for node, bits in bits_by_node.items()}
        alive = discs.alive(time_us)
        weights = dict(zip(discs.column("node")[alive].tolist(), discs.column("weight")[alive].tolist(), strict=True))
        assert weights == pytest.approx({node: shades[bits] / looks.DARKEST for node, bits in expected.items() if bits})


def test_labels_and_the_inspector_show_the_filters_and_links_of_a_node(run):
    mesh, shown = dps.mesh_of(run), see(run)
    fills, links = shown.layer("fill in %"), shown.layer("links of nodes")
    assert fills.section.title == "Filter" and links.section.title == "Links"
    for time_us in (5 * SECOND, 9 * SECOND, 24 * SECOND):
        alive = fills.alive(time_us)
        fill_rows = zip(
            *(fills.column(name)[alive].tolist() for name in ("node", "value", "sequence", "text")), strict=True
        )
        fill_by_node = {node: (bits, needs, fills.words[text]) for node, bits, needs, text in fill_rows}
        sums = {node: filter_ for node, filter_ in mesh.sums_at(time_us).items() if filter_.bits}
        assert fill_by_node == {
            node: (*filter_, looks.percent(mesh.fill(filter_.bits))) for node, filter_ in sums.items()
        }
        alive = links.alive(time_us)
        link_rows = zip(*(links.column(name)[alive].tolist() for name in ("node", "peer", "look", "text")), strict=True)
        states = {}
        for node, peer, look, text in link_rows:
            bits, needs = mesh.filters_at(time_us).get((node, peer), (0, 0))
            states.setdefault(tuple(sorted((node, peer))), []).append(links.looks[look].label)
            assert links.words[text] == (f"{bits} bits, {needs} needs" if bits else "nothing")
        assert {ends: replay.both_ends(ends_of_link) for ends, ends_of_link in states.items()} == mesh.links_at(time_us)


def test_message_paths_are_the_paths_of_publications(wild):
    (message_paths,), layer = parts(wild, MessagePaths), see(wild).layer("publication")
    assert message_paths.is_newest and not message_paths.notes
    for number, (message_path, path) in enumerate(zip(message_paths.paths, paths.paths(wild), strict=True)):
        assert (message_path.label, message_path.from_us, message_path.description) == (
            path.publication.name,
            path.publication.at_us,
            path.in_words(),
        )
        mine = np.flatnonzero(layer.column("path") == number)
        drawn = Counter()
        for row in mine:
            look = layer.looks[layer.column("look")[row]]
            ends = layer.column("node")[row], layer.column("peer")[row]
            drawn[look.mark or layer.mark, look.label, *(reversed(ends) if look.mark == "loss" else ends)] += 1
        looks_by_name = dict(zip([*paths.HOPS, *paths.MARKS], dps_layers.PATH_LOOKS, strict=True))
        expected = Counter(
            (looks_by_name[hop.look].mark or "arrow", looks_by_name[hop.look].label, hop[0], hop[1])
            for hop in path.hops
        )
        expected.update(
            (looks_by_name[mark.look].mark, looks_by_name[mark.look].label, mark.node, -1) for mark in path.marks
        )
        assert drawn == expected


def test_frames_of_a_publication_and_its_acknowledgements_belong_to_its_path(run):
    (message_paths,) = parts(run, MessagePaths)
    frames = see(run).layer("frames")
    sent_rows = [
        rows(run, event="sent", origin=path.frames[0][0], sequence=path.frames[0][1]) for path in message_paths.paths
    ]
    assert set(sent_rows[0].message) == {"publication", "acknowledgement"}
    assert [(frames.column("path") == number).sum() for number in range(3)] == [len(rows_) for rows_ in sent_rows]


def test_curves_are_in_percent_and_omitted_without_data(run):
    fills, muted = parts(run, Curves)
    over = dps.steps(dps.mesh_of(run), 12)
    assert [line.label for line in fills.lines] == ["fullest filter", "mean of all nodes"]
    assert (fills.lines[0].values == 100 * over["most"]).all() and (muted.lines[0].values == over["muted"]).all()
    line = wb.Scenario(wb.topology.line(3), wb.DPS(), duration_s=3).run(engine="reference")
    assert [curves.name for curves in parts(line, Curves)] == ["fill of filters"]


def test_shades_distinguish_one_three_and_all_topics():
    shades = looks.shades(3, 300)
    assert shades[0] == 0 and shades[3] == 1 and shades[300] == looks.DARKEST
    assert len({*shades[[0, 3, 9, 27, 81, 300]].tolist()}) == 6 and (np.diff(shades) >= 0).all()
    assert looks.shades(4, 4).tolist() == [0, *[looks.DARKEST] * 4] and looks.shades(0, 0).tolist() == [0]
    assert looks.scale("x", 3, 300, 1000)[2:] == ("none, then 3", "300 bits (30 %), by factors")
    assert looks.scale("x", 3, 3, 1000).low == "none"


def test_of_very_many_changes_the_longest_are_drawn_with_a_note(run, monkeypatch):
    whole = {len(layer): layer for layer in parts(run, Layer) if layer.name == "links of nodes"}
    monkeypatch.setattr(dps_layers, "MOST_ROWS", 20)
    (few,) = [layer for layer in parts(run, Layer) if layer.name == "links of nodes"]
    ((count, every),) = whole.items()
    lasts = np.sort(every.column("until_us") - every.column("from_us"))
    assert (np.sort(few.column("until_us") - few.column("from_us")) == lasts[-20:]).all()
    assert (np.diff(few.column("from_us")) >= 0).all()
    assert few.notes == (f"links of nodes: of {count} changes, the 20 that lasted longest are shown.",)


def test_of_very_many_publications_only_the_first_can_be_followed(wild, monkeypatch):
    first = len(paths.publications(wild.trace)) - 1
    monkeypatch.setattr(dps_layers, "MOST_PATHS", first)
    (message_paths,) = parts(wild, MessagePaths)
    assert len(message_paths.paths) == first
    assert message_paths.notes == (f"Of {first + 1} publications the first {first} can be followed.",)
    assert 0 < see(wild).layer("publication").column("path").max() < first


@pytest.mark.parametrize(
    ("graph", "workload"),
    [
        (wb.topology.line(1), []),
        (wb.topology.line(1), [wb.subscribe(0, 'TOPIC EQ "a"', start_s=1), wb.publish(0, 'TOPIC IS "a"', start_s=2)]),
        (wb.topology.line(3), []),
        (wb.topology.line(3), [wb.publish(0, 'TOPIC IS "a"', start_s=2)]),
        (wb.topology.line(3), [wb.subscribe(0, 'TOPIC EQ "#"', start_s=1), wb.outage([0, 1, 2], start_s=2)]),
    ],
    ids=["alone", "alone with a topic", "quiet", "no subscriptions", "all fail"],
)
def test_nearly_empty_runs_have_layers_and_figures(graph, workload):
    quiet = wb.Scenario(graph, wb.DPS(), workload, duration_s=4).run(engine="reference")
    shown = see(quiet)
    for layer in shown.layers:
        assert (layer.table["from_us"] < layer.table["until_us"]).all()
    dps_filters.filters_drawing(quiet, 0)
    dps_filters.filters_drawing(quiet)
    dps_filters.fill_chart(quiet)
    if len(shown.paths.paths):
        dps_publications.publication_drawing(quiet)
    else:
        with pytest.raises(ParameterError, match="this run has 0 publications"):
            paths.publication_path(quiet)


def test_a_single_node_has_the_shade_of_its_own_subscription():
    alone = wb.Scenario(wb.topology.line(1), wb.DPS(), [wb.subscribe(0, 'TOPIC EQ "a"', start_s=1)], duration_s=4).run(
        engine="reference"
    )
    discs = see(alone).layer("filters")
    assert len(discs.alive(SECOND // 2)) == 0 and discs.column("weight")[discs.alive(2 * SECOND)].tolist() == [1.0]
    assert {look.label for look in dps_layers.STATES} == {state.label for state in automaton.State}


# The path of a publication


def test_every_frame_of_a_publication_is_a_hop(run):
    found_paths = paths.paths(run)
    assert [path.publication.text for path in found_paths] == [
        'TOPIC IS "house/kitchen/temp"',
        'TOPIC IS "house/bath/temp"',
        'TOPIC IS "garden/pump"',
    ]
    for path in found_paths:
        sent_rows = rows(run, event="sent", origin=path.publication.node, sequence=path.publication.sequence)
        frames = sorted((row.node, row.peer) for row in sent_rows.itertuples())
        assert sorted((hop.sender, hop.receiver) for hop in path.hops) == frames
        acknowledgements = (sent_rows.message == "acknowledgement").sum()
        assert path.count("acknowledged") == acknowledgements
        dropped = rows(
            run, event="dropped", origin=path.publication.node, sequence=path.publication.sequence, detail="dead_end"
        )
        assert path.nodes("dead_end") == sorted(set(dropped.node))


def test_useful_hops_are_those_on_paths_from_the_publisher_to_deliveries(run):
    for path in paths.paths(run):
        useful = {hop.receiver: hop.sender for hop in path.hops if hop.look == "useful"}
        for node in path.nodes("delivered"):
            while node != path.publication.node:
                node = useful.pop(node, node) if node in useful else path.publication.node
        assert not useful, "a useful hop leads to no delivery"
        firsts = [hop.receiver for hop in path.hops if hop.look in ("useful", "in vain")]
        assert len(firsts) == len(set(firsts))


def test_publications_are_delivered_to_their_subscribers(run):
    both, one_subscriber, no_subscriber = paths.paths(run)
    assert both.nodes("delivered") == [2, 11] and both.matches == 2 and both.count("useful") >= 4
    assert one_subscriber.nodes("delivered") == [2]
    assert no_subscriber.matches == 0 and no_subscriber.count("useful") == 0


def test_a_path_up_to_a_hop_has_its_first_hops_and_earlier_marks(run):
    path = paths.publication_path(run)
    assert path.until(0).hops == () and path.until(len(path.hops)).hops == path.hops
    part = path.until(2)
    assert part.hops == path.hops[:2]
    assert all(mark.at_us <= max(hop.arrived_us for hop in part.hops) for mark in part.marks)
    assert part.matches == len(part.nodes("delivered")) and path.until(len(path.hops)).matches == path.matches


def test_short_filters_cause_hops_in_vain():
    subscriptions = [wb.subscribe(node, f'TOPIC EQ "a{node}/b/+"', start_s=5) for node in range(8)]
    publication = wb.publish(0, 'TOPIC IS "x/y/z"', start_s=20)
    found_paths = []
    for filter_bits in (64, 8192):
        protocol = wb.DPS(filter_bits=filter_bits, update_s=0.2)
        run = wb.Scenario(
            wb.topology.line(8), protocol, [*subscriptions, publication], wb.Radio(loss="none"), duration_s=25
        ).run()
        found_paths.append(paths.publication_path(run))
        written = texts(dps_publications.publication_drawing(run))
        assert ("in vain: dead end" in written) == (filter_bits == 64)
    short, long = found_paths
    assert short.matches == long.matches == 0
    assert short.count("in vain") > 0 == long.count("in vain")
    assert len(short.nodes("dead_end")) == 1
    assert "no filter matched" in long.in_words()


def test_lost_frames_are_hops_that_did_not_arrive():
    subscription = wb.subscribe(2, 'TOPIC EQ "a/b"', start_s=3)
    publication = wb.publish(0, 'TOPIC IS "a/b"', start_s=20)
    scenario = wb.Scenario(
        wb.topology.line(3),
        wb.DPS(),
        [subscription, wb.outage(1, start_s=19), publication],
        wb.Radio(loss="none"),
        duration_s=25,
    )
    run = scenario.run()
    path = paths.publication_path(run)
    assert [(hop.sender, hop.receiver, hop.look) for hop in path.hops] == [(0, 1, "lost")]
    assert "lost on this link" in texts(dps_publications.publication_drawing(run))


def test_there_is_a_slide_for_the_beginning_and_for_each_hop(run):
    path = paths.publication_path(run)
    slides = dps_publications.publication_slides(run)
    assert len(slides.drawings) == len(path.hops) + 1
    assert len({(drawing.width, drawing.height) for drawing in slides.drawings}) == 1
    assert "published, and not sent yet" in texts(slides.drawings[0]) and path.in_words() in texts(slides.drawings[-1])
    with pytest.raises(ParameterError, match="`which` is 3; this run has 3 publications"):
        paths.publication_path(run, 3)


# Figures


def test_a_figure_of_filters_shows_their_fill(run):
    mesh = dps.mesh_of(run)
    written = texts(dps_filters.filters_drawing(run, 24))
    for node, filter_ in mesh.sums_at(24 * SECOND).items():
        assert filter_.bits and f"{node}: {looks.percent(mesh.fill(filter_.bits))}" in written
    assert {str(node) for node in range(12)} <= set(texts(dps_filters.filters_drawing(run, 5)))
    assert "muted link: it closes a loop" in written and "sink" in written
    assert "failed node" not in written and "failed node" in texts(dps_filters.filters_drawing(run))
    assert not any("3.5 %" in text and ":" in text[:4] for text in texts(dps_filters.filters_drawing(run, names=False)))
    assert any(text.startswith("filters of 256 bits; mean of the nodes ") for text in written)
    with pytest.raises(ParameterError, match="time_s is 51; this run lasts from 0 to 50 s"):
        dps_filters.filters_drawing(run, 51)
    with pytest.raises(ParameterError, match="`times_s` is empty"):
        dps_filters.filters_slides(run, [])


@pytest.mark.parametrize(
    "fill, text", [(0, "0"), (0.0001, "< 0.1 %"), (0.035, "3.5 %"), (0.1, "10 %"), (0.09951, "10 %"), (1, "100 %")]
)
def test_fills_are_written_as_readable_percentages(fill, text):
    assert looks.percent(fill) == text


def test_bits_of_a_filter_belong_to_the_topics_that_set_them(run):
    before, between, after = (wb.dps.views.filter_bits(run, 4, time_s) for time_s in (5, 9, 20))
    assert before.bits == () and before.topics == ()
    assert [(topics.text, topics.nodes) for topics in between.topics] == [("house/+/temp", (2,))]
    assert [topics.nodes for topics in after.topics] == [(2,), (11,)]
    assert set(after.bits) == set().union(*(topics.bits for topics in after.topics))
    assert len(after.bits) == dps.mesh_of(run).sums_at(20 * SECOND)[4].bits
    assert all(after.setters(bit) for bit in after.bits)
    own = wb.dps.views.filter_bits(run, 11, 20)
    assert [topics.nodes for topics in own.topics] == [(11,), (2,)] and own.bits == after.bits


def test_squares_of_a_filter_name_topics_and_nodes(run):
    drawing = wb.dps.views.filter_drawing(run, 4, 20)
    assert "house/+/temp, node 2 (6 bits)" in texts(drawing)
    squares = [item for item in drawing.items if getattr(item, "tooltip", "").startswith("bit ")]
    assert len(squares) == len(wb.dps.views.filter_bits(run, 4, 20).bits)
    assert drawing.to_svg() == wb.dps.views.filter_drawing(run, 4, 20).to_svg()


def test_bits_of_a_filter_need_a_node_and_a_time_of_the_run(run):
    with pytest.raises(ScenarioError, match="node is 99"):
        wb.dps.views.filter_bits(run, 99)
    with pytest.raises(ParameterError, match="filter_bits"):
        wb.dps.views.filter_bits(run, 4, 1000)
