"""The editable map of a network: a canvas in an anywidget.

Python sends a network as one buffer of columns, the payload. The browser sends single edits, and Python answers with
the payload of the new network. Roles and selected nodes are separate traits of the widget, because they are small.
``map.js`` extends the map of the player.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import networkx as nx
import traitlets

from workbench.views import nodes
from workbench.views.layout import LINKS_PER_NODE, lay_out
from workbench.views.player.embed import browser_file
from workbench.views.player.once import LoadedOnce
from workbench.views.player.payload import Buffer, look_header, map_header, written

TOOLS = ("select", "node", "link", "erase", "waypoint")
ASKS = ("sink", "source", "fail", "crash", "join", "leave", "partition", "subscribe", "publish")
ROLES = {"sink": nodes.SINK, "source": nodes.SOURCE, "down": nodes.FAILED}
MOST_LINKS = 8000  # links that are drawn; of a denser network only the best links of each node are drawn
_PLAYER_SCRIPTS = ("elements", "payload", "paint", "theme", "map")


@cache
def _join_scripts() -> str:
    return "\n".join([*(browser_file(f"{name}.js") for name in _PLAYER_SCRIPTS), _read_file("map.js")])


def _read_file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


class NetworkMap(LoadedOnce):
    """A map on which the user views and edits a network.

    payload: the network, as made by `packed`.
    roles: [[node, role of `ROLES`], ...].
    picked: the selected nodes.
    tool: one of `TOOLS`.
    asks: the roles (of `ASKS`), such as "sink", for which the map has a button that gives them to the selected nodes.
    overlay: paths of nodes and jammers to draw and edit, see `workbench.widgets.workload.overlay`.
    has_waypoints: whether the map offers the tool that adds waypoints to the path of the selected nodes.
    message: a sentence below the map.
    is_error: whether that sentence is an error.
    clock: name of a playback clock (see `views.player.living.Wire`), or "". If the page has a player with this clock,
        the network is edited on the map of the first such player instead of on a map of this widget.
    history: {"undo": whether undo is possible, "redo": ...}; {} means no buttons for undo and redo.

    The browser sends each edit as a message {"kind": kind, ...}, where ``kind`` is "move", "add", "join", "quality",
    "erase", "ask" (a button of ``asks``), "undo" or "redo"; for the overlay "add_waypoint", "move_point" or
    "erase_point".
    """

    script = traitlets.Unicode(_join_scripts()).tag(sync=True)
    _css = browser_file("player.css") + _read_file("map.css")
    payload = traitlets.Bytes().tag(sync=True)
    roles = traitlets.List().tag(sync=True)
    picked = traitlets.List(traitlets.Int()).tag(sync=True)
    tool = traitlets.Enum(TOOLS, "select").tag(sync=True)
    asks = traitlets.List(traitlets.Unicode()).tag(sync=True)
    overlay = traitlets.List().tag(sync=True)
    has_waypoints = traitlets.Bool().tag(sync=True)
    history = traitlets.Dict().tag(sync=True)
    message = traitlets.Unicode().tag(sync=True)
    is_error = traitlets.Bool().tag(sync=True)
    clock = traitlets.Unicode().tag(sync=True)


def packed(graph: nx.DiGraph, notes: Iterable[str] = ()) -> bytes:
    """Return the payload of a network for the map. ``notes``: sentences to show below the map."""
    is_dense = graph.number_of_edges() > 2 * MOST_LINKS
    plan = lay_out(graph, LINKS_PER_NODE if is_dense else len(graph))
    buffer = Buffer()
    role_looks = {name: look_header(look) for name, look in ROLES.items()}
    header = {**map_header(plan, graph, buffer), "layers": [], "roles": role_looks, "notes": [*notes, *plan.notes]}
    return written(header, buffer)
