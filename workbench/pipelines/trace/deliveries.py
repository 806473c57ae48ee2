"""Deliveries matched with their publications: latency, flows from publisher to sink, and paths.

Theory of operation
    The rows "originated" of a message list the publications that it carries. A delivery is matched with a publication
    of its message that has the delivered text. If several have this text, a subscription's n-th delivery of the text
    is matched with the n-th of these publications. If no publication of the message has this text, a filter has changed
    the text. The subscription's n-th delivery from the message is then matched with the message's n-th publication.

    A delivery counts if the subscription was active at the times of publication and delivery, and the sink was up at
    the time of publication. So deliveries and latencies equal those of a run's metrics (`workbench.sim.metrics`).

Limits
    A delivery is not compared with the constraints of its subscription, so these statistics include deliveries that a
    run's metrics report as wrong.
"""

from __future__ import annotations

from typing import Any

from workbench.pipelines.queries import run_query
from workbench.pipelines.trace.statistics import band, checkpoint, mean_columns, run_sorted, select_scenarios

MOST_HOPS = 90  # Spark allows a hundred levels of recursion.
_MESSAGE = "scenario, origin, sequence"
_HELD = (
    "held.scenario = {0}.scenario AND held.origin = {0}.origin AND held.sequence = {0}.sequence AND held.node = {0}.{1}"
)
_MATCHES = {
    "text": "item.detail = got.detail AND item.place = got.place",
    "place": "item.place_in_message = got.place_in_message",
}


def _make_match_sql(match: str, column: str) -> str:
    """Return an SQL expression for the value of ``column`` in the publication that matches a delivery, or NULL.

    ``match`` is "text" or "place". With "text", the publication must have the text of the delivery. With "place", the
    n-th delivery from a message matches the n-th publication in this message. Callers use "place" if a filter in the
    network has changed the text.
    """
    return f"min(CASE WHEN {_MATCHES[match]} THEN {column} END)"


_DELIVERIES = f"""
    subscriptions AS (
        SELECT opened.scenario, opened.node, opened.sequence AS number, opened.time_us AS first_us,
            least(CASE WHEN opened.value < 0 THEN 9223372036854775807 ELSE opened.value END,
                coalesce(closed.time_us, 9223372036854775807)) AS last_us
        FROM (SELECT *, row_number() OVER (PARTITION BY scenario, node, sequence ORDER BY row DESC) AS age
            FROM {{traces}} WHERE event = 'subscribed') AS opened
        LEFT JOIN (SELECT scenario, node, sequence, min(time_us) AS time_us
            FROM {{traces}} WHERE event = 'unsubscribed' GROUP BY scenario, node, sequence) AS closed
        ON closed.scenario = opened.scenario AND closed.node = opened.node AND closed.sequence = opened.sequence
        WHERE opened.age = 1
    ),
    down AS (
        SELECT scenario, node, event, time_us AS failed_us,
            coalesce(lead(time_us) OVER (PARTITION BY scenario, node ORDER BY row), 9223372036854775807) AS recovered_us
        FROM {{traces}} WHERE event IN ('failed', 'recovered')
    ),
    items AS (
        SELECT message.scenario, message.origin, message.sequence, made.node AS publisher, made.time_us AS published_us,
            made.detail,
            row_number() OVER (PARTITION BY message.scenario, message.origin, message.sequence, made.detail
                ORDER BY message.row) AS place,
            row_number() OVER (PARTITION BY message.scenario, message.origin, message.sequence
                ORDER BY message.row) AS place_in_message
        FROM (SELECT * FROM {{traces}} WHERE event = 'originated') AS message
        JOIN (SELECT *, row_number() OVER (PARTITION BY scenario, node, sequence ORDER BY row DESC) AS age
            FROM {{traces}} WHERE event = 'published') AS made
        ON made.scenario = message.scenario AND made.node = message.node AND made.sequence = message.value
        WHERE made.age = 1
    ),
    delivered AS (
        SELECT given.scenario, given.row, given.origin, given.sequence, given.node AS sink, given.peer, given.time_us,
            given.detail, asked.first_us, asked.last_us,
            row_number() OVER (PARTITION BY given.scenario, given.node, given.value, given.origin, given.sequence,
                given.detail ORDER BY given.row) AS place,
            row_number() OVER (PARTITION BY given.scenario, given.node, given.value, given.origin, given.sequence
                ORDER BY given.row) AS place_in_message
        FROM (SELECT * FROM {{traces}} WHERE event = 'delivered') AS given
        JOIN subscriptions AS asked
        ON asked.scenario = given.scenario AND asked.node = given.node AND asked.number = given.value
        WHERE asked.first_us <= given.time_us AND given.time_us < asked.last_us
    ),
    matched AS (
        SELECT got.scenario, got.row, {_make_match_sql("text", "item.publisher")} AS publisher_of_text,
            {_make_match_sql("text", "item.published_us")} AS published_us_of_text,
            {_make_match_sql("place", "item.publisher")} AS publisher_in_place,
            {_make_match_sql("place", "item.published_us")} AS published_us_in_place,
            max(CASE WHEN item.detail = got.detail THEN 1 ELSE 0 END) AS has_text
        FROM delivered AS got JOIN items AS item
        ON item.scenario = got.scenario AND item.origin = got.origin AND item.sequence = got.sequence
        GROUP BY got.scenario, got.row
    ),
    credited AS (
        SELECT delivered.*, CASE WHEN has_text = 1 THEN publisher_of_text ELSE publisher_in_place END AS publisher,
            CASE WHEN has_text = 1 THEN published_us_of_text ELSE published_us_in_place END AS published_us
        FROM delivered JOIN matched ON matched.scenario = delivered.scenario AND matched.row = delivered.row
    ),
    arrived AS (
        SELECT credited.*, time_us - published_us AS latency_us FROM credited
        WHERE first_us <= published_us AND published_us < last_us AND NOT EXISTS (
            SELECT 1 FROM down WHERE down.event = 'failed' AND down.scenario = credited.scenario
                AND down.node = credited.sink AND down.failed_us <= credited.published_us
                AND credited.published_us < down.recovered_us)
    ),
    ranked AS (
        SELECT scenario, latency_us, row_number() OVER (PARTITION BY scenario ORDER BY latency_us) AS place,
            count(*) OVER (PARTITION BY scenario) AS deliveries
        FROM arrived
    )
"""


def latency(traces: Any, over_runs: bool = False) -> Any:
    """Return a table of the latency from publication to delivery, with a row for each run in ``traces``.

    ``traces`` is the result of the function `traces`. Columns: scenario, delivered, latency_ms_p50, latency_ms_p95, as
    in a run's metrics. A run without a delivery has no row. With ``over_runs`` the result is a single row: means and
    percentiles over the runs with a delivery (see `band`).
    """
    query = f"""
        WITH {_DELIVERIES}
        SELECT scenario, count(*) AS delivered, {_make_percentile_sql(50)} AS latency_ms_p50,
            {_make_percentile_sql(95)} AS latency_ms_p95
        FROM ranked GROUP BY scenario
    """
    latency_table = run_sorted(query, ("scenario",), traces=traces)
    if not over_runs:
        return latency_table
    columns = mean_columns(("delivered", "latency_ms_p50", "latency_ms_p95"))
    return run_query(f"SELECT count(*) AS runs, {columns} FROM {{answer}}", answer=latency_table)


def latency_distribution(traces: Any, over_runs: bool = False) -> Any:
    """Return a table of the latency percentiles of each run in ``traces``, the result of the function `traces`.

    Columns: scenario, percent (1 to 100), latency_ms.

    latency_ms is the smallest latency L such that at least this percentage of the deliveries took L or less, as in a
    run's metrics. With ``over_runs`` the table has means and percentiles over the runs with a delivery instead (see
    `band`).
    """
    percents = ", ".join(f"({percent})" for percent in range(1, 101))
    query = f"""
        WITH {_DELIVERIES}
        SELECT scenario, percent, latency_us / 1000e0 AS latency_ms
        FROM ranked CROSS JOIN (VALUES {percents}) AS percents(percent)
        WHERE place * 100 >= percent * deliveries AND (place - 1) * 100 < percent * deliveries
    """
    percentile_table = run_sorted(query, ("scenario", "percent"), traces=traces)
    return (
        band(percentile_table, percentile_table, ("percent",), ("latency_ms",), "NULL")
        if over_runs
        else percentile_table
    )


def flows(traces: Any, over_runs: bool = False) -> Any:
    """Return a table of the deliveries from each publisher to each sink, by last hop.

    Columns: scenario, publisher, sink, and

    last_hop    the neighbor from which the sink received the readings; -1 if the sink is the publisher
    delivered   number of readings
    latency_ms  mean latency
    hops        mean number of hops; null if the protocol does not record it. A protocol records it as the value of the
                event "held", at which a node first holds a message

    ``traces`` is the result of the function `traces`. With ``over_runs`` the table has the mean and percentiles of
    delivered over all runs; latency_ms and hops are left out.
    """
    query = f"""
        WITH {_DELIVERIES},
        travelled AS (
            SELECT {_MESSAGE}, node, min(value) AS hops FROM {{traces}} WHERE event = 'held' GROUP BY {_MESSAGE}, node
        )
        SELECT arrived.scenario, publisher, sink, arrived.peer AS last_hop, count(*) AS delivered,
            avg(latency_us) / 1000e0 AS latency_ms, avg(hops) AS hops
        FROM arrived LEFT JOIN travelled
        ON travelled.scenario = arrived.scenario AND travelled.origin = arrived.origin
            AND travelled.sequence = arrived.sequence AND travelled.node = arrived.sink
        GROUP BY arrived.scenario, publisher, sink, arrived.peer
    """
    flow_table = run_sorted(query, ("scenario", "publisher", "sink", "last_hop"), traces=traces)
    if not over_runs:
        return flow_table
    key_columns = ("publisher", "sink", "last_hop")
    return band(flow_table, select_scenarios(traces), key_columns, ("delivered",))


def paths(traces: Any, over_runs: bool = False) -> Any:
    """Return a table of the numbers of delivered readings that traversed each link.

    Columns: scenario, publisher, sink, sender, receiver, delivered (number of readings). ``traces`` is the result of
    the function `traces`.

    A path is traced back from the sink, hop by hop, to the neighbor from which each node first received the message. A
    trace records this neighbor in a row "held", when a node first holds a message. A path ends at a node without such a
    row, or after `MOST_HOPS` links. If a protocol records rows "held" only at sinks, each path consists of its last
    link. If it records none, the table is empty. With ``over_runs`` the table has means and percentiles over all runs
    instead (see `band`).
    """
    query = f"WITH {_DELIVERIES} SELECT {_MESSAGE}, publisher, sink FROM arrived"
    arrived_messages = checkpoint(run_query(query, traces=traces))
    query = f"""
        SELECT {_MESSAGE}, node, peer FROM (
            SELECT {_MESSAGE}, node, peer, row_number() OVER (PARTITION BY {_MESSAGE}, node ORDER BY row) AS age
            FROM {{traces}} WHERE event = 'held') AS every
        WHERE age = 1 AND peer >= 0
    """
    held_rows = checkpoint(run_query(query, traces=traces))
    query = f"""
        WITH RECURSIVE hops AS (
            SELECT arrived.scenario, arrived.origin, arrived.sequence, publisher, sink, held.peer AS sender,
                held.node AS receiver, 1 AS hop
            FROM {{arrived}} AS arrived JOIN {{held}} AS held ON {_HELD.format("arrived", "sink")}
            UNION ALL
            SELECT hops.scenario, hops.origin, hops.sequence, hops.publisher, hops.sink, held.peer AS sender,
                held.node AS receiver, hops.hop + 1 AS hop
            FROM hops JOIN {{held}} AS held ON {_HELD.format("hops", "sender")}
            WHERE hops.hop < {MOST_HOPS}
        )
        SELECT scenario, publisher, sink, sender, receiver, count(*) AS delivered
        FROM hops GROUP BY scenario, publisher, sink, sender, receiver
    """
    key_columns = ("publisher", "sink", "sender", "receiver")
    path_table = run_sorted(query, ("scenario", *key_columns), arrived=arrived_messages, held=held_rows)
    return band(path_table, select_scenarios(traces), key_columns, ("delivered",)) if over_runs else path_table


def _make_percentile_sql(percent: int) -> str:
    """Return the SQL expression of a percentile of the latency, in ms.

    The percentile is the smallest latency L such that at least ``percent`` % of the deliveries took L or less.
    """
    return f"min(CASE WHEN place * 100 >= {percent} * deliveries THEN latency_us END) / 1000e0"
