"""Metrics computed from columns, compared bit for bit with `plain_metrics`, which goes row by row."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.golden import renew
from tests.sim import plain_metrics
from tests.talker import network
from workbench.sim import metrics, trace
from workbench.sim.metrics.paths import paths_of
from workbench.sim.rows import Columns
from workbench.sim.trace import SCHEMA, Recorder

NAMES = list(plain_metrics.deliveries(wb.Scenario(network((0, 1)), wb.Flooding()), []))
# 0 <-> 1 -> 2 -> 3 and 4 -> 0: not every node has a path to every other.
ONE_WAY = network((0, 1), (1, 0), (1, 2), (2, 3), (4, 0))

NODES, NUMBERS = st.integers(0, 4), st.integers(0, 2)
TIMES = st.integers(0, 12)
READINGS = st.sampled_from(["TEMP IS 26", "TEMP IS 20", "TEMP IS 26, TEMP IS 30", "TEMP IS 26, TEMP IS 26"])
SAMPLES = st.sampled_from(["TEMP IS 26", "TEMP IS 20", "TEMP IS 30", "TEMP IS 25.5", "TEMP IS 900"])
WANTED = st.sampled_from(["TEMP GE 25", "TEMP EQ_ANY", "TEMP EQ 26"])


NOTHING, NO_TEXT = st.just(0), st.just("")


def cells(event, origin=None, size=NOTHING, value=NOTHING, detail=NO_TEXT):
    """Return a strategy for rows; the origin of a row is its node by default."""
    drawn = st.tuples(NODES, NODES if origin is None else origin, NUMBERS, size, value, detail)
    return drawn.map(
        lambda numbers: (numbers[0], event, -1, "data", numbers[0] if origin is None else numbers[1], *numbers[2:])
    )


ROW = st.one_of(
    cells("subscribed", value=st.integers(-1, 12), detail=WANTED),
    cells("unsubscribed"),
    cells("published", detail=READINGS),
    cells("originated", origin=NODES, value=NUMBERS),
    cells("delivered", origin=NODES, value=NUMBERS, detail=SAMPLES),
    cells("held", origin=NODES, value=st.integers(0, 6)),
    cells("interest_cached", origin=NODES),
    cells("filtered", origin=NODES, detail=st.sampled_from(["replace", "drop"])),
    cells("failed"),
    cells("recovered"),
    cells("sent", size=st.integers(0, 60)),
    cells("lost", size=st.integers(0, 60), detail=st.sampled_from(["link", "collision"])),
)
TRACES = st.lists(st.tuples(TIMES, ROW), max_size=60).map(lambda rows: sorted(rows, key=lambda row: row[0]))


def table_of(rows):
    recorder = Recorder()
    for time_us, row in rows:
        recorder.append((time_us, *row))
    return recorder.table()


def assert_same(scenario, table):
    rows = table.to_pylist()
    counts, sizes = trace.tally(table)
    assert (counts, sizes) == plain_metrics.tally(rows)
    got = metrics.compute(scenario, table, counts, sizes)
    wanted = plain_metrics.deliveries(scenario, rows)
    wanted["interest_coverage"] = plain_metrics.interest_coverage(scenario.topology, rows)
    assert np.array_equal([got[name] for name in wanted], list(wanted.values()), equal_nan=True), (got, wanted)


FILTERING = wb.Diffusion(filters=(wb.Filter("neighborhood_average"),))


@settings(max_examples=examples(150))
@given(TRACES, st.sampled_from([wb.Diffusion(), FILTERING]))
def test_metrics_of_any_rows_follow_the_definitions(rows, protocol):
    assert_same(wb.Scenario(ONE_WAY, protocol), table_of(rows))


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(st.integers(0, 12), SAMPLES), max_size=12),
    st.lists(st.tuples(NUMBERS, READINGS), min_size=1, max_size=3, unique_by=lambda item: item[0]),
    st.integers(0, 8),
    st.lists(st.tuples(TIMES, st.sampled_from(["replace", "drop"])), max_size=4),
    st.sampled_from([wb.Diffusion(), FILTERING]),
)
def test_metrics_of_one_message_with_every_kind_of_delivery(delivered, readings, begins, answers, protocol):
    # Most random rows above are wrong deliveries; most of these are right.
    rows = [(0, (4, "published", -1, "", 4, number, 0, 0, text)) for number, text in readings]
    rows += [(0, (4, "originated", -1, "data", 4, 7, 0, number, "")) for number, _ in readings]
    rows += [
        (begins, (3, "subscribed", -1, "", 3, number, 0, -1, constraints))
        for number, constraints in ((0, "TEMP GE 25"), (1, "TEMP EQ_ANY"))
    ]
    rows += [(time, (3, "delivered", 2, "data", 4, 7, 0, time % 2, text)) for time, text in delivered]
    rows += [(time, (2, "filtered", -1, "data", 4, 7, 0, 200, answer)) for time, answer in answers]
    rows += [(1, (3, "held", 2, "data", 4, 7, 0, 6, ""))]
    assert_same(wb.Scenario(ONE_WAY, protocol), table_of(sorted(rows, key=lambda row: row[0])))


@pytest.mark.parametrize("name", ["coded-diffusion-grid", "diffusion-lossy", "dps-grid", "tinymq-own"])
def test_metrics_of_golden_runs_follow_the_definitions(name):
    scenario = renew.scenario(name)
    assert_same(scenario, scenario.run(engine="reference").trace)


@pytest.mark.family
def test_large_traces_are_split_and_have_the_same_metrics():
    scenario = renew.scenario("diffusion-grid")
    table = scenario.run(engine="reference").trace
    many = table_of([(0, (0, "sent", -1, "data", 0, 0, 10, 0, ""))] * 100_000).to_batches()
    whole = type(table).from_batches([*table.to_batches(), *many], schema=SCHEMA).unify_dictionaries()
    alone, among_many = (metrics.compute(scenario, each, *trace.tally(each)) for each in (table, whole))
    assert among_many["transmissions"] == alone["transmissions"] + 100_000
    assert np.array_equal(alone[NAMES], among_many[NAMES], equal_nan=True)
    assert [row._asdict() for row in Columns(whole).of("sent", "delivered")] == [
        {"position": position} | row
        for position, row in enumerate(whole.to_pylist())
        if row["event"] in ("sent", "delivered")
    ]


# --- paths ---


@settings(max_examples=examples(60))
@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda arc: arc[0] != arc[1]), min_size=1))
def test_path_lengths_equal_those_of_networkx(arcs):
    graph = network(*arcs)
    paths = paths_of(graph)
    nodes = sorted(graph)
    for hops_of, directed in ((paths.hops_from, graph), (paths.hops_to, graph.reverse())):
        ((position, hops),) = hops_of(paths.indices(np.array(nodes)))
        assert position == 0
        for node, row in zip(nodes, hops.tolist(), strict=True):
            lengths = nx.single_source_shortest_path_length(directed, node)
            assert row == [lengths.get(target, -1) for target in nodes]
    assert paths.indices(np.array([nodes[-1] + 1, -1, nodes[0]])).tolist() == [-1, -1, 0]


def test_paths_of_many_sinks_are_computed_in_batches(monkeypatch):
    paths = paths_of(wb.topology.line(30))
    monkeypatch.setattr("workbench.sim.metrics.paths._CELLS", 100)
    parts = list(paths.hops_to(np.arange(30)))
    assert [position for position, _ in parts] == list(range(0, 30, 3))
    assert np.concatenate([hops for _, hops in parts]).tolist() == [[abs(i - j) for j in range(30)] for i in range(30)]
