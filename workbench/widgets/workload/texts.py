"""One line of text about a workload item, for the list of items."""

from __future__ import annotations

from typing import Any

from workbench.mobility import Waypoints
from workbench.sensor_field import SensorField
from workbench.sim.actions import ALL
from workbench.sim.changes.items import BurstLoss, Crash, Jam, Join, Leave, LinkTrace, Move, Outage, Partition
from workbench.sim.readings import Readings
from workbench.sim.workload import Item, Publish, Reinforce, Subscribe
from workbench.widgets.controls import nodes_text
from workbench.widgets.workload.items import MODEL_LABELS, has_field, kind_of, title_of

_LONGEST_NODES, _FIRST_NODES = 40, 4  # characters of a list of nodes; numbers and ranges that a longer list shows


def line_of(item: Item) -> str:
    """Return one line of text about an item of a workload: its nodes, its content and its times."""
    if isinstance(item, Subscribe | Publish | Reinforce):
        return _data_line(item)
    nodes = nodes_phrase(item)
    times = interval_text(item.start_s, getattr(item, "stop_s", None))
    if isinstance(item, Outage):
        return f"▽ {nodes} off {times}"
    if isinstance(item, Crash):
        return f"▽ {nodes} {_verb_form('crash', item)} {times}"
    if isinstance(item, Join):
        return f"△ {nodes} {_verb_form('join', item)} at {item.start_s:.6g} s"
    if isinstance(item, Leave):
        return f"▽ {nodes} {_verb_form('leave', item)} at {item.start_s:.6g} s"
    if isinstance(item, Move):
        radius = "" if item.radius_m is None else f", radius {item.radius_m:.4g} m"
        return f"⇢ {nodes} {_verb_form('move', item)} {movement_text(item.along)}{radius}"
    if isinstance(item, Partition):
        return f"∥ {nodes} cut off {times}"
    if isinstance(item, BurstLoss):
        links = "all links" if item.at == ALL else f"links between {nodes}"
        return f"∿ {links} lose bursts of {item.bad_s:.6g} s, {item.good_s:.6g} s apart, {times}"
    if isinstance(item, Jam):
        pulses = "" if item.every_s is None else f", {item.for_s:.6g} s in every {item.every_s:.6g} s"
        return f"◎ jammer at ({item.x_m:.4g}, {item.y_m:.4g}) m, radius {item.radius_m:.4g} m, {times}{pulses}"
    if isinstance(item, LinkTrace):
        return f"∿ link trace: {trace_text(item.trace)}"
    return f"{title_of(kind_of(item))}: {nodes}" if has_field(item, "at") else title_of(kind_of(item))


def _data_line(item: Subscribe | Publish | Reinforce) -> str:
    start_text, stop_text = f"from {item.start_s:g} s", "" if item.stop_s is None else f" to {item.stop_s:g} s"
    if isinstance(item, Subscribe):
        duration = "" if item.expires_s is None else f", for {item.expires_s:g} s"
        subscription_text = f"{nodes_phrase(item)} {_verb_form('subscribe', item)} to {content_text(item)}"
        return f"{subscription_text}, {start_text}{stop_text}{duration}"
    item_text = f"{nodes_phrase(item)} {_verb_form(kind_of(item), item)} {content_text(item)}"
    if isinstance(item.what, Readings):
        return f"{item_text}, {start_text}{stop_text}"
    if item.every_s is None:
        return f"{item_text}, at {item.start_s:g} s"
    return f"{item_text} every {item.every_s:g} s, {start_text}{stop_text}"


def interval_text(start_s: float, stop_s: float | None) -> str:
    """Return an interval as text, such as "20–30 s", or "from 20 s" if ``stop_s`` is None."""
    return f"from {start_s:.6g} s" if stop_s is None else f"{start_s:.6g}–{stop_s:.6g} s"


def movement_text(along: Any) -> str:
    """Return a phrase about a mobility model, such as "along 2 waypoints, until 40 s"."""
    if isinstance(along, Waypoints):
        count = len(along.points)
        return f"along {count:,} waypoint{'s' if count != 1 else ''}, until {along.points[-1][0]:.6g} s"
    speeds = [getattr(along, name, None) for name in ("slowest_m_s", "fastest_m_s", "mean_m_s")]
    speed_text = "–".join(f"{speed:.6g}" for speed in speeds if speed is not None)
    return f"by {MODEL_LABELS.get(along.kind, along.kind)}" + (f", {speed_text} m/s" if speed_text else "")


def trace_text(trace: Any) -> str:
    """Return a summary of measured link qualities, such as "12 ratios of 4 links, 20–40 s"."""
    count, arc_count = len(trace.pdr), len(set(zip(trace.transmitters, trace.receivers, strict=True)))
    return (
        f"{count:,} ratio{'s' if count != 1 else ''} of {arc_count:,} link{'s' if arc_count != 1 else ''}, "
        f"{interval_text(trace.times_s[0], trace.times_s[-1])}"
    )


def nodes_phrase(item: Item) -> str:
    """Return the nodes of an item as a phrase, such as "node 3" or "every node"."""
    if isinstance(item.at, str):
        return "every node"
    if len(item.at) == 1:
        return f"node {item.at[0]}"
    text = nodes_text(item.at)
    if len(text) > _LONGEST_NODES:
        text = f"{', '.join(text.split(', ')[:_FIRST_NODES])}, … ({len(item.at):,} nodes)"
    return f"nodes {text}"


def _verb_form(verb: str, item: Item) -> str:
    """Return the verb in the singular or plural, as the number of the item's nodes requires: "publishes", "publish"."""
    is_singular = item.at == ALL or len(item.at) == 1
    return f"{verb}{'es' if verb.endswith('sh') else 's'}" if is_singular else verb


def content_text(item: Any) -> str:
    """Return the content of a subscription, publication or reinforcement as text."""
    if isinstance(item.what, Readings):
        return readings_text(item.what)
    return f"readings of a field of {item.what.key}" if isinstance(item.what, SensorField) else item.what or "all"


def readings_text(readings: Readings) -> str:
    """Return a summary of measured readings, such as "2 measured readings of TEMP"."""
    return f"{len(readings.times_s):,} measured readings of {', '.join(readings.keys)}"


def comparison_text(item: Any) -> str:
    """Return the text of the attributes by which an item is matched with other items.

    A sensor field is represented by its mean value, measured readings by the first reading.
    """
    if isinstance(item.what, Readings):
        return item.what.attributes(0, 0.0, 0.0, 0.0)
    if isinstance(item.what, SensorField):
        return f"{item.what.key} IS {item.what.base:g}"
    return item.what
