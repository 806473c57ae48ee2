"""Learned compared with true link qualities: delivery and frames of the protocols that choose their links.

Each protocol plays the same workload on a CC2420 whose link qualities are known exactly ("true") or are estimated from
frames and beacons ("learned"), for one, five and ten minutes. A row is the mean over the seeds. Flooding, gossip, coded
diffusion and TinyMQ do not use link qualities, so they are not measured.
``benchmarks/link_quality.py [seeds]``
"""

import statistics
import sys

from tables import table

import workbench as wb

MINUTES = 1, 5, 10
NETWORKS = {
    "office": wb.topology.office(),
    "grid 6x6, 20 % loss": wb.topology.grid(6, 6),
    "Strasbourg, 34 dB less": wb.topology.testbed("strasbourg", attenuation_dB=34),
}
PROTOCOLS = {"Diffusion": wb.Diffusion(), "DPS": wb.DPS()}


def measure(network: str, protocol: str, quality: str, minutes: int, seed: int) -> tuple[float, float]:
    """Return the delivery ratio and the number of frames of a run."""
    topology = NETWORKS[network]
    nodes = sorted(topology)
    sources = [nodes[-1], nodes[len(nodes) // 2], nodes[len(nodes) // 3]]
    workload = [
        wb.subscribe(nodes[0], "TEMP GE 20", start_s=1),
        wb.publish(sources, "TEMP IS 26", every_s=5, start_s=5, stagger=True),
    ]
    loss = {"loss": 0.2} if "loss" in network else {}
    radio = wb.radios.cc2420(link_quality=quality, **loss)
    run = wb.Scenario(topology, PROTOCOLS[protocol], workload, radio, 60 * minutes, seed).run(record="metrics")
    return run.metrics["delivery_ratio"], run.metrics["transmissions"]


def main() -> None:
    """Measure all combinations, and print the table."""
    seeds = range(1, 1 + (int(sys.argv[1]) if len(sys.argv) > 1 else 5))
    rows = []
    for network in NETWORKS:
        for protocol in PROTOCOLS:
            for minutes in MINUTES:
                cells = []
                for quality in ("true", "learned"):
                    results = [measure(network, protocol, quality, minutes, seed) for seed in seeds]
                    delivered, frames = (statistics.mean(column) for column in zip(*results, strict=True))
                    cells += [f"{delivered:.3f}", f"{frames:,.0f}"]
                rows.append([network, protocol, str(minutes), *cells])
                print(*rows[-1], file=sys.stderr, flush=True)
    header = ["network", "protocol", "minutes", "true: delivered", "frames", "learned: delivered", "frames"]
    print(table(header, rows))


if __name__ == "__main__":
    main()
