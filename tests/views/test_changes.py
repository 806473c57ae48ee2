"""Networks that change, in Python: positions, links, layers, payloads, captions and pictures over time."""

import json

import numpy as np
import pytest

import workbench as wb
from tests.views.changing import PLACES_M, SECOND, scenario
from workbench.sim.changes.arcs import RATIO, link_changes, position_at
from workbench.sim.changes.arcs import tracks as tracks_of
from workbench.views import caption, palette
from workbench.views.changes import timeline_spans
from workbench.views.changing_layout import ROUNDINGS, ChangingLayout, lay_out_scenario
from workbench.views.figure import draw, network_drawing
from workbench.views.inspector import inspect_node
from workbench.views.layout import lay_out
from workbench.views.marks import LayerScene
from workbench.views.picture import Picture
from workbench.views.player.payload import pack, preview, split_payload
from workbench.views.seeing import see


@pytest.fixture(scope="module")
def run():
    return scenario().run(engine="reference")


@pytest.fixture(scope="module")
def view(run):
    return see(run)


def header_of(payload):
    return json.loads(split_payload(payload)[0])


def linked_at(plan, time_us):
    """Return {(a, b): (delivery ratio of each direction)} of the links at a time, by the numbers of nodes."""
    links = plan.at(time_us).links
    ends = zip(plan.ids[links["a"]].tolist(), plan.ids[links["b"]].tolist(), strict=True)
    return dict(zip(ends, zip(links["pdr_ab"].tolist(), links["pdr_ba"].tolist(), strict=True), strict=True))


def replayed(scene, time_us):
    """Return {(a, b): ratios} like `linked_at`, by a replay of the engine's changes row by row."""
    changes = link_changes(scene)
    ratios = changes.ratios.tolist()
    for row in changes.rows:
        if row["kind"] == RATIO and row["time_us"] <= time_us:
            ratios[row["subject"]] = float(row["ratio"])
    nodes = sorted(scene.topology.nodes)
    links = {}
    for sender, receiver, ratio in zip(changes.senders, changes.receivers, ratios, strict=True):
        if ratio >= 0:
            low, high = sorted((sender, receiver))
            links.setdefault((nodes[low], nodes[high]), [0.0, 0.0])[int(sender > receiver)] = round(ratio, 2)
    return {ends: tuple(both) for ends, both in links.items()}


# Positions


@pytest.mark.parametrize("model", [wb.mobility.RandomWaypoint(), wb.mobility.GaussMarkov()])
def test_positions_and_links_of_a_layout_equal_those_of_the_engine(model):
    topology = wb.topology.disc(8, 40, 40, 15)
    moved = wb.Scenario(topology, wb.Flooding(), [wb.move(at=[0, 2, 5], along=model)], duration_s=30, seed=3)
    plan = lay_out_scenario(moved)
    for time_us in (0, 1, 7 * SECOND + 123_456, 29_999_999):
        moment = plan.at(time_us)
        expected = [position_at(moved, node, time_us) for node in plan.ids.tolist()]
        assert np.stack([moment.x_m, moment.y_m], axis=1) == pytest.approx(np.array(expected), abs=2e-4)
        assert linked_at(plan, time_us) == replayed(moved, time_us)
        assert (moment.box_m, moment.spacing_m) == (plan.box_m, plan.spacing_m)


def test_the_map_contains_all_tracks_and_jammers():
    x0, y0, x1, y1 = lay_out_scenario(scenario(wb.jam(x_m=-7, y_m=0, radius_m=1))).box_m
    assert (x0, y0, x1, y1) == (-7, 0, 30, 40)


def test_a_figure_draws_the_positions_and_links_of_its_time(view):
    for time_s in (0, 5, 20, 33):
        scene = LayerScene(view, time_s * SECOND, 700)
        x_px, y_px = scene.to_px(np.array([10.0]), np.array([float(time_s)]))[0]
        node = view.plan.ids.tolist().index(1)
        assert (scene.x[node], scene.y[node]) == pytest.approx((x_px, y_px))
    assert network_drawing(view.run, 5.0).to_svg() != network_drawing(view.run, 6.0).to_svg()


def test_a_network_that_does_not_change_has_the_layout_of_its_topology():
    topology = wb.topology.grid(3, 3)
    items = [wb.outage(at=1, start_s=1), wb.crash(at=2, start_s=1), wb.leave(at=3, start_s=2), wb.join(at=4, start_s=2)]
    still = wb.Scenario(topology, wb.Flooding(), items, duration_s=4)
    assert lay_out_scenario(still) is lay_out(still.topology)
    plan = header_of(pack(see(still.replace(workload=items[:1]).run(engine="reference"))))["plan"]
    assert not {"tracks", "links", "is_changing"} & set(plan)


def test_vertices_of_tracks_equal_the_tracks_within_the_run():
    vertices = lay_out_scenario(scenario()).tracks
    assert (vertices.nodes.tolist(), vertices.time_us.tolist()) == ([1], [0, 20 * SECOND, 40 * SECOND])
    times_us, x_m, y_m = vertices.piece(0, 10 * SECOND, 30 * SECOND)
    assert (times_us / SECOND).tolist() == [10, 20, 30] and (x_m.tolist(), y_m.tolist()) == ([10] * 3, [10, 20, 30])


# Links


def test_links_vanish_while_nodes_are_apart_or_separated(view):
    assert {(0, 1), (1, 2), (2, 3)} <= set(linked_at(view.plan, 19_999_999)) | {(0, 1), (1, 2)}
    assert (0, 1) in linked_at(view.plan, 6 * SECOND) and (0, 1) not in linked_at(view.plan, 8 * SECOND)
    for time_s, is_linked in ((19, True), (21, False), (29, False), (31, True)):
        assert ((2, 3) in linked_at(view.plan, time_s * SECOND)) is is_linked
        assert (3, 4) in linked_at(view.plan, time_s * SECOND)


def test_bad_links_are_drawn_by_their_present_ratio():
    bursts = wb.burst_loss(3, 3, bad_pdr=0.2)
    lossy = wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), [bursts], wb.Radio(loss="links"), duration_s=20)
    plan = lay_out_scenario(lossy)
    for time_us in (0, 4 * SECOND, 11 * SECOND):
        assert linked_at(plan, time_us) == replayed(lossy, time_us)
    assert set(plan.link_intervals["pdr_ab"].tolist()) == {0.2, 1.0}


def test_a_link_that_loses_all_frames_is_dashed():
    silent = wb.burst_loss(0.001, 1e6)
    run = wb.Scenario(wb.topology.line(2), wb.Flooding(), [silent], wb.Radio(loss="links"), duration_s=5).run(
        engine="reference"
    )
    assert linked_at(see(run).plan, 3 * SECOND) == {(0, 1): (0.0, 0.0)}
    assert "stroke-dasharray" in network_drawing(run, 3.0, layers=()).to_svg()


def test_dense_networks_show_the_best_links_of_each_time():
    topology = wb.topology.disc(40, 40, 40, 30)
    moved = wb.Scenario(topology, wb.Flooding(), [wb.move(at="all", along=wb.mobility.RandomWaypoint())], duration_s=10)
    plan = lay_out_scenario(moved)
    assert any("8 best of each node" in note for note in plan.notes)
    for time_us in (0, 3 * SECOND, 9 * SECOND):
        shown, every = linked_at(plan, time_us), replayed(moved, time_us)
        assert shown.items() <= every.items() and 40 * 4 <= len(shown) < len(every)


def test_ratios_are_rounded_if_links_change_too_often(monkeypatch):
    walk, lossy = wb.move(at="all", along=wb.mobility.RandomWaypoint()), wb.Radio(loss="links")
    moved = wb.Scenario(wb.topology.office(20), wb.Flooding(), [walk], lossy, duration_s=60)
    monkeypatch.setattr("workbench.views.changing_layout.MOST_ROWS", 1050)
    plan = lay_out_scenario(moved)
    rounding = next(step for step in ROUNDINGS if any(f"rounded to {step} %" in note for note in plan.notes))
    percents = np.rint(100 * plan.link_intervals["pdr_ab"])
    assert not (percents[percents > 1] % rounding).any()


# Nodes


def labels_at(view, node, time_us):
    layer = view.layer("nodes", "node")
    rows = [row for row in layer.alive(time_us).tolist() if layer.table["node"][row] == node]
    return {layer.looks[layer.table["look"][row]].label for row in rows}


def test_absent_crashed_and_departed_nodes_have_marks_of_their_own(view):
    assert labels_at(view, 5, 0) == {"node that joins later"} and "node that joins later" not in labels_at(
        view, 5, 12 * SECOND
    )
    assert labels_at(view, 2, 12 * SECOND) >= {"crashed node"} and "crashed node" not in labels_at(view, 2, 15 * SECOND)
    assert labels_at(view, 4, 25 * SECOND) >= {"departed node"} and "departed node" in labels_at(view, 4, 39 * SECOND)


def test_the_inspector_states_what_has_become_of_a_node(run):
    def lines_of(node, time_s, title="Up and down"):
        table = inspect_node(run, node, time_s).tables.get(title)
        return table and table[1]

    assert lines_of(2, 9) is None
    assert lines_of(2, 12) == [("crashed at 10 s",)]
    assert lines_of(2, 16) == [("crashed at 10 s, started again at 15 s (boot 1)",)]
    assert (lines_of(5, 3), lines_of(5, 20)) == ([("not yet joined",)], [("joined at 12 s",)])
    assert lines_of(4, 30) == [("left at 25 s",)]
    assert lines_of(3, 25, "Partition") == [("with 1 other node, separated from 4 nodes from 20 s to 30 s",)]
    assert lines_of(3, 31, "Partition") is None
    assert lines_of(4, 17, "Jammed") == [("16.000 s", "18.000 s")] and lines_of(0, 17, "Jammed") is None


def test_layers_of_changes_are_alive_while_the_changes_last(view):
    for name, mark, begin_s, end_s in (("partition", "disc", 20, 30), ("jammers", "area", 16, 18)):
        layer = view.layer(name, mark)
        alive = [len(layer.alive(time_s * SECOND)) for time_s in (begin_s - 1, begin_s, end_s - 1, end_s)]
        assert [bool(count) for count in alive] == [False, True, True, False]
    assert sorted(view.layer("partition").table["node"].tolist()) == [3, 4]
    assert view.layer("tracks").table["node"].tolist() == [1]


def test_every_layer_of_a_change_is_drawn_in_a_figure(view):
    for name, time_s in (("tracks", 5), ("partition", 21), ("jammers", 17)):
        bare, marked = (len(draw(view, time_s * SECOND, layers=names).items) for names in ((), (name,)))
        assert marked > bare


# The player's payload, the timeline and the moments


def test_the_timeline_shows_each_change_as_an_interval(view):
    spans = {(span.label, span.node, span.from_us / SECOND, span.until_us / SECOND) for span in timeline_spans(view)}
    assert spans == {
        ("partition", -1, 20, 30),
        ("jammer", -1, 16, 18),
        ("crashed", 2, 10, 15),
        ("not yet joined", 5, 0, 12),
        ("left", 4, 25, 40),
    }


def test_the_moments_of_a_run_name_its_changes(view):
    moments = dict(map(tuple, header_of(pack(view))["moments"]))
    for time_s, text in (
        (10, "node 2 crashes"),
        (12, "node 5 joins"),
        (15, "node 2 starts again"),
        (16, "a jammer starts"),
        (18, "a jammer stops"),
        (20, "a partition begins"),
        (30, "the parts merge"),
    ):
        assert text in moments[time_s]
    assert not any("node 5 fails" in text for text in moments.values())


def test_a_preview_has_the_positions_and_links_of_its_time_only(view):
    plan = header_of(preview(view, 21.0))["plan"]
    assert plan["is_changing"] and "tracks" not in plan and "links" not in plan
    assert plan["a"]["rows"] == len(linked_at(view.plan, 21 * SECOND))


def test_the_payload_of_a_hundred_moving_nodes_is_small():
    topology = wb.topology.disc(100, 100, 100)
    moved = wb.Scenario(
        topology, wb.Flooding(), [wb.move(at="all", along=wb.mobility.RandomWaypoint())], duration_s=120
    )
    assert len(pack(see(moved.run(engine="reference")))) < 100_000


# Captions and pictures


def test_captions_name_changes_in_short():
    assert caption.workload([]) == ""
    few = scenario().replace(
        workload=[wb.move(at="all", along=wb.mobility.RandomWaypoint()), wb.jam(0, 0, 5, start_s=20, stop_s=40)]
    )
    assert caption.workload(few) == "all nodes move (random waypoint); jammer from 20 to 40 s"
    several = "node 3 subscribes to TEMP GE 1; node 0 publishes TEMP IS 5 every 1 s; "
    assert caption.workload(scenario()) == several + "1 movement, 1 crash, 1 join, 1 leave, 1 partition, 1 jammer"
    crashed = few.replace(workload=[wb.crash(at=2, start_s=10), wb.leave(at=[1, 3], start_s=4), wb.burst_loss(5, 1)])
    assert caption.workload(crashed) == "node 2 crashes at 10 s; 2 nodes leave at 4 s; burst losses"


def test_the_picture_of_a_scenario_shows_tracks_jammers_and_the_separated_side():
    planned = scenario()
    picture = Picture(planned.topology, planned.workload, planned)
    svg = picture.draw().to_svg()
    for label in ("track (dashed: still to come)", "jammer", "separated by a partition", "off for a time"):
        assert f">{label}<" in svg
    assert palette.SEPARATED in svg
    assert picture.plan.box_m == lay_out_scenario(planned).box_m
    assert isinstance(picture.plan, ChangingLayout) and sorted(tracks_of(planned)) == [1]
    node = picture.plan.ids.tolist().index(3)
    assert (picture.x[node], picture.y[node]) == pytest.approx(tuple(picture.to_px(*np.array(PLACES_M[3])[:, None])[0]))


def test_a_node_that_crashes_loses_its_state_in_all_layers():
    workload = [
        wb.subscribe(at=0, what="TEMP GE 1"),
        wb.publish(at=3, what="TEMP IS 5", every_s=2, start_s=5),
        wb.crash(at=1, start_s=10, stop_s=15),
    ]
    view = see(wb.Scenario(wb.topology.line(4), wb.Diffusion(), workload, duration_s=20).run(engine="reference"))
    for name in ("interests", "gradients"):
        nodes = view.layer(name).table["node"]
        alive = [nodes[view.layer(name).alive(time_s * SECOND)].tolist() for time_s in (9, 12)]
        assert 1 in alive[0] and 1 not in alive[1] and 2 in alive[1]
