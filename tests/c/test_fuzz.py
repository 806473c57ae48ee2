"""Fuzzed frames never make a node in C access memory out of bounds, rely on undefined behavior, or fall silent."""

import os
import subprocess
import sys

import pytest

from tests.c.fuzzing import CASES, fuzz, fuzz_cortex_m3, why_no_cortex_m3
from tests.c_nodes import SANITIZERS, compile_c, needs_compiler
from tests.repository import REPOSITORY

pytestmark = needs_compiler
no_cortex_m3 = why_no_cortex_m3()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("frames", [10_000, pytest.param(100_000, marks=pytest.mark.family)])
def test_random_frames_do_a_node_no_harm(case, frames, tmp_path):
    output = fuzz(case, frames, tmp_path)
    counts = {name: int(count) for name, count in (part.rsplit(" ", 1) for part in output.split(", ")[3:])}
    assert output.startswith(f"{frames} frames, ")
    # If all frames were noise, or all duplicates, the test would prove little.
    assert 0.01 < counts["malformed"] / frames < 0.4 and 0.01 < counts["duplicate"] / frames < 0.7


ON_CORTEX_M3 = ("diffusion, strict", "flooding")  # the other cases compile the same files in other sizes


@pytest.mark.skipif(no_cortex_m3 is not None, reason=str(no_cortex_m3))
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in ON_CORTEX_M3 else pytest.mark.family) for case in CASES]
)
def test_node_on_a_cortex_m3_sends_and_reports_the_same_as_on_this_machine(case, tmp_path):
    assert fuzz_cortex_m3(case, 5_000, tmp_path) == fuzz(case, 5_000, tmp_path, options=("-O0",))


@pytest.mark.family  # The tests above, and those of test_process.py, run the same code under sanitizers.
def test_differential_tests_hold_under_sanitizers():
    runtime = compile_c(["-print-file-name=libasan.so"]).strip()
    # Python itself is not instrumented: the sanitizer is loaded before it, and leaks of Python are ignored.
    variables = {
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",
        "C_NODES_OPTIONS": " ".join(("-O1", *SANITIZERS)),
    }
    files = ["tests/protocols/diffusion/test_c.py", "tests/c/test_attributes.py"]
    selection = "small and live or room_for_another or compare or put_together"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", selection, *files]
    environment = os.environ | variables | {"PYTHONPATH": str(REPOSITORY)}
    process = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=400)
    assert process.returncode == 0, f"{process.stdout[-4000:]}\n{process.stderr[-4000:]}"
