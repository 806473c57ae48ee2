"""Views: a player for notebooks and pages, figures for papers, tables.

Of a run over time. All of them draw its layers (`layers`), those of every run and those of its protocol::

    show(run, event=None)                 the player, in a notebook or as a page
    show_live(run)                        a run on motes, while it goes on
    PlayerView(run)                       a player that stays, and is fed other runs
    see(run)                              what they draw: layers, curves, ways
    save_html(run, path, extra=())        the player as one self-contained page
    network_drawing(run, time_s=None)     the network at a time, as a static drawing (SVG, PNG)
    inspect_node(run, node, time_s=None)  what a node knew and had counted
    bundle(run)                           a run's rich display

Of a sweep, out of its table::

    equal_parameter_savings(table, ...)   what a protocol saves beside another; equal_coverage_savings(table, ...)
    sweep_chart(table, y), cost_chart(table)    a sweep's metric against a parameter; its cost against coverage
    line_chart(series, ...)               a static chart with confidence bands, of whatever is computed

Of readings in windows::

    windows_chart(windows, key=None)      their means over time, a line for each region

Of many runs, out of the answers of `workbench.pipelines` about their traces::

    load_map(loads, topology, what="sent")      the load of each node: mean over runs, and band
    latency_chart(distributions)                latency at each percent of the deliveries, likewise

A protocol has views of its own in its package ``views``, which lists those that are public. They are handed out here
too: ``dir(workbench.views)`` lists all public names, the page of ``workbench.protocols.NAME.views`` says what they are.

Bokeh is loaded by the first view that needs it.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any

from workbench import plugins
from workbench.keywords import answer_for, checked

_HOME = {
    "show": "notebook",
    "show_live": "player.live",
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
    if name == "__all__":
        return _public()
    if name in _HOME:
        return _handed_out(f"workbench.views.{_HOME[name]}", name)
    # Before protocols are asked, so that they can import modules from here.
    if find_spec(f"workbench.views.{name}") is not None:
        return import_module(f"workbench.views.{name}")
    from workbench.views.protocols import home_of

    home = None if name.startswith("_") else home_of(name)
    if home is not None:
        return _handed_out(home, name)
    view = None if name.startswith("_") else plugins.load("views", name)
    if view is None:
        raise AttributeError(f"module 'workbench.views' has no attribute {name!r}")
    return view


def _handed_out(home: str, name: str) -> Any:
    """Return a public view; a wrong call of it is answered with what the call looks like."""
    view = getattr(import_module(home), name)
    return _checked(view) if isinstance(view, FunctionType) else view


_checked = cache(checked)  # A view stays one object.


def __dir__() -> list[str]:
    return _public()


def _public() -> list[str]:
    from workbench.views.protocols import public_views

    return sorted({*_HOME, *public_views(), *plugins.names("views")})


answer_for(__name__)
