"""Directed diffusion on the workbench's engines: readings every five seconds for a hundred seconds."""

from networks import Network

from workbench import Diffusion, Radio, Scenario, publish, subscribe

DURATION_S = 100
CSMA = Radio(csma=True, collisions=True, retries=3)


def scenario(network: Network, sinks: int = 1, sources: int = 10) -> Scenario:
    """Return a scenario on an ideal channel, with ``sinks`` sinks and ``sources`` sources spread evenly over the nodes.

    Each source publishes at its own offset within the interval. The first sink is the first node, the last source the
    last node.
    """
    nodes = sorted(network.graph)
    subscribers, step = nodes[:: len(nodes) // sinks][:sinks], len(nodes) // sources
    workload = [
        subscribe(at=subscribers, what="TEMP GE 25"),
        publish(at=nodes[step - 1 :: step][:sources], what="TEMP IS 26", every_s=5, start_s=5, stagger=True),
    ]
    # The default ttl of 50 hops does not cross the large grid, which takes 198.
    return Scenario(network.graph, Diffusion(ttl=255), workload, duration_s=DURATION_S)


def one_pair(network: Network, sink: int, source: int) -> Scenario:
    """Return a scenario with a single sink and a single source, whose radio has CSMA/CA, collisions and three retries.

    The radio is that of 802.15.4.
    """
    workload = [
        subscribe(at=sink, what="TEMP GE 25"),
        publish(at=source, what="TEMP IS 26", every_s=5, start_s=5),
    ]
    return Scenario(network.graph, Diffusion(), workload, radio=CSMA, duration_s=DURATION_S)
