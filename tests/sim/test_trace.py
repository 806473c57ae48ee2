"""The trace: its table, its digest, its numbers, and the golden traces that must not change."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.golden import renew
from workbench.attributes.text import parse
from workbench.protocols import contract
from workbench.protocols.diffusion.events import GradientSet, InterestCached
from workbench.sim import trace
from workbench.sim.trace import SCHEMA, MetricsRecorder, Recorder

ROW = (5, 1, "received", 0, "data", 3, 2**32 - 1, 26, 0, "")


def table(*rows):
    recorder = Recorder()
    for row in rows:
        recorder.append(row)
    return recorder.table()


# --- golden traces ---


@pytest.mark.parametrize("name", renew.NAMES)
def test_golden_trace_is_unchanged(name):
    assert renew.outcome(name) == json.loads(renew.DIGESTS.read_text())[name], "see tests/golden/renew.py"


@pytest.mark.parametrize("name", renew.NAMES)
def test_golden_scenario_is_written_as_it_was_read(name):
    scenario = renew.scenario(name)
    assert wb.Scenario.from_json(scenario.to_json()) == scenario
    stored = json.loads((renew.FOLDER / (name + renew.SUFFIX)).read_text())
    written = json.loads(scenario.to_json())
    # A removed parameter is accepted if it has the only value left, and is not written.
    fields = [field for field in stored["protocol"] if field != "replacement"]
    assert {field: written["protocol"][field] for field in fields} == {f: stored["protocol"][f] for f in fields}
    assert {**written, "protocol": None} == {**stored, "protocol": None}


# --- the table ---


def test_table_has_the_schema_for_any_run():
    assert table().schema == SCHEMA and table().num_rows == 0
    assert table(ROW).schema == SCHEMA and table(ROW).to_pylist() == [dict(zip(SCHEMA.names, ROW, strict=True))]
    assert [field.name for field in SCHEMA if field.type == pa.dictionary(pa.int32(), pa.string())] == [
        "event",
        "message",
        "detail",
    ]


def test_conversion_to_columns_during_a_long_run_does_not_change_the_table():
    rows = [(i, i % 7, ("sent", "received")[i % 2], -1, "data", 3, i, 26, 0, f"{i % 3}") for i in range(250_000)]
    at_once, in_parts = Recorder(), Recorder()
    for i, row in enumerate(rows):
        at_once.append(row)
        in_parts.append(row)
        if i % 10_000 == 0:
            in_parts.flush_if_large()
    assert in_parts.table().column("time_us").num_chunks > at_once.table().column("time_us").num_chunks
    assert in_parts.table().equals(at_once.table())
    assert trace.digest(in_parts.table()) == trace.digest(at_once.table())


def test_every_event_has_a_name_in_lower_case():
    assert trace.EVENT_NAMES[GradientSet] == "gradient_set"
    assert trace.EVENT_NAMES[contract.Held] == "held"
    assert trace.event_name(InterestCached) == "interest_cached"
    assert contract.Settings not in trace.EVENT_NAMES


def test_protocol_event_becomes_a_row_with_its_attributes_as_text():
    recorder = Recorder()
    sample = parse("TEMP IS 26.5, INSTANCE IS 4")
    recorder.protocol_events(
        7, 2, [contract.Delivered(1, "data", 3, 9, 0, sample), contract.Held(1, "data", 3, 9, 4, "")]
    )
    first, second = recorder.table().to_pylist()
    assert first == {
        "time_us": 7,
        "node": 2,
        "event": "delivered",
        "peer": 1,
        "message": "data",
        "origin": 3,
        "sequence": 9,
        "size_B": 0,
        "value": 0,
        "detail": "TEMP IS 26.5, INSTANCE IS 4",
    }
    assert (second["event"], second["value"], second["detail"]) == ("held", 4, "")


def test_trace_survives_parquet(tmp_path):
    scenario = renew.scenario("diffusion-grid")
    run = scenario.run()
    folder = run.save(tmp_path / "run")
    again = pq.read_table(folder / "trace.parquet")
    assert again.schema.names == SCHEMA.names and trace.digest(again) == run.trace_hash
    assert wb.Scenario.from_json((folder / "scenario.json").read_text()) == scenario
    assert json.loads((folder / "metrics.json").read_text())["delivered"] == run.metrics["delivered"]


# --- the digest ---


@pytest.mark.parametrize("column", range(len(SCHEMA)))
def test_digest_sees_every_column(column):
    changed = list(ROW)
    changed[column] = changed[column] - 1 if isinstance(changed[column], int) else changed[column] + "x"
    assert trace.digest(table(ROW)) != trace.digest(table(tuple(changed)))


def test_digest_sees_order_and_number_of_rows():
    second = (6, *ROW[1:])
    digests = {trace.digest(table(*rows)) for rows in ([], [ROW], [ROW, ROW], [ROW, second], [second, ROW])}
    assert len(digests) == 5


def test_digest_does_not_see_chunks_or_dictionaries():
    rows = [ROW, (6, 2, "sent", *ROW[3:]), (7, 2, "lost", *ROW[3:9], "link")]
    whole = table(*rows)
    parts = pa.concat_tables([table(row) for row in rows])
    assert trace.digest(parts) == trace.digest(whole) == trace.digest(whole.unify_dictionaries())


# --- numbers without a trace ---

EVENTS = st.sampled_from(["sent", "received", "lost", "dropped", "given_up", "delivered", "published", "filtered"])
ROWS = st.lists(
    st.tuples(
        st.just(0),
        st.integers(0, 3),
        EVENTS,
        st.just(-1),
        st.sampled_from(["data", "interest", ""]),
        st.just(0),
        st.just(0),
        st.integers(0, 60),
        st.just(0),
        st.sampled_from(["", "link", "collision"]),
    )
)


@settings(max_examples=examples(50))
@given(ROWS)
def test_numbers_of_a_trace_equal_those_of_a_recorder_without_one(rows):
    counts, sizes = trace.tally(table(*rows))
    recorder = MetricsRecorder(frozenset())
    for row in rows:
        recorder.append(row)
    assert (counts, sizes) == recorder.tally()
    assert counts.total() == len(rows)
    reasons = {"lost", "dropped", "given_up"}
    keys = [(row[2], row[4], row[9] if row[2] in reasons else "") for row in rows]
    assert sizes == +sum((Counter({key: row[7]}) for key, row in zip(keys, rows, strict=True)), Counter())


def test_recorder_of_metrics_stores_the_events_that_metrics_examine():
    recorder = MetricsRecorder(frozenset([2]))
    recorder.append(ROW)
    recorder.append((5, 1, "published", -1, "", 1, 0, 0, 0, "TEMP IS 26"))
    event = contract.Held(1, "data", 3, 9, 4, "")
    recorder.protocol_events(7, 2, [event, contract.Forwarded(1, "data", 3, 9, 4, "")])
    recorder.protocol_events(7, 3, [event])
    assert [(row["event"], row["node"]) for row in recorder.table().to_pylist()] == [("published", 1), ("held", 2)]
    recorder.protocol_events(8, 3, [InterestCached(1, "interest", 3, 9, 0, "")])
    assert len(recorder.table()) == 2
    theirs = MetricsRecorder(frozenset(), trace.metric_events(wb.Diffusion()))
    theirs.protocol_events(8, 3, [InterestCached(1, "interest", 3, 9, 0, "")])
    assert theirs.table().column("event").to_pylist() == ["interest_cached"]
    recorder.count_frame("data", 26, 3)
    counts, sizes = recorder.tally()
    assert counts == {
        ("held", "", ""): 2,
        ("published", "", ""): 1,
        ("received", "data", ""): 4,
        ("sent", "data", ""): 1,
    }
    assert sizes == {("received", "data", ""): 4 * 26, ("sent", "data", ""): 26}


def test_node_that_holds_a_publication_again_is_counted_once():
    recorder = MetricsRecorder(frozenset())
    event = contract.Held(1, "flood", 3, 9, 4, "")
    for node in (2, 700, 2, 2):
        recorder.protocol_events(7, node, [event])
    assert recorder.tally()[0] == {("held", "", ""): 2}
    rows = [(7, node, "held", 1, "flood", 3, 9, 0, 4, "") for node in (2, 700, 2, 2)]
    assert trace.tally(table(*rows))[0] == {("held", "", ""): 2}


def test_a_custom_event_of_a_protocol_has_a_name_too():
    class LinkLost(contract.Held):
        pass

    assert trace.EVENT_NAMES[LinkLost] == "link_lost"
