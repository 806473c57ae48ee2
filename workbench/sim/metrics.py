"""Metrics: numbers out of a trace. Nothing here knows which protocol ran.

Every run has

    delivery_ratio           of the samples that a subscription asked for and a sink could get, the share it got
    expected, delivered      how many samples that is, and how many of them arrived
    wrong_deliveries         samples handed to a subscription that they do not match, that nobody published, or that
                             came when it had ended
    duplicate_deliveries     samples handed to the same subscription again
    latency_ms_p50, _p95     from publish to delivery, over the samples delivered
    stretch                  hops that delivered messages travelled over the hops of the shortest path, mean
    coverage                 share of all nodes that came to hold a publication, mean; only for protocols that mean to
                             reach all
    transmissions, receptions, lost, bytes_sent                 what it cost (bytes without the radio's overhead)
    energy_mJ                of sending, and of hearing what was received or collided; see `workbench.sim.radio`
    sent_<message>, lost_<reason>, dropped_<reason>, given_up_<reason>      the same in detail

A protocol has metrics of its own in the module that its class names (``metrics``); they stand between the coverage and
what the run cost. A few of them are public names (`public_names.METRICS`) and stand there in every run, so that runs of
several protocols fit into one table: NaN if the protocol has no such metric.

A sample counts as expected if its publication matches the subscription (the protocol's `matching_samples`), was made
while the subscription lasted, publisher and sink were up, and arcs lead from the publisher to the sink. A delivered
sample is known by its text among those its message carries; one that a filter changed stands for the first of them
that has not arrived.
"""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pyarrow as pa

from workbench import public_names
from workbench.attributes.model import EQ, GE, GT, IS, LE, LT, matching_samples
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError, ScenarioError
from workbench.protocols.protocol import Protocol
from workbench.sim import trace

if TYPE_CHECKING:
    import pandas as pd

NOT_A_NUMBER = float("nan")
# The metrics that every run has, in their order.
COMMON = (
    "delivery_ratio",
    "expected",
    "delivered",
    "wrong_deliveries",
    "duplicate_deliveries",
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
_COUNTS = ("sent_", "lost_", "dropped_", "given_up_")
_parsed = lru_cache(maxsize=100_000)(parse)


class _Matching:
    """What subscriptions ask for, by the protocol's rule: texts in, texts out, each pair worked out once."""

    def __init__(self, matching_samples: Callable) -> None:
        self._matching_samples = matching_samples
        self.samples = lru_cache(maxsize=1_000_000)(self._samples)
        self.is_match = lru_cache(maxsize=1_000_000)(self._is_match)

    def _samples(self, subscription: str, publication: str) -> tuple[str, ...]:
        """The samples of a publication that match a subscription."""
        found = self._matching_samples(_parsed(subscription), _parsed(publication))
        return tuple(to_text(sample) for sample in found)

    def _is_match(self, subscription: str, sample: str) -> bool:
        """Whether a sample matches a subscription."""
        try:
            return bool(self._matching_samples(_parsed(subscription), _parsed(sample)))
        except AttributeFormatError:
            return True  # A filter has left its key's range, which no text can say; the sink has compared the number.

    def candidates(self, subscriptions: Iterable[str], publications: list[str]) -> list[list[str]]:
        """For each publication the subscriptions of which it may have samples: all, if nothing is known of the rule."""
        return [list(subscriptions)] * len(publications)


class _CommonMatching(_Matching):
    """The rule of attributes: numbers are compared for all publications at once, for most of them meet few bounds."""

    def candidates(self, subscriptions: Iterable[str], publications: list[str]) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in publications]
        values = _values(publications)
        for subscription in subscriptions:
            may_match = np.ones(len(publications), np.bool_)
            for key, operator, bound in _parsed(subscription):
                if operator in _COMPARED and isinstance(bound, int):
                    where, numbers = values.get(key, _NO_VALUES)
                    meets = np.zeros(len(publications), np.bool_)
                    meets[where[_COMPARED[operator](numbers, bound)]] = True
                    may_match &= meets
            for index in np.flatnonzero(may_match).tolist():
                found[index].append(subscription)
        return found


_COMPARED: dict[int, Callable] = {EQ: np.equal, GE: np.greater_equal, GT: np.greater, LE: np.less_equal, LT: np.less}
_NO_VALUES = np.zeros(0, np.int64), np.zeros(0, np.int64)


def _values(publications: list[str]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """key -> (indices of publications, values that these have): of all numbers that publications state."""
    stated: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index, text in enumerate(publications):
        for key, operator, value in _parsed(text):
            if operator == IS and isinstance(value, int):
                stated[key].append((index, value))
    columns = {key: np.array(pairs, np.int64) for key, pairs in stated.items()}
    return {key: (pairs[:, 0], pairs[:, 1]) for key, pairs in columns.items()}


_COMMON = _CommonMatching(matching_samples)


@lru_cache(maxsize=64)
def _own_matching(protocol: Protocol) -> _Matching:
    return _Matching(protocol.matching_samples)


def _matching(protocol: Protocol) -> _Matching:
    """The protocol's rule: that of attributes, unless it has one of its own."""
    if type(protocol).matching_samples is Protocol.matching_samples:
        return _COMMON
    return _own_matching(protocol)


class _Subscription:
    def __init__(self, node: int, number: int, what: str, start_us: int, end_us: int | None) -> None:
        self.node = node
        self.number = number
        self.what = what
        self.start_us = start_us
        self.end_us = end_us
        self.arrivals: dict[tuple[int, int], _Arrival] = {}  # message -> what of it has arrived

    def is_open(self, time_us: int) -> bool:
        return self.start_us <= time_us and (self.end_us is None or time_us < self.end_us)


class _Arrival:
    """What a message carries for a subscription: (text, publication) of each sample, and which of them it was given."""

    def __init__(self, what: str, carried: list[dict], matching: _Matching) -> None:
        self.waiting = [
            (text, published) for published in carried for text in matching.samples(what, published["detail"])
        ]
        self.carried = {text for text, _ in self.waiting}
        self.seen: set[str] = set()

    def take(self, text: str) -> dict | None:
        """The publication that a delivered sample stands for, None if there is none that has not arrived yet."""
        self.seen.add(text)
        for index, (waiting, published) in enumerate(self.waiting):
            if waiting == text or text not in self.carried:
                del self.waiting[index]
                return published
        return None


def compute(scenario: Any, rows: pa.Table, counts: Counter, sizes: Counter) -> pd.Series:
    """All metrics, from the rows that matter and the numbers of all rows (see trace.tally)."""
    import pandas as pd

    looked_at = Rows(rows)
    values = _deliveries(scenario, looked_at)
    values["coverage"] = _coverage(scenario, looked_at, counts)
    values.update(dict.fromkeys(public_names.METRICS, NOT_A_NUMBER))
    values.update(_own(scenario, looked_at))
    values.update(_costs(scenario, counts, sizes))
    return pd.Series([float(value) for value in values.values()], list(values), name="metrics")


class Rows:
    """The rows that metrics look at: as dictionaries, made once and when asked for, or in columns of numbers."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._events, self._names = trace.codes(table.column("event"))
        self._made: dict[tuple[str, ...], list[dict[str, Any]]] = {}

    def _indices(self, events: Collection[str]) -> np.ndarray:
        wanted = np.array([name in events for name in self._names], np.bool_)
        return np.flatnonzero(wanted[self._events]) if len(wanted) else np.zeros(0, np.int64)

    def _taken(self, indices: np.ndarray) -> list[dict[str, Any]]:
        columns = []
        for field in self._table.schema:
            column = self._table.column(field.name)
            if pa.types.is_dictionary(field.type):
                numbers, texts = trace.codes(column)
                columns.append([texts[number] for number in numbers[indices].tolist()])
            else:
                columns.append(column.to_numpy()[indices].tolist())
        return [dict(zip(self._table.schema.names, cells, strict=True)) for cells in zip(*columns, strict=True)]

    def of(self, *events: str) -> list[dict[str, Any]]:
        """All rows of these events, in order."""
        if events not in self._made:
            self._made[events] = self._taken(self._indices(events))
        return self._made[events]

    def columns(self, event: str, *names: str) -> list[np.ndarray]:
        """Some columns of numbers (n,) of all rows of an event, in order."""
        indices = self._indices((event,))
        return [self._table.column(name).to_numpy()[indices] for name in names]


def _subscriptions(rows: Rows) -> dict[tuple[int, int], _Subscription]:
    found = {}
    for row in rows.of("subscribed", "unsubscribed"):
        key = row["node"], row["sequence"]
        if row["event"] == "subscribed":
            end_us = None if row["value"] < 0 else row["value"]
            found[key] = _Subscription(*key, row["detail"], row["time_us"], end_us)
        else:
            ends = [time_us for time_us in (found[key].end_us, row["time_us"]) if time_us is not None]
            found[key].end_us = min(ends)
    return found


def _down_times(rows: Rows) -> dict[int, list[tuple[int, int | None]]]:
    """node -> [(failed at, recovered at or None)]"""
    times: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
    for row in rows.of("failed", "recovered"):
        if row["event"] == "failed":
            times[row["node"]].append((row["time_us"], None))
        else:
            times[row["node"]][-1] = (times[row["node"]][-1][0], row["time_us"])
    return times


def _distances(scenario: Any, sinks: set[int]) -> dict[int, dict[int, int]]:
    """sink -> {node: hops of the shortest path from the node to the sink}"""
    backwards = scenario.topology.reverse(copy=False)
    return {sink: nx.single_source_shortest_path_length(backwards, sink) for sink in sinks}


def _deliveries(scenario: Any, rows: Rows) -> dict[str, float]:
    subscriptions = _subscriptions(rows)
    distances = _distances(scenario, {subscription.node for subscription in subscriptions.values()})
    # Readings are most of the rows that are kept: they are looked at if anybody subscribed, or was given any.
    asked_for = subscriptions or rows.of("delivered")
    published = {(row["node"], row["sequence"]): row for row in rows.of("published")} if asked_for else {}
    readings: dict[tuple[int, int], list[dict]] = defaultdict(list)  # message -> the publications it carries
    for row in rows.of("originated") if asked_for else ():
        readings[row["origin"], row["sequence"]].append(published[row["node"], row["value"]])
    matching = _matching(scenario.protocol)
    expected = _expected(subscriptions, published.values(), distances, _down_times(rows), matching)
    outcome = _Outcome()
    delivered = set()
    for row in rows.of("delivered"):
        delivered.add((row["node"], row["origin"], row["sequence"]))
        _credit(row, subscriptions, readings, expected, outcome, matching)
    total = sum(expected.values())
    latency = sorted(outcome.latencies_us)
    return {
        "delivery_ratio": outcome.delivered / total if total else NOT_A_NUMBER,
        "expected": total,
        "delivered": outcome.delivered,
        "wrong_deliveries": outcome.wrong,
        "duplicate_deliveries": outcome.duplicates,
        "latency_ms_p50": _percentile(latency, 0.50) / 1000,
        "latency_ms_p95": _percentile(latency, 0.95) / 1000,
        "stretch": _stretch(rows, delivered, distances),
    }


class _Outcome:
    def __init__(self) -> None:
        self.delivered = 0
        self.wrong = 0
        self.duplicates = 0
        self.latencies_us: list[int] = []


def _expected(subscriptions: dict, published: Any, distances: dict, down: dict, matching: _Matching) -> Counter:
    """(sink, subscription number, publisher, reading number) -> samples that the subscription should get."""
    expected: Counter = Counter()
    wanted = _wanted(subscriptions, dict.fromkeys(row["detail"] for row in published), matching)
    for row in published:
        publisher, time_us, text = row["node"], row["time_us"], row["detail"]
        for (sink, number), subscription, samples in wanted[text]:
            if subscription.is_open(time_us) and publisher in distances[sink] and not _is_down(down, sink, time_us):
                expected[sink, number, publisher, row["sequence"]] = samples
    return expected


def _wanted(subscriptions: dict, readings: Iterable[str], matching: _Matching) -> dict[str, list[tuple]]:
    """reading -> who wants it: ((sink, subscription number), subscription, samples)"""
    asking: dict[str, list[tuple]] = defaultdict(list)
    for key, one in subscriptions.items():
        asking[one.what].append((key, one))
    texts = list(readings)
    wanted: dict[str, list[tuple]] = {text: [] for text in texts}
    for text, candidates in zip(texts, matching.candidates(asking, texts), strict=True):
        for what in candidates:
            samples = len(matching.samples(what, text))
            if samples:
                wanted[text] += [(*asked, samples) for asked in asking[what]]
    return wanted


def _is_down(down: dict, node: int, time_us: int) -> bool:
    return any(start <= time_us and (end is None or time_us < end) for start, end in down.get(node, ()))


def _credit(
    row: dict, subscriptions: dict, readings: dict, expected: Counter, outcome: _Outcome, matching: _Matching
) -> None:
    """Book one delivered sample."""
    key = row["node"], row["value"]
    subscription = subscriptions.get(key)
    message = row["origin"], row["sequence"]
    carried = readings.get(message)
    if (
        subscription is None
        or carried is None
        or not subscription.is_open(row["time_us"])
        or not matching.is_match(subscription.what, row["detail"])
    ):
        outcome.wrong += 1
        return
    arrival = subscription.arrivals.get(message)
    if arrival is None:
        arrival = subscription.arrivals[message] = _Arrival(subscription.what, carried, matching)
    is_new = row["detail"] not in arrival.seen
    publication = arrival.take(row["detail"])
    if publication is None:
        # One that is new may match only since a filter changed it: it is not owed, and it is no mistake.
        outcome.duplicates += not is_new
    elif (*key, publication["node"], publication["sequence"]) in expected:
        outcome.delivered += 1
        outcome.latencies_us.append(row["time_us"] - publication["time_us"])


def _percentile(ordered: list[int], share: float) -> float:
    """The smallest value that at least that share does not exceed."""
    if not ordered:
        return NOT_A_NUMBER
    return ordered[min(len(ordered) - 1, max(0, -(-round(share * 100) * len(ordered) // 100) - 1))]


def _stretch(rows: Rows, delivered: set[tuple], distances: dict[int, dict[int, int]]) -> float:
    ratios = []
    held = rows.columns("held", "node", "origin", "sequence", "value")
    at_sinks = np.isin(held[0], sorted(distances))
    for node, origin, sequence, hops in zip(*(column[at_sinks].tolist() for column in held), strict=True):
        shortest = distances[node].get(origin, 0)
        if shortest > 0 and (node, origin, sequence) in delivered:
            ratios.append(hops / shortest)
    return sum(ratios) / len(ratios) if ratios else NOT_A_NUMBER


def _coverage(scenario: Any, rows: Rows, counts: Counter) -> float:
    if not scenario.protocol.disseminates:
        return NOT_A_NUMBER
    origins, sequences = rows.columns("originated", "origin", "sequence")
    originated = set(zip(origins.tolist(), sequences.tolist(), strict=True))
    return counts["held", "", ""] / (len(scenario.topology) * len(originated)) if originated else NOT_A_NUMBER


def _own(scenario: Any, rows: Rows) -> dict[str, float]:
    """The metrics of the protocol alone; ScenarioError if one has the name of another metric."""
    module = scenario.protocol.metrics
    found = importlib.import_module(module).measure(scenario, rows) if module else {}
    for name in found:
        if name.startswith(_COUNTS) or (name in COMMON and name not in public_names.METRICS):
            raise ScenarioError(f"{module} has a metric {name}, which is in every run already; give it another name")
    return found


def _costs(scenario: Any, counts: Counter, sizes: Counter) -> dict[str, float]:
    radio = scenario.radio
    totals: Counter = Counter()
    detailed: Counter = Counter()
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
