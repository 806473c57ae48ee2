"""Cleaning of readings by named rules: units, duplicates, values out of range, jumps, stuck sensors, gaps.

Theory of operation
    A rule removes a value, not the whole reading, because another sensor of the node may be sound. Only a duplicate
    is removed as a whole. A gap removes nothing and is only reported. A value is removed by the first rule in `RULES`
    that it breaks. Jumps and stuck sensors are detected among the values in range. A value can be a jump only if the
    node's previous and next readings both have a value in range.

Limits
    On Spark the three tables of `Cleaned` are computed when they are used, and this process collects nothing. All
    readings of a node are sorted in one task, on disk if necessary. Each table reads the readings again, several times
    if there are several rules, so the readings of a log should be persisted (``log.rows.persist()``) or stored as
    Parquet before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench import attributes
from workbench.errors import DataError
from workbench.keywords import checked
from workbench.pipelines.logs.links import column_types
from workbench.pipelines.logs.reading import Log
from workbench.pipelines.queries import run_query
from workbench.suggestion import meant

# Column of the known data sets -> the key under which its values are published.
KEYS = {"temperature_C": "TEMP", "humidity_pct": "HUMIDITY"}
RULES = ("unit", "duplicate", "range", "jump", "stuck", "gap")
# (unit at the end of a column's name, unit of the converted column) -> the conversion in SQL.
_UNITS = {
    ("F", "C"): "({0} - 32) / 1.8",
    ("K", "C"): "{0} - 273.15",
    ("mV", "V"): "{0} / 1000.0",
    ("ms", "s"): "{0} / 1000.0",
    ("us", "s"): "{0} / 1000000.0",
    ("hPa", "Pa"): "{0} * 100.0",
    ("Pa", "hPa"): "{0} / 100.0",
}


@dataclass(frozen=True)
class Cleaned:
    """The result of `clean`: three pandas frames, or DataFrames of Spark if the readings are one.

    rows        the readings without duplicates, sorted by node and time; a removed value is missing
    left_out    a row for each removed value, duplicate or gap: rule, what (the column; empty for duplicates and gaps),
                node, time_s, value (for a gap: its length in seconds; for a duplicate: missing)
    counts      a row for each rule and column: rule, what (the column, as in ``left_out``), found (number of rows in
                ``left_out``; for the rule unit: number of converted values)
    """

    rows: Any
    left_out: Any
    counts: Any


@checked
def clean(readings: Any, rules: Mapping[str, Any] | None = None) -> Cleaned:
    """Return the readings without the values that break the rules, the removed values, and counts.

    A removed value becomes null, and its row stays; only a duplicate is removed as a row.

    ``readings`` is a table with the columns time_s and node: a pandas frame, a Parquet file, a DataFrame of Spark, a
    `Log`. ``rules`` is {name of the rule: its setting}; rules apply in this order:

    unit        {"temperature_F": "temperature_C"}: convert a column and rename it; both names end with their unit
    duplicate   ("node", "epoch"): of readings that are equal in these columns, only the smallest is kept. Readings are
                compared column by column, and a missing value counts as largest
    range       {"temperature_C": (-20, 60), "humidity_pct": "HUMIDITY"}: remove values outside of the range. The
                name of a key stands for the range of values that can be published with this key
    jump        {"temperature_C": 5}: remove a value that differs by more than 5 from both its neighbors in time
    stuck       {"temperature_C": 50}: of more than 50 equal values in a row, those after the first 50 are removed
    gap         300: count pauses of more than 300 seconds between two successive readings of a node; nothing is removed

    The default is ``{"duplicate": ("node", "time_s"), "range": {"temperature_C": "TEMP", "humidity_pct":
    "HUMIDITY"}}``, without columns that do not exist. Raises DataError for an unknown rule or column, and for an
    invalid limit.
    """
    reading_table = readings.rows if isinstance(readings, Log) else readings
    types = column_types(reading_table)
    rules = _make_default_rules(types) if rules is None else dict(rules)
    plan = _Plan.from_rules(rules, list(types))
    numbered_readings = run_query(plan.numbered(), readings=reading_table)
    judged_readings = run_query(plan.judged(), numbered=numbered_readings)
    left_out = run_query(plan.left_out(), numbered=numbered_readings, judged=judged_readings)
    return Cleaned(
        run_query(plan.rows(), judged=judged_readings),
        left_out,
        run_query(plan.counts(), left_out=left_out, numbered=numbered_readings),
    )


def _make_default_rules(columns: Mapping[str, str]) -> dict[str, Any]:
    ranges = {column: key for column, key in KEYS.items() if column in columns}
    return {"duplicate": ("node", "time_s"), "range": ranges}


@dataclass(frozen=True)
class _Plan:
    """The cleaning rules of a user, translated to SQL queries.

    A query names the tables that it reads in braces: {readings}, and {numbered}, {judged} and {left_out}, the results
    of the methods of these names.
    """

    columns: tuple[str, ...]  # before units are converted
    units: Mapping[str, str]
    identity: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float]]
    jumps: Mapping[str, float]
    stuck: Mapping[str, int]
    gap_s: float | None

    @classmethod
    def from_rules(cls, rules: Mapping[str, Any], columns: list[str]) -> _Plan:
        """Return the plan for a user's rules. Raises DataError for an unknown rule or column, or an invalid limit."""
        for name in rules:
            if name not in RULES:
                raise DataError(f"unknown rule {name!r:.40}{meant(str(name), RULES)}; rules are {', '.join(RULES)}")
        units = dict(rules.get("unit", {}))
        converted_columns = [units.get(column, column) for column in columns]
        identity_columns = tuple(rules.get("duplicate", ()))
        ranges = {column: _parse_range(column, limits) for column, limits in rules.get("range", {}).items()}
        largest_jumps = {column: _parse_limit("jump", limit) for column, limit in rules.get("jump", {}).items()}
        most_repetitions = {
            column: int(_parse_limit("stuck", limit)) for column, limit in rules.get("stuck", {}).items()
        }
        gap_s = _parse_limit("gap", rules["gap"]) if rules.get("gap") is not None else None
        for column in ("time_s", "node", *identity_columns, *ranges, *largest_jumps, *most_repetitions):
            _check_column(column, converted_columns)
        for column in units:
            _check_column(column, columns)
        return cls(tuple(columns), units, identity_columns, ranges, largest_jumps, most_repetitions, gap_s)

    @property
    def names(self) -> list[str]:
        """The names of the columns after the conversion of units, which renames converted columns."""
        return [self.units.get(column, column) for column in self.columns]

    @property
    def checked_columns(self) -> list[str]:
        """The names of the columns that are checked by at least one of the rules "range", "jump" and "stuck"."""
        return [name for name in self.names if name in {*self.ranges, *self.jumps, *self.stuck}]

    def numbered(self) -> str:
        """Return the SQL query over {readings} for all readings in converted units.

        The column copy__ numbers equal readings (duplicates) from 1; number 1 is kept.
        """
        columns = ", ".join(_make_conversion_sql(column, self.units.get(column)) for column in self.columns)
        copy_number = "1"
        if self.identity:
            order_columns = ", ".join(f"{name} NULLS LAST" for name in self.names)
            copy_number = f"row_number() OVER (PARTITION BY {', '.join(self.identity)} ORDER BY {order_columns})"
        return f"SELECT *, {copy_number} AS copy__ FROM (SELECT {columns} FROM {{readings}}) AS converted"

    def judged(self) -> str:
        """Return the SQL query over {numbered} for the readings without duplicates, with the rules that values break.

        For each checked column C, a column C__rule has the name of the first rule that the value of C breaks, or NULL.
        The column gap__ has the time in seconds since the node's previous reading.
        """
        of_node = "OVER (PARTITION BY node ORDER BY time_s)"
        layers: list[list[str]] = [[], [f"time_s - lag(time_s) {of_node} AS gap__"], [], [], []]
        for name in self.checked_columns:
            lowest_value, highest_value = self.ranges.get(name, (float("-inf"), float("inf")))
            range_condition = (
                f" AND {name} BETWEEN {lowest_value!r} AND {highest_value!r}" if name in self.ranges else ""
            )
            value_expression = f"CAST({name} AS DOUBLE)"
            layers[0].append(
                f"CASE WHEN NOT isnan({value_expression}){range_condition} THEN {value_expression} END AS {name}__in"
            )
            layers[1] += [
                f"lag({name}__in) {of_node} AS {name}__before",
                f"lead({name}__in) {of_node} AS {name}__after",
            ]
            run_begin = f"CASE WHEN {name}__in = {name}__before THEN 0 ELSE 1 END"
            earlier_rows = "OVER (PARTITION BY node ORDER BY time_s ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
            layers[2].append(f"sum({run_begin}) {earlier_rows} AS {name}__run")
            of_run = f"OVER (PARTITION BY node, {name}__run ORDER BY time_s)"
            layers[3].append(f"row_number() {of_run} AS {name}__times")
            layers[4].append(f"{self._make_verdict_sql(name, value_expression)} AS {name}__rule")
        query = "SELECT * FROM {numbered} WHERE copy__ = 1"
        for expressions in layers:
            query = f"SELECT {', '.join(['*', *expressions])} FROM ({query}) AS r"
        return query

    def _make_verdict_sql(self, name: str, value: str) -> str:
        cases = [f"WHEN {name} IS NULL OR isnan({value}) THEN NULL", f"WHEN {name}__in IS NULL THEN 'range'"]
        if name in self.jumps:
            largest_jump = self.jumps[name]
            jump_condition = " AND ".join(
                f"abs({name}__in - {name}__{side}) > {largest_jump!r}" for side in ("before", "after")
            )
            cases.append(f"WHEN {jump_condition} THEN 'jump'")
        if name in self.stuck:
            cases.append(f"WHEN {name}__times > {self.stuck[name]} THEN 'stuck'")
        return f"CASE {' '.join(cases)} END"

    def rows(self) -> str:
        """Return the SQL query over {judged} for the readings in which each value that breaks a rule is NULL."""
        of_rule = {name: f"CASE WHEN {name}__rule IS NULL THEN {name} END AS {name}" for name in self.checked_columns}
        columns = ", ".join(of_rule.get(name, name) for name in self.names)
        return f"SELECT {columns} FROM {{judged}} ORDER BY node, time_s"

    def left_out(self) -> str:
        """Return an SQL query for the table `Cleaned.left_out`: removed values, duplicates and reported gaps."""
        queries = [
            "SELECT 'duplicate' AS rule, '' AS what, node, time_s, CAST(NULL AS DOUBLE) AS value "
            "FROM {numbered} WHERE copy__ > 1"
        ]
        for name in self.checked_columns:
            queries.append(
                f"SELECT {name}__rule, '{name}', node, time_s, CAST({name} AS DOUBLE) "
                f"FROM {{judged}} WHERE {name}__rule IS NOT NULL"
            )
        if self.gap_s is not None:
            queries.append(f"SELECT 'gap', '', node, time_s, gap__ FROM {{judged}} WHERE gap__ > {self.gap_s!r}")
        return f"SELECT * FROM ({' UNION ALL '.join(queries)}) AS found ORDER BY node, time_s, rule, what"

    def counts(self) -> str:
        """Return an SQL query for the number of findings of each rule; a rule without findings has 0.

        Findings are converted or removed values, duplicates and gaps.
        """
        rule_columns = [("duplicate", "")] if self.identity else []
        for rule, columns in (("range", self.ranges), ("jump", self.jumps), ("stuck", self.stuck)):
            rule_columns += [(rule, column) for column in columns]
        rule_columns += [("gap", "")] if self.gap_s is not None else []
        queries = [
            f"SELECT 'unit' AS rule, '{converted_column}' AS what, count({converted_column}) AS found FROM {{numbered}}"
            for converted_column in self.units.values()
        ]
        for rule, column_name in rule_columns:
            condition = f"WHERE rule = '{rule}' AND what = '{column_name}'"
            queries.append(
                f"SELECT '{rule}' AS rule, '{column_name}' AS what, count(*) AS found FROM {{left_out}} {condition}"
            )
        rule_order = " ".join(f"WHEN '{rule}' THEN {index}" for index, rule in enumerate(RULES))
        if not queries:
            return "SELECT rule, what, count(*) AS found FROM {left_out} GROUP BY rule, what"
        return f"SELECT * FROM ({' UNION ALL '.join(queries)}) AS c ORDER BY CASE rule {rule_order} END, what"


def _check_column(column: str, columns: list[str]) -> None:
    if column not in columns:
        suggestion = meant(column, columns)
        raise DataError(f"the readings have no column {column!r}{suggestion}; their columns are {', '.join(columns)}")


def _make_conversion_sql(column: str, to: str | None) -> str:
    if to is None:
        return column
    units = column.rpartition("_")[2], to.rpartition("_")[2]
    if units not in _UNITS:
        known_conversions = ", ".join(f"{from_unit} to {to_unit}" for from_unit, to_unit in _UNITS)
        raise DataError(
            f"column {column} cannot be converted to {to}; both names must end with their unit, as in temperature_F "
            f"and temperature_C; known conversions: {known_conversions}"
        )
    return f"{_UNITS[units].format(column)} AS {to}"


def _parse_range(column: str, limits: Any) -> tuple[float, float]:
    """Return (smallest, largest) valid value of a column.

    ``limits`` is this pair, or the name of a key (such as "TEMP"), whose range is then returned. Raises DataError for
    other values.
    """
    if isinstance(limits, str):
        key = attributes.key_of(limits)
        return float(key.minimum), float(key.maximum)
    try:
        smallest, largest = map(float, limits)
    except (TypeError, ValueError):
        raise DataError(
            f"the range of {column} is {limits!r:.40}; it must be (smallest, largest), or an attribute key "
            'such as "TEMP"'
        ) from None
    if not smallest <= largest:
        raise DataError(f"the range of {column} is {limits!r:.40}; it must have the smallest value first")
    return smallest, largest


def _parse_limit(rule: str, most: Any) -> float:
    try:
        limit = float(most)
    except (TypeError, ValueError):
        limit = -1.0
    if not 0 < limit < float("inf"):
        raise DataError(f"the limit of rule {rule} is {most!r:.40}; it must be a finite number above 0")
    return limit
