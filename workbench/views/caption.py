"""What is said about a run in words: its title, its caption, its key numbers."""

import math
from typing import Any

# The metrics that a caption names, with how to write them.
KEY_METRICS = (
    ("delivery_ratio", "delivery ratio", "{:.1%}"),
    ("latency_ms_p50", "median latency", "{:,.1f} ms"),
    ("transmissions", "transmissions", "{:,.0f}"),
    ("energy_mJ", "energy", "{:,.1f} mJ"),
)


def title(run: Any) -> str:
    """One line that says what ran, or, of a scenario, what would run: the protocol and the network's size."""
    scenario = getattr(run, "scenario", run)
    protocol = scenario.protocol
    name = protocol if isinstance(protocol, str) else protocol.public_class().__name__
    return f"{name} on {nodes(scenario.topology)}"


def nodes(graph: Any) -> str:
    """How many nodes a network has, and which generator made it: "64 nodes (office)"."""
    count = graph.number_of_nodes()
    recipe = graph.graph.get("recipe")
    kind = recipe.get("kind", "") if isinstance(recipe, dict) else ""
    return f"{count:,} {'node' if count == 1 else 'nodes'}" + (f" ({kind})" if kind else "")


def workload(run: Any) -> str:
    """The workload in a sentence: who subscribes to what, who publishes what; a long one is counted instead."""
    items = list(getattr(getattr(run, "scenario", run), "workload", ()) or ())
    said = [_item(item) for item in items]
    told = [text for text in said if text]
    if 0 < len(told) <= 3:
        return "; ".join(told)
    return f"{len(items)} items of workload" if items else ""


def _item(item: Any) -> str:
    kind = type(item).__name__.lower()
    where, what = getattr(item, "at", None), getattr(item, "what", None)
    if what is None or where is None:
        return ""
    verbs = {"subscribe": ("subscribes to", "subscribe to"), "publish": ("publishes", "publish")}.get(kind)
    if verbs is None:
        return ""
    nodes = [where] if isinstance(where, (int, str)) else list(where)
    if where == "all":
        who, verb = "all nodes", verbs[1]
    elif len(nodes) == 1:
        who, verb = f"node {nodes[0]}", verbs[0]
    else:
        who, verb = f"{len(nodes)} nodes", verbs[1]
    every = getattr(item, "every_s", None)
    shown = what if isinstance(what, str) else "readings of a sensor field"
    return f"{who} {verb} {shown}" + (f" every {every:g} s" if every else "")


def key_numbers(run: Any) -> list[tuple[str, str]]:
    """(name, number) of the metrics that matter most, those that the run has."""
    metrics = run.metrics
    found = [(said, form, float(metrics[name])) for name, said, form in KEY_METRICS if name in metrics]
    return [(said, form.format(value)) for said, form, value in found if math.isfinite(value)]


def conditions(run: Any) -> str:
    """Duration and seed."""
    scenario = getattr(run, "scenario", run)
    return f"{scenario.duration_s:,g} s, seed {scenario.seed}"


def round_length(length: float) -> float:
    """The largest of 1, 2, 5, 10, 20, ... that is not longer than ``length`` (for a scale bar)."""
    if length <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(length))
    return next(step * power for step in (5, 2, 1) if step * power <= length * 1.0000001)
