"""Changes of the network in the lab: items are added, edited, undone, stored, and drawn on the map."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests import network_items
from workbench import mobility, topology
from workbench.sim import workload
from workbench.sim.changes.measured import LinkQualities
from workbench.sim.scenario import Scenario
from workbench.sim.workload import KINDS
from workbench.widgets import Network, Workload, runs, sweep
from workbench.widgets.history import History, State
from workbench.widgets.laboratory import Lab, first_scenario, roles
from workbench.widgets.workload.form import ItemForm
from workbench.widgets.workload.items import GROUPS, has_field, kind_of, without_nodes
from workbench.widgets.workload.overlay import overlay_of
from workbench.widgets.workload.scenario_context import ScenarioContext
from workbench.widgets.workload.table import fields_of_kind, fields_of_model
from workbench.widgets.workload.texts import line_of

NETWORK = topology.disc(40, 100, 60, radius_m=22, seed=3)
MEASURED = topology.grid(3, 3)  # positions do not determine its links
TRACE = b"time_s,transmitter,receiver,pdr\n0,0,1,0.9\n10,0,1,0.2\n10,1,0,0\n"
CHANGES = tuple(kind for kind in KINDS if kind not in ("subscribe", "publish", "reinforce"))
# For each kind, an edit that a user makes in the form: field, text, and the value that the item has then.
EDITS = {
    "subscribe": ("start_s", "7", 7.0),
    "publish": ("every_s", "2.5", 2.5),
    "reinforce": ("start_s", "7", 7.0),
    "outage": ("stop_s", "44", 44.0),
    "crash": ("stop_s", "", None),
    "join": ("start_s", "12.5", 12.5),
    "leave": ("start_s", "12.5", 12.5),
    "move": ("step_s", "0.5", 0.5),
    "partition": ("stop_s", "31", 31.0),
    "burst_loss": ("bad_pdr", "0.3", 0.3),
    "jam": ("radius_m", "33", 33.0),
}


@pytest.fixture
def part():
    """Return a panel with the workload of the lab's first scenario."""
    return Workload(first_scenario().workload, sorted(NETWORK), network=NETWORK)


def form(part):
    (shown,) = part._form_box.children
    return shown


def press(part, label):
    """Press the button that adds an item."""
    buttons = [child for row in part._adding.children for child in row.children]
    next(button for button in buttons if getattr(button, "description", "") == label).click()


def added(part, kind, nodes=()):
    part.picked = tuple(nodes)
    part.add(kind)
    return part.value[-1]


def scenario_with(*items, network=NETWORK):
    return Scenario(network, wb.Flooding(), (wb.subscribe(0, "TEMP GE 20"), *items), duration_s=60)


def test_the_menu_offers_every_kind_of_item_once():
    offered = [kind for kinds in GROUPS.values() for kind in kinds]
    assert sorted(offered) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [(), (31,), (3, 7, 11)])
def test_a_new_item_of_each_kind_is_valid_and_is_shown_with_its_form(part, kind, nodes):
    item = added(part, kind, nodes)
    assert kind_of(item) == kind and part.selected == len(part.value) - 1
    assert first_scenario().replace(workload=part.value).workload == part.value
    assert form(part).kind == kind and part._lines._list.options[-1] == line_of(item)
    if nodes and has_field(item, "at") and not (kind == "burst_loss" and len(nodes) == 1):
        assert item.at == nodes


@pytest.mark.parametrize("kind", EDITS)
def test_an_edit_in_a_form_changes_one_field_of_the_item(part, kind):
    before = added(part, kind)
    name, text, value = EDITS[kind]
    form(part).times[name].text = text
    after = part.value[-1]
    assert getattr(after, name) == value
    assert (
        workload.to_dict(before)[kind] | {name: None} == workload.to_dict(after)[kind] | {name: None} or value is None
    )
    assert not form(part).times[name].error


@pytest.mark.parametrize("kind", [kind for kind in EDITS if kind not in ("move", "burst_loss")])
def test_a_slider_sets_the_time_or_the_place(part, kind):
    added(part, kind)
    name = "x_m" if kind == "jam" else "start_s"
    field = form(part).times[name]
    field._slider.value = 14.0
    assert getattr(part.value[-1], name) == 14.0 and field.text == "14"
    field._slider.value += field._slider.step / 10  # the rounded value that the browser sends back
    assert getattr(part.value[-1], name) == 14.0


def test_a_number_between_two_steps_of_a_slider_stays(part):
    added(part, "crash")
    field = form(part).times["start_s"]
    field.text = "21.33"
    slider = field._slider
    steps = (slider.value - slider.min) / slider.step
    assert abs(steps - round(steps)) < 1e-6  # the browser has no reason to move it
    slider.value = slider.min + round(steps) * slider.step
    assert part.value[-1].start_s == 21.33


def test_new_changes_have_an_effect_in_the_middle_of_the_run(part):
    assert added(part, "crash", [3, 7]) == wb.crash([3, 7], 20, 30)
    assert added(part, "join", [5]) == wb.join(5, 20)
    partition = added(part, "partition")
    xs = {node: NETWORK.nodes[node]["pos"][0] for node in NETWORK}
    assert len(partition.at) == 20
    assert max(xs[node] for node in partition.at) <= min(xs[node] for node in NETWORK if node not in partition.at)
    jam = added(part, "jam")
    assert abs(jam.x_m - 50) < 5 and abs(jam.y_m - 30) < 5 and 14 < jam.radius_m < 18
    assert added(part, "move", [31]).along.points[0][0] == 20 and len(part.value[-1].along.points) == 2


def test_items_are_lines_with_their_nodes_and_times():
    items = (
        wb.crash([3, 7], 20, 30),
        wb.join(4, 20),
        wb.leave(4, 30),
        wb.partition([0, 1, 2], 20),
        wb.move(5, [(20, 1, 1), (40, 2, 2)], radius_m=22),
        wb.move("all", mobility.RandomWaypoint()),
        wb.burst_loss(6, 2),
        wb.jam(50, 30, 17, 20, 30, 5, 1),
        wb.link_trace(LinkQualities([0, 60], [1, 1], [2, 2], [0.9, 0.2])),
        wb.crash(range(0, 40, 2), 1),
    )
    assert [line_of(item) for item in items] == [
        "▽ nodes 3, 7 crash 20–30 s",
        "△ node 4 joins at 20 s",
        "▽ node 4 leaves at 30 s",
        "∥ nodes 0-2 cut off from 20 s",
        "⇢ node 5 moves along 2 waypoints, until 40 s, radius 22 m",
        "⇢ every node moves by random waypoints, 0.5–1.5 m/s",
        "∿ all links lose bursts of 2 s, 6 s apart, from 0 s",
        "◎ jammer at (50, 30) m, radius 17 m, 20–30 s, 1 s in every 5 s",
        "∿ link trace: 2 ratios of 1 link, 0–60 s",
        "▽ nodes 0, 2, 4, 6, … (20 nodes) crash from 1 s",
    ]


@pytest.mark.parametrize(
    ("kind", "field", "text", "message"),
    [
        ("crash", "stop_s", "1", "before start_s"),
        ("crash", "start_s", "", "start_s is missing"),
        ("jam", "radius_m", "-3", "it must be a number from 0 to"),
        ("jam", "every_s", "5", "give both"),
        ("burst_loss", "bad_pdr", "2", "it must be a number from 0 to 1"),
        ("partition", "at", "all", "one side of the partition"),
        ("move", "step_s", "0", "it must be a number of seconds"),
    ],
)
def test_an_invalid_input_has_its_error_beside_the_field(part, kind, field, text, message):
    item = added(part, kind)
    box = form(part).text_fields()[field]
    right = box.text
    box.text = text
    assert part.value[-1] == item and box.text == text
    shown = [*(control.error for control in form(part).text_fields().values()), form(part)._message.value]
    assert [sentence for sentence in shown if sentence] and any(message in sentence for sentence in shown)
    assert message in box.error or field == "at"
    box.text = right
    assert not box.error and not form(part)._message.value


@pytest.fixture(scope="module")
def forms():
    """Return a form of each kind of changes, which fails if it offers an edit that no user made."""

    def refuse(item):
        pytest.fail(f"the form has changed {item}")

    return {kind: ItemForm(kind, refuse) for kind in CHANGES}


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_form_reads_the_item_that_it_shows(forms, data):
    network = data.draw(network_items.topologies())
    item = data.draw(network_items.items(network, 20.0))
    item_form = forms[kind_of(item)]
    context = ScenarioContext(tuple(sorted(network)), wb.topology.check(network), 20.0)
    item_form.show(item, context, None, ())
    shown = item_form._make_item()
    assert workload.to_dict(shown) == workload.to_dict(item) and shown == item


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_a_workload_with_any_changes_survives_edits_of_the_network(data):
    network = wb.topology.check(data.draw(network_items.topologies()))
    nodes = sorted(network)
    items = data.draw(network_items.changes(network, 20.0))
    history = History(State(Scenario(network, wb.Flooding(), items, duration_s=20.0)))
    removed = data.draw(st.lists(st.sampled_from(nodes[1:]), max_size=len(nodes) - 1, unique=True))
    assert history.change(topology=topology.edits.without(network, removed)), history.error
    assert Scenario.from_json(history.scenario.to_json()) == history.scenario
    history.undo()
    assert history.state.workload == tuple(items)
    history.redo()
    # Except for a radius that movements get, the composed workload keeps all nodes.
    assert [kind_of(item) for item in history.state.workload] == [kind_of(item) for item in items]
    assert [item.at for item in history.state.workload] == [item.at for item in items]


def test_nodes_are_removed_from_items_of_every_kind():
    trace = LinkQualities([0, 0, 5], [1, 2, 1], [2, 3, 2], [0.9, 0.5, 0.1])
    items = (wb.jam(0, 0, 5), wb.link_trace(trace), wb.partition([1, 3], 5), wb.crash(3, 5), wb.leave("all", 5))
    assert without_nodes(items, {3}) == (
        items[0],
        wb.link_trace(LinkQualities([0, 5], [1, 1], [2, 2], [0.9, 0.1])),
        wb.partition(1, 5),
        items[4],
    )
    assert without_nodes(items[1:2], {2}) == ()


@dataclass(frozen=True)
class Storm:
    """An item whose kind is missing in the table of the lab."""

    at: tuple[int, ...]
    start_s: float = 0.0
    wind_m_s: float | None = None


def test_an_item_of_an_unknown_kind_is_displayed_and_unchanged(part, monkeypatch):
    monkeypatch.setitem(KINDS, "storm", Storm)
    storm = Storm((3, 7), 5.0)
    part.value = (storm, wb.crash(3, 5))
    assert part._lines._list.options[0] == "Storm: nodes 3, 7"
    assert list(form(part).times) == ["start_s", "wind_m_s"] and form(part).times["start_s"].text == "5"
    part.selected = 1
    form(part).times["start_s"].text = "6"
    assert part.value == (storm, wb.crash(3, 6))
    assert without_nodes(part.value, {3}) == (Storm((7,), 5.0),)


def test_parameters_of_models_have_the_meanings_of_their_docstrings():
    for model in mobility.MODELS.values():
        for field in fields_of_model(model):
            assert field.reason or field.name == "points"
    assert [field.unit for field in fields_of_kind("jam")][:4] == ["m", "m", "m", "s"]


# Movements


def test_the_form_of_a_movement_edits_waypoints_and_models(part):
    added(part, "move", [31])
    along = form(part).along
    along.rows[0].boxes[0].value = "12"
    assert part.value[-1].along.points[0][0] == 12
    along.rows[1].boxes[0].value = "3"
    assert "times must ascend" in along.error and part.value[-1].along.points[1][0] == 40
    along.rows[1].boxes[0].value = "40"
    assert not along.error
    along._add.click()
    assert len(part.value[-1].along.points) == 3 and part.value[-1].along.points[2][0] > 40
    along.rows[0]._remove.click()
    assert len(part.value[-1].along.points) == 2
    along.choice.value = "random_waypoint"
    assert part.value[-1].along == mobility.RandomWaypoint()
    along.fields["random_waypoint"]["fastest_m_s"].text = "8"
    assert part.value[-1].along == mobility.RandomWaypoint(fastest_m_s=8)
    along.fields["random_waypoint"]["slowest_m_s"].text = "9"
    assert "it must be at least slowest_m_s" in along.fields["random_waypoint"]["fastest_m_s"].error
    along.fields["random_waypoint"]["slowest_m_s"].text = "2"
    along.fields["random_waypoint"]["seed"].text = "5"
    assert part.value[-1].along == mobility.RandomWaypoint(slowest_m_s=2, fastest_m_s=8, seed=5)
    along.choice.value = "gauss_markov"
    along.fields["gauss_markov"]["memory"].text = "0.5"
    assert part.value[-1].along == mobility.GaussMarkov(memory=0.5)
    along.choice.value = "waypoints"
    assert len(part.value[-1].along.points) == 2


def test_clicks_on_the_map_append_waypoints_at_the_speed_of_the_form():
    part = Workload((), range(9), network=MEASURED)
    part.duration_s = 100.0
    part.add_waypoint([4], (10.0, 20.0))
    home = MEASURED.nodes[4]["pos"]
    part._forms["move"].along.speed.text = "2"
    part.add_waypoint([4], (10.0, 40.0))
    (item,) = part.value
    assert item.at == (4,) and item.along.points[0][1:] == (10, 20)
    assert item.along.points[1] == (item.along.points[0][0] + 10, 10, 40)
    part.add_waypoint([5], (0.0, 0.0), time_s=30.0)
    assert part.value[1].along.points[0] == (30.0, *MEASURED.nodes[5]["pos"]) and home != (10, 20)
    part.add_waypoint([], (0.0, 0.0))
    assert len(part.value) == 2


def test_a_node_that_moves_by_another_item_follows_its_own_waypoints(part):
    added(part, "move")
    part.add_waypoint([31], (10.0, 20.0))
    first, second = part.value[-2:]
    assert second.at == (31,) and len(first.at) == 39 and 31 not in first.at
    part.selected = len(part.value) - 2
    form(part).at.text = "all"
    assert "both move node 31" in form(part).at.error and part.value[-2] == first


def test_a_movement_needs_a_radius_in_a_network_whose_links_do_not_follow_positions():
    part = Workload((), range(9), network=MEASURED)
    part.add("move")
    item_form, radius_m = form(part), part.value[0].radius_m
    assert radius_m and item_form._radius_box.layout.display is None
    assert "needs radius_m" in item_form._radius_note.value
    item_form.times["radius_m"].text = ""
    assert "radius_m is missing" in item_form.times["radius_m"].error and part.value[0].radius_m == radius_m
    item_form.times["radius_m"].text = "33"
    assert part.value[0].radius_m == 33
    item_form._use_radius.click()
    assert part.value[0].radius_m == radius_m
    part.network = NETWORK
    assert item_form._radius_box.layout.display == "none"


def test_movements_get_a_radius_if_the_links_of_the_next_network_do_not_follow_positions():
    history = History(State(scenario_with(wb.move(5, [(20, 1, 1)]))))
    assert history.change(topology=topology.edits.with_links(NETWORK, {(0, 39): 1.0}))
    assert history.scenario.workload[1].radius_m == 22
    history.undo()
    assert history.scenario.workload[1].radius_m is None


# Link traces


def test_a_file_of_a_link_trace_is_uploaded_or_dropped(part):
    added(part, "link_trace")
    file = {"name": "m.csv", "content": memoryview(TRACE), "type": "", "size": 1, "last_modified": datetime.now(UTC)}
    form(part).trace.upload.value = (file,)
    expected = wb.link_trace(LinkQualities([0, 10, 10], [0, 0, 1], [1, 1, 0], [0.9, 0.2, 0]))
    assert part.value[-1] == expected
    form(part).trace.take("bad.csv", TRACE + b"20,0,1,often\n")
    assert "bad.csv" in form(part).trace.error and "'often'" in form(part).trace.error
    form(part).trace.take("far.csv", TRACE + b"20,0,77,1\n")
    assert "node 77 is not in the network" in form(part).trace.error and part.value[-1] == expected
    part.selected = 0
    assert part.take_trace("m.csv", TRACE) == "" and part.value[-1] == expected
    assert "far.csv" not in part.take_trace("far.csv", TRACE + b"20,0,77,1\n")
    part.picked = (3,)
    assert part._move_button.disabled


# The map


def send(network, kind, **edit):
    network._handle_message(None, {"kind": kind, **edit}, ())


def test_the_map_reports_edits_of_paths_and_jammers():
    network = Network(NETWORK, undo=False)
    edits = []
    network.observe(lambda change: edits.append(change.new), "overlay_edit")
    send(network, "add_waypoint", nodes=[3, 77], x=1, y=2)
    send(network, "move_point", item=0, point=1, x=5, y=6)
    send(network, "erase_point", item=0, point=1)
    send(network, "move_point", item=0, point=1, x=float("nan"), y=6)
    assert network.map.is_error
    assert edits == [
        {"do": "add", "nodes": [3], "x_m": 1, "y_m": 2, "count": 1},
        {"do": "move", "item": 0, "point": 1, "x_m": 5, "y_m": 6, "count": 2},
        {"do": "erase", "item": 0, "point": 1, "count": 3},
    ]


def test_points_of_paths_and_jammers_are_moved_and_erased(part):
    part.value = (wb.move(5, [(20, 1, 1), (40, 2, 2)]), wb.jam(50, 30, 17), wb.crash(3, 5))
    assert [shape["kind"] for shape in overlay_of(part.value)] == ["path", "disc"]
    assert overlay_of(part.value)[0]["labels"] == ["20 s", "40 s"]
    part.move_point(0, 1, (7, 8))
    part.move_point(1, 0, (9, 9))
    assert part.value == (wb.move(5, [(20, 1, 1), (40, 7, 8)]), wb.jam(9, 9, 17), wb.crash(3, 5))
    for index, point in ((0, 9), (2, 0), (7, 0)):
        part.move_point(index, point, (0, 0))
        part.erase_point(index, point)
    assert len(part.value) == 3
    part.erase_point(0, 0)
    part.erase_point(0, 0)
    part.erase_point(0, 0)
    assert part.value == (wb.crash(3, 5),)


@pytest.mark.parametrize("kind", ["crash", "join", "leave", "partition"])
def test_a_role_of_the_map_is_given_and_removed(part, kind):
    before = part.value
    part.toggle(kind, [3, 7], 12.5)
    item = part.value[-1]
    assert kind_of(item) == kind and item.at == (3, 7) and item.start_s == 12.5
    part.toggle(kind, [7], 12.5)
    assert part.value[-1].at == (3,)
    part.toggle(kind, [3], 12.5)
    assert part.value == before
    part.toggle(kind, [3], 0.0)  # nothing joins or leaves at the start
    assert part.value[-1].start_s > 0


# The lab


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Yield a lab on the reference engine whose file is in a separate folder."""
    for module in (runs, sweep):
        monkeypatch.setattr(module, "engine_for", lambda scenario: "reference")
    monkeypatch.chdir(tmp_path)
    opened = Lab()
    yield opened
    opened.close()


def test_changes_of_each_kind_are_added_undone_run_and_opened_again(lab):
    for kind in CHANGES:
        lab._workload.picked = (31,) if kind != "partition" else ()
        press(lab._workload, f"+ {form_title(kind)}")
        assert not lab._history.error
    assert lab.wait() and lab.run.scenario == lab.scenario
    assert [kind_of(item) for item in lab.scenario.workload[2:]] == list(CHANGES)
    assert [shape["kind"] for shape in lab._network.overlay] == ["path", "disc"]
    assert roles(lab.scenario)[31] == "down"
    last = lab.scenario
    for _ in CHANGES:
        lab.undo()
    assert len(lab.scenario.workload) == 2
    for _ in CHANGES:
        lab.redo()
    assert lab.scenario == last
    lab.close()
    again = Lab()
    assert again.scenario == last and len(again._workload._lines._list.options) == len(last.workload)
    again.close()


def form_title(kind):
    return {"jam": "Jammer", "burst_loss": "Burst loss", "link_trace": "Link trace"}.get(kind, kind.capitalize())


def test_buttons_and_clicks_on_the_map_change_the_scenario(lab):
    assert lab.wait()
    for role in ("crash", "partition"):
        send(lab._network, "ask", do=role, nodes=[3, 7])
    assert [kind_of(item) for item in lab.scenario.workload[2:]] == ["crash", "partition"]
    send(lab._network, "add_waypoint", nodes=[31], x=5.0, y=5.0)
    send(lab._network, "add_waypoint", nodes=[31], x=50.0, y=5.0)
    move = lab.scenario.workload[-1]
    assert move.at == (31,) and move.along.points[-1][1:] == (50, 5)
    send(lab._network, "move_point", item=4, point=len(move.along.points) - 1, x=60.0, y=6.0)
    assert lab.scenario.workload[-1].along.points[-1][1:] == (60, 6)
    lab._open_dropped("measured.csv", TRACE)
    assert kind_of(lab.scenario.workload[-1]) == "link_trace"
    lab._open_dropped("measured.csv", TRACE + b"x,y\n")
    assert "measured.csv" in lab._panel.message.value
