"""Comparison of both engines on one scenario: traces must be equal, and so must the metrics without a trace."""

from itertools import zip_longest

import pytest

import workbench as wb
from workbench.sim import trace


def assert_same_trace(scenario):
    """Assert that two traces are equal; otherwise show the first row that differs and the ten rows before it."""
    reference, fast = (scenario.run(engine=engine).trace for engine in ("reference", "fast"))
    if trace.digest(reference) == trace.digest(fast):
        return
    expected, got = reference.to_pylist(), fast.to_pylist()
    place = next(k for k, (row, other) in enumerate(zip_longest(expected, got)) if row != other)
    shown = [str(tuple(row.values())) for row in expected[max(0, place - 10) : place]]
    for name, rows in (("reference", expected), ("fast", got)):
        shown.append(f"{name}: {tuple(rows[place].values()) if place < len(rows) else 'ends here'}")
    pytest.fail(f"{scenario.to_json(indent=None)}\nrow {place} differs:\n" + "\n".join(shown), pytrace=False)


def assert_same_numbers(scenario):
    """Assert that both engines store the same rows and the same counts without a trace."""
    reference, fast = (scenario.run(engine, "metrics")._recorder for engine in ("reference", "fast"))
    assert trace.digest(reference.table()) == trace.digest(fast.table())
    assert reference.tally() == fast.tally()


def assert_same_states(protocol, radio, seed, failing):
    """Assert equal times of radio states that add up to the duration; node ``failing`` fails twice."""
    workload = [
        wb.subscribe(15, "TEMP GE 20"),
        wb.publish([0, 3, 12], "TEMP IS 26", every_s=1.5, stagger=True),
        wb.outage(failing, 3, 5.5),
        wb.outage(failing, 4, 7.5),
    ]
    scenario = wb.Scenario(wb.topology.grid(4, 4), protocol, workload, radio, 12, seed)
    runs = [scenario.run(engine, record) for engine in ("reference", "fast") for record in ("trace", "metrics")]
    assert runs[0].trace_hash == runs[2].trace_hash
    for run in runs:
        assert run.radio_states_us.tolist() == runs[0].radio_states_us.tolist()
        assert (run.radio_states_us >= 0).all() and set(run.radio_states_us.sum(axis=1).tolist()) == {12 * 10**6}
        assert run.metrics["charge_mC"] == runs[0].metrics["charge_mC"]
