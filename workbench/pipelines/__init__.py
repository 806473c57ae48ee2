"""Data pipelines: logs to links and readings, traces of many runs to statistics, live readings to windows.

Every function runs on DuckDB, in this process and without Java, or on Spark, for data that is larger or stored
elsewhere. The call and the result are the same on both.

Logs (`logs`)::

    read_log(paths, format, spark=None)   the rows of a log, and its rejected lines with the reasons
    LogFormat(name, columns, ...)         a format of your own
    links(rows, by, every_s)              delivery ratio and RSSI of each directed link, by channel and interval
    links_from_neighbors(rows)            the same from the neighbor tables that motes report
    clean(readings, rules)                the readings without values that break the rules, and counts of such values
    replay(readings, key)                 a workload that publishes the readings at their times

Traces of many runs (`trace`), stored by ``Sweep(..., keep="trace")`` or simulated on demand::

    spark(master)                         a Spark session with the data source "workbench.trace"
    traces(folder, spark=None)            the trace rows of all runs in a folder, of given runs, or of scenarios to run
    load_per_node(traces)                 frames and bytes that each node sent, received and lost
    load_per_link(traces)                 frames and bytes sent, received and lost on each link
    flows(traces)                         deliveries from each publisher to each sink, by last hop
    paths(traces)                         number of delivered readings that traversed each link
    latency(traces)                       median and 95th percentile of the latency, as in a run's metrics
    latency_distribution(traces)          the percentiles 1 to 100 of the latency
    over_time(traces, event, ended)       at each time, number and sum of the values that events have set, such as ranks
    losses(traces, radio)                 frames, bytes and energy lost for each reason

Live readings (`live`)::

    stream(source, out)                   capture readings of a run, of motes or of a mesh in a folder as they arrive
    captured(folder)                      the readings of a capture as a table
    windows(readings, every_s, by)        count, mean, minimum and maximum per window, region and key
    follow(folder, every_s, out, spark)   the windows of a capture that is still growing
    regions(topology, ...)                the region of each node
"""

from workbench.keywords import hand_out

# Public name -> the module that defines it, within this package. A module is loaded when its name is first used.
_HOME = {
    "Inbox": "live.sources",
    "Log": "logs.reading",
    "LogFormat": "logs.formats",
    "Reading": "live.readings",
    "captured": "live.capture",
    "clean": "logs.cleaning",
    "flows": "trace.deliveries",
    "follow": "live.following",
    "latency": "trace.deliveries",
    "latency_distribution": "trace.deliveries",
    "links": "logs.links",
    "links_from_neighbors": "logs.links",
    "load_per_link": "trace.statistics",
    "load_per_node": "trace.statistics",
    "losses": "trace.statistics",
    "over_time": "trace.statistics",
    "paths": "trace.deliveries",
    "read_log": "logs.reading",
    "regions": "live.sources",
    "replay": "logs.replaying",
    "spark": "session",
    "stream": "live.bridge",
    "traces": "trace.table",
    "windows": "live.windows",
}

__getattr__ = hand_out(__name__, _HOME)
