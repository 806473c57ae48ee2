"""A sweep on a cluster with failures: ``benchmarks/sweeps_cluster.py [--points 2000]``.

A standalone cluster of Spark on the loopback runs the sweep. It has a master and two workers of one core, of which one
lacks the package. One point ends its process, and one never ends. A second driver tries to use the same folder. A
worker is killed with SIGKILL, then the driver; processes of this machine run the remaining points.

In the end every point must be in the folder once. Two points must report their failure, and all others must equal those
of an undisturbed run in one process; otherwise the program fails. It plays the steps of tests/sweeps/test_cluster.py
with more points. It needs Java.
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
    """Run the sweep on a cluster with failures, and print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=2000, help="number of points, at least 100; 2000 by default")
    points = parser.parse_args().points
    if points < 100:
        parser.error("points must be at least 100, so that some are left when the driver is killed")
    if not java.find_java().is_ok:
        sys.exit(f"Java is missing: {java.REMEDY}")
    print(f"# A sweep of {points:,} points on a cluster that is disturbed\n\n{machine()}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        story = disturbed.play(Path(folder), points)
        steps = [(step.event, f"{step.seconds:.1f}", f"{step.points:,}") for step in story.steps]
        print(table(["", "after (s)", "points kept"], steps), flush=True)
        print(f"\nThe second driver was refused: {story.refused.replace(folder, '...')}.")
        begin = time.perf_counter()
        disturbed.check(Path(folder) / "results", story, points)
    print(
        f"Each of the {points:,} points is there once; two report a failure, and {points - 2:,} equal those of a run "
        f"in one process ({time.perf_counter() - begin:.0f} s)."
    )


if __name__ == "__main__":
    main()
