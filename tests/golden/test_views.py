"""Golden views: drawings, tables and pages of small runs must equal the recorded texts."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import workbench as wb
from tests.golden import pictures, renew_views

RECORDED = renew_views.recorded()


def without_bokeh(views):
    return {name: view for name, view in views.items() if not name.startswith(pictures.OF_BOKEH)}


@pytest.mark.parametrize("group", pictures.GROUPS)
def test_golden_views_equal_the_recorded_texts(group):
    expected, actual = RECORDED["views"][group], renew_views.outcome(pictures.texts(group))
    if version("bokeh") != RECORDED["bokeh"]:
        expected, actual = without_bokeh(expected), without_bokeh(actual)
    assert list(actual) == list(expected)
    changed = {name: (expected[name], actual[name]) for name in expected if actual[name] != expected[name]}
    assert not changed, "see tests/golden/renew_views.py"


def test_recorded_groups_are_the_groups_of_the_pictures():
    assert list(RECORDED["views"]) == list(pictures.GROUPS)


def test_every_public_view_is_in_a_group_or_left_out_on_purpose():
    source = Path(pictures.__file__).read_text(encoding="utf-8")
    looked_at = set(re.findall(r"views\.(\w+)", source))
    public = {name for owner in (wb, wb.coded_diffusion, wb.dps, wb.tinymq) for name in dir(owner.views)}
    assert public - looked_at == set(pictures.LEFT_OUT)
