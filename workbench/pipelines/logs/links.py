"""Links between nodes, measured in logs: delivery ratio and RSSI per direction, channel and interval.

Theory of operation
    In a log of Mercator, a tool that measures testbeds, a node sends a number of packets in each transaction, and every
    other node logs the packets that it hears. A lost packet has no row. So every transaction with at least one row
    counts for every other node of the log, even if that node heard nothing. The delivery ratio of a link is the number
    of packets that the receiver heard, divided by the number sent.

    On Spark the table of links is a single query, which runs when the table is used. It reads the log once and collects
    nothing in this process.

Limits
    A transaction of which no node heard a packet has no rows and is not counted, so the links of a weak sender look
    better than they are. Only nodes that have sent or heard at least one valid packet are known. A node that was
    switched off counts as one that hears nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench import datasets
from workbench.errors import DataError
from workbench.keywords import checked
from workbench.pipelines.logs.reading import Log
from workbench.pipelines.queries import duckdb_relation, is_spark, run_query
from workbench.suggestion import meant
from workbench.topology.graphs import is_number

_NEEDED = ("time_s", "transmitter", "receiver", "transaction", "packet", "sent", "rssi_dBm")

# counted: the packets that each receiver heard in each transaction. heard: the same for each interval; ``sent`` is
# summed over transactions, each of which counts in the row of one of its receivers. All later tables are small: they
# are made from the links of a file that heard a packet.
_LINKS = """
WITH counted AS (
  SELECT file, transmitter, transaction, {by}receiver, count(*) AS heard, CAST(sum(rssi_dBm) AS DOUBLE) AS rssi_dBm,
    min(time_s) AS time_s, max(sent) AS sent
  FROM (
    SELECT {file} AS file, transmitter, transaction, {by}receiver, packet,
      max(rssi_dBm) AS rssi_dBm, min(time_s) AS time_s, max(sent) AS sent
    FROM {{rows}} GROUP BY {group}transmitter, transaction, {by}receiver, packet
  ) AS packets
  GROUP BY file, transmitter, transaction, {by}receiver {once}
), burst AS (
  SELECT file, transmitter, {by}receiver, heard, rssi_dBm, min(time_s) OVER {of_burst} AS time_s,
    max(sent) OVER {of_burst} AS sent,
    row_number() OVER (PARTITION BY file, transmitter, {by}transaction ORDER BY receiver) AS number
  FROM counted
), heard AS (
  SELECT file, transmitter, {by}receiver, from_s, CAST(sum(heard) AS BIGINT) AS heard, sum(rssi_dBm) AS rssi_dBm,
    CAST(sum(CASE WHEN number = 1 THEN sent ELSE 0 END) AS BIGINT) AS sent
  FROM (
    SELECT burst.*, {from_s} AS from_s
    FROM burst CROSS JOIN (SELECT min(time_s) AS start_s FROM counted) AS log_start
  ) AS timed
  GROUP BY file, transmitter, {by}receiver, from_s {once}
), known AS (
  SELECT file, transmitter AS name FROM heard UNION SELECT file, receiver AS name FROM heard
), numbers AS (
  SELECT name, {number} AS node FROM (SELECT DISTINCT name FROM known) AS names
), trial AS (
  SELECT file, transmitter, {by}from_s, sum(sent) AS sent FROM heard GROUP BY file, transmitter, {by}from_s
), link AS (
  SELECT trial.transmitter, known.name AS receiver, {of_trial}trial.from_s,
    CAST(sum(trial.sent) AS BIGINT) AS sent, CAST(sum(coalesce(heard.heard, 0)) AS BIGINT) AS heard,
    sum(heard.rssi_dBm) AS rssi_dBm
  FROM trial JOIN known ON known.file = trial.file AND known.name <> trial.transmitter
    LEFT JOIN heard ON heard.file = trial.file AND heard.transmitter = trial.transmitter
      AND heard.from_s = trial.from_s AND heard.receiver = known.name {same}
  GROUP BY trial.transmitter, known.name, {of_trial}trial.from_s
)
SELECT a.node AS transmitter, b.node AS receiver, {by}from_s, heard / sent AS pdr,
  rssi_dBm / nullif(heard, 0) AS rssi_dBm, heard, sent,
  link.transmitter AS transmitter_name, link.receiver AS receiver_name
FROM link JOIN numbers AS a ON a.name = link.transmitter JOIN numbers AS b ON b.name = link.receiver
ORDER BY 1, 2, {by}from_s
"""
# Spark computes a table of WITH anew for each mention, and would read the log for each, unless a second computation
# could give other rows. So this condition, which is always true but depends on a random number, avoids repetition.
_ONCE = "HAVING rand() >= 0"

# Neighbor reports, as in `workbench.datasets.links_from_neighbors`. A round belongs to the interval of its first row.
_NEIGHBOR_LINKS = """
WITH log_start AS (
  SELECT min({time_s}) AS start_s FROM {{rows}}
), timed AS (
  SELECT round, {from_s} AS from_s
  FROM (SELECT round, min({time_s}) AS time_s FROM {{rows}} GROUP BY round) AS rounds CROSS JOIN log_start
), report AS (
  SELECT node, round FROM {{rows}} GROUP BY node, round HAVING {is_complete}
), sender AS (
  SELECT DISTINCT source, round FROM {{rows}}
), trial AS (
  SELECT source, node, from_s, count(*) AS rounds
  FROM report JOIN sender USING (round) JOIN timed USING (round) WHERE node <> source
  GROUP BY source, node, from_s
), heard AS (
  SELECT source, node, from_s, count(*) AS heard{means}
  FROM (
    SELECT *, row_number() OVER (PARTITION BY source, node, round ORDER BY {order}) AS number
    FROM {{rows}} JOIN report USING (node, round)
  ) AS frames JOIN timed USING (round) WHERE number = 1
  GROUP BY source, node, from_s
)
SELECT source AS transmitter, node AS receiver, {selected_from_s}round(coalesce(heard, 0) / rounds, 6) AS pdr,
  rounds{measures}
FROM trial LEFT JOIN heard USING (source, node, from_s)
ORDER BY {sorted_from_s}transmitter, receiver
"""


def links_from_neighbors(rows: Any, every_s: float | None = None) -> Any:
    """Compute a table of links from neighbor observations; with ``every_s``, for each interval of that length.

    rows     a `Log` of "ulb-neighbors", or its rows: a pandas frame, a Parquet file, a DataFrame of Spark; or any table
             with the columns round (number of the period in which every node sends once), node (which reports) and
             source (which the node heard). Optional columns: packet, lqi, rssi, power_dBm
    every_s  length of an interval in seconds; the rows then need the column time_s. None: one interval

    Columns: transmitter, receiver, from_s (start of the interval; only with ``every_s``), pdr (delivery ratio, 0 to 1),
    rounds (number of rounds counted), and the means of lqi, rssi and power_dBm over the frames received.
    `workbench.datasets.links_from_neighbors` describes how rounds are counted. Returns a pandas frame, or a DataFrame
    of Spark for a DataFrame of Spark. If a node reports the same source twice in a round, the first frame in order of
    packet numbers counts on Spark, and the first row elsewhere. Raises DataError for a missing column.
    """
    rows = rows.rows if isinstance(rows, Log) else rows
    if not is_spark(rows):
        frame = run_query("SELECT * FROM {rows}", rows=rows) if isinstance(rows, str | Path | pa.Table) else rows
        return datasets.links_from_neighbors(frame, every_s)
    if every_s is not None and not (is_number(every_s) and every_s > 0):
        raise DataError(f"every_s is {every_s!r:.40}; it must be a number of seconds above 0")
    columns = column_types(rows)
    for name in ("round", "node", "source", *(() if every_s is None else ("time_s",))):
        if name not in columns:
            raise DataError(
                f"the neighbor observations have no column {name!r}{meant(name, columns)}; "
                f"their columns are {', '.join(columns)}"
            )
    measures = [name for name in ("lqi", "rssi", "power_dBm") if name in columns]
    order = [name for name in ("packet", *measures) if name in columns] or ["source"]
    query_parts = {
        "time_s": "0" if every_s is None else "time_s",
        "from_s": "0" if every_s is None else _make_interval_start_sql(every_s),
        "is_complete": "count(DISTINCT packet) = max(packet) + 1" if "packet" in columns else "true",
        "means": "".join(f", avg({name}) AS {name}" for name in measures),
        "measures": "".join(f", {name}" for name in measures),
        "order": ", ".join(order),
        "selected_from_s": "" if every_s is None else "from_s, ",
        "sorted_from_s": "" if every_s is None else "from_s, ",
    }
    return run_query(_NEIGHBOR_LINKS.format(**query_parts), rows=rows)


def _make_interval_start_sql(every_s: float) -> str:
    """Return the SQL expression of the start of the interval that contains ``time_s``.

    The first interval begins at the value of the column start_s. Each interval has ``every_s`` seconds and begins where
    the previous one ends.
    """
    return "start_s + floor((time_s - start_s) / {0}) * {0}".format(float(every_s))


@checked
def links(rows: Any, by: Iterable[str] = ("channel",), every_s: float | None = None) -> Any:
    """Return a table of the links that were measured in a Mercator log (`read_log` with "mercator").

    A link has a direction. The table has a row for each link, combination of values of ``by``, and interval.

    rows     a `Log`, or its rows: a pandas frame, a Parquet file, a DataFrame of Spark; or any table with the columns
             time_s, transmitter, receiver, transaction, packet, sent, rssi_dBm. If the rows have the column file, no
             link is computed between two nodes that never occur in the same file
    by       names of columns by which to separate the rows, such as channel or power_dBm; their values must be constant
             within a transaction
    every_s  length of intervals in seconds; a transaction belongs to the interval in which it begins. None: one
             interval

    Columns: transmitter, receiver (numbers of nodes), those of ``by``, from_s (Unix time at which the interval begins),
    pdr (delivery ratio, 0 to 1), rssi_dBm (mean of the packets heard; missing if none), heard, sent (numbers of
    packets), transmitter_name, receiver_name. Nodes with names are numbered from 0 in the order of names. A packet
    logged twice by a receiver counts once. ``wb.topology.from_links`` makes a network of the result. Raises DataError
    for a missing column, and for an invalid ``every_s``.
    """
    rows = rows.rows if isinstance(rows, Log) else rows
    by = (by,) if isinstance(by, str) else tuple(by)
    types = column_types(rows)
    for name in (*_NEEDED, *by):
        if name not in types:
            raise DataError(
                f"the rows have no column {name!r}{meant(name, types)}; their columns are {', '.join(types)}"
            )
    if every_s is not None and not every_s > 0:
        raise DataError(f"every_s is {every_s!r:.40}; it must be a number of seconds above 0")
    are_numbers = all(types[name] in ("bigint", "int", "integer") for name in ("transmitter", "receiver"))
    by_columns = "".join(f"{name}, " for name in by)
    query_parts = {
        "file": "file" if "file" in types else "''",
        "group": "file, " if "file" in types else "",
        "by": by_columns,
        "of_burst": f"(PARTITION BY file, transmitter, {by_columns}transaction)",
        "of_trial": "".join(f"trial.{name}, " for name in by),
        "same": "".join(f"AND heard.{name} = trial.{name} " for name in by),
        "from_s": "start_s" if every_s is None else _make_interval_start_sql(every_s),
        "number": "name" if are_numbers else "CAST(dense_rank() OVER (ORDER BY name) - 1 AS BIGINT)",
        "once": _ONCE if is_spark(rows) else "",
    }
    return run_query(_LINKS.format(**query_parts), rows=rows)


def column_types(table: Any) -> dict[str, str]:
    """Return {column: SQL type in lower case} of any table that `run_query` accepts."""
    if is_spark(table):
        return dict(table.dtypes)
    empty_relation = duckdb_relation("SELECT * FROM {table_of_types} LIMIT 0", table_of_types=table)
    return {name: str(kind).lower() for name, kind in zip(empty_relation.columns, empty_relation.types, strict=True)}
