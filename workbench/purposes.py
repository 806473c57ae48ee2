"""What a draw is for, beside a node's own draws (`draws.PROTOCOL`): links, radios, topologies, workloads.

The numbers enter the hash, so they are part of every recorded result: never renumber; a new one goes to the end. They
stand apart from draws.py because on a mote every name takes memory, and a mote draws for its node alone.
"""

LINK_LOSS = 1
JITTER = 2
# 3 is draws.PROTOCOL.
BACKOFF = 4
TOPOLOGY = 5
SENSOR_FIELD = 6
FILTER = 7
ACKNOWLEDGEMENT_LOSS = 8
WORKLOAD = 9
LOG = 10
