"""Data on its way: logs to links and readings, traces of many runs to answers, live readings to windows.

What fits in this machine's memory is worked on here, without Java; what does not, or lies elsewhere, on Spark. Both by
the same call, and with the same result. Names are handed out lazily.

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
"""

from importlib import import_module
from typing import Any

_HOME = {
    "spark": "session",
    "traces": "trace.kept",
    "load_per_node": "trace.questions",
    "load_per_link": "trace.questions",
    "losses": "trace.questions",
    "over_time": "trace.questions",
    "flows": "trace.arrived",
    "paths": "trace.arrived",
    "latency": "trace.arrived",
    "latency_distribution": "trace.arrived",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'workbench.pipelines' has no attribute {name!r}")
    value = getattr(import_module(f"workbench.pipelines.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
