"""Directed diffusion on the reference engine: one sink, ten sources, a hundred seconds. SimPy has no diffusion to set
beside it."""

from networks import Network

from workbench import Diffusion, Scenario, publish, subscribe

SOURCES = 10
DURATION_S = 100


def scenario(network: Network) -> Scenario:
    """The sink is the first node; the sources are spread evenly and publish every five seconds, each in its phase."""
    nodes = sorted(network.graph)
    step = len(nodes) // SOURCES
    sources = nodes[step - 1 :: step][:SOURCES]
    workload = [
        subscribe(at=nodes[0], what="TEMP GE 25"),
        publish(at=sources, what="TEMP IS 26", every_s=5, start_s=5, stagger=True),
    ]
    # The default ttl of 50 hops does not cross the large grid, which takes 198.
    return Scenario(network.graph, Diffusion(ttl=255), workload, duration_s=DURATION_S)
