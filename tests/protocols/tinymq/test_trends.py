"""Figures of TinyMQ's evaluation: trends of constructed sweeps, and those of a small evaluation."""

from xml.etree import ElementTree

import pandas as pd
import pytest

import workbench as wb
from figures import trends as tinymq_figures
from workbench.protocols.tinymq.metrics import load_metrics, query_metrics, repair_metrics
from workbench.views.drawing import Polygon, Text

ONCE = {"info_s": 0.0, "refresh_s": 0.0, "retries": 0}


class Table:
    """A substitute for a sweep's table: {protocol: {trees: values of the metric in some networks}}."""

    radio_note = ""

    axes = ("topology", "protocol", "protocol.roots")

    def __init__(self, values, name="stored_per_tree"):
        self.frame = pd.DataFrame(
            [
                {"topology": str(network), "protocol": protocol, "protocol.roots": str(trees), "seed": 1, name: value}
                for protocol, by_trees in values.items()
                for trees, networks in by_trees.items()
                for network, value in enumerate(networks)
            ]
        )

    def to_pandas(self):
        return self.frame.copy()


VALUES = {
    "TinyMQ": {1: (10, 20, 30), 4: (9, 18, 31), 10: (7, 16, 31)},
    "PUB-2-SUB+": {1: (10, 20, 30), 4: (10, 20, 30), 10: (11, 21, 31)},
}


def texts_of(drawing):
    return [item.text for item in drawing.items if isinstance(item, Text)]


def test_a_trend_is_the_mean_of_the_differences_in_each_network():
    table = tinymq_figures.trend_table(Table(VALUES), ["stored_per_tree"], by="protocol")
    rows = table.set_index("protocol")
    ours, pub2sub = rows.loc["TinyMQ"], rows.loc["PUB-2-SUB+"]
    assert (ours["fewest"], ours["most"], ours["change"]) == (20, 18, -2)
    assert (ours["networks"], ours["lower"], ours["verdict"]) == (3, 2, "open")
    assert ours["low"] < -2 < 0 < ours["high"]  # -3, -4 and 1 may be chance
    assert (pub2sub["change"], pub2sub["low"], pub2sub["high"], pub2sub["verdict"]) == (1, 1, 1, "rises")


def test_a_trend_falls_or_rises_only_if_chance_is_unlikely():
    verdicts = {}
    for name, ends in {"falls": (7, 16, 27), "rises": (13, 24, 33), "open": (10, 20, 31), "same": (10, 20, 30)}.items():
        table = Table({"TinyMQ": {1: (10, 20, 30), 10: ends}})
        (verdicts[name],) = tinymq_figures.trend_table(table, ["stored_per_tree"])["verdict"]
    (verdicts["one network"],) = tinymq_figures.trend_table(
        Table({"TinyMQ": {1: (10,), 10: (7,)}}), ["stored_per_tree"]
    )["verdict"]
    assert verdicts == {"falls": "falls", "rises": "rises", "open": "open", "same": "open", "one network": "open"}


def test_a_trend_in_words_gives_its_confidence():
    values = {"TinyMQ": {1: (10, 20, 30), 10: (7, 16, 27)}, "PUB-2-SUB+": {1: (10, 20, 30), 10: (10, 20, 31)}}
    trends = tinymq_figures.trend_table(Table(values), ["stored_per_tree"], by="protocol")
    ours, pub2sub_sentence = tinymq_figures.trend_sentences(trends)
    assert ours == (
        "stored per tree (TinyMQ) falls from 20.00 with 1 to 16.67 with 10 trees "
        "(95 % interval of the change: -4.77 to -1.90)"
    )
    assert pub2sub_sentence.startswith("stored per tree (PUB-2-SUB+) is open: 20.00 with 1 to 20.33 with 10 trees")


def test_a_network_with_a_failed_run_is_omitted_from_the_trend():
    table = Table(VALUES)
    frame = table.frame
    frame.loc[(frame["topology"] == "2") & (frame["protocol.roots"] == "10"), "stored_per_tree"] = float("nan")
    (row,) = tinymq_figures.trend_table(table, ["stored_per_tree"], only={"protocol": "TinyMQ"}).to_dict("records")
    assert (row["networks"], row["change"]) == (2, -3.5)


def test_chart_has_trees_in_numerical_order_and_the_papers_line_without_a_band():
    drawing = tinymq_figures.trees_chart(Table(VALUES), "stored_per_tree", paper={"the paper": [(1, 23), (10, 18)]})
    ElementTree.fromstring(drawing.to_svg())
    assert {"TinyMQ", "PUB-2-SUB+", "the paper", "trees", "nodes storing a query, per tree"} <= set(texts_of(drawing))
    assert len([item for item in drawing.items if isinstance(item, Polygon) and item.opacity < 1]) == 2


def test_a_chart_of_several_sweeps_contains_the_record_of_all_their_runs(tmp_path):
    workload = [wb.subscribe(0, "TEMP GE 1", start_s=4), wb.publish(8, "TEMP IS 2", start_s=8)]
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.TinyMQ(), workload, duration_s=10)
    over = {"protocol.roots": {"1": (0,), "2": (0, 8)}}

    def swept(protocol, measure=None):
        sweep = wb.Sweep(scenario, {"protocol": [protocol], **over}, "reference", measure)
        return sweep.run(runner=wb.LocalRunner(), progress=False)

    tables = [swept(wb.TinyMQ()), swept(wb.Pub2Sub())]
    answer = wb.reproduce(tinymq_figures.trees_chart(tables, "transmissions").save(tmp_path / "a.png"))
    assert answer.is_identical and answer.runs == 4
    answer = wb.reproduce(tinymq_figures.trees_chart(tables[0], "transmissions").save(tmp_path / "b.svg"))
    assert answer.is_identical and answer.runs == 2
    measured = [tables[0], swept(wb.Pub2Sub(), query_metrics)]
    assert tinymq_figures.trees_chart(measured, "transmissions").record is None  # no run names the measure


def test_sweeps_with_different_numbers_of_trees_share_a_chart():
    whole, ends = (
        {"TinyMQ": VALUES["TinyMQ"]},
        {"PUB-2-SUB+": {trees: VALUES["PUB-2-SUB+"][trees] for trees in (1, 10)}},
    )
    tables = [Table(whole), Table(ends)]
    assert {"TinyMQ", "PUB-2-SUB+"} <= set(texts_of(tinymq_figures.trees_chart(tables, "stored_per_tree")))
    trends = tinymq_figures.trend_table(tables, ["stored_per_tree"], by="protocol")
    assert trends["change"].tolist() == [-2, 1]


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda table: tinymq_figures.trees_chart(table, "hops"),
            "the sweep has no column 'hops'; its columns are topology",
        ),
        (
            lambda table: tinymq_figures.trees_chart(table, "stored_per_tree", only={"protocol": "Gossip"}),
            "`only` is {'protocol': 'Gossip'}; no row of the sweep has these values",
        ),
    ],
)
def test_unknown_metrics_of_a_sweep_are_refused(ask, sentence):
    with pytest.raises(wb.ParameterError, match=sentence):
        ask(Table(VALUES))


def test_roots_that_are_not_named_by_their_number_are_refused():
    table = Table(VALUES)
    table.frame["protocol.roots"] = "(0, 1)"
    with pytest.raises(wb.ParameterError, match="label each value with its number of roots"):
        tinymq_figures.trend_table(table, ["stored_per_tree"])


def test_losses_are_shares_of_expected_readings_and_of_sent_copies():
    table = Table({"printed": {1: (0.5, 0.9), 2: (0.4, 0.4)}}, "delivery_ratio")
    table.frame["events_published"] = 10
    table.frame["dropped_loop"] = [1, 3, 4, 4]
    one_tree, two_trees = tinymq_figures.printed_losses(table).to_dict("records")
    assert (one_tree["lost"], one_tree["lost_least"], one_tree["lost_most"]) == pytest.approx((0.3, 0.1, 0.5))
    assert (one_tree["looping"], one_tree["looping_least"], one_tree["looping_most"]) == pytest.approx((0.2, 0.1, 0.3))
    assert (two_trees["trees"], two_trees["lost"], two_trees["looping"]) == pytest.approx((2, 0.6, 0.2))


# The trends themselves, on small networks of the paper's density


@pytest.fixture(scope="module")
def networks():
    return {str(seed): wb.topology.field_with_roots(200, 10, seed=seed) for seed in (1, 2, 3)}


def sweep(networks, protocol, workload, measure, duration_s):
    scenario = wb.Scenario(networks["1"], protocol, radio=wb.Radio(loss="none"), duration_s=duration_s)
    over = {"topology": networks, "protocol.roots": {"1": (0,), "10": tuple(range(10))}}
    base = scenario.replace(workload=workload)
    return wb.Sweep(base, over, "reference", measure=measure).run(runner=wb.LocalRunner(), progress=False)


@pytest.mark.family
def test_with_ten_trees_queries_are_stored_at_fewer_and_nearer_nodes(networks):
    queries = wb.range_queries(range(200), 40, start_s=4, every_s=0.05)
    events = wb.range_events(range(200), 12, start_s=7, every_s=0.05)
    table = sweep(networks, wb.TinyMQ(**ONCE), [*queries, *events], query_metrics, 9)
    trends = tinymq_figures.trend_table(table, ["stored_per_tree", "hops_own_tree", "stretch"])
    assert (trends["change"] < 0).tolist() == [True, True, True]
    assert trends["networks"].tolist() == [3, 3, 3]
    assert (table.to_pandas()["delivery_ratio"] == 1).all()


@pytest.mark.family
def test_fewer_nodes_get_another_key_with_ten_trees(networks):
    workload = [wb.random_outage(range(10, 200), 0.1, 10.0)]
    table = sweep(networks, wb.TinyMQ(info_s=4.0, refresh_s=0.0, retries=0), workload, repair_metrics, 60)
    (trend,) = tinymq_figures.trend_table(table, ["rekeyed_nodes"]).to_dict("records")
    assert trend["change"] < 0 and trend["networks"] == 3
    assert (table.to_pandas()["unplaced_nodes"] == 0).all()


@pytest.mark.family
def test_publishing_to_the_own_tree_relieves_the_busiest_node_and_to_all_trees_does_not(networks):
    workload = wb.range_events(range(200), 60, start_s=4, every_s=0.02)
    falls = {}
    for publish in ("own", "all"):
        table = sweep(networks, wb.TinyMQ(publish=publish, **ONCE), workload, load_metrics, 6)
        falls[publish] = (tinymq_figures.trend_table(table, ["event_hops", "relays_busiest"])["change"] < 0).tolist()
    assert falls == {"own": [True, True], "all": [False, False]}
