"""Runs with an overlay, for the tests of its views."""

import workbench as wb


def failing_grid():
    """Return a run on a grid: two roots, two dimensions, a query and events; a node beside a root fails at 8 s."""
    return wb.Scenario(
        wb.topology.grid(3, 4),
        wb.TinyMQ(roots=(0, 11), dimensions=("TEMP 0 50", "HUMIDITY"), key_bits=6, info_s=1.0),
        [
            wb.subscribe(2, "TEMP GE 20, TEMP LE 30", start_s=2),
            wb.publish(9, "TEMP IS 25, HUMIDITY IS 40", start_s=4, every_s=2),
            wb.outage(1, start_s=8),
        ],
        wb.Radio(loss="none"),
        duration_s=20,
        seed=2,
    ).run(engine="reference")


def troubled(graph, roots, seed, every_tree=False, key_bits=6, literal=False):
    """Return a run in which queries start and end, events are published, and nodes fail, some of them temporarily."""
    nodes = sorted(graph)
    other_nodes = [node for node in nodes if node not in roots]
    protocol = wb.Pub2Sub if every_tree else wb.TinyMQ
    settings = {"literal": True} if literal else {}
    workload = [
        wb.subscribe(nodes[0], "TEMP GE 10, TEMP LE 30", start_s=2, stop_s=11),
        wb.subscribe(nodes[-1], "TEMP GE 25", start_s=3),
        wb.publish(nodes[len(nodes) // 2], "TEMP IS 27", start_s=4, every_s=2),
    ]
    workload += [wb.outage(node, start_s=5 + 2 * index) for index, node in enumerate(other_nodes[:1])]
    workload += [wb.outage(node, start_s=6, stop_s=9) for node in other_nodes[1:3]]
    workload += [wb.outage(nodes[-1], start_s=8, stop_s=9), wb.outage(nodes[-1], start_s=10, stop_s=12)]
    return wb.Scenario(
        graph,
        protocol(roots=roots, dimensions=("TEMP 0 50",), key_bits=key_bits, info_s=1.0, refresh_s=3.0, **settings),
        workload,
        wb.Radio(loss="none"),
        duration_s=14,
        seed=seed,
    ).run(engine="reference")
