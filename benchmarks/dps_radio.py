"""DPS on radios: the cost of its links in dense neighborhoods, compared with TinyMQ, and its start with losses.

``strasbourg``, ``lille``   The testbeds of FIT IoT-LAB as measured (``wb.topology.testbed``, with links of any length).
``dense``   348 nodes, each of which hears about 60 others (`networks.dense_testbed`, another network for each seed).
``forms``   A grid of 25 nodes that loses a tenth of the frames, with three retries: a corner subscribes at second 1,
            the opposite corner publishes every 5 s from second 5, 15 or 60 on, until second 120.

On the first three, the radio has collisions, carrier sense and three retries. Five nodes subscribe at the start. Twenty
others publish a reading every 10 s from minute 1 on (``dense``: minute 2) for 10 minutes, each in its own phase. Every
node takes part in the network.

``benchmarks/dps_radio.py`` prints a row for each network, protocol and seed: the share of deliveries, frames (including
retries), frames by kind, and the ratio to the first protocol's frames. Names of networks, ``seeds=5``, or
``protocols=DPS`` may follow. For ``forms`` it prints a row for each start, over ``seeds`` runs.
"""

import sys
from typing import Any

from networks import dense_testbed
from tables import table

import workbench as wb

SITES = ("strasbourg", "lille", "dense")
FORMS = "forms"
SINKS, SOURCES = 5, 20
SETTLED_S = {"dense": 120}
LASTS_S = 600
RADIO = wb.Radio(collisions=True, csma=True, retries=3)
PROTOCOLS: dict[str, Any] = {
    "TinyMQ": lambda nodes: wb.TinyMQ(roots=nodes[:1]),
    "DPS": lambda nodes: wb.DPS(),
}


def scenario(site: str, name: str, seed: int) -> wb.Scenario:
    """Return the scenario of a dense network, whose sinks and sources are spread over the node numbers.

    ``site`` is the name of the network, ``name`` that of the protocol.
    """
    topology = dense_testbed(seed=seed) if site == "dense" else wb.topology.testbed(site)
    nodes = sorted(topology)
    sinks = nodes[:: len(nodes) // SINKS][:SINKS]
    others = [node for node in nodes if node not in sinks]
    sources = others[:: len(others) // SOURCES][:SOURCES]
    settled_s = SETTLED_S.get(site, 60)
    end_s = settled_s + LASTS_S
    workload = [
        wb.subscribe(sinks, "TEMP GE 25"),
        wb.publish(sources, "TEMP IS 26", every_s=10, start_s=settled_s, stop_s=end_s - 10, stagger=True),
    ]
    return wb.Scenario(topology, PROTOCOLS[name](nodes), workload, RADIO, end_s, seed)


def forming_scenario(start_s: int, seed: int, protocol: Any = None) -> wb.Scenario:
    """Return a scenario on a grid: one corner publishes from ``start_s`` seconds on, the opposite corner subscribes.

    The DPS mesh may still form when the first readings are published. ``protocol`` None: DPS.
    """
    workload = [
        wb.subscribe(at=0, what="TEMP GE 20", start_s=1),
        wb.publish(at=24, what="TEMP IS 25", start_s=start_s, every_s=5),
    ]
    radio = wb.Radio(loss=0.1, retries=3)
    return wb.Scenario(wb.topology.grid(5, 5), protocol or wb.DPS(), workload, radio, duration_s=120, seed=seed)


def print_forming(seeds: int) -> None:
    """Play the grid with each time of the first reading, ``seeds`` runs each, and print the table."""
    rows = []
    for start_s in (5, 15, 60):
        runs = [forming_scenario(start_s, seed).run(record="metrics").metrics for seed in range(1, seeds + 1)]
        ratios = [run["delivery_ratio"] for run in runs]
        frames = sum(run["transmissions"] for run in runs) / seeds
        below = sum(ratio < 0.95 for ratio in ratios)
        cells = (str(start_s), f"{sum(ratios) / seeds:.3f}", f"{min(ratios):.2f}", f"{below} of {seeds}")
        rows.append((*cells, f"{frames:,.0f}"))
    print(table(("from second", "delivered", "worst", "below .95", "frames a run"), rows))


def main(arguments: list[str]) -> None:
    """Play each network with each protocol, and print the tables."""
    seeds = next((int(text.removeprefix("seeds=")) for text in arguments if text.startswith("seeds=")), 1)
    chosen = [text.removeprefix("protocols=") for text in arguments if text.startswith("protocols=")]
    sites = [text for text in arguments if "=" not in text] or [*SITES, FORMS]
    if FORMS in sites:
        sites.remove(FORMS)
        print_forming(seeds)
    rows = []
    for site in sites:
        for seed in range(1, seeds + 1):
            frames_of_first = None
            for name in chosen or PROTOCOLS:
                metrics = scenario(site, name, seed).run(record="metrics").metrics
                frames = int(metrics["transmissions"])
                frames_of_first = frames_of_first or frames
                kinds = ", ".join(
                    f"{key.removeprefix('sent_')} {int(count):,}"
                    for key, count in sorted(metrics.items())
                    if key.startswith("sent_") and count
                )
                ratio = f"{metrics['delivery_ratio']:.3f}"
                rows.append((site, str(seed), name, ratio, f"{frames:,}", f"{frames / frames_of_first:.2f}", kinds))
    if rows:
        print(table(("network", "seed", "protocol", "delivered", "frames", "x first", "by kind"), rows))


if __name__ == "__main__":
    main(sys.argv[1:])
