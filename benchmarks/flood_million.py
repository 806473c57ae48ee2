"""A flood of 1,000,000 nodes on the fast engine: its memory, and its time per reception beside a smaller grid's.

A process of its own plays each grid, from arrays: the objects of a graph library would take gigabytes before the first
frame. Memory is the most that the process ever held. ``benchmarks/flood_million.py`` prints the table.
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
    """A grid of side × side nodes, 5 m apart, as arrays."""
    import numpy as np

    from workbench.sim.fast import network

    place = np.arange(side * side, dtype=np.int64).reshape(side, side)
    pairs = [np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()]), np.stack([place[:-1].ravel(), place[1:].ravel()])]
    one_way = np.concatenate(pairs, axis=1).T
    positions_m = 5.0 * np.stack(np.divmod(np.arange(side * side), side), axis=1)
    return network.from_arrays(place.ravel(), positions_m, np.concatenate([one_way, one_way[:, ::-1]]), np.ones(1))


def play(side: int) -> dict[str, float]:
    """Floods from the middle of a grid until there were RECEPTIONS: {"ns": a reception's, "MB": at most, ...}."""
    from workbench import Flooding, publish
    from workbench.sim import fast

    made = grid(side)
    floods = max(1, round(RECEPTIONS / len(made.receivers)))
    middle = side * side // 2 + side // 2
    fast.play(grid(3), Flooding(), [publish(4, "TEMP IS 26")], duration_s=1)  # So that it is loaded.
    began_s = time.process_time()
    outcome = fast.play(made, Flooding(), [publish(middle, "TEMP IS 26", every_s=10)], duration_s=10 * floods)
    took_s = time.process_time() - began_s
    counts, _ = outcome.tally()
    receptions = counts["received", "flood", ""]
    assert receptions == floods * len(made.receivers), f"{receptions} receptions of {floods} floods"
    return {
        "nodes": side * side,
        "floods": floods,
        "receptions": receptions,
        "ns": took_s / receptions * 1e9,
        "MB": peak_MB(),
    }


def report() -> Iterator[str]:
    """The table, and what it says."""
    played = []
    for side in SIDES:
        ran = subprocess.run([sys.executable, __file__, str(side)], capture_output=True, text=True, check=True)
        played.append(json.loads(ran.stdout.splitlines()[-1]))
    first = played[0]
    rows = [
        [
            f"{one['nodes']:,}",
            f"{one['floods']:,}",
            f"{one['receptions']:,}",
            f"{one['ns']:.1f}",
            ratio(one["ns"] / first["ns"]),
            f"{one['MB']:,.0f}",
        ]
        for one in played
    ]
    yield table(["nodes", "floods", "receptions", "ns a reception", "to the first", "MB at most"], rows) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(play(int(sys.argv[1]))))
    else:
        print(*report(), sep="\n")
