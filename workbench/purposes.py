"""Constants for the purposes of random draws: links, radios, topologies, workloads.

The purpose of a node's own draws is `draws.PROTOCOL`. The numbers enter the hash of a draw, so every recorded result
depends on them: never renumber; append new ones. They are not in draws.py because every name takes memory on a mote,
and a mote draws only for its own node.
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
WAKE_PHASE = 11
BEACON = 12
MOBILITY = 13
LINK_BURST = 14
