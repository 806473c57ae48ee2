"""Random networks in which readings are lost for every reason that the simulator has.

A network is a function of its seed and its protocol. Links lose frames, work in only one direction or are missing, so
that parts are disconnected. Channels are saturated. Nodes fail, reboot, or are off from the beginning. Filters drop and
change readings, memories are too small, gossip forwards with a probability below 1. Subscriptions begin late, end
early, match nothing, or are missing from the workload.
"""

import random
from typing import Any, NamedTuple

import networkx as nx

import workbench as wb

PROTOCOLS = ("Flooding", "Gossip", "Diffusion", "CodedDiffusion", "TinyMQ", "Pub2Sub", "DPS")
SMALLEST, LARGEST = 3, 14  # nodes
DURATION_S = 150.0
LAST_S = 135.0  # the end of most publications; some last until the end of the run
CHANGES = ("none", "none", "outage", "outages", "reboot", "death", "late")
LINKS = ("ideal", "ideal", "lossy", "lossy", "poor", "one-way")
RADIOS = ("plain", "plain", "retries", "802.15.4", "saturated")
FILTERS = ("rate_limit", "suppress_unchanged", "threshold_alarm", "running_mean", "neighborhood_average")


class Network(NamedTuple):
    """A random network: its scenario, the traits that were drawn for it, and ``reboots``.

    ``reboots`` has the nodes that lose their memory in an outage.
    """

    seed: int
    protocol: str
    scenario: wb.Scenario
    reboots: frozenset[int]
    traits: tuple[str, ...]

    def __str__(self) -> str:
        return f"--seed {self.seed} --protocol {self.protocol}: {', '.join(self.traits)}"


def draw(seed: int, protocol: str | None = None) -> Network:
    """Return the network of a seed, with this protocol; None: a protocol that the seed selects."""
    name = protocol or PROTOCOLS[seed % len(PROTOCOLS)]
    choose = random.Random(f"{name} {seed}")
    links, radio, change = choose.choice(LINKS), choose.choice(RADIOS), choose.choice(CHANGES)
    graph = _graph(choose, links)
    nodes = sorted(graph)
    sinks = choose.choices(nodes, k=choose.choice((0, 1, 1, 1, 2, 2, 3, 5)))
    others = [node for node in nodes if node not in sinks] or nodes
    sources = choose.sample(others, min(len(others), choose.randint(1, 4)))
    settings = _settings(choose, name, nodes)
    items = [*_subscriptions(choose, name, sinks), *_publications(choose, sources)]
    outages, rebooted = _outages(choose, change, nodes, sinks)
    scenario = wb.Scenario(
        graph,
        getattr(wb, name)(**settings),
        [*items, *outages],
        _radio(choose, radio, links),
        duration_s=DURATION_S,
        seed=seed,
    )
    traits = (links, radio, change, f"{len(nodes)} nodes", repr(scenario.protocol))
    return Network(seed, name, scenario, rebooted, traits)


def _graph(choose: random.Random, links: str) -> nx.DiGraph:
    """Return a random tree with some additional links, as a network with arcs.

    Sometimes links are missing, so that it has several parts. ``links`` is the kind of links: arcs of "lossy" and
    "poor" links lose frames, and of "one-way" links an arc may be missing.
    """
    count = choose.randint(SMALLEST, LARGEST)
    names, reach = choose.sample(range(count), count), choose.choice((1, 3, count))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    pairs = [(names[number], names[choose.randint(max(0, number - reach), number - 1)]) for number in range(1, count)]
    pairs += [tuple(choose.sample(range(count), 2)) for _ in range(choose.randint(0, count))]
    if choose.random() < 0.25:  # in parts
        pairs = [pair for pair in pairs if choose.random() < 0.75]
    for a, b in pairs:
        for arc in ((a, b), (b, a)):
            if links == "one-way" and choose.random() < 0.1:
                continue
            lowest = {"lossy": 0.5, "poor": 0.1}.get(links, 1.0)
            graph.add_edge(*arc, pdr=choose.uniform(lowest, 1.0))
    return graph


def _radio(choose: random.Random, kind: str, links: str) -> wb.Radio:
    loss = "none" if links in ("ideal", "one-way") else "links"
    if kind == "plain":
        return wb.Radio(loss=loss)
    if kind == "retries":
        return wb.Radio(loss=loss, retries=choose.choice((1, 3)))
    if kind == "802.15.4":
        return wb.Radio(loss=loss, retries=3, collisions=True, csma=True)
    # At this rate a frame of 50 bytes takes a tenth of a second or more.
    return wb.Radio(
        loss=loss,
        retries=choose.choice((0, 3)),
        collisions=choose.random() < 0.7,
        csma=choose.random() < 0.7,
        bit_rate_bps=choose.choice((1000, 2000, 5000)),
    )


def _settings(choose: random.Random, name: str, nodes: list[int]) -> dict[str, Any]:
    roots = tuple(choose.sample(nodes, choose.randint(1, min(3, len(nodes)))))
    if name == "Flooding":
        # Nodes that forget events forward them again and again, so these events have few hops to live.
        ttl, max_events = choose.choice(((2, 1000), (4, 1000), (3, 1), (4, 2), (50, 1000), (50, 1000)))
        return {"ttl": ttl, "max_events": max_events}
    if name == "Gossip":
        return {
            "forwarding_probability": choose.choice((0.3, 0.6, 0.8, 1.0)),
            "pieces": choose.choice((1, 1, 2, 3)),
            "ttl": choose.choice((3, 50, 50)),
            "max_partial": choose.choice((1, 50)),
        }
    if name == "CodedDiffusion":
        return {
            "forwarding_probability": choose.choice((0.4, 0.8, 1.0)),
            "max_requests": choose.choice((0, 1, 3)),
            "max_events": choose.choice((1, 3, 50)),
            "max_known": choose.choice((2, 1000, 1000)),
        }
    if name in ("TinyMQ", "Pub2Sub"):
        return {
            "roots": roots,
            "publish": choose.choice(("all", "own")),
            "retries": choose.choice((0, 2, 10, 10)),
            "max_queries": choose.choice((5, 500)),
            "max_waiting": choose.choice((1, 50)),
            "max_known": choose.choice((20, 1000)),
            "max_hops": choose.choice((3, 1000, 1000)),
            "refresh_s": choose.choice((0.0, 30.0)),
            "key_bits": choose.choice((4, 8)),
        }
    if name == "DPS":
        return {
            "ttl_s": choose.choice((0, 0, 20)),
            "max_history": choose.choice((2, 5000, 5000)),
            "max_retained": choose.choice((1, 1000)),
            "max_links": choose.choice((2, 256, 256)),
            "recheck_s": choose.choice((0.0, 60.0)),
            "retries": choose.choice((0, 3)),
            "filter_bits": choose.choice((64, 16384)),
        }
    return {
        "max_interests": choose.choice((2, 3, 10, 10)),
        "max_gradients": choose.choice((1, 2, 10, 10)),
        "max_data": choose.choice((1, 3, 20)),
        "ttl": choose.choice((2, 4, 50, 50)),
        "refresh_s": choose.choice((0, 10.0, 30.0)),
        "sample_lifetime_s": choose.choice((2.0, 60.0)),
        "exploratory_gradients": choose.choice((1, 1, 2)),
        "blacklist_loss": choose.choice((0.5, 0.75, 1.0)),
        "filters": tuple(_filters(choose, nodes)),
    }


def _filters(choose: random.Random, nodes: list[int]) -> list[wb.Filter]:
    if choose.random() < 0.5:
        return []
    return [
        wb.Filter(
            choose.choice(FILTERS),
            key=200 + number,
            at=choose.choice(("all", choose.sample(nodes, choose.randint(1, len(nodes))))),
            messages="data",
        )
        for number in range(choose.randint(1, 2))
    ]


def _subscriptions(choose: random.Random, name: str, sinks: list[int]) -> list[Any]:
    items = []
    for sink in sorted(set(sinks)):
        for _ in range(choose.choice((1, 1, 2)) if name == "Diffusion" else 1):
            start_s = choose.choice((choose.uniform(0.5, 5.0), choose.uniform(0.5, 5.0), choose.uniform(5.0, 60.0)))
            ends: dict[str, float] = {}
            if choose.random() < 0.3:
                ends = {choose.choice(("stop_s", "expires_s")): choose.uniform(60.0, 120.0)}
            items.append(wb.subscribe(sink, f"TEMP GE {choose.randint(0, 30)}", start_s=start_s, **ends))
    return items


def _publications(choose: random.Random, sources: list[int]) -> list[Any]:
    busy = choose.choice((4.0, 12.0, 12.0, 30.0))
    items: list[Any] = [
        wb.publish(
            source,
            f"TEMP IS {choose.randint(10, 45)}",
            start_s=choose.uniform(0.0, 30.0),
            stop_s=choose.choice((LAST_S, DURATION_S)),
            every_s=busy * choose.uniform(0.7, 1.3),
        )
        for source in sources
    ]
    items += [
        wb.publish(choose.choice(sources), f"TEMP IS {10 + number % 35}", start_s=70.0)
        for number in range(choose.choice((0, 0, 1, 10, 30)))
    ]
    return items


def _outages(
    choose: random.Random, change: str, nodes: list[int], sinks: list[int]
) -> tuple[list[Any], frozenset[int]]:
    if change == "none":
        return [], frozenset()
    if change == "outages":
        items = [
            wb.outage(node, start_s=(start_s := choose.uniform(5.0, 120.0)), stop_s=start_s + choose.uniform(1.0, 30.0))
            for node in choose.choices(nodes, k=choose.randint(2, 8))
        ]
        return items, frozenset()
    failing = choose.sample(nodes, choose.randint(1, max(1, len(nodes) // 4)))
    if change == "reboot":
        # A sink without its memory has lost its subscription, which no row shows.
        failing = [node for node in failing if node not in sinks]
    items = []
    for node in failing:
        start_s = 0.0 if change == "late" else choose.uniform(10.0, 80.0)
        stop_s = None if change == "death" else start_s + choose.uniform(5.0, 50.0)
        items.append(wb.outage(node, start_s=round(start_s, 3), stop_s=stop_s and round(stop_s, 3)))
    return items, frozenset(failing if change == "reboot" else ())
