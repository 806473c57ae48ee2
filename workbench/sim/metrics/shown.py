"""How metrics are shown: their names for readers, their units, which way is better, and what they mean.

The metrics of a single protocol are described where they are measured: its module of metrics may have a table
``SHOWN``, {name: `Shown`}.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from workbench import plugins, public_names


class Shown(NamedTuple):
    """A metric as it is shown: its title, its unit, whether more is better (None: neither), what it means."""

    title: str
    unit: str
    is_more_better: bool | None
    meaning: str


SHOWN = {
    "delivery_ratio": Shown(
        "delivery", "%", True, "of the samples that were asked for and could arrive, the share that did"
    ),
    "expected": Shown("expected", "", None, "samples that were asked for and could arrive"),
    "delivered": Shown("delivered", "", True, "samples that arrived of those that were expected"),
    "latency_ms_p50": Shown("latency, median", "ms", False, "from publish to delivery, over what was delivered"),
    "latency_ms_p95": Shown("latency, 95 %", "ms", False, "from publish to delivery, over what was delivered"),
    "stretch": Shown("stretch", "×", False, "hops that messages travelled over those of the shortest path, mean"),
    "coverage": Shown("coverage", "%", True, "share of all nodes that came to hold a publication, mean"),
    "transmissions": Shown("frames sent", "", False, "frames, with those sent again"),
    "receptions": Shown("frames received", "", None, "frames that nodes received"),
    "bytes_sent": Shown("bytes sent", "B", False, "without the radio's overhead"),
    "energy_mJ": Shown(
        "energy",
        "mJ",
        False,
        "of sending, and of hearing what was received or collided; neither overhearing nor idle listening",
    ),
    "lost": Shown("frames lost", "", False, "receptions that failed"),
    "wrong_deliveries": Shown("wrong", "", False, "samples handed to who did not ask, altered, or never published"),
    "duplicate_deliveries": Shown("repeated", "", False, "samples handed to the same subscription again"),
    "unexpected_deliveries": Shown(
        "from before",
        "",
        True,
        "samples delivered although published before the subscription, or while its node was down",
    ),
}


def modules_of(protocol: Any) -> list[Any]:
    """Return the modules of the metrics that a protocol's runs have besides those of every run: its own, plug-ins'."""
    own = [importlib.import_module(protocol.metrics)] if protocol is not None and protocol.metrics else []
    return [*own, *plugins.load_all("metrics").values()]


def shown_metrics(metrics: Any) -> Any:
    """Return a series of metrics without those that its protocol does not have: a coverage that is not a number."""
    absent = [name for name in ("coverage", *public_names.METRICS) if name in metrics.index and metrics.isna()[name]]
    return metrics.drop(absent)


def shown_as(name: str, protocol: Any = None) -> Shown:
    """How a metric is shown; one that nobody wrote of is shown by its name. ``protocol``: whose run it is of."""
    home = public_names.METRICS.get(name)
    public = [importlib.import_module(f"workbench.{home}")] if home else []
    for module in (*public, *modules_of(protocol)):
        own = getattr(module, "SHOWN", {})
        if name in own:
            return own[name]
    return SHOWN.get(name) or Shown(name.replace("_", " "), "", None, name)
