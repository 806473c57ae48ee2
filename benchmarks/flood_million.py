"""A flood of 1,000,000 nodes on the fast engine: its memory, and its time per reception compared with a smaller grid.

A separate process plays each grid, from arrays: the objects of a graph library would take gigabytes before the first
frame. Memory is the peak of the process. ``benchmarks/flood_million.py`` prints the table.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator

from peak_memory import peak_MB
from tables import ratio, table

SIDES = (100, 1000)
RECEPTIONS = 12_000_000


def grid(side: int):
    """Return a grid of side × side nodes, 5 m apart, as a network of arrays for the fast engine."""
    import numpy as np

    from workbench.sim.fast import network

    nodes = np.arange(side * side, dtype=np.int64).reshape(side, side)
    pairs = [np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()]), np.stack([nodes[:-1].ravel(), nodes[1:].ravel()])]
    one_way = np.concatenate(pairs, axis=1).T
    positions_m = 5.0 * np.stack(np.divmod(np.arange(side * side), side), axis=1)
    return network.from_arrays(nodes.ravel(), positions_m, np.concatenate([one_way, one_way[:, ::-1]]), np.ones(1))


def measure_floods(side: int) -> dict[str, float]:
    """Play floods from the middle of a grid for about RECEPTIONS receptions; return the numbers of a table row.

    ``ns`` is the process time per reception in ns, ``MB`` the peak of memory.
    """
    from workbench import Flooding, publish
    from workbench.sim import fast

    network_arrays = grid(side)
    floods = max(1, round(RECEPTIONS / len(network_arrays.receivers)))
    middle = side * side // 2 + side // 2
    fast.play(grid(3), Flooding(), [publish(4, "TEMP IS 26")], duration_s=1)  # Load the twin first.
    began_s = time.process_time()
    outcome = fast.play(network_arrays, Flooding(), [publish(middle, "TEMP IS 26", every_s=10)], duration_s=10 * floods)
    took_s = time.process_time() - began_s
    counts, _ = outcome.tally()
    receptions = counts["received", "flood", ""]
    assert receptions == floods * len(network_arrays.receivers), f"{receptions} receptions of {floods} floods"
    return {
        "nodes": side * side,
        "floods": floods,
        "receptions": receptions,
        "ns": took_s / receptions * 1e9,
        "MB": peak_MB(),
    }


def report() -> Iterator[str]:
    """Yield the table of floods in pieces of Markdown."""
    played = []
    for side in SIDES:
        process = subprocess.run([sys.executable, __file__, str(side)], capture_output=True, text=True, check=True)
        played.append(json.loads(process.stdout.splitlines()[-1]))
    first = played[0]
    rows = [
        [
            f"{numbers['nodes']:,}",
            f"{numbers['floods']:,}",
            f"{numbers['receptions']:,}",
            f"{numbers['ns']:.1f}",
            ratio(numbers["ns"] / first["ns"]),
            f"{numbers['MB']:,.0f}",
        ]
        for numbers in played
    ]
    yield table(["nodes", "floods", "receptions", "ns a reception", "to the first", "MB at most"], rows) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure_floods(int(sys.argv[1]))))
    else:
        print(*report(), sep="\n")
