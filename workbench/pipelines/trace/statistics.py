"""Statistics of the traces of many runs, computed from a table of their rows (`table.traces`).

Each function returns rows for each run, with the column ``scenario``. With ``over_runs=True`` it returns means over
runs, with the 5th and 95th percentile in ``_low`` and ``_high`` (`band`). The result is a pandas frame, or a DataFrame
of Spark if the table of rows is one. A column that ends in ``_B`` is in bytes without the radio's overhead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workbench.errors import ParameterError
from workbench.pipelines.queries import is_spark, run_query
from workbench.sim.radio import Radio

_FRAMES = ("sent", "received", "lost")
_MOST_STEPS = 10_000


def load_per_node(traces: Any, over_runs: bool = False) -> Any:
    """Return a table of the frames and bytes that each node sent, received and lost in each run.

    Columns: scenario, node, sent, received, lost (numbers of frames), sent_B, received_B, lost_B (bytes).

    ``traces`` is the result of the function `traces`. A lost frame counts at the node that should have heard it. Nodes
    without any row in a trace are missing. With ``over_runs`` the table has means and percentiles over all runs
    instead (see `band`).
    """
    columns = ", ".join(f"{_make_frame_count_sql(event)}, {_make_byte_sum_sql(event)}" for event in _FRAMES)
    query = f"SELECT scenario, node, {columns} FROM {{traces}} GROUP BY scenario, node"
    load_table = run_sorted(query, ("scenario", "node"), traces=traces)
    measures = [name for event in _FRAMES for name in (event, f"{event}_B")]
    return band(load_table, load_table, ("node",), measures) if over_runs else load_table


def load_per_link(traces: Any, over_runs: bool = False) -> Any:
    """Return a table of the frames and bytes that were sent, received and lost on each link in each run.

    Columns: scenario, sender, receiver, sent, received, lost (numbers of frames), sent_B, received_B, lost_B. ``sent``
    counts the frames, broadcasts included, that the receiver could have heard: received plus lost. ``traces`` is the
    result of the function `traces`. With ``over_runs`` the table has means and percentiles over all runs instead (see
    `band`).
    """
    columns = ", ".join(
        f"{_make_frame_count_sql(event)}, {_make_byte_sum_sql(event)}" for event in ("received", "lost")
    )
    query = f"""
        SELECT scenario, peer AS sender, node AS receiver, count(*) AS sent,
            CAST(sum(size_B) AS BIGINT) AS sent_B, {columns}
        FROM {{traces}} WHERE event IN ('received', 'lost') GROUP BY scenario, peer, node
    """
    load_table = run_sorted(query, ("scenario", "sender", "receiver"), traces=traces)
    measures = [name for event in _FRAMES for name in (event, f"{event}_B")]
    return band(load_table, select_scenarios(traces), ("sender", "receiver"), measures) if over_runs else load_table


def losses(traces: Any, radio: Radio, over_runs: bool = False) -> Any:
    """Return a table of the cost of lost frames and messages, with a row for each reason in each run.

    Columns: scenario, event ("lost", "dropped" or "given_up"), reason, and

    frames     number of trace rows with this event and reason, as in a run's metrics ``lost_``, ``dropped_`` and
               ``given_up_``, whose names end with the reason
    bytes_B    size of the frames that were lost or given up. For a dropped message, the size of the frame that carried
               it, or 0 if the message was dropped from a queue. A frame with two dropped messages counts twice
    energy_mJ  energy that the receiver spent on receiving the frames. It counts for frames lost in collisions and for
               frames with dropped messages; it is 0 for all other reasons

    ``traces`` is the result of the function `traces`, ``radio`` is the radio of its runs. With ``over_runs`` the table
    has means and percentiles over all runs instead (see `band`).
    """
    mJ_per_B = radio.rx_uJ_per_B / 1000
    query = f"""
        WITH ended AS (
            SELECT scenario, event, detail AS reason, size_B AS frame_B,
                CASE WHEN event = 'lost' AND detail = 'collision' THEN 1 ELSE 0 END AS heard
            FROM {{traces}} WHERE event IN ('lost', 'given_up')
            UNION ALL
            SELECT dropped.scenario, dropped.event, dropped.detail AS reason, coalesce(frame.size_B, 0) AS frame_B,
                CASE WHEN frame.size_B IS NULL THEN 0 ELSE 1 END AS heard
            FROM (SELECT * FROM {{traces}} WHERE event = 'dropped') AS dropped
            LEFT JOIN (SELECT scenario, node, peer, time_us, size_B FROM {{traces}} WHERE event = 'received') AS frame
            ON frame.scenario = dropped.scenario AND frame.node = dropped.node AND frame.peer = dropped.peer
                AND frame.time_us = dropped.time_us
        )
        SELECT scenario, event, reason, count(*) AS frames, CAST(sum(frame_B) AS BIGINT) AS bytes_B,
            CAST(sum(heard * (frame_B + {radio.overhead_B})) AS BIGINT) * {double_literal(mJ_per_B)} AS energy_mJ
        FROM ended GROUP BY scenario, event, reason
    """
    loss_table = run_sorted(query, ("scenario", "event", "reason"), traces=traces)
    measures = ("frames", "bytes_B", "energy_mJ")
    return band(loss_table, select_scenarios(traces), ("event", "reason"), measures) if over_runs else loss_table


def over_time(
    traces: Any,
    event: str,
    ended: str | None = None,
    of: Sequence[str] = ("node", "origin", "sequence"),
    every_s: float = 1.0,
    until_s: float = 60.0,
    over_runs: bool = False,
) -> Any:
    """Return a table of a protocol's state variables over time: how many have a value, and the sum of the values.

    A state variable is, for example, the rank of one node for one publication that it decodes. Each combination of
    values in the columns ``of`` of the trace is one variable. A row with the event ``event`` sets the variable to the
    row's value. A row with the event ``ended`` removes the value (None: values stay). ``traces`` is the result of the
    function `traces`. Columns: scenario, time_s (0, every_s, ... until_s), standing (number of variables that have a
    value), total (sum of these values). With ``over_runs`` the table has means and percentiles over all runs instead
    (see `band`).

    Ranks per publication: ``over_time(traces, "innovative")``; the mean rank is total / standing. Gradients:
    ``over_time(traces, "gradient_set", "gradient_removed", of=("node", "peer", "origin"))``.
    """
    for name in (event, *([ended] if ended else ()), *of):
        if not name.isidentifier():
            raise ParameterError(
                f"over_time: {name!r:.60} cannot be an event or a column; a name has only letters, digits and _"
            )
    if not (every_s > 0 and until_s >= 0 and until_s / every_s <= _MOST_STEPS):
        raise ParameterError(
            f"over_time: every_s is {every_s!r} and until_s is {until_s!r}; every_s must be above 0, "
            f"until_s at least 0, and until_s / every_s at most {_MOST_STEPS}"
        )
    steps = ", ".join(
        f"({step}, {double_literal(step * every_s)})" for step in range(math.floor(until_s / every_s + 1e-9) + 1)
    )
    state_columns = ", ".join(("scenario", *of))
    step_expression = f"CAST(ceil(time_us / {double_literal(every_s * 1e6)}) AS INT)"
    is_set = f"event = '{event}'"
    query = f"""
        WITH states AS (
            SELECT {state_columns}, row, time_us,
                CASE WHEN {is_set} THEN 1 ELSE 0 END AS is_open, CASE WHEN {is_set} THEN value ELSE 0 END AS level
            FROM {{traces}} WHERE event IN ('{event}', '{ended or event}')
        ),
        changes AS (
            SELECT scenario, time_us,
                is_open - lag(is_open, 1, 0) OVER (PARTITION BY {state_columns} ORDER BY row) AS opened,
                level - lag(level, 1, CAST(0 AS BIGINT)) OVER (PARTITION BY {state_columns} ORDER BY row) AS risen
            FROM states
        ),
        steps AS (SELECT scenario, step, time_s FROM (SELECT DISTINCT scenario FROM {{traces}}) AS ran
            CROSS JOIN (VALUES {steps}) AS times(step, time_s)),
        summed AS (
            SELECT scenario, {step_expression} AS step, sum(opened) AS opened,
                sum(risen) AS risen
            FROM changes GROUP BY scenario, {step_expression}
        )
        SELECT steps.scenario, steps.time_s, CAST(coalesce(sum(opened), 0) AS BIGINT) AS standing,
            CAST(coalesce(sum(risen), 0) AS BIGINT) AS total
        FROM steps LEFT JOIN summed ON summed.scenario = steps.scenario AND summed.step <= steps.step
        GROUP BY steps.scenario, steps.time_s
    """
    state_table = run_sorted(query, ("scenario", "time_s"), traces=traces)
    return band(state_table, state_table, ("time_s",), ("standing", "total")) if over_runs else state_table


def select_scenarios(traces: Any) -> Any:
    """Return a table with the column scenario: the hashes of all scenarios in ``traces``."""
    return run_sorted("SELECT DISTINCT scenario FROM {traces}", ("scenario",), traces=traces)


def _make_frame_count_sql(event: str) -> str:
    return f"count(CASE WHEN event = '{event}' THEN 1 END) AS {event}"


def _make_byte_sum_sql(event: str) -> str:
    return f"CAST(sum(CASE WHEN event = '{event}' THEN size_B ELSE 0 END) AS BIGINT) AS {event}_B"


LOW, HIGH = 0.05, 0.95


def run_sorted(query: str, keys: Sequence[str], **tables: Any) -> Any:
    """Return the result of `run_query`, sorted by the columns ``keys`` if it is a pandas frame."""
    result_table = run_query(query, **tables)
    return result_table if is_spark(result_table) else result_table.sort_values(list(keys), ignore_index=True)


def band(answer: Any, runs: Any, keys: Sequence[str], measures: Sequence[str], absent: str = "0") -> Any:
    """Return a table of means and percentiles over runs, with a row for each combination of values in ``keys``.

    ``answer`` is a table with a row for each run (column scenario) and combination of values in the columns ``keys``.
    ``measures`` names the columns to average. ``runs`` is a table whose column scenario has all runs. If ``answer`` has
    no row for a run and combination, ``absent`` is used as the run's value: "0", or "NULL" to leave the run out.
    Columns of the result: the keys, runs (number of runs), and for each measure its mean (under its own name) and its
    5th and 95th percentile (name with ``_low`` and ``_high``).
    """
    is_complete = runs is answer
    answer = checkpoint(answer)
    runs = answer if is_complete else runs
    key_columns = ", ".join(keys)
    join_condition = " AND ".join(
        ["every.scenario = per_run.scenario", *(f"every.{key} = per_run.{key}" for key in keys)]
    )
    filled_measures = ", ".join(f"coalesce(per_run.{name}, {absent}) AS {name}" for name in measures)
    query = f"""
        WITH things AS (SELECT DISTINCT {key_columns} FROM {{answer}}),
        every AS (SELECT scenario, {key_columns} FROM (SELECT DISTINCT scenario FROM {{runs}}) AS ran
            CROSS JOIN things),
        filled AS (
            SELECT every.scenario, {", ".join(f"every.{key}" for key in keys)}, {filled_measures}
            FROM every LEFT JOIN {{answer}} AS per_run ON {join_condition}
        )
        SELECT {key_columns}, count({measures[0]}) AS runs, {mean_columns(measures)} FROM filled GROUP BY {key_columns}
    """
    return run_sorted(query, keys, answer=answer, runs=runs)


def checkpoint(answer: Any) -> Any:
    """Compute ``answer`` now if it is a Spark DataFrame, so that queries reuse it; return other tables unchanged."""
    return answer.localCheckpoint() if is_spark(answer) else answer


def mean_columns(measures: Sequence[str]) -> str:
    """Return SQL for the mean, 5th and 95th percentile of the columns ``measures``, separated by commas."""
    return ", ".join(
        f"avg({name}) AS {name}, percentile({name}, {LOW}) AS {name}_low, percentile({name}, {HIGH}) AS {name}_high"
        for name in measures
    )


def double_literal(number: float) -> str:
    """Format a number so that DuckDB and Spark read it as a double, not as a decimal."""
    return f"{float(number):.17e}"
