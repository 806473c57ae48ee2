"""Metrics: numbers out of a trace. Nothing here knows which protocol ran.

Every run has

    delivery_ratio           of the samples that a subscription asked for and a sink could get, the share it got
    expected, delivered      how many samples that is, and how many of them arrived
    wrong_deliveries         samples handed to a subscription that they do not match, that their message does not carry
                             (altered, or another's), that nobody published, or that came when it had ended
    duplicate_deliveries     samples handed to the same subscription again
    unexpected_deliveries    samples that match and were delivered all the same: published before the subscription was
                             made, or while its node was down, and kept for it on the way
    latency_ms_p50, _p95     from publish to delivery, over the samples delivered
    stretch                  hops that delivered messages travelled over the hops of the shortest path, mean
    coverage                 share of all nodes that came to hold a publication, mean; only for protocols that mean to
                             reach all
    transmissions, receptions, lost, bytes_sent                 what it cost (bytes without the radio's overhead)
    energy_mJ                of sending, and of hearing what was received or collided; see `workbench.sim.radio`
    sent_<message>, lost_<reason>, dropped_<reason>, given_up_<reason>      the same in detail

A protocol has metrics of its own in the module that its class names (``metrics``), and plug-ins may bring metrics for
the runs of all protocols; they stand between the coverage and
what the run cost. A few of them are public names (`public_names.METRICS`) and stand there in every run, so that runs of
several protocols fit into one table: NaN if the protocol has no such metric.

A sample counts as expected if its publication matches the subscription (the protocol's `matching_samples`), was made
while the subscription lasted, publisher and sink were up, and arcs lead from the publisher to the sink. A delivered
sample is known by its text among those its message carries. A protocol with filters may change samples on purpose: it
tells in which messages its nodes did so (``changes`` of its class), and there a sample with another text stands for the
first that has not arrived. Which sample was changed, and to what, is not told, so it is not checked.

Why a delivery ratio is low, or not a number, ``run.explain()`` says (`workbench.analysis.explain`).
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench import plugins, public_names
from workbench.columns import count_distinct
from workbench.errors import ScenarioError
from workbench.sim.metrics.deliveries import NOT_A_NUMBER, deliveries
from workbench.sim.rows import Columns

if TYPE_CHECKING:
    import pandas as pd

    from workbench.sim.trace import Counts, Sizes

__all__ = ["COMMON", "NOT_A_NUMBER", "compute"]
# The metrics that every run has, in their order.
COMMON = (
    "delivery_ratio",
    "expected",
    "delivered",
    "wrong_deliveries",
    "duplicate_deliveries",
    "unexpected_deliveries",
    "latency_ms_p50",
    "latency_ms_p95",
    "stretch",
    "coverage",
    *public_names.METRICS,
    "transmissions",
    "receptions",
    "lost",
    "bytes_sent",
    "energy_mJ",
)
# Counts of what happened, by kind: a run that has no such count has none of it, which is 0 and not unknown.
COUNTS = ("sent_", "lost_", "dropped_", "given_up_")


def compute(scenario: Any, rows: pa.Table, counts: Counts, sizes: Sizes) -> pd.Series:
    """All metrics, from the rows that matter and the numbers of all rows (see trace.tally)."""
    from workbench.sim.metrics.series import Metrics  # Not before: it loads pandas.

    looked_at = Columns(rows)
    values = deliveries(scenario, looked_at)
    values["coverage"] = _coverage(scenario, looked_at, counts)
    values.update(dict.fromkeys(public_names.METRICS, NOT_A_NUMBER))
    values.update(_own(scenario, looked_at))
    values.update(_costs(scenario, counts, sizes))
    return Metrics([float(value) for value in values.values()], list(values), name="metrics")


def _coverage(scenario: Any, rows: Columns, counts: Counts) -> float:
    if not scenario.protocol.disseminates:
        return NOT_A_NUMBER
    originated = count_distinct(*rows.columns("originated", "origin", "sequence"))
    return counts["held", "", ""] / (len(scenario.topology) * originated) if originated else NOT_A_NUMBER


def _own(scenario: Any, rows: Columns) -> dict[str, float]:
    """The metrics of the protocol and of plug-ins; ScenarioError if the protocol's have the name of another metric."""
    module = scenario.protocol.metrics
    found = _new(module, importlib.import_module(module).measure(scenario, rows)) if module else {}
    for name, plugin in plugins.load_all("metrics").items():
        try:
            found |= _new(name, plugin.measure(scenario, rows), (*found, *public_names.METRICS))
        except Exception as error:
            plugins.leave_out("metrics", name, error)
    return found


def _new(module: str, found: dict[str, float], taken: Collection[str] = ()) -> dict[str, float]:
    """Return metrics that are in no run yet; ScenarioError for one that is."""
    for name in found:
        if name.startswith(COUNTS) or name in taken or (name in COMMON and name not in public_names.METRICS):
            raise ScenarioError(f"{module} has a metric {name}, which is in every run already; give it another name")
    return found


def _costs(scenario: Any, counts: Counts, sizes: Sizes) -> dict[str, float]:
    radio = scenario.radio
    totals: Counter[str] = Counter()
    detailed: Counter[str] = Counter()
    for (event, message, reason), count in counts.items():
        totals[event] += count
        if event == "sent":
            detailed[f"sent_{message}"] += count
        elif event in ("lost", "dropped", "given_up"):
            detailed[f"{event}_{reason}"] += count
    sent_B = sizes["sent", ""] + totals["sent"] * radio.overhead_B
    # A frame that collides costs its receiver as much as one that it can make out.
    heard = totals["received"] + detailed["lost_collision"]
    heard_B = sizes["received", ""] + sizes["lost", "collision"] + heard * radio.overhead_B
    return {
        "transmissions": totals["sent"],
        "receptions": totals["received"],
        "lost": totals["lost"],
        "bytes_sent": sizes["sent", ""],
        "energy_mJ": (sent_B * radio.tx_uJ_per_B + heard_B * radio.rx_uJ_per_B) / 1000,
        **{name: detailed[name] for name in sorted(detailed)},
    }
