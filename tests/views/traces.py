"""Traces for tests of views, written row by row."""

import pyarrow as pa

from workbench.sim.trace import SCHEMA

NEUTRAL = {"peer": -1, "message": "", "origin": -1, "sequence": 0, "size_B": 0, "value": 0, "detail": ""}


def trace_of(*rows):
    """Return a trace of rows given as (time in µs, node, event, {other columns})."""
    whole = [{**NEUTRAL, "time_us": t, "node": n, "event": e, **(more[0] if more else {})} for t, n, e, *more in rows]
    arrays = []
    for field in SCHEMA:
        values = [row[field.name] for row in whole]
        is_text = pa.types.is_dictionary(field.type)
        arrays.append(pa.array(values, pa.string()).dictionary_encode() if is_text else pa.array(values, field.type))
    return pa.table(arrays, schema=SCHEMA)
