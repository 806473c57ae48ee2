"""TinyMQ near the capacity of the channel: delivery and frames on a dense synthetic testbed, and with a deaf root.

The testbed: 348 nodes uniform in a corridor of 120 m x 25 m, about 72 neighbors each, 7 hops across. The delivery ratio
of an arc falls with the distance; each link, and each of its directions, differs from the mean. Arcs deliver at least
0.1, in the median 0.66, and one link in twenty works in only one direction. The repository has no measured testbed of
this density.

    benchmarks/tinymq_load.py load              2 to 5 roots, ``acks`` "own" (version 0.1) and "radio", three seeds
    benchmarks/tinymq_load.py deaf              a root that sends but does not receive, for ten minutes
    benchmarks/tinymq_load.py frames            frames by message, losses and drops by reason, of a run with 5 roots

Roots are sinks; 20 sources publish every 10 s from the first minute on, for 10 minutes, to all trees. The radio has
CSMA, collisions and three retries. Each line is a run of the fast engine.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from tables import table

import workbench as wb

NODES, WIDTH_M, HEIGHT_M, REACH_M = 348, 120.0, 25.0, 18.0
LINK_SD, ARC_SD, LEAST_PDR = 0.15, 0.12, 0.1
SINKS, SOURCES, EVERY_S, FIRST_S, LAST_S = 5, 20, 10.0, 60.0, 20.0
RADIO = wb.Radio(loss="links", collisions=True, csma=True, retries=3)
SEEDS = (1, 2, 3)


def dense_network(nodes: int = NODES, width_m: float = WIDTH_M, seed: int = 1) -> nx.DiGraph:
    """Return the testbed as a network. With smaller ``nodes`` and ``width_m`` it is a shorter corridor."""
    rng = np.random.default_rng(seed)
    positions_m = rng.uniform((0, 0), (width_m, HEIGHT_M), (nodes, 2))
    apart_m = np.linalg.norm(positions_m[:, None] - positions_m[None], axis=2)
    link = np.triu(rng.normal(0, LINK_SD, (nodes, nodes)), 1)
    pdr = 1.1 * (1 - (apart_m / REACH_M) ** 2) + link + link.T + rng.normal(0, ARC_SD, (nodes, nodes))
    pdr = np.where(apart_m <= 1.5 * REACH_M, np.clip(pdr, 0, 1), 0)
    np.fill_diagonal(pdr, 0)
    graph = nx.DiGraph()
    graph.add_nodes_from((node, {"pos": tuple(position)}) for node, position in enumerate(positions_m.tolist()))
    ends = zip(*(end.tolist() for end in np.nonzero(pdr >= LEAST_PDR)), strict=True)
    graph.add_edges_from((a, b, {"pdr": round(float(pdr[a, b]), 4)}) for a, b in ends)
    return graph


def loaded_scenario(
    graph: nx.DiGraph, roots: int, seed: int, duration_s: float = 600.0, **settings: Any
) -> wb.Scenario:
    """Return a scenario with ``roots`` roots; ``settings`` are further settings of TinyMQ.

    A seed selects the same sinks and sources for any number of roots.
    """
    rng = np.random.default_rng(1000 + seed)
    nodes = rng.permutation(len(graph)).tolist()
    first_s = min(FIRST_S, duration_s / 4)
    work = [wb.subscribe(sink, "TEMP GE 20", start_s=1 + 0.7 * k) for k, sink in enumerate(nodes[:SINKS])]
    for k, source in enumerate(nodes[SINKS : SINKS + SOURCES]):
        start_s = first_s + rng.uniform(0, EVERY_S)
        stop_s = duration_s - LAST_S
        work.append(wb.publish(source, f"TEMP IS {21 + k}", start_s=start_s, stop_s=stop_s, every_s=EVERY_S))
    return wb.Scenario(graph, wb.TinyMQ(roots=nodes[:roots], **settings), work, RADIO, duration_s=duration_s, seed=seed)


def deaf_scenario(duration_s: float = 600.0, **settings: Any) -> wb.Scenario:
    """Return a scenario whose only root sends but receives nothing, because it has no incoming arc.

    ``settings`` are further settings of TinyMQ.
    """
    graph = dense_network()
    root = min(
        graph,
        key=lambda node: sum((at - middle) ** 2 for at, middle in zip(graph.nodes[node]["pos"], (60, 12), strict=True)),
    )
    graph.remove_edges_from(list(graph.in_edges(root)))
    return wb.Scenario(graph, wb.TinyMQ(roots=[root], **settings), [], RADIO, duration_s=duration_s, seed=1)


def _report_load() -> Iterator[str]:
    rows, graph = [], dense_network()
    for acks in ("own", "radio"):
        for roots in (2, 3, 4, 5):
            for seed in SEEDS:
                began_s = time.perf_counter()
                measured = loaded_scenario(graph, roots, seed, acks=acks).run("fast", "metrics").metrics
                row = [acks, f"{roots}", f"{seed}", f"{measured['delivery_ratio']:.3f}"]
                row += [f"{measured[name]:,.0f}" for name in ("transmissions", "sent_join")]
                row += [f"{measured[name]:,.0f}" for name in ("latency_ms_p50", "latency_ms_p95")]
                rows.append(row)
                print(*row, f"{time.perf_counter() - began_s:.0f} s", file=sys.stderr, flush=True)
    yield table(["acks", "roots", "seed", "delivery", "frames", "joins", "p50 ms", "p95 ms"], rows)


def _report_deaf() -> Iterator[str]:
    rows = []
    for acks in ("own", "radio"):
        measured = deaf_scenario(acks=acks).run("fast", "metrics").metrics
        rows.append([acks, f"{measured['transmissions']:,.0f}", f"{measured['sent_join']:,.0f}"])
    yield table(["acks", "frames", "joins"], rows)


def _report_frames() -> Iterator[str]:
    graph = dense_network(203, 70.0)
    for acks in ("own", "radio"):
        trace = loaded_scenario(graph, 5, 1, 160.0, acks=acks).run("fast").trace.to_pandas()
        some = trace[trace.event.isin(["sent", "given_up", "dropped", "forwarded"])]
        counts = some.groupby(["event", "message", "detail"], observed=True).size()
        yield f"acks={acks}\n{counts.to_string()}\n"


if __name__ == "__main__":
    for piece in {"load": _report_load, "deaf": _report_deaf, "frames": _report_frames}[
        (sys.argv[1:] or ["load"])[0]
    ]():
        print(piece, flush=True)
