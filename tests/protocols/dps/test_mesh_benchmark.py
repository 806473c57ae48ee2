"""The benchmark of DPS meshes: both engines play it, and everything is delivered."""

import sys

from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "benchmarks"))
import dps_mesh


def test_both_engines_play_a_mesh_and_everything_is_delivered():
    played = dps_mesh.measure_mesh(7, 256, True)
    assert played["delivery"] == 1.0
    assert played["publications"] > 0
    assert played["s"] > 0 and played["reference_s"] > 0


def test_large_meshes_are_left_to_the_fast_engine():
    assert dps_mesh.measure_mesh(4, 64, False)["reference_s"] is None
