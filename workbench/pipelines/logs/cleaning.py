"""Readings made clean by named rules, each counted: units, copies, values out of range, jumps, stuck sensors, gaps.

Theory of operation
    A rule leaves out a value, not the reading: a broken thermometer says nothing of the hygrometer beside it. Only a
    copy of a reading goes as a whole, and a gap leaves out nothing: it is found. A value is left out by one rule, the
    first that it breaks in the order of `RULES`. Jumps and runs are seen among the values that are in range; beside a
    value that is missing, or at the ends, nothing is a jump.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench import attributes
from workbench.errors import DataError
from workbench.keywords import checked
from workbench.pipelines.ask import ask
from workbench.pipelines.logs.links import column_types
from workbench.pipelines.logs.reading import Log
from workbench.suggestion import meant

# Columns of the known data sets -> the keys under which they are published.
KEYS = {"temperature_C": "TEMP", "humidity_pct": "HUMIDITY"}
RULES = ("unit", "duplicate", "range", "jump", "stuck", "gap")
# (unit in the name of a column, that in the name of what it becomes) -> the conversion.
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
    """Readings after `clean`.

    rows        the readings, with missing values where a rule left one out, in the order of node and time
    left_out    what each rule found: rule, what (the column), node, time_s, value (of a gap its length in seconds)
    counts      how often each rule found something: rule, what, found
    """

    rows: Any
    left_out: Any
    counts: Any


@checked
def clean(readings: Any, rules: Mapping[str, Any] | None = None) -> Cleaned:
    """Readings without what the rules find wrong with them.

    readings is a table with the columns time_s and node: a pandas frame, a Parquet file, a DataFrame of Spark, a `Log`.
    ``rules`` {name: what it needs}, in this order:

    unit        {"temperature_F": "temperature_C"}: a column in another unit, by the units in both names
    duplicate   ("node", "epoch"): of readings that are equal in these columns one stays: the one with the
                least values, column by column, where a missing value comes last
    range       {"temperature_C": (-20, 60), "humidity_pct": "HUMIDITY"}: values outside are left out; a key's name
                stands for the range that can be published
    jump        {"temperature_C": 5}: values that differ by more from the one before and the one after
    stuck       {"temperature_C": 50}: where a value comes more often than that running, all after so many
    gap         300: more seconds between two readings of a node

    By default: duplicates in node and time, and the ranges of TEMP and HUMIDITY where there are such columns.
    DataError for a rule or a column that there is not.
    """
    table = readings.rows if isinstance(readings, Log) else readings
    types = column_types(table)
    rules = _defaults(types) if rules is None else dict(rules)
    plan = _Plan.of(rules, list(types))
    numbered = ask(plan.numbered(), readings=table)
    judged = ask(plan.judged(), numbered=numbered)
    left_out = ask(plan.left_out(), numbered=numbered, judged=judged)
    return Cleaned(ask(plan.rows(), judged=judged), left_out, ask(plan.counts(), left_out=left_out, numbered=numbered))


def _defaults(columns: Mapping[str, str]) -> dict[str, Any]:
    ranges = {column: key for column, key in KEYS.items() if column in columns}
    return {"duplicate": ("node", "time_s"), "range": ranges}


@dataclass(frozen=True)
class _Plan:
    """The rules as queries, one after the other."""

    columns: tuple[str, ...]  # before units are converted
    units: Mapping[str, str]
    same: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float]]
    jumps: Mapping[str, float]
    stuck: Mapping[str, int]
    gap_s: float | None

    @classmethod
    def of(cls, rules: Mapping[str, Any], columns: list[str]) -> _Plan:
        """The plan of rules as they are given; DataError for what cannot be."""
        for name in rules:
            if name not in RULES:
                raise DataError(f"there is no rule {name!r:.40}{meant(str(name), RULES)}; rules are {', '.join(RULES)}")
        units = dict(rules.get("unit", {}))
        then = [units.get(column, column) for column in columns]
        same = tuple(rules.get("duplicate", ()))
        ranges = {column: _range(column, limits) for column, limits in rules.get("range", {}).items()}
        jumps = {column: _limit("jump", most) for column, most in rules.get("jump", {}).items()}
        stuck = {column: int(_limit("stuck", most)) for column, most in rules.get("stuck", {}).items()}
        gap_s = _limit("gap", rules["gap"]) if rules.get("gap") is not None else None
        for column in ("time_s", "node", *same, *ranges, *jumps, *stuck):
            _check_column(column, then)
        for column in units:
            _check_column(column, columns)
        return cls(tuple(columns), units, same, ranges, jumps, stuck, gap_s)

    @property
    def names(self) -> list[str]:
        """The columns with units converted."""
        return [self.units.get(column, column) for column in self.columns]

    @property
    def measured(self) -> list[str]:
        """The columns whose values rules judge."""
        return [name for name in self.names if name in {*self.ranges, *self.jumps, *self.stuck}]

    def numbered(self) -> str:
        """All readings in the right units, with the number of each among its copies."""
        columns = ", ".join(_converted(column, self.units.get(column)) for column in self.columns)
        copies = "1"
        if self.same:
            order = ", ".join(f"{name} NULLS LAST" for name in self.names)
            copies = f"row_number() OVER (PARTITION BY {', '.join(self.same)} ORDER BY {order})"
        return f"SELECT *, {copies} AS copy__ FROM (SELECT {columns} FROM {{readings}}) AS converted"

    def judged(self) -> str:
        """The readings without copies, with the rule that each value breaks, and the seconds since the one before."""
        of_node = "OVER (PARTITION BY node ORDER BY time_s)"
        parts: list[list[str]] = [[], [f"time_s - lag(time_s) {of_node} AS gap__"], [], [], []]
        for name in self.measured:
            low, high = self.ranges.get(name, (float("-inf"), float("inf")))
            within = f" AND {name} BETWEEN {low!r} AND {high!r}" if name in self.ranges else ""
            value = f"CAST({name} AS DOUBLE)"
            parts[0].append(f"CASE WHEN NOT isnan({value}){within} THEN {value} END AS {name}__in")
            parts[1] += [f"lag({name}__in) {of_node} AS {name}__before", f"lead({name}__in) {of_node} AS {name}__after"]
            begins = f"CASE WHEN {name}__in = {name}__before THEN 0 ELSE 1 END"
            rows = "OVER (PARTITION BY node ORDER BY time_s ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
            parts[2].append(f"sum({begins}) {rows} AS {name}__run")
            times = f"OVER (PARTITION BY node, {name}__run ORDER BY time_s)"
            parts[3].append(f"row_number() {times} AS {name}__times")
            parts[4].append(f"{self._verdict(name, value)} AS {name}__rule")
        query = "SELECT * FROM {numbered} WHERE copy__ = 1"
        for more in parts:
            query = f"SELECT {', '.join(['*', *more])} FROM ({query}) AS r"
        return query

    def _verdict(self, name: str, value: str) -> str:
        cases = [f"WHEN {name} IS NULL OR isnan({value}) THEN NULL", f"WHEN {name}__in IS NULL THEN 'range'"]
        if name in self.jumps:
            most = self.jumps[name]
            both = " AND ".join(f"abs({name}__in - {name}__{side}) > {most!r}" for side in ("before", "after"))
            cases.append(f"WHEN {both} THEN 'jump'")
        if name in self.stuck:
            cases.append(f"WHEN {name}__times > {self.stuck[name]} THEN 'stuck'")
        return f"CASE {' '.join(cases)} END"

    def rows(self) -> str:
        """What stays."""
        of_rule = {name: f"CASE WHEN {name}__rule IS NULL THEN {name} END AS {name}" for name in self.measured}
        columns = ", ".join(of_rule.get(name, name) for name in self.names)
        return f"SELECT {columns} FROM {{judged}} ORDER BY node, time_s"

    def left_out(self) -> str:
        """What the rules found."""
        found = [
            "SELECT 'duplicate' AS rule, '' AS what, node, time_s, CAST(NULL AS DOUBLE) AS value "
            "FROM {numbered} WHERE copy__ > 1"
        ]
        for name in self.measured:
            found.append(
                f"SELECT {name}__rule, '{name}', node, time_s, CAST({name} AS DOUBLE) "
                f"FROM {{judged}} WHERE {name}__rule IS NOT NULL"
            )
        if self.gap_s is not None:
            found.append(f"SELECT 'gap', '', node, time_s, gap__ FROM {{judged}} WHERE gap__ > {self.gap_s!r}")
        return f"SELECT * FROM ({' UNION ALL '.join(found)}) AS found ORDER BY node, time_s, rule, what"

    def counts(self) -> str:
        """How often each rule found something, also if never."""
        asked = [("duplicate", "")] if self.same else []
        for rule, columns in (("range", self.ranges), ("jump", self.jumps), ("stuck", self.stuck)):
            asked += [(rule, column) for column in columns]
        asked += [("gap", "")] if self.gap_s is not None else []
        parts = [
            f"SELECT 'unit' AS rule, '{to}' AS what, count({to}) AS found FROM {{numbered}}"
            for to in self.units.values()
        ]
        for rule, what in asked:
            where = f"WHERE rule = '{rule}' AND what = '{what}'"
            parts.append(f"SELECT '{rule}' AS rule, '{what}' AS what, count(*) AS found FROM {{left_out}} {where}")
        order = " ".join(f"WHEN '{rule}' THEN {place}" for place, rule in enumerate(RULES))
        if not parts:
            return "SELECT rule, what, count(*) AS found FROM {left_out} GROUP BY rule, what"
        return f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS c ORDER BY CASE rule {order} END, what"


def _check_column(column: str, columns: list[str]) -> None:
    if column not in columns:
        hint = meant(column, columns)
        raise DataError(f"the readings have no column {column!r}{hint}; they have {', '.join(columns)}")


def _converted(column: str, to: str | None) -> str:
    if to is None:
        return column
    units = column.rpartition("_")[2], to.rpartition("_")[2]
    if units not in _UNITS:
        known = ", ".join(f"{one} to {other}" for one, other in _UNITS)
        raise DataError(f"{column} cannot become {to}: the known conversions are {known}, by the ends of the names")
    return f"{_UNITS[units].format(column)} AS {to}"


def _range(column: str, limits: Any) -> tuple[float, float]:
    """A range as it is given, or what can be published under the key of that name."""
    if isinstance(limits, str):
        key = attributes.key_of(limits)
        return float(key.minimum), float(key.maximum)
    try:
        low, high = map(float, limits)
    except (TypeError, ValueError):
        raise DataError(f"the range of {column} is {limits!r:.40}; it must be (smallest, largest), or a key") from None
    if not low <= high:
        raise DataError(f"the range of {column} is {limits!r:.40}; its first number must not be the larger one")
    return low, high


def _limit(rule: str, most: Any) -> float:
    try:
        number = float(most)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 < number < float("inf"):
        raise DataError(f"rule {rule} has {most!r:.40}; it must be a number above 0")
    return number
