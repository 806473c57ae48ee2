"""Views: a player for notebooks and pages, figures for papers, and tables.

Views of a run over time draw the run's layers, which are tables of visible states (see `layers`). Some layers exist for
every run, others come from the run's protocol. The views of a run are::

    show(run, event=None)                 the player, in a notebook or as a page
    show_live(run)                        a run on motes while it is in progress
    PlayerView(run)                       a player in which other runs can be shown
    see(run)                              the layers, curves and message paths that all views draw
    save_html(run, path, extra=())        the player as one self-contained page
    network_drawing(run, time_s=None)     the network at a time, as a static drawing (SVG, PDF, PNG)
    inspect_node(run, node, time_s=None)  the state and the counters of a node at a time
    bundle(run)                           the mimebundle with which a notebook displays a run

Views of a sweep's table::

    equal_parameter_savings(table, ...)   the cost that protocols save at each value of a parameter
    equal_coverage_savings(table, ...)    the cost that protocols save if all reach the same coverage
    sweep_chart(table, y)                 a metric against a parameter
    cost_chart(table)                     the cost against the coverage
    line_chart(series, ...)               a chart of any numbers, with confidence bands

View of a stream of readings::

    windows_chart(windows, key=None)      the means of readings in windows of time, a line for each region

Views of many runs, drawn from the tables that `workbench.pipelines` computes from their traces::

    load_map(loads, topology, metric="sent")    the load of each node on a map: the mean over runs, and a band
    latency_chart(distributions)                percentiles of the latency of deliveries

The views of a single protocol are in its package ``views``, such as `workbench.tinymq.views`. A figure that only one
lesson or paper needs is stored beside that notebook.
"""

from typing import Any

from workbench import plugins
from workbench.keywords import former, hand_out

_HOME = {
    "show": "notebook",
    "show_live": "notebook",
    "PlayerView": "player.living",
    "see": "seeing",
    "save_html": "export",
    "network_drawing": "figure",
    "line_chart": "charts.static",
    "load_map": "loads",
    "latency_chart": "loads",
    "equal_parameter_savings": "sweeps.savings",
    "equal_coverage_savings": "sweeps.savings",
    "sweep_chart": "sweeps.savings",
    "cost_chart": "sweeps.savings",
    "inspect_node": "inspector",
    "bundle": "rich",
    "windows_chart": "windows",
}


def __getattr__(name: str) -> Any:
    view = None if name.startswith("_") else plugins.load("views", name)
    return former(__name__, name, stacklevel=4) if view is None else view


def __dir__() -> list[str]:
    return sorted([*_HOME, *plugins.names("views")])


hand_out(__name__, _HOME)
