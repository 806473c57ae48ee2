"""A run with an overlay to look at, for the tests of its views."""

import workbench as wb


def failing_grid():
    """A grid with roots in two corners, two dimensions, a query, events; a node beside a root fails at 8 s."""
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
