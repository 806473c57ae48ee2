"""Colours: each one has a dark counterpart that is as distinct on a dark background as the colour is on white."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.views import palette

COLOURS = st.tuples(*[st.integers(0, 255)] * 3).map(lambda parts: "#" + "".join(f"{part:02X}" for part in parts))


def hue(colour):
    _, a, b = palette._to_oklab(palette.rgb(colour))
    return np.degrees(np.arctan2(b, a)), np.hypot(a, b)


@given(COLOURS)
def test_colours_readable_on_white_are_readable_on_the_dark_background(colour):
    if palette.contrast(colour, palette.BACKGROUND) >= palette.READABLE:
        assert palette.contrast(palette.in_dark(colour), palette.DARK_BACKGROUND) >= palette.READABLE


@given(COLOURS)
def test_a_strong_colour_keeps_its_hue_on_the_dark_background(colour):
    before, chroma = hue(colour)
    after, dark_chroma = hue(palette.in_dark(colour))
    if chroma > 0.1 and dark_chroma > 0.05:
        assert abs((after - before + 180) % 360 - 180) < 8


@pytest.mark.parametrize("name", ["NODE", "GRID", "LINK_POOR", "RANK_LOW"])
def test_pale_colours_on_white_are_faint_on_the_dark_background(name):
    colour = getattr(palette, name)
    assert 1.05 < palette.contrast(colour, palette.BACKGROUND) < 1.6
    assert 1.05 < palette.contrast(palette.in_dark(colour), palette.DARK_BACKGROUND) < 1.6


def test_the_background_has_a_dark_counterpart():
    assert palette.in_dark(palette.BACKGROUND) == palette.DARK_BACKGROUND
    assert palette.in_dark("#ffffff") == palette.DARK_BACKGROUND


def test_ranks_links_and_shades_of_one_hue_keep_their_order_on_the_dark_background():
    def reds(share):
        return palette.blend("#FFF6DC", "#7A1C12", share)

    for colour_of in (palette.rank_colour, palette.link_colour, reds):
        contrasts = [palette.contrast(palette.in_dark(colour_of(i / 10)), palette.DARK_BACKGROUND) for i in range(11)]
        assert all(darker < lighter for darker, lighter in itertools.pairwise(contrasts))


def test_contrast_follows_the_accessibility_guidelines():
    assert palette.contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert palette.contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
