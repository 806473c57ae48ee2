"""Contributions of protocols to the views: public views, and the looks of messages."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import workbench as wb
from tests.repository import REPOSITORY
from workbench import views
from workbench.protocols.flooding import Flooding
from workbench.protocols.tinymq import wire as tinymq_wire
from workbench.public_names import FORMER, PROTOCOLS
from workbench.views import palette
from workbench.views.protocols import message_colours


class Probing(Flooding):
    """A protocol outside of the package, whose class gives the looks of its messages."""

    message_colours = {"probe": palette.INTEREST}


OWNERS = [wb.views, wb.coded_diffusion.views, wb.dps.views, wb.tinymq.views]


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_public_views_resolve_and_none_is_hidden_by_a_module(owner):
    folder = Path(owner.__file__).parent
    assert dir(owner) == sorted(owner.__all__)
    for name in owner.__all__:
        assert getattr(owner, name) is getattr(owner, name)
        assert not (folder / f"{name}.py").exists()


@pytest.mark.parametrize("package", [wb.coded_diffusion, wb.dps, wb.tinymq], ids=lambda package: package.__name__)
def test_a_protocols_package_lists_its_class_and_its_views(package):
    assert {"views"} < set(dir(package)) <= {"CodedDiffusion", "DPS", "TinyMQ", "bloom", "topics", "views"}
    assert all(getattr(package, name) is not None for name in dir(package))


FORMER_NAMES = [
    (owner, home, name) for owner, homes in FORMER.items() for home, names in homes.items() for name in names.split()
]


@pytest.mark.parametrize(("owner", "home", "name"), FORMER_NAMES, ids=[name for *_, name in FORMER_NAMES])
def test_a_former_name_works_with_a_warning_that_names_the_new_one(owner, home, name):
    with pytest.warns(DeprecationWarning, match=rf"{owner}.{name} is now .*\.{name}$") as caught:
        assert getattr(sys.modules[owner], name) is not None
    assert caught[0].filename == __file__
    assert name not in dir(sys.modules[owner])


def test_unknown_view_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'workbench\.views' has no attribute 'shwo'"):
        _ = views.shwo


def test_listing_views_imports_none_of_them():
    code = "import sys, workbench.views; dir(workbench.views); print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True).stdout
    assert {"numpy", "pandas", "networkx", "bokeh", "PIL", "numba"}.isdisjoint(loaded.split())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_message_of_a_protocol_has_a_colour(name):
    protocol = getattr(wb, name)()
    assert message_colours(protocol)
    assert palette.OTHER_MESSAGE not in message_colours(protocol).values()


def test_a_subclass_of_a_protocol_has_its_colours():
    colours = message_colours(wb.Pub2Sub())
    assert colours == message_colours(wb.TinyMQ())
    assert palette.message_colour(tinymq_wire.NAMES[tinymq_wire.QUERY], colours) == palette.INTEREST


def test_a_custom_protocol_gives_the_looks_of_its_messages():
    colours = message_colours(Probing())
    assert palette.message_colour("probe", colours) == palette.INTEREST
    assert palette.message_colour("flood", colours) == palette.DATA
    assert palette.message_colour("other", colours) == palette.OTHER_MESSAGE


def test_messages_without_a_protocol_have_neutral_colours():
    assert message_colours(SimpleNamespace()) == {}
