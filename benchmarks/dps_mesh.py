"""DPS over meshes of many nodes: its twin on the fast engine beside its definition on the reference engine.

20 sinks ask for a number each, and 20 sources publish those numbers, on grids with ideal links. So a run is how the
mesh links itself, mutes its loops and spreads interests, and then publications along them. A process of its own plays
each mesh, without a trace; where both engines play one they must count the same. Process time of one thread, with what
prepares a run; memory is the most that the process with the fast engine alone ever held.
``benchmarks/dps_mesh.py [--quick]`` prints the table.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator

from peak_memory import peak_MB
from tables import ratio, table

import workbench as wb
from workbench.errors import WorkbenchError

# Side of the grid, bits of a filter, and whether the reference engine plays it too.
SMALL_MESHES = ((10, 8192, True), (20, 8192, True), (30, 8192, True))
MESHES = (*SMALL_MESHES, (100, 8192, False), (100, 256, False), (300, 8192, False))
QUICK_MESHES = SMALL_MESHES[:1]
ENDS = 20
# Interests go a hop in each UPDATE_S.
UPDATE_S = 0.1
DURATION_S = 120.0


def scenario(side: int, filter_bits: int) -> wb.Scenario:
    """The scenario on a grid of side × side nodes."""
    count = side * side
    ends = [(round(k * count / (2 * ENDS)) + k * side // 7) % count for k in range(2 * ENDS)]
    settled_s = DURATION_S / 2
    workload = [wb.subscribe(ends[2 * k], f"INSTANCE EQ {k}", start_s=2) for k in range(ENDS)]
    for k in range(ENDS):
        reading = f"INSTANCE IS {k}, TEMP IS 26"
        workload.append(wb.publish(ends[2 * k + 1], reading, every_s=10, start_s=settled_s, stagger=True))
    protocol = wb.DPS(filter_bits=filter_bits, update_s=UPDATE_S)
    return wb.Scenario(wb.topology.grid(side, side), protocol, workload, duration_s=DURATION_S)


def played(made: wb.Scenario, engine: str) -> tuple[float, wb.Run]:
    """A run without a trace, and its seconds of process time."""
    began_s = time.process_time()
    run = made.run(engine=engine, record="metrics")
    return time.process_time() - began_s, run


def play(side: int, filter_bits: int, both: bool) -> dict[str, float]:
    """Both engines on a mesh, the reference engine last; None for what was not played."""
    made = scenario(side, filter_bits)
    played(scenario(3, 64), "fast")  # So that it is loaded.
    took_s, run = played(made, "fast")
    held_MB = peak_MB()
    counts, _ = run._recorder.tally()
    reference_s = None
    if both:
        reference_s, other = played(made, "reference")
        if other._recorder.tally() != run._recorder.tally():
            raise WorkbenchError(f"the engines count other things on the grid of {side} x {side}")
    return {
        "nodes": side * side,
        "bits": filter_bits,
        "of_links": counts["sent", "subscription", ""] + counts["sent", "subscription ack", ""],
        "publications": counts["sent", "publication", ""],
        "delivery": run.metrics["delivery_ratio"],
        "s": took_s,
        "reference_s": reference_s,
        "MB": held_MB,
    }


def report(quick: bool = False) -> Iterator[str]:
    """The table, and what it says."""
    rows = []
    for mesh in QUICK_MESHES if quick else MESHES:
        command = [sys.executable, __file__, "--mesh", json.dumps(mesh)]
        one = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        frames = one["of_links"] + one["publications"]
        reference_s = one["reference_s"]
        rows.append(
            [
                f"{one['nodes']:,}",
                f"{one['bits']:,}",
                f"{one['of_links']:,}",
                f"{one['publications']:,}",
                f"{100 * one['delivery']:.0f}%",
                f"{one['s']:.2f}",
                f"{one['s'] / frames * 1e6:.1f}",
                "-" if reference_s is None else f"{reference_s:.1f}",
                "-" if reference_s is None else f"{reference_s / frames * 1e6:.0f}",
                "-" if reference_s is None else ratio(reference_s / one["s"]),
                f"{one['MB']:,.0f}",
            ]
        )
    yield table(
        [
            "nodes",
            "filter, bits",
            "frames of links",
            "of publications",
            "delivered",
            "compiled, s",
            "µs a frame",
            "reference, s",
            "µs a frame",
            "times as fast",
            "MB",
        ],
        rows,
    )
    yield f"{DURATION_S:.0f} simulated seconds; where less than all is delivered, interests had not come everywhere."


def main() -> None:
    """Print the table, or play one mesh."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="the smallest mesh alone")
    parser.add_argument("--mesh", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mesh:
        print(json.dumps(play(*json.loads(arguments.mesh))))
        return
    for text in report(arguments.quick):
        print(text, flush=True)


if __name__ == "__main__":
    main()
