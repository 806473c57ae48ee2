"""Questions to the traces of many runs: a table of their rows in (`table.traces`), a table out.

Each has an answer for each run, with the column ``scenario``; with ``over_runs=True`` it is the mean over runs, with
the 5th and 95th percentile in ``_low`` and ``_high`` (`band`). The answer is a frame of pandas, or of Spark
if the rows are one. A column that ends in ``_B`` is in bytes without the radio's overhead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workbench.errors import ParameterError
from workbench.pipelines.ask import ask, is_spark
from workbench.sim.radio import Radio

_FRAMES = ("sent", "received", "lost")
_MOST_STEPS = 10_000


def load_per_node(traces: Any, over_runs: bool = False) -> Any:
    """What each node sent, received and lost: node, sent, sent_B, received, received_B, lost, lost_B.

    A frame is lost at the node that should have heard it. Nodes of which a trace has no row at all are not there.
    """
    told = ", ".join(f"{_frames(event)}, {_bytes(event)}" for event in _FRAMES)
    query = f"SELECT scenario, node, {told} FROM {{traces}} GROUP BY scenario, node"
    answer = answered(query, ("scenario", "node"), traces=traces)
    measures = [name for event in _FRAMES for name in (event, f"{event}_B")]
    return band(answer, answer, ("node",), measures) if over_runs else answer


def load_per_link(traces: Any, over_runs: bool = False) -> Any:
    """What went over each link: sender, receiver, sent, sent_B, received, received_B, lost, lost_B.

    Sent is what the receiver could have heard, broadcasts too: what it received, and what it lost.
    """
    told = ", ".join(f"{_frames(event)}, {_bytes(event)}" for event in ("received", "lost"))
    query = f"""
        SELECT scenario, peer AS sender, node AS receiver, count(*) AS sent,
            CAST(sum(size_B) AS BIGINT) AS sent_B, {told}
        FROM {{traces}} WHERE event IN ('received', 'lost') GROUP BY scenario, peer, node
    """
    answer = answered(query, ("scenario", "sender", "receiver"), traces=traces)
    measures = [name for event in _FRAMES for name in (event, f"{event}_B")]
    return band(answer, runs_of(traces), ("sender", "receiver"), measures) if over_runs else answer


def losses(traces: Any, radio: Radio, over_runs: bool = False) -> Any:
    """What each reason of loss, drop and giving up costs: event, reason, frames, bytes_B, energy_mJ.

    frames     rows with that reason, as in a run's metrics ``lost_``, ``dropped_`` and ``given_up_``
    bytes_B    of the frames that were lost or given up; of a message that was dropped, those of the frame that brought
               it, 0 if none did (it had waited). A frame with two messages that were dropped counts for both
    energy_mJ  that its receiver has spent on hearing it: nothing for a frame that did not reach it (lost on the link,
               while it was sending, or down) or was never sent. ``radio``, that of the runs, says what a byte costs
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
            CAST(sum(heard * (frame_B + {radio.overhead_B})) AS BIGINT) * {double(mJ_per_B)} AS energy_mJ
        FROM ended GROUP BY scenario, event, reason
    """
    answer = answered(query, ("scenario", "event", "reason"), traces=traces)
    measures = ("frames", "bytes_B", "energy_mJ")
    return band(answer, runs_of(traces), ("event", "reason"), measures) if over_runs else answer


def over_time(
    traces: Any,
    event: str,
    ended: str | None = None,
    of: Sequence[str] = ("node", "origin", "sequence"),
    every_s: float = 1.0,
    until_s: float = 60.0,
    over_runs: bool = False,
) -> Any:
    """What stands at a time because events have set it: time_s, standing, total.

    ``event`` sets a thing, which is told from others by the columns ``of``, to the event's value; ``ended`` ends it.
    standing: how many things are set; total: the sum of their values. Times are 0, every_s, ... until_s.

    Ranks of nodes that decode, per event: ``over_time(traces, "innovative")``; the mean rank is total / standing.
    Gradients: ``over_time(traces, "gradient_set", "gradient_removed", of=("node", "peer", "origin"))``.
    """
    for name in (event, *([ended] if ended else ()), *of):
        if not name.isidentifier():
            raise ParameterError(f"over_time: {name!r:.60} is no name of an event or a column")
    if not (every_s > 0 and until_s >= 0 and until_s / every_s <= _MOST_STEPS):
        raise ParameterError(
            f"over_time: every_s is {every_s!r} and until_s {until_s!r}; that must be {_MOST_STEPS} steps at most"
        )
    steps = ", ".join(f"({step}, {double(step * every_s)})" for step in range(math.floor(until_s / every_s + 1e-9) + 1))
    things = ", ".join(("scenario", *of))
    step = f"CAST(ceil(time_us / {double(every_s * 1e6)}) AS INT)"
    is_set = f"event = '{event}'"
    query = f"""
        WITH told AS (
            SELECT {things}, row, time_us,
                CASE WHEN {is_set} THEN 1 ELSE 0 END AS is_open, CASE WHEN {is_set} THEN value ELSE 0 END AS level
            FROM {{traces}} WHERE event IN ('{event}', '{ended or event}')
        ),
        changes AS (
            SELECT scenario, time_us,
                is_open - lag(is_open, 1, 0) OVER (PARTITION BY {things} ORDER BY row) AS opened,
                level - lag(level, 1, CAST(0 AS BIGINT)) OVER (PARTITION BY {things} ORDER BY row) AS risen
            FROM told
        ),
        steps AS (SELECT scenario, step, time_s FROM (SELECT DISTINCT scenario FROM {{traces}}) AS ran
            CROSS JOIN (VALUES {steps}) AS times(step, time_s)),
        summed AS (
            SELECT scenario, {step} AS step, sum(opened) AS opened,
                sum(risen) AS risen
            FROM changes GROUP BY scenario, {step}
        )
        SELECT steps.scenario, steps.time_s, CAST(coalesce(sum(opened), 0) AS BIGINT) AS standing,
            CAST(coalesce(sum(risen), 0) AS BIGINT) AS total
        FROM steps LEFT JOIN summed ON summed.scenario = steps.scenario AND summed.step <= steps.step
        GROUP BY steps.scenario, steps.time_s
    """
    answer = answered(query, ("scenario", "time_s"), traces=traces)
    return band(answer, answer, ("time_s",), ("standing", "total")) if over_runs else answer


def runs_of(traces: Any) -> Any:
    """The runs in a table of rows: their scenarios."""
    return answered("SELECT DISTINCT scenario FROM {traces}", ("scenario",), traces=traces)


def _frames(event: str) -> str:
    return f"count(CASE WHEN event = '{event}' THEN 1 END) AS {event}"


def _bytes(event: str) -> str:
    return f"CAST(sum(CASE WHEN event = '{event}' THEN size_B ELSE 0 END) AS BIGINT) AS {event}_B"


LOW, HIGH = 0.05, 0.95


def answered(query: str, keys: Sequence[str], **tables: Any) -> Any:
    """A question's answer; a frame of pandas comes in order of its keys."""
    found = ask(query, **tables)
    return found if is_spark(found) else found.sort_values(list(keys), ignore_index=True)


def band(answer: Any, runs: Any, keys: Sequence[str], measures: Sequence[str], absent: str = "0") -> Any:
    """Mean and band of an answer that has a row for each scenario and ``keys``.

    ``runs`` has the column scenario: all runs, also those of which the answer has no row. For a run without one a
    measure is ``absent``: 0, or NULL, which is left out. Columns: the keys, runs, and for each measure its mean, under
    its own name, and ``_low`` and ``_high``, the 5th and 95th percentile over runs.
    """
    is_complete = runs is answer
    answer = settled(answer)
    runs = answer if is_complete else runs
    named = ", ".join(keys)
    same = " AND ".join(["every.scenario = per_run.scenario", *(f"every.{key} = per_run.{key}" for key in keys)])
    filled = ", ".join(f"coalesce(per_run.{one}, {absent}) AS {one}" for one in measures)
    query = f"""
        WITH things AS (SELECT DISTINCT {named} FROM {{answer}}),
        every AS (SELECT scenario, {named} FROM (SELECT DISTINCT scenario FROM {{runs}}) AS ran CROSS JOIN things),
        filled AS (
            SELECT every.scenario, {", ".join(f"every.{key}" for key in keys)}, {filled}
            FROM every LEFT JOIN {{answer}} AS per_run ON {same}
        )
        SELECT {named}, count({measures[0]}) AS runs, {means(measures)} FROM filled GROUP BY {named}
    """
    return answered(query, keys, answer=answer, runs=runs)


def settled(answer: Any) -> Any:
    """An answer that is looked at more than once, and is small beside what it was made of: Spark works it out once."""
    return answer.localCheckpoint() if is_spark(answer) else answer


def means(measures: Sequence[str]) -> str:
    """In SQL, mean and band of columns."""
    return ", ".join(
        f"avg({one}) AS {one}, percentile({one}, {LOW}) AS {one}_low, percentile({one}, {HIGH}) AS {one}_high"
        for one in measures
    )


def double(number: float) -> str:
    """A number as SQL of both kinds reads it: not as a decimal."""
    return f"{float(number):.17e}"
