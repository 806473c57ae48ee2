"""What protocols bring to the views: public views, and how messages look."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import workbench as wb
from tests.repository import REPOSITORY
from workbench import views
from workbench.protocols.flooding import Flooding
from workbench.protocols.tinymq import wire as tinymq_wire
from workbench.public_names import PROTOCOLS
from workbench.views import palette
from workbench.views.protocols import message_colours, public_views


class Probing(Flooding):
    """A protocol in no package of its own: its class says how its messages look."""

    message_colours = {"probe": palette.INTEREST}


@pytest.mark.parametrize("name", views.__all__)
def test_public_view_resolves_and_is_listed(name):
    assert getattr(views, name) is not None
    assert name in dir(views)


def test_no_two_rooms_have_a_public_view_of_one_name():
    homes = {home.split(".views.")[0] for home in public_views().values()}
    tables = [sys.modules[f"{home}.views"].VIEWS for home in homes] + [views._HOME]
    names = [name for table in tables for name in table]
    assert len(homes) > 1
    assert sorted(names) == sorted(set(names)) == views.__all__


def test_unknown_view_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'workbench\.views' has no attribute 'shwo'"):
        _ = views.shwo


def test_asking_which_views_there_are_loads_no_view():
    code = "import sys, workbench.views; dir(workbench.views); print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True).stdout
    assert {"numpy", "pandas", "networkx", "bokeh", "PIL", "numba"}.isdisjoint(loaded.split())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_message_of_a_protocol_has_a_colour(name):
    protocol = getattr(wb, name)()
    assert message_colours(protocol)
    assert palette.OTHER_MESSAGE not in message_colours(protocol).values()


def test_a_kind_of_another_protocol_has_its_colours():
    colours = message_colours(wb.Pub2Sub())
    assert colours == message_colours(wb.TinyMQ())
    assert palette.message_colour(tinymq_wire.NAMES[tinymq_wire.QUERY], colours) == palette.INTEREST


def test_a_protocol_of_ones_own_says_how_its_messages_look():
    colours = message_colours(Probing())
    assert palette.message_colour("probe", colours) == palette.INTEREST
    assert palette.message_colour("flood", colours) == palette.DATA
    assert palette.message_colour("other", colours) == palette.OTHER_MESSAGE


def test_what_is_no_protocol_has_neutral_messages():
    assert message_colours(SimpleNamespace()) == {}
