"""TinyMQ on the fast engine: the paper's evaluation in one run, and its cost with more nodes and more trees.

1500 nodes are uniform in a field of 500 m x 200 m; larger fields have the same density and shape. The radio range is
20 m. 100 queries are sent after 20 s; the widths of their intervals are Zipf numbers times the width of a string's
cell. Events are published 20 times a second after 40 s; nodes near a root could not send ten times as many. The radio
loses nothing. So one info a minute is enough (``info_s=60``), queries are sent once (``refresh_s=0``), and with
``retries=0`` nothing is acknowledged; a row shows the cost of acknowledgements.

A separate process plays each row, from arrays. The machine code is loaded before the measurement. Times are process
times of one run and of counting its frames and deliveries; the delivery ratio, which needs a graph, is not computed.
The reference engine plays the scenario of the smallest row. ``benchmarks/tinymq_scale.py`` prints the table of the
evaluation in some minutes, most of them for the reference engine; it is not a part of ``run.py``.

``benchmarks/tinymq_scale.py scale`` measures the cost by nodes and trees, with 200 events. It writes the numbers to
notebooks/papers/tinymq_scale.csv, for the paper's notebook, and to RESULTS-tinymq.md. Nearly all of the time is spent
in building the overlay: a node that learns of a shorter distance to a root announces it to all neighbors.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from machine import machine
from peak_memory import peak_MB
from tables import ratio, table

RADIUS_M = 20
QUERIES = 100
PER_S = 20
FULL = {"nodes": 1500, "trees": 10, "events": 10_000, "publish": "all", "retries": 0}
SMALL = {"nodes": 1500, "trees": 3, "events": 200, "publish": "all", "retries": 0}
RUNS = (
    FULL,
    {**FULL, "retries": 10},
    {**FULL, "publish": "own"},
    {**FULL, "trees": 1},
    {**FULL, "trees": 3},
    SMALL,
    {**SMALL, "engine": "reference"},
)
SIZES, TREES = (1500, 5000, 20_000, 100_000), (1, 3, 10)
SCALE = tuple({**FULL, "events": 200, "nodes": nodes, "trees": trees} for nodes in SIZES for trees in TREES)
CSV = Path(__file__).parents[1] / "notebooks" / "papers" / "tinymq_scale.csv"
RESULTS = Path(__file__).with_name("RESULTS-tinymq.md")


def make_field(nodes: int):
    """Return (positions_m (n, 2), arcs (m, 2)) of a field of nodes with the paper's density."""
    import numpy as np

    scale = (nodes / 1500) ** 0.5
    positions_m = np.random.default_rng(1).uniform((0, 0), (500 * scale, 200 * scale), (nodes, 2))
    cells = (positions_m // RADIUS_M).astype(np.int64)
    width = int(cells[:, 1].max()) + 2
    cell = cells[:, 0] * width + cells[:, 1]
    order = np.argsort(cell, kind="stable")
    sorted_cell = cell[order]
    near = []
    # Each cell is paired with itself and the four neighbors on one side; the other four pair with it.
    for dx, dy in ((0, 0), (0, 1), (1, -1), (1, 0), (1, 1)):
        other = cell + dx * width + dy
        low, high = np.searchsorted(sorted_cell, other, "left"), np.searchsorted(sorted_cell, other, "right")
        node = np.repeat(np.arange(nodes), high - low)
        index = np.arange(len(node)) - np.repeat(np.cumsum(high - low) - (high - low), high - low) + low[node]
        pairs = np.stack([node, order[index]], axis=1)
        if (dx, dy) == (0, 0):
            pairs = pairs[pairs[:, 0] < pairs[:, 1]]
        apart_m = np.linalg.norm(positions_m[pairs[:, 0]] - positions_m[pairs[:, 1]], axis=1)
        near.append(pairs[apart_m <= RADIUS_M])
    one_way = np.concatenate(near)
    return positions_m, np.concatenate([one_way, one_way[:, ::-1]])


def workload(nodes: int, events: int):
    """Return the workload: 100 subscriptions, and ``events`` publications from random nodes."""
    import numpy as np

    from workbench import publish, subscribe

    rng = np.random.default_rng(2)
    widths = np.minimum(rng.zipf(2, QUERIES) * 100 / 256, 100)
    items = []
    for width in widths.tolist():
        low = rng.uniform(0, 100 - width)
        interval = f"TEMP GE {low:.2f}, TEMP LE {low + width:.2f}"
        items.append(subscribe(int(rng.integers(nodes)), interval, start_s=20))
    for k in range(events):
        value = f"TEMP IS {rng.uniform(0, 100):.2f}"
        items.append(publish(int(rng.integers(nodes)), value, start_s=40 + k / PER_S))
    return items


def protocol(nodes: int, trees: int, publish: str, retries: int):
    """Return TinyMQ with ``trees`` random roots among ``nodes`` nodes; ``publish`` and ``retries`` are its settings."""
    import numpy as np

    from workbench import TinyMQ

    roots = np.random.default_rng(3).choice(nodes, trees, replace=False).tolist()
    options = {"publish": publish, "retries": retries, "info_s": 60.0, "refresh_s": 0.0}
    return TinyMQ(roots=roots, dimensions=("TEMP 0 100",), **options)


def play(nodes: int, trees: int, events: int, publish: str, retries: int, engine: str = "fast") -> dict:
    """Play one run with this number of nodes, trees and events; return its numbers.

    The numbers are process seconds, frames sent and heard, samples delivered, and peak memory in MB. ``publish`` and
    ``retries`` are settings of TinyMQ.
    """
    import numpy as np

    from workbench.sim import fast
    from workbench.sim.fast import network

    positions_m, arcs = make_field(nodes)
    items, settings = workload(nodes, events), protocol(nodes, trees, publish, retries)
    duration_s = 45 + events / PER_S
    if engine == "fast":
        arrays = network.from_arrays(np.arange(nodes), positions_m, arcs, np.ones(1))
        tiny = network.from_arrays(np.arange(2), np.zeros((2, 2)), np.array([(0, 1), (1, 0)]), np.ones(1))
        fast.play(tiny, protocol(2, 1, publish, retries), workload(2, 1), duration_s=1)  # Load the twin first.
        began_s = time.process_time()
        outcome = fast.play(arrays, settings, items, duration_s=duration_s)
    else:
        import networkx as nx

        from workbench import Scenario

        graph = nx.DiGraph()
        graph.add_nodes_from((node, {"pos": tuple(position)}) for node, position in enumerate(positions_m.tolist()))
        graph.add_edges_from(arcs.tolist())
        scenario = Scenario(graph, settings, items, duration_s=duration_s)
        began_s = time.process_time()
        outcome = scenario.run(engine, "metrics")._recorder
    counts, _ = outcome.tally()
    event_names = outcome.table().column("event").to_pylist()
    seconds = time.process_time() - began_s
    sent = sum(number for (event, _, _), number in counts.items() if event == "sent")
    heard = sum(number for (event, _, _), number in counts.items() if event == "received")
    delivered = event_names.count("delivered")
    return {"seconds": seconds, "sent": sent, "heard": heard, "delivered": delivered, "MB": peak_MB()}


def play_in_process(options: dict) -> dict:
    """Run `play` with these arguments in a separate process, and return its numbers."""
    command = [sys.executable, __file__, json.dumps(options)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def measure_scale() -> Iterator[str]:
    """Measure the cost by nodes and trees: yield a line for each run, then the table; write both files."""
    lines, rows = ["nodes,trees,seconds,sent,heard,MB"], []
    for options in SCALE:
        numbers = play_in_process(options)
        nodes, trees, seconds, sent, heard = (
            options["nodes"],
            options["trees"],
            numbers["seconds"],
            numbers["sent"],
            numbers["heard"],
        )
        lines.append(f"{nodes},{trees},{seconds:.2f},{sent},{heard},{numbers['MB']:.0f}")
        yield lines[-1]
        cells = [f"{nodes:,}", f"{trees}", f"{seconds:.2f}", f"{sent:,}", f"{heard:,}"]
        rows.append([*cells, ratio(seconds / sent * 1e6), ratio(seconds / heard * 1e6), f"{numbers['MB']:,.0f}"])
    header = ["nodes", "trees", "s", "sent", "heard", "µs a frame", "µs a reception", "MB at most"]
    text = f"# TinyMQ: cost against nodes and trees\n\n{machine()}\n\n{NOTES}\n{table(header, rows)}\n"
    CSV.write_text("\n".join(lines) + "\n")
    RESULTS.write_text(text)
    yield text


NOTES = """\
Measured by ``benchmarks/tinymq_scale.py scale``: the fast engine, 100 queries and 200 events sent to all trees,
acknowledgements off, on a channel that loses nothing; process time of one run each, machine code loaded beforehand.
"""


def report() -> Iterator[str]:
    """Yield the table of the paper's evaluation in pieces of Markdown."""
    rows = []
    for options in RUNS:
        numbers = play_in_process(options)
        rows.append(
            [
                options.get("engine", "fast"),
                f"{options['nodes']:,}",
                f"{options['trees']}",
                f"{options['events']:,}",
                options["publish"],
                f"{options['retries']}",
                f"{numbers['sent']:,}",
                f"{numbers['heard']:,}",
                f"{numbers['delivered']:,}",
                f"{numbers['seconds']:.2f}",
                ratio(numbers["seconds"] / numbers["sent"] * 1e6),
                f"{numbers['MB']:,.0f}",
            ]
        )
    header = ["engine", "nodes", "trees", "events", "publish", "retries", "sent", "heard", "delivered"]
    header += ["s", "µs a frame", "MB at most"]
    yield table(header, rows) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["scale"]:
        for piece in measure_scale():
            print(piece, flush=True)
    elif len(sys.argv) > 1:
        print(json.dumps(play(**json.loads(sys.argv[1]))))
    else:
        print(*report(), sep="\n")
