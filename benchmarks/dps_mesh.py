"""DPS over meshes of many nodes: its twin on the fast engine compared with its nodes on the reference engine.

20 sinks subscribe to a number each, and 20 sources publish those numbers, on grids with ideal links. In a run the mesh
links itself, mutes its loops and spreads interests, and then forwards publications along them. A separate process plays
each mesh, without a trace; if both engines play a mesh, their counts must agree. Times are process times of one thread,
with the preparation of a run; memory is the peak of the process before the reference engine starts.
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
# Interests travel one hop in each UPDATE_S.
UPDATE_S = 0.1
DURATION_S = 120.0


def scenario(side: int, filter_bits: int) -> wb.Scenario:
    """Return the scenario on a grid of ``side`` × ``side`` nodes, with filters of ``filter_bits`` bits."""
    count = side * side
    ends = [(round(k * count / (2 * ENDS)) + k * side // 7) % count for k in range(2 * ENDS)]
    settled_s = DURATION_S / 2
    workload = [wb.subscribe(ends[2 * k], f"INSTANCE EQ {k}", start_s=2) for k in range(ENDS)]
    for k in range(ENDS):
        reading = f"INSTANCE IS {k}, TEMP IS 26"
        workload.append(wb.publish(ends[2 * k + 1], reading, every_s=10, start_s=settled_s, stagger=True))
    protocol = wb.DPS(filter_bits=filter_bits, update_s=UPDATE_S)
    return wb.Scenario(wb.topology.grid(side, side), protocol, workload, duration_s=DURATION_S)


def time_run(mesh_scenario: wb.Scenario, engine: str) -> tuple[float, wb.Run]:
    """Play a scenario without a trace; return its process time in seconds, and the run."""
    began_s = time.process_time()
    run = mesh_scenario.run(engine=engine, record="metrics")
    return time.process_time() - began_s, run


def measure_mesh(side: int, filter_bits: int, both: bool) -> dict[str, float]:
    """Play a mesh on the fast engine, and with ``both`` on the reference engine too; return the numbers of a table row.

    ``reference_s`` is None if the reference engine did not play.
    """
    mesh_scenario = scenario(side, filter_bits)
    time_run(scenario(3, 64), "fast")  # Load the twin first.
    fast_s, run = time_run(mesh_scenario, "fast")
    memory_MB = peak_MB()
    counts, _ = run._recorder.tally()
    reference_s = None
    if both:
        reference_s, other = time_run(mesh_scenario, "reference")
        if other._recorder.tally() != run._recorder.tally():
            raise WorkbenchError(f"the counts of the engines differ on the grid of {side} x {side}")
    return {
        "nodes": side * side,
        "bits": filter_bits,
        "of_links": counts["sent", "subscription", ""] + counts["sent", "subscription ack", ""],
        "publications": counts["sent", "publication", ""],
        "delivery": run.metrics["delivery_ratio"],
        "s": fast_s,
        "reference_s": reference_s,
        "MB": memory_MB,
    }


def report(quick: bool = False) -> Iterator[str]:
    """Yield the table of meshes, and a note that explains it, in Markdown; ``quick``: small meshes only."""
    rows = []
    for mesh in QUICK_MESHES if quick else MESHES:
        command = [sys.executable, __file__, "--mesh", json.dumps(mesh)]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        numbers = json.loads(process.stdout.splitlines()[-1])
        frames = numbers["of_links"] + numbers["publications"]
        reference_s = numbers["reference_s"]
        rows.append(
            [
                f"{numbers['nodes']:,}",
                f"{numbers['bits']:,}",
                f"{numbers['of_links']:,}",
                f"{numbers['publications']:,}",
                f"{100 * numbers['delivery']:.0f}%",
                f"{numbers['s']:.2f}",
                f"{numbers['s'] / frames * 1e6:.1f}",
                "-" if reference_s is None else f"{reference_s:.1f}",
                "-" if reference_s is None else f"{reference_s / frames * 1e6:.0f}",
                "-" if reference_s is None else ratio(reference_s / numbers["s"]),
                f"{numbers['MB']:,.0f}",
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
        print(json.dumps(measure_mesh(*json.loads(arguments.mesh))))
        return
    for text in report(arguments.quick):
        print(text, flush=True)


if __name__ == "__main__":
    main()
