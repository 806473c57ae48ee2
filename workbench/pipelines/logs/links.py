"""Links between nodes, measured in logs: delivery ratio and RSSI per direction, channel and interval.

Theory of operation
    In a log of Mercator, a tool that measures testbeds, a node sends a number of packets in each transaction, and every
    other node logs the packets that it hears. A lost packet has no row. So every transaction with at least one row
    counts for every other node of the log, even if that node heard nothing. The delivery ratio of a link is the number
    of packets that the receiver heard, divided by the number sent.

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

# Packets that each receiver heard in each transaction: a small table even for a long log.
_COUNTED = """
SELECT file, transmitter, transaction, {by}receiver, count(*) AS heard, CAST(sum(rssi_dBm) AS DOUBLE) AS rssi_dBm,
  min(time_s) AS time_s, max(sent) AS sent
FROM (
  SELECT {file} AS file, transmitter, transaction, {by}receiver, packet,
    max(rssi_dBm) AS rssi_dBm, min(time_s) AS time_s, max(sent) AS sent
  FROM {{rows}} GROUP BY {group}transmitter, transaction, {by}receiver, packet
) AS packets
GROUP BY file, transmitter, transaction, {by}receiver
"""

_LINKS = """
WITH burst AS (
  SELECT file, transmitter, transaction, {by}max(sent) AS sent, min(time_s) AS time_s
  FROM {{counted}} GROUP BY file, transmitter, {by}transaction
), timed AS (
  SELECT burst.*, {from_s} AS from_s FROM burst CROSS JOIN (SELECT min(time_s) AS start_s FROM burst) AS log_start
), known AS (
  SELECT file, transmitter AS name FROM {{counted}} UNION SELECT file, receiver AS name FROM {{counted}}
), numbers AS (
  SELECT name, {number} AS node FROM (SELECT DISTINCT name FROM known) AS names
), link AS (
  SELECT timed.transmitter, known.name AS receiver, {of_timed}timed.from_s AS from_s,
    CAST(sum(timed.sent) AS BIGINT) AS sent, CAST(sum(coalesce(counted.heard, 0)) AS BIGINT) AS heard,
    sum(counted.rssi_dBm) AS rssi_dBm
  FROM timed JOIN known ON known.file = timed.file AND known.name <> timed.transmitter
    LEFT JOIN {{counted}} AS counted ON counted.file = timed.file AND counted.transmitter = timed.transmitter
      AND counted.transaction = timed.transaction AND counted.receiver = known.name {same}
  GROUP BY timed.transmitter, known.name, {of_timed}timed.from_s
)
SELECT a.node AS transmitter, b.node AS receiver, {by}from_s, heard / sent AS pdr,
  rssi_dBm / nullif(heard, 0) AS rssi_dBm, heard, sent,
  link.transmitter AS transmitter_name, link.receiver AS receiver_name
FROM link JOIN numbers AS a ON a.name = link.transmitter JOIN numbers AS b ON b.name = link.receiver
ORDER BY 1, 2, {by}from_s
"""

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
             with the columns round, node (which reports) and source (which the node heard). Optional columns: packet,
             lqi, rssi, power_dBm
    every_s  length of an interval in seconds; the rows then need the column time_s. None: one interval

    Columns: transmitter, receiver, from_s (begin of the interval; only with ``every_s``), pdr (delivery ratio, 0 to 1),
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
        "from_s": "0" if every_s is None else _interval_start(every_s),
        "is_complete": "count(DISTINCT packet) = max(packet) + 1" if "packet" in columns else "true",
        "means": "".join(f", avg({name}) AS {name}" for name in measures),
        "measures": "".join(f", {name}" for name in measures),
        "order": ", ".join(order),
        "selected_from_s": "" if every_s is None else "from_s, ",
        "sorted_from_s": "" if every_s is None else "from_s, ",
    }
    return run_query(_NEIGHBOR_LINKS.format(**query_parts), rows=rows)


def _interval_start(every_s: float) -> str:
    """Return the SQL expression of the time at which the interval of ``time_s`` begins."""
    return "start_s + floor((time_s - start_s) / {0}) * {0}".format(float(every_s))


@checked
def links(rows: Any, by: Iterable[str] = ("channel",), every_s: float | None = None) -> Any:
    """Return the links measured in a Mercator log (`read_log` with "mercator"), one row per link.

    A link has a direction. It has one row for each combination of values of ``by``, and for each interval.

    rows     a `Log`, or its rows: a pandas frame, a Parquet file, a DataFrame of Spark; or any table with the columns
             time_s, transmitter, receiver, transaction, packet, sent, rssi_dBm. If the rows have the column file, nodes
             of different files are not paired
    by       names of columns by which to separate the rows, such as channel or power_dBm; their values must be constant
             within a transaction
    every_s  length of intervals in seconds; a transaction belongs to the interval in which it begins. None: one
             interval

    Columns: transmitter, receiver (numbers of nodes), those of ``by``, from_s (Unix time at which the interval begins),
    pdr (delivery ratio, 0 to 1), rssi_dBm (mean of the packets heard; missing if none), heard, sent (numbers of
    packets), transmitter_name, receiver_name. Nodes with names are numbered from 0 in the order of names. A packet
    logged twice by a receiver counts once. ``wb.topology.from_links`` makes a network of the result.
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
    start_expression = "start_s" if every_s is None else _interval_start(every_s)
    are_numbers = all(types[name] in ("bigint", "int", "integer") for name in ("transmitter", "receiver"))
    query_parts = {
        "file": "file" if "file" in types else "''",
        "group": "file, " if "file" in types else "",
        "by": "".join(f"{name}, " for name in by),
        "of_timed": "".join(f"timed.{name}, " for name in by),
        "same": "".join(f"AND counted.{name} = timed.{name} " for name in by),
        "from_s": start_expression,
        "number": "name" if are_numbers else "CAST(dense_rank() OVER (ORDER BY name) - 1 AS BIGINT)",
    }
    counted_packets = run_query(_COUNTED.format(**query_parts), rows=rows)
    if not is_spark(counted_packets):
        return run_query(_LINKS.format(**query_parts), counted=counted_packets)
    # Spark only counts: it would read the log again for each mention of the counts in the second query.
    links_table = duckdb_relation(_LINKS.format(**query_parts), counted=counted_packets.toArrow()).to_arrow_table()
    return counted_packets.sparkSession.createDataFrame(links_table)


def column_types(table: Any) -> dict[str, str]:
    """Return {column: SQL type in lower case} of any table that `run_query` accepts."""
    if is_spark(table):
        return dict(table.dtypes)
    empty_relation = duckdb_relation("SELECT * FROM {table_of_types} LIMIT 0", table_of_types=table)
    return {name: str(kind).lower() for name, kind in zip(empty_relation.columns, empty_relation.types, strict=True)}
