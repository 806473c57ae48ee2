"""A question's answer for each run -> mean and band over runs: between which numbers nine of ten runs lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.pipelines.ask import ask, is_spark

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
