"""A sweep on a cluster that is disturbed: ``benchmarks/sweeps_cluster.py [--points 2000]``.

A standalone cluster of Spark on the loopback, a master and two workers of one core, one of them without the package,
runs a sweep of which one point ends its process and one never ends. A second driver tries the same folder. A worker is
killed with SIGKILL, then the driver; the processes of this machine run the rest. In the end every point is in the
folder once, two say what happened, and all others are what an undisturbed run in one process gives; else this fails.
It is the story of tests/sweeps/test_cluster.py, with more points. Needs Java.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from machine import machine
from tables import table

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.sweeps import disturbed
from workbench import java


def main() -> None:
    """Play it, and print its steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=2000, help="how many, 2000 if not given; 100 at least")
    points = parser.parse_args().points
    if points < 100:
        parser.error("points must be 100 at least: some have to be left when the driver is killed")
    if not java.find_java().is_ok:
        sys.exit(f"there is no Java: {java.REMEDY}")
    print(f"# A sweep of {points:,} points on a cluster that is disturbed\n\n{machine()}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        story = disturbed.play(Path(folder), points)
        steps = [(step.what, f"{step.seconds:.1f}", f"{step.points:,}") for step in story.steps]
        print(table(["", "after (s)", "points kept"], steps), flush=True)
        print(f"\nThe second driver was told: {story.refused.replace(folder, '...')}.")
        begin = time.perf_counter()
        disturbed.check(Path(folder) / "results", story, points)
    print(
        f"Each of the {points:,} points is there once; two say what happened, and {points - 2:,} are those of a run in "
        f"one process ({time.perf_counter() - begin:.0f} s)."
    )


if __name__ == "__main__":
    main()
