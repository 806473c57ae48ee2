"""How metrics are displayed: title, unit, whether more is better, and meaning.

The metrics of a single protocol are described beside their code: its module of metrics may have a table ``SHOWN``,
{name: `Shown`}.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from workbench import plugins, public_names


class Shown(NamedTuple):
    """The description of a metric for display.

    ``is_more_better``: True, False or None (neither). ``meaning``: a text for tooltips.
    """

    title: str
    unit: str
    is_more_better: bool | None
    meaning: str


SHOWN = {
    "delivery_ratio": Shown("delivery", "%", True, "share of the expected samples that arrived"),
    "expected": Shown("expected", "", None, "samples that matched a subscription and could reach it"),
    "delivered": Shown("delivered", "", True, "expected samples that arrived"),
    "latency_ms_p50": Shown("latency, median", "ms", False, "from publish to delivery, over the delivered samples"),
    "latency_ms_p95": Shown("latency, 95 %", "ms", False, "from publish to delivery, over the delivered samples"),
    "latency_all_ms_p50": Shown("latency of all, median", "ms", False, "undelivered samples are infinitely late"),
    "latency_all_ms_p95": Shown("latency of all, 95 %", "ms", False, "undelivered samples are infinitely late"),
    "latency_all_ms_max": Shown("latency of all, largest", "ms", False, "undelivered samples are infinitely late"),
    "within_1s_ratio": Shown("within 1 s", "%", True, "share of the expected samples that arrived within 1 s"),
    "within_10s_ratio": Shown("within 10 s", "%", True, "share of the expected samples that arrived within 10 s"),
    "time_to_first_s": Shown("time to first", "s", False, "from the first expected sample to the first delivery"),
    "time_to_steady_s": Shown("time to steady", "s", False, "until at least 90 % of all later samples arrive"),
    "recovery_s": Shown("recovery", "s", False, "longest time from a node's failure or recovery to steady delivery"),
    "usefulness_ratio": Shown("usefulness", "%", True, "share of the received messages of use that were new"),
    "frames_set_up": Shown("frames for set-up", "", False, "sent once for a node, a subscription or a change"),
    "frames_upkeep": Shown("frames for upkeep", "", False, "repeated while nothing changes"),
    "frames_use": Shown("frames of use", "", False, "sent for publications"),
    "bytes_set_up": Shown("bytes for set-up", "B", False, "without the radio's overhead"),
    "bytes_upkeep": Shown("bytes for upkeep", "B", False, "without the radio's overhead"),
    "bytes_use": Shown("bytes of use", "B", False, "without the radio's overhead"),
    "stretch": Shown("stretch", "×", False, "hops that messages travelled over hops of the shortest path, mean"),
    "coverage": Shown("coverage", "%", True, "share of all nodes that held a publication, mean"),
    "transmissions": Shown("frames sent", "", False, "frames, including retries"),
    "receptions": Shown("frames received", "", None, "frames that nodes received"),
    "bytes_sent": Shown("bytes sent", "B", False, "without the radio's overhead"),
    "energy_mJ": Shown(
        "energy",
        "mJ",
        False,
        "for sending, and for receiving frames, also collided frames; without overhearing and idle listening",
    ),
    "sink_error_mean": Shown(
        "error at the sink",
        "",
        False,
        "sink's estimate against the mean of the latest readings; in the attribute's unit",
    ),
    "sink_error_max": Shown("error, largest", "", False, "largest error at a sink, in the attribute's unit"),
    "age_s_mean": Shown("age", "s", False, "time since the newest reading that the sink has was published, mean"),
    "age_s_max": Shown(
        "age, largest", "s", False, "longest time since the newest reading that a sink has was published"
    ),
    "charge_mC": Shown("charge", "mC", False, "of a node's radio, also for idle listening; mean of the nodes"),
    "charge_mC_max": Shown("charge, largest", "mC", False, "charge of the node whose radio takes the most"),
    "charge_jain": Shown("charge, fairness", "", True, "Jain's index: 1 if all nodes take the same charge"),
    "lost": Shown("frames lost", "", False, "receptions that failed"),
    "wrong_deliveries": Shown(
        "wrong", "", False, "delivered samples that do not match, were altered, or were never published"
    ),
    "duplicate_deliveries": Shown("repeated", "", False, "samples delivered to the same subscription again"),
    "unexpected_deliveries": Shown(
        "retained",
        "",
        True,
        "samples delivered although published before the subscription, or while its node was down",
    ),
}

_ONLY_WITH_FILTERS = ("sink_error_mean", "sink_error_max", "age_s_mean", "age_s_max")


def modules_of(protocol: Any) -> list[Any]:
    """Return the modules that measure further metrics of a protocol's runs: its own module, and those of plug-ins."""
    own_modules = [importlib.import_module(protocol.metrics)] if protocol is not None and protocol.metrics else []
    return [*own_modules, *plugins.load_all("metrics").values()]


def shown_metrics(metrics: Any) -> Any:
    """Return ``metrics`` without optional metrics that are NaN because the protocol or run does not have them."""
    optional_names = ("coverage", "usefulness_ratio", "recovery_s", *public_names.METRICS, *_ONLY_WITH_FILTERS)
    absent_names = [name for name in optional_names if name in metrics.index and metrics.isna()[name]]
    return metrics.drop(absent_names)


def shown_as(name: str, protocol: Any = None) -> Shown:
    """Return a metric's title, unit and meaning for display; a metric without a description has its name as the title.

    ``protocol``: the protocol of the run, whose module may describe the metric.
    """
    module_name = public_names.METRICS.get(name)
    public_modules = [importlib.import_module(f"workbench.{module_name}")] if module_name else []
    for module in (*public_modules, *modules_of(protocol)):
        descriptions = getattr(module, "SHOWN", {})
        if name in descriptions:
            return descriptions[name]
    return SHOWN.get(name) or Shown(name.replace("_", " "), "", None, name)
