"""Small networks that change, played on both engines, and readers of their traces.

Radios send without jitter, so a flood of "TEMP IS 25" takes the `FRAME_US` after its publication.
"""

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace

FRAME_US = (16 + 6) * 8 * 4  # a flood of TEMP: 16 bytes, and 6 of PHY header, at 250 kb/s
SECOND = 1_000_000
CURRENTS = {"tx_mA": 17.4, "rx_mA": 18.8}


def row_of_nodes(count, radius_m=10.0, spacing_m=10.0):
    """Return nodes 0 to ``count`` - 1 on the x axis, linked within ``radius_m``."""
    return wb.topology.from_positions({node: (spacing_m * node, 0) for node in range(count)}, radius_m=radius_m)


def play(topology, workload, duration_s=10, protocol=None, seed=1, **radio):
    """Return the run of a scenario on the reference engine, after a comparison with the fast engine.

    Both must give the same rows, the same numbers without a trace, and the same times of radio states, which add up to
    the duration for each node.
    """
    settings = {"jitter_ms": 0, **CURRENTS, **radio}
    scenario = wb.Scenario(topology, protocol or wb.Flooding(), workload, wb.Radio(**settings), duration_s, seed)
    assert_same_trace(scenario)
    assert_same_numbers(scenario)
    reference, fast = (scenario.run(engine=engine) for engine in ("reference", "fast"))
    assert reference.radio_states_us.tolist() == fast.radio_states_us.tolist()
    assert set(reference.radio_states_us.sum(axis=1).tolist()) == {round(duration_s * SECOND)}
    assert (reference.radio_states_us >= 0).all()
    return reference


def readings(at=1, every_s=1.0, start_s=0.5, **fields):
    """Return the publications of node ``at``: by default one in the middle of each second."""
    return wb.publish(at, "TEMP IS 25", every_s=every_s, start_s=start_s, **fields)


def subscription(at=0, **fields):
    """Return a subscription to all readings of `readings`."""
    return wb.subscribe(at, "TEMP GE 20", **fields)


def rows(run, *events, **fields):
    """Return the rows of a trace with one of these events and these values, as dictionaries."""
    return [
        row
        for row in run.trace.to_pylist()
        if (not events or row["event"] in events) and all(row[name] == value for name, value in fields.items())
    ]


def delivered_s(run, node=0):
    """Return for each delivery at ``node`` the time in s at which the reading was published.

    Each message must carry a single reading.
    """
    published_us = {(row["node"], row["sequence"]): row["time_us"] for row in rows(run, "published")}
    message_us = {
        (row["origin"], row["sequence"]): published_us[row["node"], row["value"]] for row in rows(run, "originated")
    }
    return [message_us[row["origin"], row["sequence"]] / SECOND for row in rows(run, "delivered", node=node)]


def middles(first_s, last_s):
    """Return the middles of the seconds in [``first_s``, ``last_s``): the times of `readings`."""
    return [second + 0.5 for second in range(first_s, last_s)]


def history(run, node):
    """Return (time in s, event, boot, detail) of the failures and recoveries of a node."""
    return [
        (row["time_us"] / SECOND, row["event"], row["value"], row["detail"])
        for row in rows(run, "failed", "recovered", node=node)
    ]
