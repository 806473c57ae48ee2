"""A slow reference implementation of the metrics that follows their definitions row by row, in dictionaries."""

from collections import Counter, defaultdict

import networkx as nx

from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError

NOT_A_NUMBER = float("nan")


def deliveries(scenario, rows):
    """Return the metrics from "delivery_ratio" to "stretch" of rows, which are dictionaries."""
    delivered_rows = [row for row in rows if row["event"] == "delivered"]
    subscribed = subscriptions(rows)
    published = {(row["node"], row["sequence"]): row for row in rows if row["event"] == "published"}
    carried = defaultdict(list)
    for row in rows:
        if row["event"] == "originated" and (row["node"], row["value"]) in published:
            carried[row["origin"], row["sequence"]].append(published[row["node"], row["value"]])
    backwards = scenario.topology.reverse()
    distances = {node: nx.single_source_shortest_path_length(backwards, node) for node, _ in subscribed}
    expected = expected_samples(scenario, rows, subscribed, published, distances)
    outcome = Counter()
    latencies_us = []
    changed = {name_of(row) for row in rows if (row["event"], row["detail"]) == scenario.protocol.changes}
    waiting, delivered_texts = {}, defaultdict(set)
    for row in delivered_rows:
        key, message = (row["node"], row["value"]), (row["origin"], row["sequence"])
        if not is_right(scenario, subscribed.get(key), carried.get(message), row):
            outcome["wrong"] += 1
            continue
        constraints, delivery = subscribed[key][0], (key, message)
        if delivery not in waiting:
            waiting[delivery] = [
                (text, item) for item in carried[message] for text in samples(scenario, constraints, item["detail"])
            ]
            delivered_texts[delivery, "carried"] = {text for text, _ in waiting[delivery]}
        if row["detail"] not in delivered_texts[delivery, "carried"] and name_of(row) not in changed:
            outcome["wrong"] += 1
            continue
        fits = [
            item
            for item in waiting[delivery]
            if item[0] == row["detail"] or row["detail"] not in delivered_texts[delivery, "carried"]
        ]
        if fits:
            waiting[delivery].remove(fits[0])
            publication = fits[0][1]
            if (*key, publication["node"], publication["sequence"]) in expected:
                latencies_us.append(row["time_us"] - publication["time_us"])
            else:
                outcome["unexpected"] += 1
        elif row["detail"] in delivered_texts[delivery]:
            outcome["again"] += 1
        delivered_texts[delivery].add(row["detail"])
    total = sum(expected.values())
    latencies_us.sort()
    return {
        "delivery_ratio": len(latencies_us) / total if total else NOT_A_NUMBER,
        "expected": total,
        "delivered": len(latencies_us),
        "wrong_deliveries": outcome["wrong"],
        "duplicate_deliveries": outcome["again"],
        "unexpected_deliveries": outcome["unexpected"],
        "latency_ms_p50": percentile(latencies_us, 50) / 1000,
        "latency_ms_p95": percentile(latencies_us, 95) / 1000,
        "stretch": stretch(rows, delivered_rows, distances),
    }


def name_of(row):
    return row["message"], row["origin"], row["sequence"]


def subscriptions(rows):
    """Return {(node, number): [text, start in µs, end in µs or None]}."""
    entries = {}
    for row in rows:
        key = row["node"], row["sequence"]
        if row["event"] == "subscribed":
            entries[key] = [row["detail"], row["time_us"], None if row["value"] < 0 else row["value"]]
        elif row["event"] == "unsubscribed" and key in entries:
            end_us = entries[key][2]
            entries[key][2] = row["time_us"] if end_us is None else min(end_us, row["time_us"])
    return entries


def lasts(subscription, time_us):
    _, begins, ends = subscription
    return begins <= time_us and (ends is None or time_us < ends)


def samples(scenario, constraints, published):
    return [to_text(sample) for sample in scenario.protocol.matching_samples(parse(constraints), parse(published))]


def is_right(scenario, subscription, carried, row):
    if subscription is None or not carried or not lasts(subscription, row["time_us"]):
        return False
    try:
        return bool(samples(scenario, subscription[0], row["detail"]))
    except AttributeFormatError:
        return True


def expected_samples(scenario, rows, subscribed, published, distances):
    """Return {(sink, subscription, publisher, reading): number of expected samples}."""
    counts = Counter()
    for (sink, number), subscription in subscribed.items():
        for (publisher, reading), row in published.items():
            time_us = row["time_us"]
            if lasts(subscription, time_us) and publisher in distances[sink] and not is_down(rows, sink, time_us):
                counts[sink, number, publisher, reading] = len(samples(scenario, subscription[0], row["detail"]))
    return +counts


def is_down(rows, node, time_us):
    spans = []
    for row in rows:
        if row["node"] == node and row["event"] == "failed":
            spans.append([row["time_us"], None])
        elif row["node"] == node and row["event"] == "recovered" and spans:
            spans[-1][1] = row["time_us"]
    return any(fails <= time_us and (ends is None or time_us < ends) for fails, ends in spans)


def percentile(ordered, percent):
    index = max(0, -(-percent * len(ordered) // 100) - 1)
    return ordered[index] if ordered else NOT_A_NUMBER


def stretch(rows, delivered_rows, distances):
    delivered = {(row["node"], row["origin"], row["sequence"]) for row in delivered_rows}
    ratios = []
    for row in rows:
        if row["event"] == "held" and (row["node"], row["origin"], row["sequence"]) in delivered:
            shortest = distances.get(row["node"], {}).get(row["origin"], 0)
            if shortest > 0:
                ratios.append(row["value"] / shortest)
    return sum(ratios) / len(ratios) if ratios else NOT_A_NUMBER


def interest_coverage(topology, rows):
    """Return the mean, over interests, of the share of a sink's reachable nodes that cached the interest."""
    holders = defaultdict(set)
    for row in rows:
        if row["event"] == "interest_cached":
            holders[row["origin"], row["sequence"]].add(row["node"])
    shares = []
    for (sink, _), nodes in holders.items():
        reachable = {sink, *nx.descendants(topology, sink)}
        shares.append(len(nodes & reachable) / len(reachable))
    return sum(shares) / len(shares) if shares else NOT_A_NUMBER


def tally(rows):
    """Return (counts, bytes) of rows, each by (event, message, reason)."""
    counts, sizes, holders = Counter(), Counter(), set()
    for row in rows:
        reason = row["detail"] if row["event"] in ("lost", "dropped", "given_up") else ""
        sizes[row["event"], row["message"], reason] += row["size_B"]
        if row["event"] == "held":
            holders.add((row["node"], row["origin"], row["sequence"]))
        else:
            counts[row["event"], row["message"], reason] += 1
    counts["held", "", ""] = len(holders)
    return +counts, +sizes
