"""Texts about a run or a scenario: its title, workload, conditions and key numbers."""

import math
from typing import Any

# Metrics that a caption shows: name, label, format.
KEY_METRICS = (
    ("delivery_ratio", "delivery ratio", "{:.1%}"),
    ("latency_ms_p50", "median latency", "{:,.1f} ms"),
    ("transmissions", "transmissions", "{:,.0f}"),
    ("energy_mJ", "energy", "{:,.1f} mJ"),
)


def title(run: Any) -> str:
    """Return the title of a run or a scenario: its protocol, and the size of its network."""
    scenario = getattr(run, "scenario", run)
    protocol = scenario.protocol
    name = protocol if isinstance(protocol, str) else protocol.public_class().__name__
    return f"{name} on {nodes(scenario.topology)}"


def subject(run: Any) -> str:
    """Return a text that charts and players of a run or a scenario have in common; see `Chart.subject`."""
    return f"run {getattr(getattr(run, 'scenario', run), 'hash', '')}"


def nodes(graph: Any) -> str:
    """Return the number of nodes and the kind of generator that made the network: "64 nodes (office)"."""
    count = graph.number_of_nodes()
    recipe = graph.graph.get("recipe")
    kind = recipe.get("kind", "") if isinstance(recipe, dict) else ""
    return f"{count:,} {'node' if count == 1 else 'nodes'}" + (f" ({kind})" if kind else "")


def workload(run: Any) -> str:
    """Return a text with the subscriptions and publications of a run or a scenario; "" if its workload is empty.

    If the workload has more than three subscriptions and publications, or only items of other kinds such as outages,
    the text is only the number of its items.
    """
    items = list(getattr(getattr(run, "scenario", run), "workload", ()) or ())
    item_texts = [item_text for item in items if (item_text := _describe_item(item))]
    if 0 < len(item_texts) <= 3:
        return "; ".join(item_texts)
    return f"{len(items)} items of workload" if items else ""


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
    node_list = [item_nodes] if isinstance(item_nodes, (int, str)) else list(item_nodes)
    if item_nodes == "all":
        subject, verb = "all nodes", verbs[1]
    elif len(node_list) == 1:
        subject, verb = f"node {node_list[0]}", verbs[0]
    else:
        subject, verb = f"{len(node_list)} nodes", verbs[1]
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
