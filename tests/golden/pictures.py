"""The output of the views for some small runs, as texts: groups of (name, text), computed at every call.

A group is a function without arguments; `GROUPS` maps names to groups. Each golden scenario has a group. Other groups
hold views of sweeps, algebra and messages. Each text has the name of its view, so that a difference shows its origin.
Only public names are used, because modules behind them may move.
"""

import base64
import gzip
import json
import re
import tempfile
from collections import Counter
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

import workbench as wb
from figures import beside as beside_figures
from figures import facts, false_positives, trends
from figures import messages as message_figures
from figures import processes as process_figures
from lessons.figures import chances, decoding, mapping, pollution, publications, repair, topics, zones
from tests.golden import renew
from tests.images import with_svgs
from tests.records import made
from workbench import views
from workbench.protocols.coded_diffusion import views as coded_views
from workbench.protocols.dps import views as mesh_views
from workbench.protocols.dps.views import filters as filter_figures
from workbench.protocols.tinymq import views as overlay_views
from workbench.protocols.tinymq.metrics import load_metrics
from workbench.protocols.tinymq.views import stills

SILENT = {"runner": wb.LocalRunner(), "progress": False}
# Views without a text of their own, and where their content is compared.
LEFT_OUT = {
    "show": "shows what see does",
    "show_live": "needs motes that run",
    "PlayerView": "shows what see does",
    "load_map": "tests/views/test_loads.py looks at what it draws",
    "latency_chart": "tests/views/test_loads.py looks at what it draws",
    "filter_bits": "a table of the bits that filter_drawing draws",
    "filter_drawing": "tests/protocols/dps/test_views.py looks at what it draws",
    "windows_chart": "tests/pipelines/test_live_windows.py looks at what it draws",
}
# Beginnings of the names of texts that depend on the version of Bokeh.
OF_BOKEH = ("save_html",)

_ID = re.compile(
    r"\bp\d{4,}\b|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\bw[0-9a-f]+x[0-9a-f]+x[0-9a-f]{6}\b"
)
_SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]*")


# Views as texts


def text_of(thing):
    """Return a view as text: a drawing as SVG, a table as lines, a Bokeh figure as its document without ids."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, (pd.DataFrame, pd.Series)):
        return _table(thing)
    if hasattr(thing, "to_svg"):
        return made.without(thing.to_svg())
    if hasattr(thing, "drawings"):
        pages = [
            f"{name}\n{made.without(drawing.to_svg())}"
            for name, drawing in zip(thing.names, thing.drawings, strict=True)
        ]
        return "\n".join(pages)
    if hasattr(thing, "references"):  # a model of Bokeh
        return _document(thing)
    if hasattr(thing, "_repr_html_"):
        return thing._repr_html_()
    return json.dumps(_plain(thing), indent=1, ensure_ascii=False, default=str)


def elements(text):
    """Count the elements of a text by kind: tags of SVG and HTML, or models of a Bokeh document; otherwise lines."""
    if text.startswith("{"):
        kinds = re.findall(r'"type": "object", "name": "([\w.]+)"', text)
    else:
        kinds = re.findall(r"<([A-Za-z]\w*)", text)
    return dict(sorted(Counter(kinds).items())) or {"lines": text.count("\n") + 1}


def _table(table):
    frame = table.to_frame() if isinstance(table, pd.Series) else table
    rows = [list(map(str, ["", *frame.columns]))]
    rows += [[str(index), *map(_cell, row)] for index, row in zip(frame.index, frame.to_numpy(object), strict=True)]
    return "\n".join(" | ".join(row) for row in rows)


def _cell(value):
    # Nine digits: the order of a sum may change the digits after them.
    return f"{value:.9g}" if isinstance(value, (float, np.floating)) else str(value)


def _document(figure):
    """Return a figure's document, with arrays written out, and ids numbered in the order of their appearance."""
    from bokeh.document import Document
    from bokeh.embed.util import standalone_docs_json

    Document().add_root(figure)
    (document,) = standalone_docs_json([figure]).values()
    plain = _plain(document)
    del plain["version"]
    return _without_ids(json.dumps(plain, ensure_ascii=False))


def _plain(value):
    """Return a JSON value with numbers rounded to nine digits, and with lists in place of Bokeh's encoded arrays."""
    if isinstance(value, dict):
        if value.get("type") == "ndarray":
            data = base64.b64decode(value["array"]["data"])
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            return _plain(np.frombuffer(data, value["dtype"]).tolist())
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.9g}")
    return value.item() if isinstance(value, np.generic) else value


def _without_ids(text):
    seen = {}
    return _ID.sub(lambda match: f"id{seen.setdefault(match[0], len(seen))}", text)


def _page(path):
    """Return a page without scripts, bitmap images and ids; figures are compared as documents."""
    text = _SCRIPT.sub("<script></script>", made.without(path.read_text(encoding="utf-8")))
    return _without_ids(_PNG.sub("", text).replace(f"workbench {wb.__version__}", "workbench"))


# Runs


@cache
def golden(name):
    """Return a golden scenario's run."""
    return renew.scenario(name).run(engine="reference")


def of_any_run(run):
    """Yield the views that every run has: the network, some nodes and the metrics."""
    end_s = run.scenario.duration_s
    nodes = sorted(run.scenario.topology)
    for time_s in (0.4 * end_s, end_s):
        yield f"network_drawing at {time_s:g} s", views.network_drawing(run, time_s)
        for node in (nodes[0], nodes[len(nodes) // 2]):
            yield f"inspect_node {node} at {time_s:g} s", views.inspect_node(run, node, time_s)
    shown = views.bundle(run)
    yield "bundle, text", shown["text/plain"]
    yield "bundle, page", _PNG.sub("", shown["text/html"])
    yield "metrics", run.metrics


def seen_of(run, event=None):
    """Yield the player's layers: the rows of each as text, with curves and paths."""
    seen = views.see(run, event)
    for layer in seen.layers:
        summary = [layer.name, layer.mark, len(layer), [look.label for look in layer.looks], layer.is_on]
        yield f"see, {layer.name} {layer.mark}".strip(), {"layer": summary, "notes": layer.notes, **_rows(layer)}
    for curves in seen.curves:
        yield (
            f"see, {curves.name}",
            {line.label: [line.times_us.tolist(), line.values.tolist()] for line in curves.lines},
        )
    yield "see, ways", [[path.label, path.from_us, path.description] for path in seen.paths.paths]
    yield "see, notes", list(seen.notes)


def _rows(layer):
    # The recorded digests have the column ``path`` under its former name.
    columns = {
        "way" if name == "path" else name: np.round(column.astype(float), 6).tolist()
        for name, column in layer.table.items()
        if name != "text"
    }
    texts = layer.column("text").tolist()
    return columns | {"words": [layer.words[text] if 0 <= text < len(layer.words) else "" for text in texts]}


def page_of(run):
    """Yield the page that is exported from a run, without its scripts."""
    with tempfile.TemporaryDirectory() as folder:
        yield "save_html", _page(views.save_html(run, Path(folder) / "run.html"))


def of_coded_run(run):
    """Yield the views of how events spread as generations."""
    nodes = sorted(run.scenario.topology)
    yield "decoding_maps", coded_views.decoding_maps(run)
    yield "decoding_maps of some times", coded_views.decoding_maps(run, times_s=[1.0, 2.0], columns=2)
    yield "decoding_matrices", decoding.decoding_matrices(run, [nodes[1], nodes[-1]])
    yield "pollution_chart", pollution.pollution_chart({"without a hostile node": [run]}, nodes[0])


def of_overlay(run):
    """Yield the views of trees, zones, routes and load."""
    end_s = run.scenario.duration_s
    for time_s in (0.6 * end_s, end_s):
        yield f"overlay_drawing at {time_s:g} s", stills.overlay_drawing(run, time_s)
        yield f"zones_drawing at {time_s:g} s", zones.zones_drawing(run, time_s)
        if len(run.scenario.protocol.dimensions) == 2:
            yield f"plane_drawing at {time_s:g} s", zones.plane_drawing(run, time_s)
    yield "overlay_drawing of a tree", stills.overlay_drawing(run, keys=True, tree=1)
    yield "overlay_slides", overlay_views.overlay_slides(run, [2, end_s])
    seen = overlay_views.overlay_of(run)
    yield "overlay_of, places", [str(place) for place in seen.places]
    rows = run.trace.to_pandas()
    originated = rows[rows["event"] == "originated"].iloc[len(rows[rows["event"] == "originated"]) // 2]
    stored = rows[rows["event"] == "query_stored"].iloc[0]
    for kind, row in (("query", stored), ("event", originated)):
        message = (kind, int(row.origin), int(row.sequence))
        path = overlay_views.route(run, message)
        yield f"route of {kind}, in words", path.in_words(kind)
        yield f"route_drawing of {kind}", overlay_views.route_drawing(run, message)
        yield f"route_drawing of {kind}, its begin", overlay_views.route_drawing(run, message, until_s=0.7 * end_s)
    yield "route_slides", overlay_views.route_slides(run, message)
    yield "repair_chart", repair.repair_chart(run)
    yield "repair_chart of a part", repair.repair_chart(run, 0.2 * end_s, 0.9 * end_s)


def of_mesh(run):
    """Yield the views of filters, links and paths of publications."""
    end_s = run.scenario.duration_s
    for time_s in (0.4 * end_s, end_s):
        yield f"filters_drawing at {time_s:g} s", filter_figures.filters_drawing(run, time_s)
        links = mesh_views.mesh_of(run).links_at(int(time_s * 1e6))
        yield f"mesh_of, links at {time_s:g} s", {str(ends): state for ends, state in sorted(links.items())}
    yield "filters_slides", mesh_views.filters_slides(run, [5, end_s])
    yield "fill_chart", mesh_views.fill_chart(run)
    publication_list = mesh_views.publications(run.trace)
    yield "publications", [str(publication) for publication in publication_list]
    for number in (0, len(publication_list) // 2):
        yield f"publication_path {number}, in words", mesh_views.publication_path(run, number).in_words()
        yield f"publication_drawing {number}", publications.publication_drawing(run, number)
    shortest = min(range(len(publication_list)), key=lambda number: len(mesh_views.publication_path(run, number).hops))
    yield "publication_slides", publications.publication_slides(run, shortest)


def of_golden(name):
    """Yield the views of a golden scenario's run."""
    run = golden(name)
    yield from of_any_run(run)
    yield from seen_of(run)
    if name == "diffusion-lossy":
        yield from page_of(run)
        yield from ((f"{view}, one event", text) for view, text in seen_of(run, (6, 0)))
    if name == "coded-diffusion-grid":
        yield from of_coded_run(run)
    if name.startswith(("tinymq", "pub2sub")):
        yield from of_overlay(run)
    if name.startswith("dps"):
        yield from of_mesh(run)


# Views of several runs, or without a run


def beside():
    """Yield the views that compare several runs."""
    names = ("coded-diffusion-grid", "gossip-pieces-disc", "gossip-disc")
    yield "coverage_chart", coded_views.coverage_chart({name: golden(name) for name in names})
    asked = wb.subscribe(8, "TEMP EQ 26", start_s=2)
    published = wb.publish(0, "TEMP IS 26", start_s=8, every_s=2)
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.DPS(), [asked, published], wb.Radio(loss=0.1), 14, seed=4)
    protocols = {"DPS": wb.DPS(), "Flooding": wb.Flooding(), "Diffusion": wb.Diffusion(), "TinyMQ": wb.TinyMQ()}
    runs = {name: scenario.replace(protocol=protocol).run(engine="reference") for name, protocol in protocols.items()}
    yield "coverage_chart with a band", coded_views.coverage_chart({"two": [runs["Flooding"], runs["Diffusion"]]})
    table = beside_figures.beside_table(runs)
    yield "beside_table", table
    yield "beside_chart", beside_figures.beside_chart(table)


def coding():
    """Yield the views of decoding, packet by packet."""
    packets = {"P1": ([1, 2, 3], [6]), "P2": ([3, 2, 4], [9]), "P3": ([4, 4, 7], [15]), "P4": ([0, 1, 5], [7])}
    for order in (257, 256):
        steps = decoding.decoding_steps(3, order, packets)
        for step in steps:
            yield f"decoding_steps in GF({order}), {step.name}", step.drawing()
            yield f"decoding_steps in GF({order}), {step.name}, verdict", step.verdict()
        yield f"step_through in GF({order})", decoding.step_through(steps)
    yield "completion_chart", chances.completion_chart(4, [2, 256], trials=60)
    yield "completion_table", chances.completion_table(4, [2, 256], trials=60)
    yield "completion_probability", [chances.completion_probability(2, 4, packets) for packets in range(4, 9)]
    yield "innovation_probability", [chances.innovation_probability(16, 4, rank) for rank in range(4)]


def savings():
    """Yield the views of a sweep of the savings by coding."""
    scenario = wb.Scenario(
        wb.topology.grid(3, 3),
        workload=[wb.subscribe("all", "TEMP GE 20"), wb.publish([0, 5], "TEMP IS 26", 1.5, payload=bytes(60))],
        protocol=wb.Gossip(),
        radio=wb.Radio(loss=0.1),
        duration_s=4,
    )
    over = {
        "protocol": {"gossip": wb.Gossip(), "coded": wb.CodedDiffusion(generation_size=3, forwarding_factor=0.5)},
        "protocol.forwarding_probability": [0.6, 0.8, 1.0],
        "seed": [1, 2, 3],
    }
    table = wb.Sweep(scenario, over, engine="reference").run(**SILENT)
    # A point's key contains the digest of the code that it runs.
    yield "the sweep", table.to_pandas().drop(columns=["wall_s", "point"])
    yield "chart of the sweep", table.plot("protocol.forwarding_probability", "coverage", "protocol")
    yield "equal_parameter_savings", views.equal_parameter_savings(table, "gossip")
    yield "equal_coverage_savings", views.equal_coverage_savings(table, "gossip", coverage=0.8)
    yield "sweep_chart", views.sweep_chart(table, "bytes_sent", title="Bytes")
    yield "sweep_chart of a share", views.sweep_chart(table, "coverage")
    yield "cost_chart", views.cost_chart(table, title="Cost")


def trees():
    """Yield the views of a sweep over numbers of overlay trees, and of TinyMQ's mapping of values."""
    scenario = wb.Scenario(
        wb.topology.grid(4, 4),
        wb.TinyMQ(),
        [
            wb.subscribe([2, 7], "TEMP GE 20, TEMP LE 30", start_s=8),
            wb.publish([9, 12], "TEMP IS 25", start_s=20, every_s=4, stagger=True),
        ],
        wb.Radio(loss="none"),
        duration_s=32,
    )
    options = {"dimensions": ("TEMP 0 50",), "key_bits": 5}
    over = {
        "topology": {"a": wb.topology.grid(4, 4), "b": wb.topology.grid(2, 8), "c": wb.topology.line(16)},
        "protocol": {
            "TinyMQ": wb.TinyMQ(**options),
            "PUB-2-SUB+": wb.Pub2Sub(**options),
            "printed": wb.TinyMQ(literal=True, **options),
        },
        "protocol.roots": {"1": (0,), "2": (0, 15), "3": (0, 15, 6)},
    }
    table = wb.Sweep(scenario, over, engine="reference", measure=load_metrics).run(**SILENT)
    yield "the sweep", table.to_pandas().drop(columns=["wall_s", "point"])
    yield "trees_chart", trends.trees_chart(table, "event_hops", paper={"the paper": [(1, 5), (3, 4)]})
    yield "trees_chart of one", trends.trees_chart(table, "delivery_ratio", only={"protocol": "TinyMQ"}, title="One")
    changes = trends.trend_table(table, ["event_hops", "relays_busiest"], by="protocol")
    yield "trend_table", changes
    yield "trend_sentences", trends.trend_sentences(changes)
    yield "printed_losses", trends.printed_losses(table)

    cold_chain = wb.TinyMQ(roots=overlay_views.PAPER_ROOTS, key_bits=4, dimensions=("TEMP 0 1", "HUMIDITY"), info_s=2.0)
    asked, published = "TEMP GT 0, TEMP LT 0.5, HUMIDITY GT 85, HUMIDITY LT 90", "TEMP IS 0.25, HUMIDITY IS 88"
    yield "mapping_table", mapping.mapping_table(cold_chain, asked)
    yield "mapping_strings", mapping.mapping_strings(cold_chain, asked)
    yield "mapping_drawing", mapping.mapping_drawing(cold_chain, asked, published)
    yield "mapping_drawing of a query", mapping.mapping_drawing(cold_chain, "TEMP GE 0.3")
    workload = [wb.subscribe(13, asked, start_s=3), wb.publish(18, published, start_s=5)]
    graph, radio = overlay_views.paper_network(), wb.Radio(loss="none")
    paper = wb.Scenario(graph, cold_chain, workload, radio, 6, overlay_views.PAPER_SEED).run(engine="reference")
    yield "paper_network", paper.scenario.to_json()
    yield "paper_facts", facts.paper_facts(paper, 2)
    yield "route_drawing of the paper", overlay_views.route_drawing(paper)


def charts():
    """Yield line charts with bands."""
    first = {"name": "one", "x": [0, 1, 2.5], "y": [3.0, 1.5, 2.0], "low": [2.5, 1.0, 1.75], "high": [3.5, 2.0, 2.5]}
    other = {"name": "other", "x": [0.5, 2], "y": [0.1, 2.2]}
    yield "line_chart", views.line_chart([first, other], title="A title", x_label="x (s)", y_label="y", note="a note")
    yield "line_chart in a range", views.line_chart([other], y_range=(0.0, 4.0), width=400, height=300)


def messages():
    """Yield the views of dissected DPS messages."""
    messages = message_figures.conversation(filter_bits=256)
    for name, data in messages.items():
        yield f"conversation {name}", data.hex()
        yield f"inspect_message {name}", mesh_views.inspect_message(data, ["house/+/temp", "garden/#"])
    data = messages["3: publication of the publisher"]
    yield "inspect_message cut short", mesh_views.inspect_message(data[:40])
    yield "message_explorer", message_figures.message_explorer(messages, ["house/#"]).still


def filters():
    """Yield the views of topics, their bits, decisions, and the cost of short filters."""
    asked = ["house/+/temp", "garden/#"]
    for is_published, topic in ((True, "house/kitchen/temp"), (False, "house/+/temp")):
        yield f"topic_bits {topic}", topics.topic_bits(topic, is_published, 256)
    vectors = {name: wb.dps.bloom.BitVector.at(bits, 128) for name, bits in {"a": [0, 63, 64], "b": [5, 64]}.items()}
    yield "bits_drawing", topics.bits_drawing(vectors, wb.dps.bloom.BitVector.at([64], 128), title="Two vectors")
    for topic, filter_bits in (("house/kitchen/temp", 256), ("cellar/pump/flow", 64), ("x", 128)):
        decision = topics.routing_steps(topic, [*asked, "house/attic/+", "shed/+/light"], filter_bits)
        yield f"routing_steps {topic}", decision.drawing()
        yield f"routing_steps {topic}, table", decision.table()
        yield f"routing_steps {topic}, verdict", decision.verdict()
    yield "topic_explorer", with_svgs(topics.topic_explorer("house/kitchen/temp", asked, 256).still)
    table = false_positives.false_positive_table((64, 256, 1024), (1, 3), (1, 10), publications=100, links=20)
    yield "false_positive_table", table
    yield "false_positive_chart", false_positives.false_positive_chart(table)
    workload = [
        *(wb.subscribe(node, f'TOPIC EQ "a{node}/b/+"', start_s=3) for node in range(1, 5)),
        *(wb.publish(0, f'TOPIC IS "x{node}/y/z"', start_s=15 + node / 5) for node in range(6)),
        wb.publish(0, 'TOPIC IS "a4/b/c"', start_s=18),
    ]
    line = wb.Scenario(wb.topology.line(5), wb.DPS(update_s=0.2), workload, wb.Radio(loss="none"), duration_s=20)
    table = false_positives.vain_table(line, (64, 8192))
    yield "vain_table", table
    yield "vain_chart", false_positives.vain_chart(table)


def processes():
    """Yield the views of a mesh of five processes, one of which is killed; the reports of the processes are made up."""
    links = {0: (1, 3), 1: (0, 2), 2: (1, 3), 3: (0, 2)}
    bits = {0: 0, 1: 6, 2: 12, 3: 40}
    state = {
        node: {
            "links": {peer: "muted" if {node, peer} == {2, 3} else "active" for peer in peers},
            "told": {peer: bits[peer] for peer in peers},
            "bits": bits[node],
        }
        for node, peers in links.items()
    }
    mesh = SimpleNamespace(
        graph=wb.topology.grid(1, 5), filter_bits=256, alive=[0, 1, 2, 3], subscriptions={2: ["a/+"], 3: ["a/b"]}
    )
    mesh.state = lambda: state
    outcome = SimpleNamespace(publisher=0, topic="a/b", wanted=(2, 3), answers={2: 3.25}, missing=(3,))
    yield "processes_drawing", process_figures.processes_drawing(mesh)
    yield "processes_drawing of an outcome", process_figures.processes_drawing(mesh, outcome)
    yield "outcome_table", process_figures.outcome_table({"one": outcome})


OTHERS = (beside, coding, savings, trees, charts, messages, filters, processes)
GROUPS = {name: partial(of_golden, name) for name in renew.NAMES} | {make.__name__: make for make in OTHERS}


def texts(group):
    """Return {name of a view: its text} of a group."""
    return {name: text_of(thing) for name, thing in GROUPS[group]()}
