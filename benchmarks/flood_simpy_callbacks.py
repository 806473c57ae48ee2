"""The flood in SimPy without processes: a Timeout with a callback per transmission, whose receivers are plain calls.

Its granularity is that of the workbench, an event per transmission, but it lacks frames, a radio, protocol nodes
and a record. The workbench takes more time because of these parts.
"""

import random

import simpy
from contender import Contender, without_preparation
from networks import AIRTIME_S, JITTER_S, Network


def flood(network: Network, floods: int, source: int = 0) -> int:
    """Play ``floods`` floods from the node ``source``, and return the number of frames received."""
    neighbors = network.neighbors
    environment = simpy.Environment()
    known = [set() for _ in neighbors]
    draw = random.Random(7)
    received = 0

    def transmit(node, publication):
        end = environment.timeout(draw.uniform(*JITTER_S) + AIRTIME_S, (node, publication))
        end.callbacks.append(arrive)

    def arrive(end):
        nonlocal received
        node, publication = end.value
        for neighbor in neighbors[node]:
            received += 1
            if publication not in known[neighbor]:
                known[neighbor].add(publication)
                transmit(neighbor, publication)

    def publish(start):
        known[source].add(start.value)
        transmit(source, start.value)

    for publication in range(floods):
        environment.timeout(publication, publication).callbacks.append(publish)
    environment.run()
    return received


CALLBACKS = Contender(
    "SimPy, callbacks, bare", "a transmission", "jitter, airtime", without_preparation(flood), 400_000
)
