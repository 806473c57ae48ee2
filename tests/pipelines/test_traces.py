"""Queries over the traces of many runs: each answer agrees with the runs themselves, on DuckDB and on Spark."""

from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import workbench as wb
from tests.pipelines.small_spark import small_spark
from workbench.cli import doctor
from workbench.pipelines import (
    flows,
    latency,
    latency_distribution,
    load_per_link,
    load_per_node,
    losses,
    over_time,
    paths,
    traces,
)
from workbench.pipelines.trace.table import without_dictionaries
from workbench.sweeps import LocalRunner

JAVA = doctor.java()
RADIO = wb.Radio(loss=0.1, collisions=True)
PROTOCOLS = {
    "flooding": wb.Flooding(),
    "diffusion": wb.Diffusion(refresh_s=3, gradient_lifetime_s=5),
    "aggregating": wb.Diffusion(filters=(wb.Filter("running_mean", window=3),)),
    "coded": wb.CodedDiffusion(generation_size=4),
    "tinymq": wb.TinyMQ(),
    "dps": wb.DPS(),
}


def workload():
    """Return a workload with two sinks, of which one fails and one expires, and two distant sources."""
    return [
        wb.subscribe(at=0, what="TEMP GE 25"),
        wb.subscribe(at=1, what="TEMP GE 20", expires_s=9),
        wb.publish(at=11, what="TEMP IS 26.5", every_s=1, start_s=2),
        wb.publish(at=10, what="TEMP IS 22", every_s=1.7, start_s=1),
        wb.outage(at=0, start_s=6, stop_s=8),
    ]


@pytest.fixture(scope="module")
def runs():
    """Return {name of the protocol: its runs with two seeds}."""
    runs_by_name = {}
    for name, protocol in PROTOCOLS.items():
        base = wb.Scenario(wb.topology.grid(3, 4), protocol, workload(), RADIO, duration_s=14)
        runs_by_name[name] = [base.replace(seed=seed).run("reference") for seed in (1, 2)]
    return runs_by_name


@pytest.fixture(scope="module")
def all_runs(runs):
    return [run for protocol_runs in runs.values() for run in protocol_runs]


@pytest.fixture(scope="module")
def table(all_runs):
    return traces(all_runs)


def rows_for(frame, run):
    """Return the rows of an answer that belong to a run."""
    return frame[frame["scenario"] == run.scenario.hash].drop(columns="scenario").reset_index(drop=True)


def rows_of(run, *events):
    return [row for row in run.trace.to_pylist() if row["event"] in events]


def test_the_table_has_all_rows_of_all_runs_in_order(all_runs, table):
    assert len(table) == sum(len(run.trace) for run in all_runs)
    frame = table.to_pandas()
    for run in all_runs:
        answer_rows = rows_for(frame, run)
        assert answer_rows["row"].tolist() == list(range(len(run.trace)))
        expected = run.trace.to_pandas().astype(str)
        pd.testing.assert_frame_equal(answer_rows.drop(columns=["code", "row"]).astype(str), expected)


def test_load_per_node_equals_the_counts_in_the_traces(all_runs, table):
    answer = load_per_node(table)
    for run in all_runs:
        answer_rows = rows_for(answer, run).set_index("node")
        metrics = run.metrics
        assert answer_rows["sent"].sum() == metrics["transmissions"] > 0
        assert answer_rows["received"].sum() == metrics["receptions"]
        assert answer_rows["lost"].sum() == metrics["lost"] > 0
        assert answer_rows["sent_B"].sum() == metrics["bytes_sent"]
        counts, sizes = Counter(), Counter()
        for row in run.trace.to_pylist():
            counts[row["node"], row["event"]] += 1
            sizes[row["node"], row["event"]] += row["size_B"]
        for event in ("sent", "received", "lost"):
            assert answer_rows[event].to_dict() == {node: counts[node, event] for node in answer_rows.index}
            assert answer_rows[f"{event}_B"].to_dict() == {node: sizes[node, event] for node in answer_rows.index}


def test_load_per_link_equals_the_counts_in_the_traces(all_runs, table):
    answer = load_per_link(table)
    for run in all_runs:
        answer_rows = rows_for(answer, run)
        expected = defaultdict(lambda: [0] * 6)
        for row in rows_of(run, "received", "lost"):
            cells = expected[row["peer"], row["node"]]
            for first in (0, 2 if row["event"] == "received" else 4):
                cells[first] += 1
                cells[first + 1] += row["size_B"]
        assert {tuple(row[:2]): row[2:] for row in answer_rows.to_numpy().tolist()} == expected
        assert set(expected) <= set(run.scenario.topology.edges)


def test_latencies_equal_the_metrics(all_runs, table):
    answer = latency(table)
    distribution = latency_distribution(table)
    for run in all_runs:
        metrics = run.metrics
        (answer_rows,) = rows_for(answer, run).to_dict("records")
        assert answer_rows == {name: metrics[name] for name in ("delivered", "latency_ms_p50", "latency_ms_p95")}
        at = rows_for(distribution, run).set_index("percent")["latency_ms"]
        assert at.index.tolist() == list(range(1, 101))
        assert (at[50], at[95]) == (metrics["latency_ms_p50"], metrics["latency_ms_p95"])


def test_flows_add_up_to_the_deliveries(all_runs, table):
    answer = flows(table)
    for run in all_runs:
        answer_rows = rows_for(answer, run)
        assert answer_rows["delivered"].sum() == run.metrics["delivered"] > 0
        assert set(answer_rows["publisher"]) <= {10, 11}
        assert set(answer_rows["sink"]) <= {0, 1}
        hops = run.scenario.topology.edges
        assert all((row.last_hop, row.sink) in hops for row in answer_rows.itertuples())
        held = {(row["node"], row["origin"], row["sequence"]): row["value"] for row in rows_of(run, "held")}
        if held:
            assert answer_rows["hops"].between(min(held.values()), max(held.values())).all()


def test_paths_lead_from_publishers_to_sinks_with_one_link_per_hop(runs, table):
    answer = paths(table)
    for run in runs["flooding"]:
        answer_rows = rows_for(answer, run)
        for (publisher, sink), links in answer_rows.groupby(["publisher", "sink"]):
            assert set(zip(links["sender"], links["receiver"], strict=True)) <= set(run.scenario.topology.edges)
            into, out = (links.groupby(end)["delivered"].sum() for end in ("receiver", "sender"))
            balance = into.sub(out, fill_value=0)
            assert balance[sink] == -balance[publisher] == balance.abs().sum() / 2 > 0
        run_flows = rows_for(flows(table), run)
        assert answer_rows["delivered"].sum() == round((run_flows["delivered"] * run_flows["hops"]).sum()) > 0


def test_losses_equal_the_metrics_and_cost_the_energy_of_useless_receptions(all_runs, table):
    answer = losses(table, RADIO)
    for run in all_runs:
        answer_rows = rows_for(answer, run)
        counted = {f"{row.event}_{row.reason}": row.frames for row in answer_rows.itertuples()}
        metrics = run.metrics
        prefixes = ("lost_", "dropped_", "given_up_")
        assert counted == {name: metrics[name] for name in metrics.index if name.startswith(prefixes)}
        heard = {(row["time_us"], row["node"], row["peer"]): row["size_B"] for row in rows_of(run, "received")}
        sizes, energy = Counter(), Counter()
        for row in rows_of(run, "lost", "dropped", "given_up"):
            key = row["event"], row["detail"]
            frame_B = heard.get((row["time_us"], row["node"], row["peer"])) if row["event"] == "dropped" else None
            sizes[key] += row["size_B"] or frame_B or 0
            if frame_B is not None or key == ("lost", "collision"):
                energy[key] += ((frame_B or row["size_B"]) + RADIO.overhead_B) * RADIO.rx_uJ_per_B / 1000
        assert {(row.event, row.reason): row.bytes_B for row in answer_rows.itertuples()} == sizes
        assert {(row.event, row.reason): row.energy_mJ for row in answer_rows.itertuples()} == pytest.approx(
            {key: energy[key] for key in sizes}
        )
        assert answer_rows["energy_mJ"].sum() <= metrics["energy_mJ"]


@pytest.mark.parametrize(
    ("protocol", "event", "ended", "things"),
    [
        ("coded", "innovative", None, ("node", "origin", "sequence")),
        ("diffusion", "gradient_set", "gradient_removed", ("node", "peer", "origin")),
    ],
)
def test_state_at_a_time_counts_entries_that_were_set_and_not_removed(runs, table, protocol, event, ended, things):
    answer = over_time(table, event, ended, of=things, every_s=0.5, until_s=14)
    for run in runs[protocol]:
        answer_rows = rows_for(answer, run)
        assert answer_rows["time_s"].tolist() == [step / 2 for step in range(29)]
        changes = rows_of(run, event, ended)
        for row in answer_rows.itertuples():
            standing = {}
            for change in changes:
                if change["time_us"] <= row.time_s * 1e6:
                    thing = tuple(change[column] for column in things)
                    standing[thing] = change["value"] if change["event"] == event else None
            values = [value for value in standing.values() if value is not None]
            assert (row.standing, row.total) == (len(values), sum(values))
        assert answer_rows["standing"].max() > 0
    assert rows_for(answer, runs["flooding"][0])["standing"].sum() == 0


def test_answers_over_runs_are_means_with_bands_and_missing_rows_count_as_0(runs):
    table = traces(runs["flooding"] + runs["tinymq"])
    per_run = losses(table, RADIO).pivot_table(index=["event", "reason"], columns="scenario", values="frames")
    assert per_run.isna().any().any()
    mean = losses(table, RADIO, over_runs=True).set_index(["event", "reason"])
    assert set(mean["runs"]) == {4}
    filled = per_run.fillna(0)
    np.testing.assert_allclose(mean["frames"], filled.mean(axis=1).reindex(mean.index))
    np.testing.assert_allclose(mean["frames_low"], filled.quantile(0.05, axis=1).reindex(mean.index))
    np.testing.assert_allclose(mean["frames_high"], filled.quantile(0.95, axis=1).reindex(mean.index))
    (mean_latency,) = latency(table, over_runs=True).to_dict("records")
    medians = [run.metrics["latency_ms_p50"] for run in runs["flooding"] + runs["tinymq"]]
    assert (mean_latency["runs"], mean_latency["latency_ms_p50"]) == (4, pytest.approx(np.mean(medians)))
    assert mean_latency["latency_ms_p50_high"] == pytest.approx(np.quantile(medians, 0.95))


def test_a_folder_gives_the_same_answers_as_its_runs(tmp_path):
    base = wb.Scenario(wb.topology.line(5), wb.Flooding(), workload()[:1] + [wb.publish(at=4, what="TEMP IS 26")])
    sweep = wb.Sweep(base, {"seed": range(3)}, engine="reference", keep="trace")
    sweep.run(out=tmp_path, runner=LocalRunner(), progress=False)
    all_runs = [base.replace(seed=seed).run("reference") for seed in range(3)]
    pd.testing.assert_frame_equal(load_per_node(traces(tmp_path)), load_per_node(traces(all_runs)))
    one_run = traces(tmp_path, only=[all_runs[1].scenario.hash])
    assert one_run.select(["scenario", "row", "detail"]).to_pylist() == (
        traces(all_runs[1]).select(["scenario", "row", "detail"]).to_pylist()
    )
    with pytest.raises(wb.DataError, match="contains no trace of these scenarios: 0123"):
        traces(tmp_path, only=["0123"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(wb.DataError, match='a sweep stores them with Sweep\\(..., keep="trace"\\)'):
        traces(tmp_path / "empty")


def test_a_scenario_run_by_two_versions_of_the_code_is_not_counted_twice(tmp_path):
    from workbench.sweeps.store.traces import write

    run = wb.Scenario(wb.topology.line(3), wb.Flooding(), workload()[:1], duration_s=2).run("reference")
    batches = run.trace.to_batches()
    write(tmp_path / "traces-1.parquet", [(run.scenario.hash, code, batches) for code in ("abc", "def")])
    with pytest.raises(wb.DataError, match="run with different code \\(digests abc, def\\); choose"):
        traces(tmp_path)
    assert set(traces(tmp_path, code="def")["code"].to_pylist()) == {"def"}


# Spark

QUESTIONS = {
    "load_per_node": load_per_node,
    "load_per_link": load_per_link,
    "losses": lambda table, **kind: losses(table, RADIO, **kind),
    "flows": flows,
    "latency_distribution": latency_distribution,
    "over_time": lambda table, **kind: over_time(table, "innovative", until_s=14, **kind),
}


IN_ORDER = [("scenario", "ascending"), ("row", "ascending")]
KEYS = (
    "scenario",
    "node",
    "sender",
    "receiver",
    "event",
    "reason",
    "time_s",
    "publisher",
    "sink",
    "last_hop",
    "percent",
)


@pytest.fixture(scope="module")
def spark():
    if not JAVA.is_ok:
        pytest.skip(f"Spark needs Java: {JAVA.remedy}")
    started = small_spark()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def few(runs):
    """Return few runs; the tests take mostly the time of Spark itself."""
    return [runs[name][0] for name in ("aggregating", "coded", "flooding")]


@pytest.fixture(scope="module")
def spark_table(spark, few):
    frame = traces(few, spark).coalesce(1).cache()
    yield frame
    frame.unpersist()


@pytest.mark.spark
@pytest.mark.parametrize("name", QUESTIONS)
def test_spark_gives_the_same_answers_as_this_process(name, few, spark_table):
    ask = QUESTIONS[name]
    local, on_spark = ask(traces(few)), ask(spark_table).toPandas()
    keys = [column for column in local.columns if column in KEYS]
    pd.testing.assert_frame_equal(local, on_spark.sort_values(keys, ignore_index=True), check_dtype=False)


@pytest.mark.spark
def test_spark_follows_the_same_paths(spark):
    work = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=2, what="TEMP IS 26", every_s=0.3)]
    # A short line, because each hop needs a job of Spark.
    run = wb.Scenario(wb.topology.line(3), wb.Flooding(), work, duration_s=1).run("reference")
    local, on_spark = paths(traces(run)), paths(traces(run, spark)).toPandas()
    keys = ["publisher", "sink", "sender", "receiver"]
    assert local[keys].to_numpy().tolist() == [[2, 0, 1, 0], [2, 0, 2, 1]]
    pd.testing.assert_frame_equal(local, on_spark.sort_values(keys, ignore_index=True), check_dtype=False)


@pytest.mark.spark
def test_spark_has_the_same_means_and_bands(few, spark_table):
    local, on_spark = losses(traces(few), RADIO, over_runs=True), losses(spark_table, RADIO, over_runs=True).toPandas()
    on_spark = on_spark.sort_values(["event", "reason"], ignore_index=True)
    pd.testing.assert_frame_equal(local, on_spark, check_dtype=False)


@pytest.mark.spark
def test_the_data_source_reads_a_folder_and_simulates_on_demand(spark, tmp_path):
    base = wb.Scenario(wb.topology.line(5), wb.Flooding(), workload()[:1] + [wb.publish(at=4, what="TEMP IS 26")])
    wb.Sweep(base, {"seed": range(4)}, engine="reference", keep="trace").run(
        out=tmp_path, runner=LocalRunner(), progress=False
    )
    runs = [base.replace(seed=seed).run("reference") for seed in range(4)]
    expected = without_dictionaries(traces(runs)).sort_by(IN_ORDER).to_pylist()
    simulated = spark.read.format("workbench.trace").option("scenario", base.to_json()).option("engine", "reference")
    for frame in (
        spark.read.format("workbench.trace").load(str(tmp_path)),
        simulated.option("seeds", "0:4").option("tasks", "2").load(),
        traces(tmp_path, spark),
    ):
        actual = pa.Table.from_pandas(frame.toPandas(), preserve_index=False)
        assert actual.sort_by(IN_ORDER).to_pylist() == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, 'use .load\\("results/name"\\) or .option\\("scenario"'),
        ({"scenario": "{"}, "the option 'scenario' is not valid JSON .*; give it the result of scenario.to_json"),
        ({"scenario": "SCENARIO", "seeds": "many"}, "the option 'seeds' contains 'many', which is not a whole number"),
        ({"scenario": "SCENARIO", "seeds": "5:5"}, "the option 'seeds' is '5:5', which contains no seed"),
        ({"scenario": "SCENARIO", "engine": "warp"}, "engine is 'warp'; it must be one of"),
        ({"path": "nowhere"}, "nowhere does not exist"),
    ],
)
def test_the_data_source_refuses_wrong_options_in_a_sentence(options, sentence):
    source = pytest.importorskip("workbench.pipelines.trace.source")
    whole = wb.Scenario(wb.topology.line(2), wb.Flooding()).to_json()
    completed = {name: whole if value == "SCENARIO" else value for name, value in options.items()}
    with pytest.raises(wb.WorkbenchError, match=sentence):
        source.TraceSource(completed).reader(None)


def test_many_small_runs_of_a_folder_are_distributed_in_ranges_of_whole_runs():
    source = pytest.importorskip("workbench.pipelines.trace.source")
    runs = [source.StoredRun(f"{number:04}", "c", 100_000 * number, 100_000) for number in range(50) if number != 7]
    ranges = list(source._ranges_of_runs("file", runs))
    assert [part.value[1:] for part in ranges] == [
        (0, 700_000), (800_000, 2_000_000), (2_800_000, 2_000_000), (4_800_000, 200_000),
    ]  # fmt: skip
