"""Layers of nodes, for runs of every protocol: sinks, sources, holders of the newest event, and failed nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from workbench.columns import row_keys, unique_index
from workbench.sim import actions
from workbench.sim.changes.items import Leave
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.layers import Layer, Look, Recorded, Section, Table, select, table
from workbench.views.spans import cut, opened, thinned, within

MOST = 60_000

FAILED = Look("failed node", palette.FAILED, 1.15, 8, 2.8, marker="x", rank=0)
SINK = Look("sink", palette.SINK, 1.35, 11, marker="square", rank=1)
SOURCE = Look("source", palette.SOURCE, 1.45, 12, marker="triangle", rank=2)
HOLDS = Look("holds the newest event", palette.HOLDS, rank=3)
LOOKS = (FAILED, SINK, SOURCE, HOLDS)

CRASHED = Look("crashed node", palette.CRASHED, 1.15, 8, 2.8, marker="x", rank=0)
LEFT = Look("departed node", palette.LEFT, 0.8, 6, 2.8, marker="x", rank=0)
ABSENT = Look("node that joins later", palette.OUTLINE, 1.0, 6, is_dashed=True, rank=0)
DOWN_LOOKS = (FAILED, CRASHED, LEFT, ABSENT)  # why a node is down, see the column ``look`` of `failing`

SUBSCRIPTIONS = Section(
    "Subscriptions", (("no.", "sequence", "number"), ("wants", "text", "word"), ("until", "value", "until"))
)


RUNS_ON = Section("Runs on", (("kind", "text", "word"),))
HAS_FILTER = Look("has a filter", palette.CODED, 1.8, 13, 1.6, is_dashed=True)


def node_layers(recorded: Recorded) -> list[Layer]:
    """Return the layers of nodes: their roles, nodes with filters, subscriptions, and kinds of motes.

    Subscriptions and kinds of motes are not drawn on the map. They are tables of the inspector, which shows the state
    of one node.
    """
    columns, duration_us = recorded.columns, recorded.duration_us
    down = failing(columns, duration_us, leaving(recorded.run.scenario))
    crashes = crashing(down)
    subscriptions, subscription_texts = subscribed(columns, duration_us)
    subscriptions = cut(subscriptions, crashes)
    holder_table, notes = thinned(cut(holding(columns, duration_us), crashes), MOST, "changes of holders of an event")
    roles = [
        (0, down),
        (1, subscriptions),
        (2, publishing(columns, duration_us)),
        (3, holder_table),
    ]
    role_table = {
        name: np.concatenate([layer_table[name] for _, layer_table in roles])
        for name in ("node", "from_us", "until_us")
    }
    role_table["look"] = np.concatenate([np.full(len(layer_table["from_us"]), look) for look, layer_table in roles])
    looks: tuple[Look, ...] = LOOKS
    reasons = down["look"]
    if reasons.any():
        looks += DOWN_LOOKS[1:]
        role_table["look"][: len(reasons)] = np.where(reasons > 0, len(LOOKS) - 1 + reasons, 0)
    layers = [Layer("nodes", table(**role_table), looks, "node", notes=notes)]
    if len(subscriptions["from_us"]):
        layers.append(Layer("nodes", subscriptions, section=SUBSCRIPTIONS, words=subscription_texts))
    filtered = filtering(recorded.run.scenario.protocol, duration_us)
    if len(filtered["from_us"]):
        layers.append(Layer("filters", filtered, (HAS_FILTER,), "ring"))
    if recorded.run.kinds:
        kinds, kind_names = running_on(recorded.run.kinds, duration_us)
        layers.append(Layer("nodes", kinds, section=RUNS_ON, words=kind_names))
    return layers


def filtering(protocol: Any, duration_us: int) -> Table:
    """Return a layer's table with a row for each node that has a filter of the protocol.

    Filters that are at all nodes do not count. Each row lasts for the whole run. ``duration_us``: length of the run in
    µs.
    """
    filters = protocol.parts() if hasattr(protocol, "parts") else []
    nodes = sorted({node for node_filter in filters for node in node_filter.at or ()})
    return table(len(nodes), node=nodes, until_us=np.full(len(nodes), duration_us))


def running_on(kinds: Mapping[int, str], duration_us: int) -> tuple[Table, list[str]]:
    """Return (a layer's table with a row for each node, a list of the kinds of motes).

    ``kinds``: {node: name of the kind of mote that it runs on}. In the table, ``text`` is the index of the node's kind
    in the list. Each row lasts for the whole run. ``duration_us``: length of the run in µs.
    """
    kind_names = sorted(set(kinds.values()))
    until_us = np.full(len(kinds), duration_us)
    kind_indices = [kind_names.index(kind) for kind in kinds.values()]
    return table(len(kinds), node=list(kinds), until_us=until_us, text=kind_indices), kind_names


def subscribed(columns: Columns, duration_us: int) -> tuple[Table, list[str]]:
    """Return (a table of subscriptions, a list of their attributes as texts).

    A subscription lasts until it expires, the node unsubscribes, or the run ends (``duration_us``). Columns of the
    table, beside node and interval:

    sequence: the number of the subscription at its node.
    value: the time when it expires, in µs; -1 means never.
    text: index of its attributes in the list of texts.
    """
    subscription_rows = columns.where(event=("subscribed", "unsubscribed"))
    subscription_keys = row_keys(columns["node"][subscription_rows], columns["sequence"][subscription_rows])
    opening_rows, until_us = opened(
        subscription_keys, columns["time_us"][subscription_rows], columns.says("event", subscription_rows, "subscribed")
    )
    subscription_rows = subscription_rows[opening_rows]
    start_us, expiry_us = columns["time_us"][subscription_rows], columns["value"][subscription_rows]
    until_us = np.where(expiry_us > start_us, np.minimum(until_us, expiry_us), until_us)
    table_columns = {
        "node": columns["node"][subscription_rows],
        "sequence": columns["sequence"][subscription_rows],
        "value": expiry_us,
    }
    text_codes, attribute_texts = columns.coded("detail", subscription_rows)
    return within(
        table(**table_columns, from_us=start_us, until_us=until_us, text=text_codes), duration_us
    ), attribute_texts


def failing(columns: Columns, duration_us: int, left: Collection[tuple[int, int]] = ()) -> Table:
    """Return a table of the intervals in which nodes were down.

    The column ``look`` is the index in `DOWN_LOOKS` of the reason, such as a crash. ``left``: (node, time in µs) of
    each node that leaves the network for good, from `leaving`.
    """
    failure_rows = columns.where(event=("failed", "recovered"))
    is_failure = columns.says("event", failure_rows, "failed")
    opening_rows, until_us = opened(columns["node"][failure_rows], columns["time_us"][failure_rows], is_failure)
    failure_rows = failure_rows[opening_rows]
    nodes, times_us = columns["node"][failure_rows], columns["time_us"][failure_rows]
    look = np.zeros(len(failure_rows), np.int16)
    for detail, reason in ((actions.CRASHED, CRASHED), (actions.ABSENT, ABSENT)):
        look[columns.says("detail", failure_rows, detail)] = DOWN_LOOKS.index(reason)
    if left:
        has_left = np.array([key in left for key in zip(nodes.tolist(), times_us.tolist(), strict=True)], bool)
        look[has_left] = DOWN_LOOKS.index(LEFT)
    return within(table(node=nodes, from_us=times_us, until_us=until_us, look=look), duration_us)


def crashing(down: Table) -> Table:
    """Return only the rows of ``down`` in which a node was down after a crash; ``down``: a table from `failing`."""
    return select(down, down["look"] == DOWN_LOOKS.index(CRASHED))


def leaving(scenario: Any) -> set[tuple[int, int]]:
    """Return the set of (node, time in µs) at which nodes leave the network for good."""
    leaves = [item for item in scenario.workload if isinstance(item, Leave)]
    nodes = tuple(sorted(scenario.topology.nodes)) if leaves else ()
    return {(node, round(item.start_s * 1e6)) for item in leaves for node in actions.select_nodes(item.at, nodes)}


def publishing(columns: Columns, duration_us: int) -> Table:
    """Return a layer's table with a row for each node that publishes, from its first publication to the run's end."""
    publication_rows = columns.where(event="published")
    publisher_nodes, first_indices = unique_index(columns["node"][publication_rows])
    table_columns = {
        "node": publisher_nodes,
        "from_us": columns["time_us"][publication_rows][first_indices],
        "until_us": np.full(len(publisher_nodes), duration_us),
    }
    return within(table(**table_columns), duration_us)


def holding(columns: Columns, duration_us: int) -> Table:
    """Return a table of the intervals in which nodes, other than sinks, hold an event (a publication).

    A node counts as holder of an event until the event's origin, the node that made it, makes its next event.
    """
    held_rows = columns.where(event="held")
    sinks = np.unique(columns["node"][columns.where(event="subscribed")])
    held_rows = held_rows[~np.isin(columns["node"][held_rows], sinks)]
    origins, start_us = columns["origin"][held_rows], columns["time_us"][held_rows]
    until_us = until_next_event(columns, origins, held_rows, duration_us)
    table_columns = {"node": columns["node"][held_rows], "origin": origins, "from_us": start_us, "until_us": until_us}
    return within(table(**table_columns), duration_us)


def until_next_event(columns: Columns, origins: np.ndarray, rows: np.ndarray, duration_us: int) -> np.ndarray:
    """Return for each row about an event the time in µs at which the event's origin makes its next event.

    An event is a publication that spreads in the network; its origin is the node that made it. If the origin makes no
    later event, the time is ``duration_us``, the run's end. The result has shape (rows,).

    rows: indices of trace rows that concern an event, such as the rows "held".
    origins: for each of these rows the origin of its event.
    """
    originated_rows = columns.where(event="originated")
    row_count = np.int64(columns.rows + 1)
    event_keys = np.sort(columns["origin"][originated_rows] * row_count + originated_rows)
    next_index = np.searchsorted(event_keys, origins * row_count + rows)
    next_keys = np.append(event_keys, -1)[next_index]
    is_followed = (next_keys >= 0) & (next_keys // row_count == origins)
    return np.where(is_followed, columns["time_us"][np.where(is_followed, next_keys % row_count, 0)], duration_us)
