"""Metrics: numbers computed from a trace. No code here depends on the protocol that ran.

Every run has

    delivery_ratio           delivered / expected
    expected, delivered      number of samples that a subscription matched and its sink could receive, and the number of
                             those that arrived
    wrong_deliveries         delivered samples that do not match their subscription, that their message does not carry
                             (altered, or of another message), that no node published, or that arrived after the
                             subscription's end
    duplicate_deliveries     samples delivered to the same subscription again
    unexpected_deliveries    samples that match and were delivered although they were not expected: published before the
                             subscription was made, or while its node was down, and retained in the network
    latency_ms_p50, _p95     from publish to delivery, over the samples delivered
    latency_all_ms_p50, _p95, _max      the same over all expected samples: a lost sample is infinitely late
    within_1s_ratio, within_10s_ratio   share of the expected samples that arrived within this time
    time_to_first_s          from the first expected sample's publication to the first delivery
    time_to_steady_s         from the same time to the publication from which on at least 90 % of the samples arrive
                             (`workbench.sim.metrics.progress`)
    recovery_s               longest time from a node's failure or recovery to steady delivery
    stretch                  hops that delivered messages travelled over the hops of the shortest path, mean
    coverage                 share of all nodes that held a publication, mean over publications; only for protocols
                             whose publications are for all nodes
    transmissions, receptions, lost, bytes_sent                 the cost (bytes without the radio's overhead)
    usefulness_ratio         of the receptions of messages with the nature "use": the share that was new to the receiver
                             (with coding: innovative); NaN for protocols that do not count this
    frames_set_up, frames_upkeep, frames_use, bytes_set_up, bytes_upkeep, bytes_use      the frames and bytes sent, by
                             the nature of their message (`Protocol.natures`)
    sink_error_mean, _max    with filters: difference between the sink's estimate and the mean of the latest readings
    age_s_mean, _max         with filters: age of the newest reading that has reached the sink, since its publication
                             (`workbench.sim.metrics.information`)
    energy_mJ                energy for sending, and for receiving frames, also collided frames, but not for overhearing
                             and idle listening; see `workbench.sim.radio`
    charge_mC, _max          charge of a node's radio in all its states: mean of the nodes, and largest. These and
                             charge_jain, Jain's index of fairness, exist only for radios that state their currents
    sent_<message>, lost_<reason>, dropped_<reason>, given_up_<reason>      number of frames sent with each message, and
                             of receptions lost, messages dropped and frames given up for each reason

A protocol has metrics of its own in the module that its class names (``metrics``), and plug-ins may add metrics to the
runs of all protocols. These metrics are listed between the coverage and the cost. A few of them are public names
(`public_names.METRICS`) and are in every run, so that runs of several protocols fit into one table: NaN if the
protocol does not measure that metric.

A sample is one reading's attributes; a message carries one or several samples.

A sample is expected if its publication matches the subscription (the protocol's `matching_samples`) and was made while
the subscription was active. Publisher and sink must also be up, and arcs must lead from the publisher to the sink. A
sample is not expected if its source withheld it, because the subscription's INTERVAL requests fewer (``withholds``). It
is not expected either if a filter dropped it (``drops``) and it did not arrive (`workbench.sim.metrics.filtered`).

A delivered sample is identified by its text among the samples that its message carries. A protocol with filters may
change samples on purpose: the trace shows the messages that its nodes changed (``changes`` of its class). In such a
message, a sample with another text is credited to the first sample that has not arrived. The trace does not show which
sample was changed, or how, so the change is not checked.

``run.explain()`` gives the reasons for a low delivery ratio (`workbench.analysis.explain`).
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from workbench import plugins, public_names
from workbench.columns import count_distinct
from workbench.errors import ScenarioError
from workbench.sim.metrics.charge import charges
from workbench.sim.metrics.deliveries import NOT_A_NUMBER, deliveries
from workbench.sim.metrics.information import METRICS as INFORMATION
from workbench.sim.metrics.information import information
from workbench.sim.metrics.natures import NATURES, by_nature, usefulness
from workbench.sim.metrics.progress import DEADLINES_S
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
    *(f"within_{deadline}s_ratio" for deadline in DEADLINES_S),
    "latency_all_ms_p50",
    "latency_all_ms_p95",
    "latency_all_ms_max",
    "time_to_first_s",
    "time_to_steady_s",
    "recovery_s",
    "coverage",
    *public_names.METRICS,
    "transmissions",
    "receptions",
    "lost",
    "bytes_sent",
    "usefulness_ratio",
    *(f"{unit}_{nature}" for unit in ("frames", "bytes") for nature in NATURES),
    "energy_mJ",
    *INFORMATION,
)
# Prefixes of counts by message or reason. A run that lacks such a count has 0, not an unknown number.
COUNTS = ("sent_", "lost_", "dropped_", "given_up_")


def compute(
    scenario: Any, rows: pa.Table, counts: Counts, sizes: Sizes, radio_states_us: np.ndarray | None = None
) -> pd.Series:
    """Return all metrics of a run, computed from its recorded trace ``rows`` and from its numbers of events.

    ``counts``, ``sizes``: numbers of events and their bytes, as `trace.tally` returns them. ``radio_states_us``
    (nodes, states): the time of each node's radio in each state, or None if it was not measured.
    """
    from workbench.sim.metrics.series import Metrics  # Not before: it loads pandas.

    trace_columns = Columns(rows)
    metrics = deliveries(scenario, trace_columns)
    metrics["coverage"] = _coverage(scenario, trace_columns, counts)
    metrics.update(dict.fromkeys(public_names.METRICS, NOT_A_NUMBER))
    metrics.update(_protocol_and_plugin_metrics(scenario, trace_columns))
    other_metrics = information(scenario, trace_columns) | charges(scenario.radio, radio_states_us)
    metrics.update(_costs(scenario, counts, sizes, other_metrics))
    return Metrics([float(value) for value in metrics.values()], list(metrics), name="metrics")


def _coverage(scenario: Any, rows: Columns, counts: Counts) -> float:
    if not scenario.protocol.disseminates:
        return NOT_A_NUMBER
    originated = count_distinct(*rows.columns("originated", "origin", "sequence"))
    return counts["held", "", ""] / (len(scenario.topology) * originated) if originated else NOT_A_NUMBER


def _protocol_and_plugin_metrics(scenario: Any, rows: Columns) -> dict[str, float]:
    """Return the metrics that the protocol and the plug-ins measure.

    Raises ScenarioError if a metric of the protocol has the name of another metric.
    """
    module = scenario.protocol.metrics
    measured = _check_names(module, importlib.import_module(module).measure(scenario, rows)) if module else {}
    for name, plugin in plugins.load_all("metrics").items():
        try:
            measured |= _check_names(name, plugin.measure(scenario, rows), (*measured, *public_names.METRICS))
        except Exception as error:
            plugins.leave_out("metrics", name, error)
    return measured


def _check_names(module: str, measured: dict[str, float], taken_names: Collection[str] = ()) -> dict[str, float]:
    """Check the names of ``measured``, the metrics {name: value} of ``module``, and return ``measured``.

    Raises ScenarioError if a name belongs to a metric of every run, or is in ``taken_names``.
    """
    for metric_name in measured:
        if (
            metric_name.startswith((*COUNTS, "charge_"))
            or metric_name in taken_names
            or (metric_name in COMMON and metric_name not in public_names.METRICS)
        ):
            raise ScenarioError(
                f"{module} has a metric {metric_name}, which is the name of another metric; give it another name"
            )
    return measured


def _costs(scenario: Any, counts: Counts, sizes: Sizes, other_metrics: dict[str, float]) -> dict[str, float]:
    radio = scenario.radio
    totals: Counter[str] = Counter()
    detailed_counts: Counter[str] = Counter()
    for (event, message, reason), row_count in counts.items():
        totals[event] += row_count
        if event == "sent":
            detailed_counts[f"sent_{message}"] += row_count
        elif event in ("lost", "dropped", "given_up"):
            detailed_counts[f"{event}_{reason}"] += row_count
    heard_B = 0
    for (event, _, reason), size_B in sizes.items():
        if event == "received" or (event == "lost" and reason == "collision"):
            heard_B += size_B
    bytes_sent = sum(size_B for (event, _, _), size_B in sizes.items() if event == "sent")
    sent_B = bytes_sent + totals["sent"] * radio.overhead_B
    # A frame that collides costs its receiver as much as a decoded frame.
    heard_count = totals["received"] + detailed_counts["lost_collision"]
    heard_B += heard_count * radio.overhead_B
    return {
        "transmissions": totals["sent"],
        "receptions": totals["received"],
        "lost": totals["lost"],
        "bytes_sent": bytes_sent,
        "usefulness_ratio": usefulness(scenario.protocol, counts),
        **by_nature(scenario.protocol, counts, sizes),
        "energy_mJ": (sent_B * radio.tx_uJ_per_B + heard_B * radio.rx_uJ_per_B) / 1000,
        **other_metrics,
        **{name: detailed_counts[name] for name in sorted(detailed_counts)},
    }
