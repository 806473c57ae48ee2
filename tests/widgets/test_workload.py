"""The panel that edits the workload: a list of items, a form for each kind, and the buttons of the map."""

import pytest

import workbench as wb
from workbench.sim.workload import ALL
from workbench.widgets.controls import nodes_of, nodes_text
from workbench.widgets.workload import Workload, line_of

ITEMS = (wb.subscribe(0, "TEMP GE 20"), wb.publish(8, "TEMP IS 25", every_s=5))


@pytest.fixture
def part():
    return Workload(ITEMS, nodes=range(9))


def form(part):
    (shown,) = part._form_box.children
    return shown


@pytest.mark.parametrize("at", [(0,), (0, 5), (3, 4, 5, 6), (9, 1, 2, 3, 7), ALL])
def test_nodes_are_converted_to_text_and_back(at):
    assert nodes_of(nodes_text(at)) == at


@pytest.mark.parametrize("text", ["", "x", "1-", "7-3", "1.5", "-2", "0-99999999", "²"])
def test_text_without_nodes_is_refused(text):
    with pytest.raises(wb.ParameterError):
        nodes_of(text)


def test_each_item_is_a_line():
    assert [line_of(item) for item in (*ITEMS, wb.outage([1, 2, 3], 10, 20))] == [
        "node 0 subscribes to TEMP GE 20, from 0 s",
        "node 8 publishes TEMP IS 25 every 5 s, from 0 s",
        "▽ nodes 1-3 off 10–20 s",
    ]


def test_an_item_at_unknown_nodes_stays_and_can_be_edited(part):
    part.nodes = range(4)
    lines = part._lines._list.options
    assert lines[0] == line_of(ITEMS[0]) and lines[1] == f"{line_of(ITEMS[1])} – no node 8 in this network"
    part.selected = 1
    form(part).times["every_s"].text = "2.5"
    assert part.value[1] == wb.publish(8, "TEMP IS 25", every_s=2.5)
    form(part).at.text = "9"
    assert "node 9 is not in the network" in form(part).at.error
    part.nodes = range(9)
    assert part._lines._list.options[1] == line_of(part.value[1])


def test_equal_publications_of_two_nodes_are_compared_one_by_one():
    twice = (ITEMS[0], ITEMS[1], wb.publish(7, "TEMP IS 25", every_s=5))
    matches = form(Workload(twice, nodes=range(9))).content.attributes._matches.value
    assert "Matches 2 of 2 publications" in matches and "node 8" in matches and "node 7" in matches


def test_the_form_edits_the_selected_item(part):
    form(part).at.text = "3-5"
    form(part).times["start_s"].text = "7"
    form(part).content.attributes.rows[0].number.value = "22"
    assert part.value == (wb.subscribe([3, 4, 5], "TEMP GE 22", start_s=7), ITEMS[1])
    part.selected = 1
    form(part).times["every_s"].text = "2.5"
    form(part).flag.value = True
    form(part).times["payload"].text = "00ff"
    assert part.value[1] == wb.publish(8, "TEMP IS 25", every_s=2.5, stagger=True, payload=b"\0\xff")
    assert part._lines._list.options == tuple(line_of(item) for item in part.value)


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("at", "99", "node 99 is not in the network"),
        ("at", "x", "is not a node or a range"),
        ("start_s", "soon", "it must be a number"),
        ("stop_s", "-1", "it must be a number of seconds"),
        ("expires_s", "nan", "it must be a number of seconds"),
    ],
)
def test_a_wrong_entry_stays_in_its_field_with_an_error_and_the_item_is_unchanged(part, field, text, message):
    box = form(part).text_fields()[field]
    box.text = text
    assert message in box.error
    assert box.text == text
    assert part.value == ITEMS
    box.text = "2" if field != "at" else "2, 4"
    assert not box.error
    assert part.value != ITEMS


def test_every_field_has_the_name_of_an_attribute_of_the_item(part):
    part.add("outage")
    for index, item in enumerate(part.value):
        part.selected = index
        for name in form(part).text_fields():
            assert hasattr(item, name)


def test_a_subscription_may_match_all_publications_explicitly(part):
    attributes = form(part).content.attributes
    attributes._text.value = ""
    assert "constrains nothing" in attributes.error
    form(part).flag.value = True
    assert part.value[0] == wb.subscribe(0, "", match_all=True)


def test_a_publication_may_use_a_sensor_field(part):
    part.selected = 1
    form(part).content.source.value = True
    form(part).content.field["base"].value = 30.0
    assert part.value[1].what == wb.SensorField(base=30.0)
    form(part).content.field["key"].value = "TOPIC"
    assert "TOPIC, whose values are blobs" in form(part)._message.value
    assert part.value[1].what == wb.SensorField(base=30.0)
    form(part).content.source.value = False
    assert part.value[1].what == "TEMP IS 25"


def test_measured_readings_are_displayed_and_unchanged(part):
    measured = wb.Readings([0.0, 31.0], {"TEMP": [21.5, 22.0]})
    part.value = (ITEMS[0], wb.publish(4, measured))
    part.selected = 1
    (shown,) = form(part).content.children
    assert shown.value == "2 measured readings of TEMP"
    form(part).times["stop_s"].text = "40"
    assert part.value[1] == wb.publish(4, measured, stop_s=40)
    part.value = ITEMS
    assert form(part).content.plain() == ITEMS[1].what


def test_the_selected_item_is_compared_with_the_others(part):
    assert form(part).content.attributes.matches() == (("node 8: TEMP IS 25", True, ""),)
    part.value = (ITEMS[0], wb.publish([1, 2], "HUMIDITY IS 40"), wb.publish(4, wb.SensorField(base=30.0)))
    part.selected = 0
    assert [match_[:2] for match_ in form(part).content.attributes.matches()] == [
        ("nodes 1, 2: HUMIDITY IS 40", False),
        ("node 4: readings of a field of TEMP", True),
    ]
    part.selected = 1
    assert [match_[1] for match_ in form(part).content.attributes.matches()] == [False]


def test_a_publication_with_constraints_is_edited_if_the_protocol_allows_them():
    items = wb.subscribe(0, "TEMP GE 20, INSTANCE IS 4"), wb.publish(8, "TEMP IS 22, INSTANCE EQ 4")
    part = Workload(items, range(9), wb.Diffusion(matching="two-way"))
    part.selected = 1
    attributes = form(part).content.attributes
    assert not attributes.error and attributes.matches() == (("node 0: TEMP GE 20, INSTANCE IS 4", True, ""),)
    attributes.rows[1].number.value = "5"
    assert part.value == (items[0], wb.publish(8, "TEMP IS 22, INSTANCE EQ 5"))
    part.protocol = wb.Diffusion()
    assert "only IS attributes describe data" in attributes.error


def test_items_are_added_at_the_picked_nodes_or_at_distant_nodes():
    part = Workload((), nodes=range(9))
    for kind in ("subscribe", "publish", "outage"):
        part.add(kind)
    assert [item.at for item in part.value] == [(0,), (8,), (8,)]
    assert part.selected == 2
    part.picked = (4, 5)
    part.add("publish")
    assert part.value[3] == wb.publish([4, 5], "TEMP IS 25", every_s=5)


def test_items_are_duplicated_reordered_removed_and_moved_to_picked_nodes(part):
    duplicate, remove, up, down = part._lines._buttons
    duplicate.click()
    assert part.value == (ITEMS[0], *ITEMS)
    assert part.selected == 1
    down.click()
    assert part.value == (ITEMS[0], ITEMS[1], ITEMS[0])
    up.click()
    part.picked = (6, 7)
    part._move_button.click()
    assert part.value[1] == wb.subscribe([6, 7], "TEMP GE 20")
    remove.click()
    assert part.value == ITEMS
    remove.click()
    remove.click()
    assert part.value == ()
    assert all(button.disabled for button in (duplicate, remove, up, down, part._move_button))
    remove.click()


def test_the_buttons_of_the_map_add_and_remove_sinks_and_sources(part):
    part.toggle("subscribe", [2, 0])
    assert part.value[0].at == (0, 2)
    part.toggle("subscribe", [0, 2])
    assert part.value == ITEMS[1:]
    part.toggle("subscribe", [4])
    assert part.value == (ITEMS[1], wb.subscribe(4, "TEMP GE 20"))
    part.toggle("publish", [])
    assert len(part.value) == 2


def test_a_node_is_removed_from_all_items():
    part = Workload((wb.publish("all", "TEMP IS 1"),), nodes=range(4))
    part.toggle("publish", [2])
    assert part.value == (wb.publish([0, 1, 3], "TEMP IS 1"),)


def test_toggling_outages_adds_and_removes_nodes(part):
    part.toggle("outage", [3], 12.5)
    assert part.value[2:] == (wb.outage(3, 12.5),)
    part.toggle("outage", [4], 12.5)
    assert part.value[2:] == (wb.outage([3, 4], 12.5),)
    part.toggle("outage", [3], 20)
    assert part.value[2:] == (wb.outage(4, 12.5),)
    part.toggle("outage", [4], 5)
    assert part.value[2:] == (wb.outage(4, 12.5), wb.outage(4, 5))


def test_an_assigned_value_is_displayed_without_another_change(part):
    changes = []
    part.observe(lambda change: changes.append(change.new), "value")
    part.selected = 1
    part.value = (wb.outage(1, 3),)
    assert changes == [(wb.outage(1, 3),)]
    assert part.selected == 0
    assert form(part).times["start_s"].text == "3"
