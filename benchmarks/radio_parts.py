"""The cost of the radio's parts in the fast engine, as ratios within one run: 1,500 nodes.

Each protocol plays the same scenario on a CC2420 without currents, frame limit and capture ("plain"), and with one part
added: the ledger of radio states (`workbench.sim.state_times`), the limit of frames, capture, low-power listening, or
link qualities learned from beacons. Runs alternate, and ratios are those of the minima of process time. The last three
parts change the number of frames, so their times are divided by it.
``benchmarks/radio_parts.py [repetitions]``
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
    """Return a scenario of 60 s with 30 sources and 3 sinks on a random network of 1,500 nodes."""
    topology = wb.topology.random_geometric(NODES, width_m=600, height_m=600)
    workload = [
        wb.subscribe([0, 500, 1000], "TEMP GE 20"),
        wb.publish(list(range(25, NODES, 50)), "TEMP IS 26", every_s=10, start_s=10, stagger=True),
    ]
    return wb.Scenario(topology, protocol, workload, radio, 60, 1)


def measure(played: wb.Scenario) -> tuple[float, float]:
    """Run a scenario on the fast engine without a trace, and return (process time in s, number of frames)."""
    start = time.process_time()
    run = played.run(engine="fast", record="metrics")
    return time.process_time() - start, run.metrics["transmissions"]


def main() -> None:
    """Measure each protocol, and print the table."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    preset = wb.radios.cc2420()
    plain = dataclasses.replace(preset, tx_mA=0.0, rx_mA=0.0, max_frame_B=0, link_quality="true")
    radios = {
        "plain": plain,
        "ledger": dataclasses.replace(plain, tx_mA=preset.tx_mA, rx_mA=preset.rx_mA),
        "frame limit": dataclasses.replace(plain, max_frame_B=preset.max_frame_B),
        "capture": dataclasses.replace(plain, capture_dB=3.0),
        "low power": dataclasses.replace(plain, wake_interval_ms=125.0, jitter_ms=(0.0, 500.0)),
        "learned": dataclasses.replace(plain, link_quality="learned"),
    }
    rows = []
    for name, protocol in PROTOCOLS.items():
        scenarios = [scenario(protocol, radio) for radio in radios.values()]
        for played in scenarios:
            measure(played)  # loads the machine code
        rounds = [[measure(played) for played in scenarios] for _ in range(repetitions)]
        seconds = [min(results[index][0] for results in rounds) for index in range(len(radios))]
        frames = [count for _, count in rounds[0]]
        same_work = [f"{seconds[index] / seconds[0]:.2f}" for index in (1, 2)]
        per_frame = [f"{seconds[index] / frames[index] / (seconds[0] / frames[0]):.2f}" for index in (3, 4, 5)]
        rows.append([name, f"{frames[0]:,.0f}", f"{1000 * seconds[0]:,.0f}", *same_work, *per_frame])
    header = [
        "protocol",
        "frames",
        "plain, ms",
        *list(radios)[1:3],
        *(f"{part}, per frame" for part in list(radios)[3:]),
    ]
    print(table(header, rows))


if __name__ == "__main__":
    main()
