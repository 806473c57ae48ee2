"""A mote's memory: the program fits with TinyDiffusion and coded diffusion, and the table of settings adds up."""

import sys

import pytest

from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "hardware"))
import interpreter
import memory

from workbench.motes.probes import MOST_NEIGHBORS

missing = interpreter.why_missing()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))


def test_program_and_node_fit_in_64_KiB_with_the_sizes_of_the_definition_file():
    totals = memory.totals_B()
    assert totals["empty"] < totals["in use"] <= memory.BUDGET_B < 65537
    assert totals["in use"] < totals["full"]


def test_memory_grows_with_the_entries_as_the_table_predicts():
    table = {setting.name: setting for setting in memory.settings_table()}
    assert list(table) == list(memory.SIZES)
    assert all(8 <= setting.entry_B <= 1000 for setting in table.values())
    more, less = memory.nodes_B(memory.full_node({"max_data": 30}), memory.full_node({"max_data": 20}))
    assert more - less == pytest.approx(10 * table["max_data"].entry_B, rel=0.5)


def test_a_mote_loads_exactly_the_listed_files():
    names = [file.name for file in memory.loaded_files()]
    assert names == list(memory.LOADED)
    assert not {
        "workbench/attributes/keys",
        "workbench/attributes/text",
        "workbench/protocols/diffusion/filters",
    } & set(names)


def test_estimator_of_twenty_links_needs_at_most_ten_kilobytes():
    program_B, neighbor_B = memory.estimator_B()
    assert 0 < program_B + 20 * neighbor_B < 10 * 1024


@pytest.mark.parametrize("order", [2, 16, 256, 65536])
def test_program_and_decoder_fit_in_64_KiB(order):
    totals = memory.coded_totals_B(order)
    assert all(total <= memory.BUDGET_B for total in totals.values()), totals
    small_B, *kilobytes_B = [total - totals["empty"] for name, total in totals.items() if name != "empty"]
    # They hold the rows, the event's bytes, its attributes, a packet, and the field's tables.
    assert 64 < small_B < 4 * 1024 < min(kilobytes_B) <= max(kilobytes_B) < 10 * 1024


def test_a_mote_loads_exactly_the_listed_files_for_coded_diffusion():
    names = [file.name for file in memory.loaded_files(memory.LOADED_CODED)]
    assert names == list(memory.LOADED_CODED)
    assert not {"workbench/protocols/diffusion/node", "workbench/attributes/keys", "workbench/attributes/text"} & set(
        names
    )


def test_a_measurement_of_links_fits_in_64_KiB_with_the_most_neighbors():
    program_B, node_B, neighbor_B = memory.probes_B()
    assert 0 < program_B + node_B + MOST_NEIGHBORS * neighbor_B < memory.BUDGET_B
    assert 8 <= neighbor_B <= 100
