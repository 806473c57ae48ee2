"""Links that contain a scenario: the round trip, links that are too long or damaged, and any text."""

import base64
import contextlib
import zlib

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.records.link import LONGEST, from_fragment, to_fragment
from workbench.widgets.laboratory import first_scenario

SCENARIO = first_scenario()


def test_a_link_contains_the_whole_scenario():
    fragment = to_fragment(SCENARIO)
    assert len(fragment) < 1_200 and from_fragment(f"http://127.0.0.1:8866/?theme=dark#{fragment}&t=3") == SCENARIO
    assert wb.open_scenario(f"http://127.0.0.1:8866/#{fragment}").hash == SCENARIO.hash


def test_a_scenario_that_is_too_large_for_a_link_is_refused():
    # A network from a table of links is stored link by link.
    links = [(a, b, (0.5 + a * 0.37 + b * 0.61) % 1) for a in range(60) for b in range(60) if a != b]
    drawn = wb.topology.from_links(pd.DataFrame(links, columns=["transmitter", "receiver", "pdr"]))
    with pytest.raises(wb.DataError, match=f"a link has at most {LONGEST:,}; save the scenario as a file instead"):
        to_fragment(SCENARIO.replace(topology=drawn, workload=()))


@pytest.mark.parametrize("cut", [3, 40, 200])
def test_a_link_that_was_cut_is_refused(cut):
    with pytest.raises(wb.DataError, match="the scenario in the link is damaged"):
        from_fragment(f"#{to_fragment(SCENARIO)[:-cut]}")


def test_a_link_that_expands_to_gigabytes_is_refused():
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 5_000_000, 9)).decode()
    with pytest.raises(wb.DataError, match="damaged"):
        from_fragment(f"#s={bomb}")


def test_a_link_without_a_scenario_is_refused():
    with pytest.raises(wb.DataError, match="the link contains no scenario"):
        from_fragment("http://127.0.0.1:8866/#t=3")


@given(
    st.text(max_size=60)
    | st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(zlib.compress(data)).decode())
)
def test_any_link_gives_a_scenario_or_an_error_of_the_workbench(text):
    with contextlib.suppress(WorkbenchError):
        from_fragment(f"#s={text}")
