"""Comparison of both engines on one scenario: traces must be equal, and so must the metrics without a trace."""

from itertools import zip_longest

import pytest

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
