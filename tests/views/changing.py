"""A small run in which everything changes that can: a node moves, others crash, join and leave; links vanish."""

import workbench as wb

SECOND = 1_000_000
PLACES_M = {0: (0, 0), 1: (10, 0), 2: (20, 0), 3: (30, 0), 4: (30, 10), 5: (0, 10)}


def scenario(*further):
    """Return a scenario of 40 s: node 1 moves from (10, 0) to (10, 40) m from 0 to 40 s, with a waypoint at 20 s.

    Node 2 crashes in [10, 15) s, node 5 joins at 12 s, node 4 leaves at 25 s. Nodes 3 and 4 are separated in
    [20, 30) s. A jammer at (30, 5) m sends in [16, 18) s. ``further``: more items of the workload.
    """
    workload = [
        wb.subscribe(at=3, what="TEMP GE 1"),
        wb.publish(at=0, what="TEMP IS 5", every_s=1, start_s=1),
        wb.move(at=1, along=[(0, 10, 0), (20, 10, 20), (40, 10, 40)]),
        wb.crash(at=2, start_s=10, stop_s=15),
        wb.join(at=5, start_s=12),
        wb.leave(at=4, start_s=25),
        wb.partition(at=[3, 4], start_s=20, stop_s=30),
        wb.jam(x_m=30, y_m=5, radius_m=6, start_s=16, stop_s=18),
    ]
    topology = wb.topology.from_positions(PLACES_M, radius_m=12)
    return wb.Scenario(topology, wb.Flooding(), [*workload, *further], duration_s=40, seed=1)
