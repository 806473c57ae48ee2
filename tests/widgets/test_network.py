"""The network panel without a browser: sources with sliders, tables, edits of the map, picks, roles and undo."""

import asyncio
import json
import struct

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import topology
from workbench.errors import DataError, ScenarioError
from workbench.widgets import Network
from workbench.widgets.network import sources
from workbench.widgets.network.map import ASKS, MOST_LINKS, packed

LINKS = "transmitter,receiver,pdr\n0,1,0.9\n1,0,0.8\n1,2,0.7\n"
POSITIONS = "node,x_m,y_m\n0,0,0\n1,10,0\n2,10,10\n"


@pytest.fixture
def network():
    return Network(topology.grid(3, 3))


def send(network, kind, **rest):
    """Pass a message of the map about a user's action to the panel."""
    network._handle_message(network.map, {"kind": kind, **rest}, [])


def header_of(payload):
    size = struct.unpack("<I", payload[4:8])[0]
    return json.loads(payload[8 : 8 + size])


def source_message(network):
    return network.sources._message.value


# Sources


def test_moving_a_slider_creates_a_network_and_notifies_observers(network):
    changes = []
    network.observe(lambda change: changes.append(change.new), "value")
    network.sources.fields["rows"].value = 4
    assert network.value.graph["recipe"] == {"kind": "grid", "rows": 4, "columns": 3, "spacing_m": 10.0}
    assert changes == [network.value]
    assert header_of(network.map.payload)["plan"]["x"]["rows"] == 12


def test_the_form_shows_the_recipe_of_an_assigned_network_without_changing_it(network):
    changes = []
    value = topology.disc(30, 80, 60, radius_m=25, seed=4)
    network.observe(lambda change: changes.append(change.new), "value")
    network.value = value
    assert network.sources.choice.value == ("disc", "")
    assert {name: field.value for name, field in network.sources.fields.items()} == {
        "nodes": 30, "width_m": 80, "height_m": 60, "radius_m": 25, "seed": 4,
    }  # fmt: skip
    assert changes == [value] and network.value is value


def test_a_slider_position_rounded_by_the_browser_changes_nothing(network):
    """The browser moves a slider to its nearest step and sends that back."""
    network.value = value = topology.disc(60, 83, 61.7, radius_m=21, seed=4)
    for name in ("nodes", "width_m", "height_m", "radius_m"):
        slider = network.sources.fields[name].children[1]
        slider.value += slider.step / 8
        assert network.value is value
    slider.value += 2 * slider.step
    assert network.value is not value


def test_choosing_a_generator_creates_its_network(network):
    network.sources.choice.value = ("ring", "")
    assert network.value.graph["recipe"]["kind"] == "ring"
    assert list(network.sources.fields) == ["nodes", "spacing_m"]


def test_an_error_of_a_generator_is_displayed_and_the_network_stays(network):
    network.sources.choice.value = ("office", "")
    value = network.value
    network.sources.fields["rooms"].value = 7
    assert network.value is value
    assert "wb-error" in source_message(network) and "must be even" in source_message(network)
    network.sources.fields["rooms"].value = 8
    assert network.value.graph["recipe"]["rooms"] == 8
    assert source_message(network) == ""


def test_only_the_newest_of_many_slider_moves_creates_a_network(network, monkeypatch):
    calls = []
    monkeypatch.setattr(sources.parameters, "generate", lambda *arguments: calls.append(arguments) or topology.line(2))

    async def pull():
        for rows in (4, 5, 6, 7):
            network.sources.fields["rows"].value = rows
        await asyncio.sleep(0.1)

    asyncio.run(pull())
    assert [values["rows"] for _, values, _ in calls] == [7]


def test_testbeds_of_this_machine_can_be_chosen(real_data):
    names = [value[1] for _, value in sources.choices() if value[0] == "testbed"]
    assert "iotlab/strasbourg" in names and "ulb-library" not in names
    network = Network(topology.testbed("strasbourg", max_range_m=4))
    assert network.sources.choice.value == ("testbed", "iotlab/strasbourg")
    assert network.sources.fields["max_range_m"].value == 4
    network.sources.fields["max_range_m"].value = 0.0
    assert network.value.number_of_edges() == 4032


def test_a_pasted_table_becomes_the_network(network):
    table = network.sources.table
    network.sources.choice.value = sources.TABLE
    assert network.sources.form.children == (table,)
    table.text.value = LINKS
    table.use.click()
    assert dict(network.value.edges) == {(0, 1): {"pdr": 0.9}, (1, 0): {"pdr": 0.8}, (1, 2): {"pdr": 0.7}}
    table.text.value = LINKS + "\n" + POSITIONS
    table.use.click()
    assert network.value.nodes[2]["pos"] == (10, 10) and network.value.number_of_edges() == 3
    assert table.text.value == LINKS + "\n" + POSITIONS


def test_positions_without_links_are_linked_within_the_radius():
    assert sources.network_of(POSITIONS, 10.0).number_of_edges() == 4
    assert sources.network_of(POSITIONS, 20.0).number_of_edges() == 6


def test_uploaded_files_are_inserted_into_the_text(network):
    table = network.sources.table
    uploaded = [{"content": memoryview(text.encode())} for text in ("\ufeff" + LINKS, POSITIONS)]
    table._use_upload(type("Change", (), {"new": uploaded}))
    assert table.text.value == LINKS + "\n" + POSITIONS
    assert network.value.number_of_edges() == 3


@pytest.mark.parametrize("separator", [", ", ";", "\t", "   "])
def test_columns_may_have_different_separators(separator):
    assert sources.network_of(LINKS.replace(",", separator), 1).number_of_edges() == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "text is empty"),
        ("1,2,0.5\n2,1,0.5", "at most one table of links"),
        ("transmitter,receiver,pdr\n0,1,7", "row 2.*must be a number from 0 to 1"),
        ("transmitter,receiver\n0,1", "no column 'pdr'"),
        ("transmitter,receiver,pdr\n0,1", "row 2"),
        (LINKS + LINKS, "at most one table of links"),
        ("node,x_m,y_m\n0,1,zwei", "two finite numbers"),
        ("node,node,x_m,y_m\n0,1,zwei,3", "two finite numbers"),
        ("\0", "at most one table of links"),
    ],
)
def test_an_invalid_table_gives_an_error(network, text, sentence):
    with pytest.raises(DataError, match=sentence):
        sources.network_of(text, 20.0)
    value = network.value
    network.sources.table.text.value = text
    network.sources.table.make()
    assert network.value is value and "wb-error" in source_message(network)


@settings(max_examples=60)
@given(st.text(alphabet="transmier,pdnodexy_0129.-\n \"'", max_size=200) | st.text(max_size=60))
def test_any_text_gives_a_network_or_an_error(text):
    try:
        assert isinstance(sources.network_of(text, 20.0), nx.DiGraph)
    except DataError as error:
        assert str(error)


# The map


def test_edits_of_the_map_create_new_networks(network):
    before = network.value
    send(network, "move", nodes=[0, 4], x=[1.5, 2], y=[3, 4])
    assert network.value.nodes[0]["pos"] == (1.5, 3.0) and network.value.nodes[4]["pos"] == (2.0, 4.0)
    send(network, "add", x=-5, y=7)
    assert network.value.nodes[9]["pos"] == (-5.0, 7.0) and network.picked == [9]
    send(network, "join", links=[[9, 0]])
    assert network.value.edges[9, 0] == network.value.edges[0, 9] == {"pdr": 1.0}
    send(network, "quality", a=9, b=0, ab=0.4, ba=0)
    assert network.value.edges[9, 0] == {"pdr": 0.4} and not network.value.has_edge(0, 9)
    send(network, "erase", nodes=[8], links=[[0, 1]])
    assert 8 not in network.value and not network.value.has_edge(1, 0)
    assert before.graph["recipe"]["kind"] == "grid" and before.nodes[0]["pos"] == (0.0, 0.0)
    assert "edited by hand" in source_message(network)


def test_links_follow_moved_and_added_nodes_of_a_network_with_a_link_radius(network):
    network.value = disc = topology.disc(12, 40, 40, radius_m=18, seed=2)
    x, y = disc.nodes[3]["pos"]
    send(network, "move", nodes=[3], x=[500], y=[0])
    assert network.value.degree(3) == 0 and network.sources.choice.value == sources.HAND
    assert network.sources.form.children == ()  # no slider that would replace the edited network
    send(network, "move", nodes=[3], x=[x], y=[y])
    assert set(network.value.edges) == set(disc.edges)
    send(network, "add", x=x, y=y)
    assert set(network.value[12]) == {3, *disc[3]}
    send(network, "erase", nodes=[12])
    assert set(network.value.edges) == set(disc.edges)


def test_a_moved_node_keeps_its_links_on_request_or_after_edits_of_links(network):
    network.value = disc = topology.disc(12, 40, 40, radius_m=18, seed=2)
    network.follows.value = False
    send(network, "move", nodes=[3], x=[500], y=[0])
    assert set(network.value.edges) == set(disc.edges)
    network.value, network.follows.value = disc, True
    send(network, "erase", links=[list(next(iter(disc.edges)))])
    send(network, "move", nodes=[3], x=[500], y=[0])
    assert set(network.value[3]) <= set(disc[3]) and network.follows.layout.display == "none"


def test_a_redisplayed_edited_network_does_not_count_as_generated(network):
    send(network, "move", nodes=[0], x=[1.5], y=[3])
    again = Network(network.value)
    assert again.sources.choice.value == sources.HAND
    again.value = topology.grid(2, 2)
    assert (
        again.sources.choice.value == ("grid", "") and sources.HAND not in dict(again.sources.choice.options).values()
    )


def test_joining_linked_nodes_leaves_their_link_unchanged(network):
    send(network, "quality", a=0, b=1, ab=0.3)
    value = network.value
    send(network, "join", links=[[0, 1]])
    assert network.value is value


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ({"kind": "move", "nodes": [77], "x": [1], "y": [1]}, "Node 77 is not in this network"),
        ({"kind": "erase", "nodes": list(range(9))}, "at least one must remain"),
        ({"kind": "quality", "a": 0, "b": 1, "ab": 2}, "from 0 to 1"),
        ({"kind": "move", "nodes": [0], "x": [None], "y": [1]}, "two finite numbers"),
        ({"kind": "move", "nodes": [0], "x": [], "y": []}, "sent an invalid edit"),
        ({"kind": "dance"}, "sent an invalid edit"),
        ({"kind": ["move"]}, "sent an invalid edit"),
        ({"kind": "join", "links": [[[], {}]]}, "sent an invalid edit"),
        ({"kind": "ask", "do": "dance", "nodes": []}, "must be one of sink"),
        ([], "sent an invalid edit"),
        (None, "sent an invalid edit"),
    ],
)
def test_an_invalid_edit_changes_nothing_and_gives_an_error(network, message, sentence):
    value = network.value
    network._handle_message(network.map, message, [])
    assert network.value is value
    assert network.map.is_error and sentence in network.map.message
    send(network, "add", x=0, y=0)
    assert not network.map.is_error


def test_picks_are_synchronized_and_exclude_removed_nodes(network):
    network.map.picked = [3, 4]
    assert network.picked == [3, 4]
    send(network, "erase", nodes=[3])
    assert network.picked == network.map.picked == [4]
    network.picked = [1]
    assert network.map.picked == [1]


def test_the_tool_can_be_set_from_python(network):
    network.tool = "erase"
    assert network.map.tool == "erase"


def test_asked_changes_with_every_request_of_a_role_for_nodes():
    network = Network(topology.line(3), asks=("fail", "sink"))
    assert network.map.asks == ["sink", "fail"]
    requests = []
    network.observe(lambda change: requests.append(change.new), "asked")
    send(network, "ask", do="sink", nodes=[1, 55])
    send(network, "ask", do="sink", nodes=[1])
    assert requests == [{"do": "sink", "nodes": [1], "count": 1}, {"do": "sink", "nodes": [1], "count": 2}]


def test_marks_are_drawn_except_those_of_unknown_nodes(network):
    network.marks = {0: "sink", 4: "down", 5: "king"}
    assert network.map.roles == [[0, "sink"], [4, "down"]]


def test_undo_and_redo_step_through_the_changes(network):
    assert network.map.history == {"undo": False, "redo": False}
    first = network.value
    send(network, "add", x=0, y=0)
    second = network.value
    send(network, "erase", nodes=[0])
    third = network.value
    send(network, "undo")
    assert network.value is second
    network.undo()
    assert network.value is first and network.map.history == {"undo": False, "redo": True}
    network.undo()
    network.redo()
    network.redo()
    assert network.value is third
    network.undo()
    send(network, "add", x=1, y=1)
    assert network.map.history == {"undo": True, "redo": False}


def test_one_drag_of_a_slider_is_one_step_of_undo(network):
    first = network.value
    for rows in (4, 5, 6):
        network.sources.fields["rows"].value = rows
    network.undo()
    assert network.value is first and network.sources.fields["rows"].value == 3


def test_a_network_panel_without_undo_has_no_undo_buttons():
    network = Network(topology.line(3), undo=False)
    send(network, "add", x=0, y=0)
    value = network.value
    send(network, "undo")
    assert network.value is value and network.map.history == {}
    assert network.map.asks == list(ASKS[:-2]) and Network(topology.line(3)).map.asks == []


# Values


def test_any_usable_graph_is_shown_in_normal_form():
    network = Network(nx.path_graph(4))
    assert network.value.number_of_edges() == 6 and "pos" in network.value.nodes[3]
    with pytest.raises(ScenarioError, match="no nodes"):
        network.value = nx.DiGraph()


def test_a_displayed_value_is_not_sent_again(network):
    payloads = []
    network.map.observe(payloads.append, "payload")
    send(network, "move", nodes=[0], x=[3], y=[4])
    network.value = topology.check(network.value)  # an equal network, as a scenario returns it
    assert len(payloads) == 1


def test_the_message_warns_if_the_network_is_not_connected(network):
    assert network.map.message == "9 nodes, 24 links"
    send(network, "add", x=0, y=0)
    assert "2 parts" in network.map.message


def test_of_very_many_links_only_the_best_of_each_node_are_drawn_with_a_note():
    graph = topology.disc(400, 100, 100, radius_m=35)
    assert graph.number_of_edges() > 2 * MOST_LINKS
    header = header_of(packed(graph))
    assert header["plan"]["a"]["rows"] <= 8 * 400
    assert "8 best" in header["notes"][0]
