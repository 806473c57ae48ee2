"""Data on its way: logs to links and readings, traces of many runs to answers, live readings to windows.

What fits in this machine's memory is worked on here, without Java; what does not, or lies elsewhere, on Spark. Both by
the same call, and with the same result.

Logs (`logs`)::

    read_log(paths, format, spark=None)   the rows of a log, and its lines that were left out, with reasons
    LogFormat(name, columns, ...)         a format of one's own
    links(rows, by, every_s)              delivery ratio and RSSI per direction, channel and stretch of time
    links_from_neighbors(rows)            the same of what motes report of their neighbors
    clean(readings, rules)                readings without what the named rules leave out, each counted
    replay(readings, key)                 a workload that publishes them again, at their times

Traces of many runs (`trace`), kept by ``Sweep(..., keep="trace")`` or simulated on demand::

    spark(master)                         a session of Spark that knows "workbench.trace"
    traces(folder, spark=None)            a table with the rows of all runs; of runs and of scenarios, too
    load_per_node(traces)                 frames and bytes that each node sent, received and lost
    load_per_link(traces)                 the same of each link
    flows(traces)                         who delivered whose readings to whom
    paths(traces)                         over which links delivered readings went
    latency(traces)                       median and 95th percentile, as in a run's metrics
    latency_distribution(traces)          at each percent of the deliveries
    over_time(traces, event, ended)       what events set: ranks, gradients
    losses(traces, radio)                 what each reason of loss costs

Live readings (`live`)::

    stream(source, out)                   readings of a run, of motes or of a mesh, captured in a folder as they come
    captured(folder)                      what a capture has, as a table
    windows(readings, every_s, by)        count, mean, least and greatest per window, region and key
    follow(folder, every_s, out, spark)   the windows of a capture that still grows
    regions(topology, ...)                which node is in which region
"""

from workbench.keywords import hand_out

# Public name -> the module that has it, within this package. A name loads its module the first time it is used.
_HOME = {
    "Inbox": "live.sources",
    "Log": "logs.reading",
    "LogFormat": "logs.formats",
    "Reading": "live.readings",
    "captured": "live.capture",
    "clean": "logs.cleaning",
    "flows": "trace.arrived",
    "follow": "live.following",
    "latency": "trace.arrived",
    "latency_distribution": "trace.arrived",
    "links": "logs.links",
    "links_from_neighbors": "logs.links",
    "load_per_link": "trace.questions",
    "load_per_node": "trace.questions",
    "losses": "trace.questions",
    "over_time": "trace.questions",
    "paths": "trace.arrived",
    "read_log": "logs.reading",
    "regions": "live.sources",
    "replay": "logs.replaying",
    "spark": "session",
    "stream": "live.bridge",
    "traces": "trace.table",
    "windows": "live.windows",
}

__getattr__ = hand_out(__name__, _HOME)
