"""Views: a player for notebooks and pages, figures for papers, and tables.

Views of a run over time draw its layers (`layers`), those of every run and those of its protocol::

    show(run, event=None)                 the player, in a notebook or as a page
    show_live(run)                        a run on motes while it continues
    PlayerView(run)                       a player that can be fed with other runs
    see(run)                              the layers, curves and message paths that all views draw
    save_html(run, path, extra=())        the player as one self-contained page
    network_drawing(run, time_s=None)     the network at a time, as a static drawing (SVG, PNG)
    inspect_node(run, node, time_s=None)  the known state and the counters of a node
    bundle(run)                           a run's rich display

Views of a sweep's table::

    equal_parameter_savings(table, ...)   savings of a protocol relative to another; equal_coverage_savings(table, ...)
    sweep_chart(table, y), cost_chart(table)    a metric against a parameter; cost against coverage
    line_chart(series, ...)               a static chart with confidence bands, of any numbers

View of readings in windows::

    windows_chart(windows, key=None)      their means over time, a line for each region

Views of many runs, made from the answers of `workbench.pipelines` about their traces::

    load_map(loads, topology, metric="sent")    the load of each node: mean over runs, and band
    latency_chart(distributions)                latency at each percent of the deliveries, likewise

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
    "line_chart": "chart",
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
