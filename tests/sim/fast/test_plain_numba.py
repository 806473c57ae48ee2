"""Twins compiled without `private_numba`, as with an unsupported version of numba, give the same traces."""

import os
import subprocess
import sys

import pytest

from tests.repository import REPOSITORY

PLAY = """
import sys
import workbench as wb

workload = [wb.subscribe(0, "TEMP GE 20"), wb.subscribe(7, "TEMP GE 25"), wb.publish(24, "TEMP IS 26", every_s=5)]
radio = wb.Radio(collisions=True, csma=True, retries=2)
scenario = wb.Scenario(wb.topology.grid(5, 5), eval(sys.argv[1]), workload, radio=radio)
assert scenario.run(engine="fast").trace_hash == scenario.run(engine="reference").trace_hash
assert "workbench.sim.fast.private_numba" not in sys.modules
"""


# Without `private_numba` the larger twins take up to minutes to compile.
@pytest.mark.family
@pytest.mark.parametrize("protocol", ["wb.Flooding()"])
def test_plain_numba_gives_the_same_trace(protocol, tmp_path):
    path = os.pathsep.join((str(REPOSITORY), os.environ.get("PYTHONPATH", "")))
    environment = os.environ | {"WORKBENCH_PLAIN_NUMBA": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
    command = [sys.executable, "-c", PLAY, protocol]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
    assert ran.returncode == 0, ran.stderr
