"""DPS in a crowd: what its links cost where everybody hears everybody, beside TinyMQ in the same run.

The testbeds of FIT IoT-LAB in Strasbourg and Lille as they were measured (``wb.topology.testbed``, no link left out for
its length), with collisions, carrier sense and three retries. Five nodes subscribe at the start, twenty others publish
a reading every 10 s from 60 s on, each at a moment of its own, for 10 minutes; and every node is in the network.

``benchmarks/dps_radio.py`` prints a row for each testbed, protocol and seed: the share of deliveries, frames (each
retry is one more), the same by their kinds, and the ratio to TinyMQ's. Names of testbeds, or ``seeds=5``, may follow.
"""

import sys
from typing import Any

from tables import table

import workbench as wb

SITES = ("strasbourg", "lille")
SINKS, SOURCES = 5, 20
SETTLED_S, END_S = 60, 660
RADIO = wb.Radio(collisions=True, csma=True, retries=3)
PROTOCOLS: dict[str, Any] = {
    "TinyMQ": lambda nodes: wb.TinyMQ(roots=nodes[:1]),
    "DPS": lambda nodes: wb.DPS(),
}


def scenario(site: str, name: str, seed: int) -> wb.Scenario:
    """Sinks and sources spread over a testbed's nodes, by their numbers."""
    topology = wb.topology.testbed(site)
    nodes = sorted(topology)
    sinks = nodes[:: len(nodes) // SINKS][:SINKS]
    others = [node for node in nodes if node not in sinks]
    sources = others[:: len(others) // SOURCES][:SOURCES]
    workload = [
        wb.subscribe(sinks, "TEMP GE 25"),
        wb.publish(sources, "TEMP IS 26", every_s=10, start_s=SETTLED_S, stop_s=END_S - 10, stagger=True),
    ]
    return wb.Scenario(topology, PROTOCOLS[name](nodes), workload, RADIO, END_S, seed)


def main(arguments: list[str]) -> None:
    """Play each testbed with each protocol, and print the table."""
    seeds = next((int(one.removeprefix("seeds=")) for one in arguments if one.startswith("seeds=")), 1)
    sites = [one for one in arguments if "=" not in one] or SITES
    rows = []
    for site in sites:
        for seed in range(1, seeds + 1):
            frames_of_tinymq = None
            for name in PROTOCOLS:
                metrics = scenario(site, name, seed).run(record="metrics").metrics
                frames = int(metrics["transmissions"])
                frames_of_tinymq = frames_of_tinymq or frames
                kinds = ", ".join(
                    f"{key.removeprefix('sent_')} {int(count):,}"
                    for key, count in sorted(metrics.items())
                    if key.startswith("sent_") and count
                )
                ratio = f"{metrics['delivery_ratio']:.3f}"
                rows.append((site, str(seed), name, ratio, f"{frames:,}", f"{frames / frames_of_tinymq:.2f}", kinds))
    print(table(("testbed", "seed", "protocol", "delivered", "frames", "x TinyMQ", "by kind"), rows))


if __name__ == "__main__":
    main(sys.argv[1:])
