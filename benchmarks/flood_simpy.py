"""The flood in SimPy as its users write it: a process with a Store for each node, and one for each transmission.

Jitter and airtime are those of the workbench's radio. Random numbers come from the standard library, as usual with
SimPy, so the order of events differs, but not the work. It has neither frames nor a radio or a record: a message is an
int. Its events are finer than the workbench's: about three per reception (put, get, resume) and three per transmission.
"""

import random

import simpy
from contender import Contender, without_preparation
from networks import AIRTIME_S, JITTER_S, Network


def flood(network: Network, floods: int, source: int = 0) -> int:
    """Play ``floods`` floods from the node ``source``, and return the number of frames received."""
    neighbors = network.neighbors
    environment = simpy.Environment()
    inboxes = [simpy.Store(environment) for _ in neighbors]
    draw = random.Random(7)
    received = 0

    def transmit(node, publication):
        yield environment.timeout(draw.uniform(*JITTER_S) + AIRTIME_S)
        for neighbor in neighbors[node]:
            inboxes[neighbor].put(publication)

    def run_node(node):
        nonlocal received
        known = set()
        while True:
            publication = yield inboxes[node].get()
            received += 1
            if publication not in known:
                known.add(publication)
                environment.process(transmit(node, publication))

    def publish():
        for publication in range(floods):
            inboxes[source].put(publication)
            yield environment.timeout(1)

    for node in range(len(neighbors)):
        environment.process(run_node(node))
    environment.process(publish())
    environment.run()
    return received - floods


SIMPY = Contender(
    "SimPy, processes", "a put, get, resume; 3 a transmission", "jitter, airtime", without_preparation(flood), 100_000
)
