"""A slow reference implementation of the metrics that follows their definitions row by row, in dictionaries."""

from collections import Counter, defaultdict
from itertools import pairwise

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
    waiting, delivered_texts, arrived = {}, defaultdict(set), set()
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
            arrived.add((*key, publication["node"], publication["sequence"]))
            if (*key, publication["node"], publication["sequence"]) in expected:
                latencies_us.append(row["time_us"] - publication["time_us"])
            else:
                outcome["unexpected"] += 1
        elif row["detail"] in delivered_texts[delivery]:
            outcome["again"] += 1
        delivered_texts[delivery].add(row["detail"])
    expected -= dict.fromkeys(excused(scenario, rows, subscribed, carried, arrived), 1)
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


def excused(scenario, rows, subscribed, carried, arrived):
    """Return {(sink, subscription, publisher, reading)} of samples that filters dropped and that did not arrive."""
    reports = [row for row in rows if row["event"] == "filtered" and scenario.protocol.filters]
    first_drops, counts, dropped = {}, Counter(), Counter()
    for row in reports:
        visit = (*name_of(row), row["node"])
        if row["detail"] == "drop":
            first_drops.setdefault(visit, row["time_us"])
            counts[visit] += 1
    for row in reports:
        visit = (*name_of(row), row["node"])
        if row["detail"] == "replace" and row["time_us"] > first_drops.get(visit, row["time_us"]):
            counts[visit] -= 1
    for (*name, _), count in counts.items():
        dropped[tuple(name)] += max(count, 0)
    keys = set()
    for (message, *carrier), count in dropped.items():
        items = {}
        for item in carried.get(tuple(carrier), []) if message == "data" else []:
            items[item["node"], item["sequence"]] = item
        for (sink, number), subscription in subscribed.items():
            missing = [
                (sink, number, *reading)
                for reading, item in items.items()
                if lasts(subscription, item["time_us"])
                and not is_down(rows, sink, item["time_us"])
                and samples(scenario, subscription[0], item["detail"])
                and (sink, number, *reading) not in arrived
            ]
            keys.update(missing[:count])
    return keys


def information(scenario, rows, key):
    """Return [error mean, error maximum, age mean, age maximum]; errors are those of the attribute ``key``."""
    published = {(row["node"], row["sequence"]): row for row in rows if row["event"] == "published"}
    carried = defaultdict(list)
    for row in rows:
        if row["event"] == "originated" and (row["node"], row["value"]) in published:
            carried[row["origin"], row["sequence"]].append(published[row["node"], row["value"]])
    reports = [row for row in rows if row["event"] == "filtered"]
    errors, ages = [], []
    for (sink, number), subscription in subscriptions(rows).items():
        matching = sorted(
            (
                row
                for row in published.values()
                if samples(scenario, subscription[0], row["detail"]) and lasts(subscription, row["time_us"])
            ),
            key=lambda row: row["time_us"],
        )
        arrivals = {}
        for row in rows:
            is_own = row["event"] == "delivered" and (row["node"], row["value"]) == (sink, number)
            if is_own and carried[row["origin"], row["sequence"]]:
                arrival = (row["time_us"], *name_of(row))
                arrivals[arrival] = [*arrivals.pop(arrival, []), row]  # in the order of the last rows
        groups = groups_of(reports, arrivals, carried)
        times = {row["time_us"] for row in rows} | {round(scenario.duration_s * 1e6)}
        cuts = sorted(time for time in times if time <= scenario.duration_s * 1e6)
        newest_of = {each: max(item["time_us"] for item in carried[each[2:]]) for each in arrivals}
        begin = [row["time_us"] for row in matching[:1]] + [time for time, *_ in arrivals][:1]
        truth, estimate, newest = {}, {}, None
        for time, end in pairwise(cuts):
            for row in matching:
                if row["time_us"] == time and (value := value_of(row["detail"], key)) is not None:
                    truth[row["node"]] = value
            for arrival, delivered in arrivals.items():
                if arrival[0] == time:
                    newest = max(newest or 0, newest_of[arrival])
                    values = [value_of(row["detail"], key) for row in delivered]
                    sources = set().union(*(group for group, messages in groups if arrival in messages))
                    value = values[-1] if not sources or None in values else sum(values) / len(values)
                    if value is not None and not (sources and None in values):
                        estimate.update(dict.fromkeys({arrival[2], *sources}, value))
            if lasts(subscription, time) and not is_down(rows, sink, time):
                if truth and estimate:
                    error = sum(estimate.values()) / len(estimate) - sum(truth.values()) / len(truth)
                    errors.append((end - time, abs(error), abs(error)))
                if begin and time >= min(begin):
                    since = min(begin) if newest is None else newest
                    ages.append((end - time, (time + end) / 2 - since, end - since))
    return [figure for pieces in (errors, ages) for figure in summary(pieces)]


def groups_of(reports, arrivals, carried):
    """Return [(origins, arrivals)] of the filters that merge: the origins of their messages, and what they let pass."""
    groups = []
    for merging in {(row["message"], row["node"], row["value"]) for row in reports}:
        own = [row for row in reports if (row["message"], row["node"], row["value"]) == merging]
        changed = {name_of(row) for row in own if row["detail"] == "replace"}
        dropped = {name_of(row) for row in own if row["detail"] == "drop"}
        origins = {row["origin"] for row in own}
        results = [
            row["detail"] != max(carried[arrival[2:]], key=lambda item: item["time_us"])["detail"]
            for arrival, delivered in arrivals.items()
            if arrival[1:] in changed
            for row in delivered
        ]
        if dropped and any(results):
            passed = {each for each in arrivals if each[2] in origins and each[1:] not in dropped - changed}
            groups.append((origins, passed))
    return groups


def value_of(text, key):
    try:
        return next((value for number, _, value in parse(text) if number == key), None)
    except AttributeFormatError:
        return None


def summary(pieces):
    total = sum(length for length, _, _ in pieces)
    if not total:
        return [NOT_A_NUMBER, NOT_A_NUMBER]
    return [sum(length * mean for length, mean, _ in pieces) / total, max(largest for *_, largest in pieces)]


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
