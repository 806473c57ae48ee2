"""Texts about a run or a scenario: its title, workload, conditions and key numbers."""

import math
import re
from collections import Counter
from typing import Any

# Metrics that a caption shows: name, label, format.
KEY_METRICS = (
    ("delivery_ratio", "delivery ratio", "{:.1%}"),
    ("latency_ms_p50", "median latency", "{:,.1f} ms"),
    ("transmissions", "transmissions", "{:,.0f}"),
    ("energy_mJ", "energy", "{:,.1f} mJ"),
)
# Items that change the network: name of the class -> the text for one and for several of them.
CHANGES = {
    "Crash": ("{} crash", "{} crashes"),
    "Join": ("{} join", "{} joins"),
    "Leave": ("{} leave", "{} leaves"),
    "Partition": ("{} partition", "{} partitions"),
    "Move": ("{} movement", "{} movements"),
    "BurstLoss": ("burst losses", "{} processes of burst losses"),
    "LinkTrace": ("measured link qualities", "measured link qualities"),
    "Jam": ("{} jammer", "{} jammers"),
}


def title(run: Any) -> str:
    """Return the title of a run or a scenario: its protocol, and the size of its network."""
    scenario = getattr(run, "scenario", run)
    protocol = scenario.protocol
    name = protocol if isinstance(protocol, str) else protocol.public_class().__name__
    return f"{name} on {nodes(scenario.topology)}"


def subject(run: Any) -> str:
    """Return a key for a run or scenario; charts and players with equal keys share the user's selection.

    Charts store the key in their field `Chart.subject`.
    """
    return f"run {getattr(getattr(run, 'scenario', run), 'hash', '')}"


def nodes(graph: Any) -> str:
    """Return a text with the number of nodes of a network and, if known, its generator: "64 nodes (office)"."""
    count = graph.number_of_nodes()
    recipe = graph.graph.get("recipe")
    kind = recipe.get("kind", "") if isinstance(recipe, dict) else ""
    return f"{count:,} {'node' if count == 1 else 'nodes'}" + (f" ({kind})" if kind else "")


def workload(run: Any) -> str:
    """Return a text about the workload of a run or a scenario; "" if the workload is empty.

    If there are one to three subscriptions, publications and reinforcements in all, the text describes each of them and
    omits outages. If there are more, or only outages, the text states the number of all these items, outages included.
    Up to three other changes of the network, such as crashes and movements, are described one by one; more are counted
    by kind.
    """
    items = list(getattr(getattr(run, "scenario", run), "workload", ()) or ())
    changes = [item for item in items if type(item).__name__ in CHANGES]
    traffic = [item for item in items if type(item).__name__ not in CHANGES]
    return "; ".join(filter(None, (_describe_traffic(traffic), _describe_changes(changes))))


def _describe_traffic(items: list[Any]) -> str:
    item_texts = [item_text for item in items if (item_text := _describe_item(item))]
    if 0 < len(item_texts) <= 3:
        return "; ".join(item_texts)
    return f"{len(items)} items of workload" if items else ""


def _describe_changes(items: list[Any]) -> str:
    if len(items) <= 3:
        return "; ".join(map(_describe_change, items))
    counts = Counter(type(item).__name__ for item in items)
    return ", ".join(CHANGES[kind][count > 1].format(count) for kind, count in counts.items())


def _describe_change(item: Any) -> str:
    """Return a text about an item that changes the network, such as "node 5 crashes at 10 s"."""
    kind = type(item).__name__
    stop_s = getattr(item, "stop_s", None)
    if kind in ("Crash", "Join", "Leave"):
        subject, is_plural = _nodes_as_subject(item.at)
        verb = kind.lower() if is_plural else {"Crash": "crashes", "Join": "joins", "Leave": "leaves"}[kind]
        return f"{subject} {verb} at {item.start_s:g} s"
    if kind == "Move":
        subject, is_plural = _nodes_as_subject(item.at)
        model_text = re.sub(r"(?<!^)(?=[A-Z])", " ", type(item.along).__name__).lower()
        note = f" ({model_text})" if model_text != "waypoints" else ""
        return f"{subject} {'move' if is_plural else 'moves'}{note}"
    text = CHANGES[kind][0].format(1).removeprefix("1 ")
    if kind == "LinkTrace":
        return text
    if stop_s is not None:
        return f"{text} from {item.start_s:g} to {stop_s:g} s"
    return f"{text} from {item.start_s:g} s" if item.start_s else text


def _nodes_as_subject(at: Any) -> tuple[str, bool]:
    """Return (nodes as the subject of a sentence, whether the subject is plural), such as ("node 5", False).

    ``at``: the nodes of a workload item: "all", a number, or several numbers.
    """
    if at == "all":
        return "all nodes", True
    node_list = [at] if isinstance(at, (int, str)) else list(at)
    return (f"node {node_list[0]}", False) if len(node_list) == 1 else (f"{len(node_list)} nodes", True)


def _describe_item(item: Any) -> str:
    item_kind = type(item).__name__.lower()
    item_nodes, content = getattr(item, "at", None), getattr(item, "what", None)
    if content is None or item_nodes is None:
        return ""
    verbs = {
        "subscribe": ("subscribes to", "subscribe to"),
        "publish": ("publishes", "publish"),
        "reinforce": ("reinforces", "reinforce"),
    }.get(item_kind)
    if verbs is None:
        return ""
    subject, is_plural = _nodes_as_subject(item_nodes)
    verb = verbs[is_plural]
    every = getattr(item, "every_s", None)
    description = content if isinstance(content, str) else "readings of a sensor field"
    return f"{subject} {verb} {description}" + (f" every {every:g} s" if every else "")


def key_numbers(run: Any) -> list[tuple[str, str]]:
    """Return (label, formatted value) for each metric of `KEY_METRICS` whose value in the run is finite."""
    metrics = run.metrics
    values = [(label, template, float(metrics[name])) for name, label, template in KEY_METRICS if name in metrics]
    return [(label, template.format(value)) for label, template, value in values if math.isfinite(value)]


def conditions(run: Any) -> str:
    """Return the duration and the seed of a run or a scenario: "120 s, seed 7"."""
    scenario = getattr(run, "scenario", run)
    return f"{scenario.duration_s:,g} s, seed {scenario.seed}"


def round_length(length: float) -> float:
    """Return a round length for a scale bar: the largest of ..., 0.5, 1, 2, 5, 10, ... that is at most ``length``.

    Return 1.0 if ``length`` is 0 or negative.
    """
    if length <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(length))
    return next(step * power for step in (5, 2, 1) if step * power <= length * 1.0000001)
