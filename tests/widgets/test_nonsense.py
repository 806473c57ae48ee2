"""Nonsense in any field of a form gives an error beside it and leaves the value; the next valid entry replaces it."""

import ipywidgets as widgets
import pytest

import workbench as wb
from workbench import mobility
from workbench.sim.changes.measured import LinkQualities
from workbench.topology import parameters
from workbench.widgets import Conditions, Filters, Network, ProtocolForm, RadioForm, Workload
from workbench.widgets.laboratory import protocol_named
from workbench.widgets.protocol import protocol_names

NONSENSE = ("abc", "-7e", "nan", "1e999", "'\"<b>", "x" * 5000, "\0", "☃ü\u202e", "[1, (2", "; drop")
ITEMS = {
    "subscription": wb.subscribe(0, "TEMP GE 20, HUMIDITY LT 50", start_s=1),
    "publication": wb.publish([1, 2], "TEMP IS 25", start_s=2, every_s=5),
    "field": wb.publish(3, wb.SensorField("TEMP"), every_s=5),
    "outage": wb.outage(4, 5.0, 9.0),
    "crash": wb.crash(4, 5.0, 9.0),
    "join": wb.join(5, 5.0),
    "leave": wb.leave(6, 5.0),
    "partition": wb.partition([1, 2], 5.0),
    "waypoints": wb.move(7, [(2, 1, 1), (4, 5, 5)], radius_m=9),
    "random movement": wb.move([0, 1], mobility.RandomWaypoint()),
    "gradual movement": wb.move([2, 3], mobility.GaussMarkov()),
    "burst loss": wb.burst_loss(6, 2),
    "jammer": wb.jam(1, 1, 5, 5.0, 9.0, 2.0, 1.0),
    "link trace": wb.link_trace(LinkQualities([0, 5], [0, 0], [1, 1], [0.9, 0.1])),
}


def within(widget):
    """Return the widgets that are displayed in a widget, with that widget."""
    for child in getattr(widget, "children", ()):
        yield child
        yield from within(child)


def errors(part):
    return [
        element.value for element in within(part) if isinstance(element, widgets.HTML) and "wb-error" in element.value
    ]


def with_filters():
    kinds = ("suppress_unchanged", "running_mean", "neighborhood_average", "rate_limit", "threshold_alarm")
    return Filters(wb.Diffusion(filters=[wb.Filter(name, key=200 + i) for i, name in enumerate(kinds)]), range(9))


def check_nonsense(part):
    """Enter nonsense into every text of a panel, and then the previous text again."""
    boxes = [child for child in within(part) if isinstance(child, (widgets.Text, widgets.Combobox))]
    assert boxes
    for box in boxes:
        right, value = box.value, part.value
        for text in NONSENSE:
            box.value = text
            messages = errors(part)
            assert part.value != value or (messages and box.value == text), (box.tooltip, text)
            assert all(len(message) < 2000 for message in messages)
            box.value = right
            assert part.value == value and not errors(part), (box.tooltip, text)


@pytest.mark.parametrize("name", protocol_names())
def test_in_the_form_of_a_protocol(name):
    check_nonsense(ProtocolForm(protocol_named(name)))


def test_in_the_form_of_the_radio():
    check_nonsense(RadioForm(Conditions(wb.Radio(loss=0.2), 60.0, 1)))


@pytest.mark.parametrize("kind", ITEMS)
def test_in_the_forms_of_the_workload(kind):
    part = Workload(ITEMS.values(), range(9))
    part.selected = list(ITEMS).index(kind)
    if kind == "link trace":  # it has no texts, only files
        form = part._form_box.children[0]
        for text in NONSENSE:
            form.trace.take("file.csv", text.encode("utf-8", "replace"))
            assert form.trace.error and part.value == tuple(ITEMS.values())
        return
    check_nonsense(part)


def test_in_the_forms_of_filters():
    part = with_filters()
    for index in range(len(part.filters)):
        part.selected = index
        check_nonsense(part)


@pytest.mark.parametrize("kind", [kind for kind in parameters.TABLES if kind != "testbed"])
def test_in_the_forms_of_generators(kind):
    part = Network(parameters.generate(kind, {**parameters.values_of(kind), "nodes": 30}))
    check_nonsense(part)
