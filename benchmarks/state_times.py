"""The cost of the ledger of radio states (`workbench.sim.state_times`) in the fast engine, as a ratio within one run.

Each protocol plays the same scenario on 1,500 nodes twice: on a CC2420, and on the same radio without its currents, so
that no ledger is kept. Runs alternate; the table shows the minima of process time.
``benchmarks/state_times.py [repetitions]``
"""

import dataclasses
import sys
import time
from typing import Any

from tables import table

import workbench as wb

NODES = 1500
PROTOCOLS = {
    "Flooding": wb.Flooding(),
    "Diffusion": wb.Diffusion(),
    "TinyMQ": wb.TinyMQ(),
    "DPS": wb.DPS(),
}


def scenario(protocol: Any, radio: wb.Radio) -> wb.Scenario:
    """Return 30 sources and 3 sinks on a random network of 1,500 nodes, for 60 s."""
    topology = wb.topology.random_geometric(NODES, width_m=600, height_m=600)
    workload = [
        wb.subscribe([0, 500, 1000], "TEMP GE 20"),
        wb.publish(list(range(25, NODES, 50)), "TEMP IS 26", every_s=10, start_s=10, stagger=True),
    ]
    return wb.Scenario(topology, protocol, workload, radio, 60, 1)


def measure(played: wb.Scenario) -> tuple[float, float]:
    """Return the process time in s of a run that records metrics only, and the number of its frames."""
    start = time.process_time()
    run = played.run(engine="fast", record="metrics")
    return time.process_time() - start, run.metrics["transmissions"]


def main() -> None:
    """Print a row for each protocol."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    metered = wb.radios.cc2420()
    plain = dataclasses.replace(metered, tx_mA=0.0, rx_mA=0.0)
    rows = []
    for name, protocol in PROTOCOLS.items():
        scenarios = [scenario(protocol, radio) for radio in (plain, metered)]
        for played in scenarios:
            measure(played)  # loads the machine code
        rounds = [[measure(played) for played in scenarios] for _ in range(repetitions)]
        plain_s, metered_s = (min(runs[index][0] for runs in rounds) for index in (0, 1))
        frames = rounds[0][1][1]
        cells = f"{frames:,.0f}", f"{1000 * plain_s:,.0f}", f"{1000 * metered_s:,.0f}", f"{metered_s / plain_s:.2f}"
        rows.append([name, *cells])
    print(table(["protocol", "frames", "without, ms", "with ledger, ms", "ratio"], rows))


if __name__ == "__main__":
    main()
