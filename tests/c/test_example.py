"""The example application, and how much memory and code the library needs on a mote."""

import shutil
import subprocess
import sys

import pytest

from tests.c_nodes import LIBRARY, SANITIZERS, WARNINGS, compile_c, includes, needs_compiler, sources
from tests.repository import REPOSITORY
from tests.until import PATIENCE_S

sys.path.append(str(REPOSITORY / "hardware"))
import c_memory

from workbench.motes import in_c

needs_cross_compiler = pytest.mark.skipif(
    shutil.which(c_memory.COMPILER) is None,
    reason=f"{c_memory.COMPILER} is missing: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi",
)


@needs_compiler
def test_example_delivers_the_readings_that_its_filters_pass(tmp_path):
    program = tmp_path / "example"
    flags = [*WARNINGS, *SANITIZERS, *includes("diffusion"), *sources("diffusion")]
    compile_c([*flags, str(LIBRARY / "example" / "example.c"), "-o", str(program)])
    output = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    # 26.8 and 27.1 are within half a degree of the reading before, and 24 does not match the subscription.
    assert output.splitlines() == ["mote 1: 26.50 °C at mote 3", "mote 1: 27.20 °C at mote 3"]


@needs_cross_compiler
def test_strict_node_of_a_small_mote_leaves_half_of_ten_kilobytes():
    assert c_memory.node_B(MESSAGE_B=29, **c_memory.SMALLER) <= 5 * 1024
    assert c_memory.node_B(MESSAGE_B=29) <= 16.5 * 1024 < c_memory.node_B(MESSAGE_B=60) <= 24 * 1024


@pytest.mark.skipif(in_c.missing(in_c.CORTEX_M3) is not None, reason=str(in_c.missing(in_c.CORTEX_M3)))
@pytest.mark.parametrize("filters", [c_memory.FILTERS[:1], pytest.param((), marks=pytest.mark.family)])
def test_image_of_a_small_strict_mote_fits_ten_kilobytes_with_a_stack_that_is_never_full(filters):
    protocol = c_memory.protocol_of({"MESSAGE_B": 29, **c_memory.SMALL}, filters)
    whole = in_c.footprint(protocol)
    assert whole.ram_B <= c_memory.GOAL_B and whole.flash_B <= 32 * 1024
    # The measured depth is at most the sum of the frames along the calls.
    bound_B = c_memory.stack_bound_B(bool(filters))
    assert 800 < c_memory.deepest_stack_B(protocol) <= bound_B <= whole.stack_B - in_c.STACK_GUARD_B


@needs_cross_compiler
def test_code_and_stack_stay_small():
    assert c_memory.code_B() <= 19 * 1024
    assert c_memory.frames()[0].size_B <= 400
