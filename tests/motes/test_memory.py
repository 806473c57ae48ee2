"""A mote's memory: the program fits with TinyDiffusion and with coded diffusion; a setting costs what it is said to."""

import sys

import pytest

from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "hardware"))
import interpreter
import memory

missing = interpreter.why_missing()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))


def test_program_and_node_fit_in_64_KiB_with_the_definition_files_sizes():
    totals = memory.totals_B()
    assert totals["empty"] < totals["in use"] <= memory.BUDGET_B < 65537
    assert totals["in use"] < totals["full"]


def test_every_entry_costs_something_and_the_totals_follow_from_the_table():
    table = {setting.name: setting for setting in memory.settings_table()}
    assert list(table) == list(memory.SIZES)
    assert all(8 <= setting.entry_B <= 1000 for setting in table.values())
    more, less = memory.nodes_B(memory.full_node({"max_data": 30}), memory.full_node({"max_data": 20}))
    assert more - less == pytest.approx(10 * table["max_data"].entry_B, rel=0.5)


def test_what_a_mote_loads_is_all_there_and_nothing_it_does_without():
    names = [file.name for file in memory.loaded_files()]
    assert names == list(memory.LOADED)
    assert not {
        "workbench/attributes/keys",
        "workbench/attributes/text",
        "workbench/protocols/diffusion/filters",
    } & set(names)


def test_estimator_of_twenty_links_takes_ten_kilobytes_at_most():
    program_B, neighbor_B = memory.estimator_B()
    assert 0 < program_B + 20 * neighbor_B < 10 * 1024


@pytest.mark.parametrize("order", [2, 16, 256, 65536])
def test_program_and_what_decoding_takes_fit_in_64_KiB(order):
    totals = memory.coded_totals_B(order)
    assert all(total <= memory.BUDGET_B for total in totals.values()), totals
    small_B, *kilobytes_B = [total - totals["empty"] for name, total in totals.items() if name != "empty"]
    # The rows, the event's bytes, its attributes, a packet, and the field's tables.
    assert 64 < small_B < 4 * 1024 < min(kilobytes_B) <= max(kilobytes_B) < 10 * 1024


def test_what_a_mote_loads_for_coded_diffusion_is_all_there():
    names = [file.name for file in memory.loaded_files(memory.LOADED_CODED)]
    assert names == list(memory.LOADED_CODED)
    assert not {"workbench/protocols/diffusion/node", "workbench/attributes/keys", "workbench/attributes/text"} & set(
        names
    )
