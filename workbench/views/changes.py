"""The changes of a network during a run: layers of tracks, partitions and jammers, and lists of changes in time.

    change_layers(recorded)       the layers of a run whose workload changes the network
    timeline_spans(view)          the intervals that the player's timeline shows
    moments_of_changes(scenario)  the times of changes, with a sentence each

The results are empty unless the workload has changes of the network (`workbench.sim.changes`) other than outages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from workbench.analysis.sentences import counted
from workbench.sim.actions import select_nodes
from workbench.sim.changes.arcs import link_changes, noise_intervals
from workbench.sim.changes.items import Crash, Jam, Join, Leave, Partition
from workbench.views import palette
from workbench.views.changing_layout import ChangingLayout
from workbench.views.layers import Layer, Look, Recorded, RunView, Section, table, tuples
from workbench.views.nodes import DOWN_LOOKS, failing, leaving
from workbench.views.spans import thinned

MOST = 60_000
MOST_SPANS = 400  # intervals on the timeline
MOST_MOVING = 30  # nodes; the tracks of more nodes are hidden at first

TRACK = Look("track (dashed: still to come)", palette.CODED, 0.1, 1.8, alpha=0.6, mark="track")
SEPARATED = Look("separated by a partition", palette.SEPARATED, 2.1, 15, 0, 0.6, mark="disc")
JAMMER = Look("jammer", palette.LOST, 1.0, 15, 1.4, 0.13, mark="area")

DOWN_WORDS = ("down", "crashed", "left", "not yet joined")  # on the timeline, for each of `nodes.DOWN_LOOKS`

PARTITION = Section("Partition", (("", "text", "word"),))
JAMMED = Section("Jammed", (("from", "from_us", "time"), ("until", "until_us", "time")))
HISTORY = Section("Up and down", (("", "text", "word"),))


class Span(NamedTuple):
    """A marked interval of the player's timeline, from ``from_us`` to ``until_us`` in µs.

    label: what happens in the interval, such as "jammer". node: number of the node, or -1 for the whole network.
    """

    label: str
    from_us: int
    until_us: int
    node: int
    colour: str


def changes_network(scenario: Any) -> bool:
    """Return whether a scenario's workload changes the network, as by crashes or movements; outages do not count."""
    return link_changes(scenario) is not None or any(
        isinstance(item, (Crash, Join, Leave)) for item in scenario.workload
    )


def change_layers(recorded: Recorded) -> list[Layer]:
    """Return the layers of tracks, partitions and jammers, and two layers for the inspector.

    The inspector is the panel that shows the state of one node. Its two layers list when nodes are jammed, and when
    they fail and start; they are not drawn on the map. Layers without rows are left out.
    """
    scenario, duration_us = recorded.run.scenario, recorded.duration_us
    if not changes_network(scenario):
        return []
    layers = [
        _tracks_layer(recorded),
        _partition_layer(scenario, duration_us),
        _jammer_layer(scenario, duration_us),
        _jammed_layer(scenario, duration_us),
        _history_layer(recorded),
    ]
    return [layer for layer in layers if len(layer)]


def _tracks_layer(recorded: Recorded) -> Layer:
    plan = recorded.plan
    moving = (
        plan.tracks.nodes if isinstance(plan, ChangingLayout) and plan.tracks is not None else np.zeros(0, np.int64)
    )
    columns = table(len(moving), node=plan.ids[moving], until_us=np.full(len(moving), recorded.duration_us))
    return Layer("tracks", columns, (TRACK,), "track", is_on=len(moving) <= MOST_MOVING)


def _partition_layer(scenario: Any, duration_us: int) -> Layer:
    nodes = tuple(sorted(scenario.topology.nodes))
    rows, partition_texts = [], []
    for start_us, stop_us, item in _find_intervals(scenario, Partition, duration_us):
        side = select_nodes(item.at, nodes)
        others = len(nodes) - len(side)
        until = "the end of the run" if stop_us == duration_us else f"{stop_us / 1e6:g} s"
        partition_texts.append(
            f"with {counted(len(side) - 1, 'other node')}, separated from {counted(others, 'node')} "
            f"from {start_us / 1e6:g} s to {until}"
        )
        rows += [(node, start_us, stop_us, len(partition_texts) - 1) for node in side]
    return Layer("partition", _make_table(rows, "text"), (SEPARATED,), "disc", section=PARTITION, words=partition_texts)


def _jammer_layer(scenario: Any, duration_us: int) -> Layer:
    rows, jammer_texts = [], []
    for item in scenario.workload:
        if isinstance(item, Jam):
            jammer_texts.append(f"jammer at ({item.x_m:g}, {item.y_m:g}) m, reaches {item.radius_m:g} m")
            rows += [
                (*pulse, len(jammer_texts) - 1, item.x_m, item.y_m, item.radius_m)
                for pulse in item.pulses_us(duration_us)
            ]
    columns = np.array(rows, float).reshape(-1, 6).T
    names = ("from_us", "until_us", "text", "x_m", "y_m", "radius_m")
    pulses, notes = thinned(table(**dict(zip(names, columns, strict=True))), MOST, "pulses of jammers")
    return Layer("jammers", pulses, (JAMMER,), "area", words=jammer_texts, notes=notes)


def _jammed_layer(scenario: Any, duration_us: int) -> Layer:
    """Return a layer with the intervals in which each node is jammed.

    The layer is not drawn on the map. The inspector, the panel that shows the state of one node, lists the intervals.
    """
    changes, ids = link_changes(scenario), np.array(sorted(scenario.topology.nodes))
    if changes is None or not any(isinstance(item, Jam) for item in scenario.workload):
        return Layer("jammers", table())
    first, intervals_us = noise_intervals(changes, len(ids))
    until_us = np.minimum(intervals_us[:, 1], duration_us)
    columns = table(node=np.repeat(ids, np.diff(first)), from_us=intervals_us[:, 0], until_us=until_us)
    jammed, notes = thinned(columns, MOST, "intervals in which nodes are jammed")
    return Layer("jammers", jammed, section=JAMMED, notes=notes)


def _history_layer(recorded: Recorded) -> Layer:
    """Return a layer with sentences about the failures and starts of each node up to each time.

    The layer is not drawn on the map. The inspector, the panel that shows the state of one node, contains the sentence
    for the displayed time, such as "down from 5 s, up again at 9 s".
    """
    columns = recorded.columns
    rows = columns.where(event=("failed", "recovered"))
    times_us, nodes = columns["time_us"][rows].tolist(), columns["node"][rows].tolist()
    details, boots = columns.text("detail", rows).tolist(), columns["value"][rows].tolist()
    is_failure = columns.says("event", rows, "failed").tolist()
    left = leaving(recorded.run.scenario)
    sentences: dict[int, str] = {}
    words: dict[str, int] = {}
    last_row: dict[int, int] = {}
    table_rows: list[list[int]] = []
    for time_us, node, detail, boot, fails in zip(times_us, nodes, details, boots, is_failure, strict=True):
        at = f"{time_us / 1e6:g} s"
        if fails:
            text = {"crashed": f"crashed at {at}", "absent": "not yet joined"}.get(detail, f"down from {at}")
            text = f"left at {at}" if (node, time_us) in left else text
        else:
            text = {"restarted": f"started again at {at} (boot {boot})", "joined": f"joined at {at}"}.get(
                detail, f"up again at {at}"
            )
        before = sentences.get(node, "")
        sentences[node] = text if not before or before == "not yet joined" else f"{before}, {text}"
        if node in last_row:
            table_rows[last_row[node]][2] = time_us
        last_row[node] = len(table_rows)
        table_rows.append([node, time_us, recorded.duration_us, words.setdefault(sentences[node], len(words))])
    return Layer("nodes", _make_table(table_rows, "text"), section=HISTORY, words=list(words))


def _find_intervals(scenario: Any, kind: type[Any], duration_us: int) -> Iterator[tuple[int, int, Any]]:
    """Yield (begin in µs, end in µs, item) for the workload items of class ``kind`` that begin before the run's end.

    ``duration_us``: the end of the run. It is also the end of each item that has no end or a later one.
    """
    for item in scenario.workload:
        if isinstance(item, kind):
            start_us = round(item.start_s * 1e6)
            stop_us = duration_us if item.stop_s is None else min(round(item.stop_s * 1e6), duration_us)
            if start_us < stop_us:
                yield start_us, stop_us, item


def _make_table(rows: list[Any], name: str) -> dict[str, np.ndarray]:
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return table(**dict(zip(("node", "from_us", "until_us", name), columns, strict=True)))


# The timeline and the moments


def timeline_spans(view: RunView) -> list[Span]:
    """Return the intervals for the timeline: partitions, then pulses of jammers, then times at which nodes are down.

    Only the first `MOST_SPANS` intervals are returned. If only outages change the network, the list is empty.
    """
    scenario, duration_us = view.run.scenario, view.duration_us
    if view.trace is None or not changes_network(scenario):
        return []
    spans = [
        Span("partition", start_us, stop_us, -1, palette.SEPARATED)
        for start_us, stop_us, _ in _find_intervals(scenario, Partition, duration_us)
    ]
    for item in scenario.workload:
        if isinstance(item, Jam):
            spans += [Span("jammer", *pulse, -1, palette.LOST) for pulse in item.pulses_us(duration_us)]
    down = failing(view.trace, duration_us, leaving(scenario))
    for node, start_us, stop_us, look in tuples(down, "node", "from_us", "until_us", "look"):
        spans.append(Span(DOWN_WORDS[look], start_us, stop_us, node, DOWN_LOOKS[look].colour))
    return spans[:MOST_SPANS]


def moments_of_changes(scenario: Any) -> list[tuple[int, str]]:
    """Return (time in µs, sentence) for the begin and the end of each partition and each jammer.

    The single pulses of a jammer are left out, and so is an end that coincides with the end of the run.
    """
    duration_us = round(scenario.duration_s * 1e6)
    moments = []
    for kind, begin, end in (
        (Partition, "a partition begins", "the parts merge"),
        (Jam, "a jammer starts", "a jammer stops"),
    ):
        for start_us, stop_us, _ in _find_intervals(scenario, kind, duration_us):
            moments += [(start_us, begin), (stop_us, end)]
    return [(time_us, text) for time_us, text in moments if time_us < duration_us]
