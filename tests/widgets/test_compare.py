"""The players of one or two runs: a selected message is dissected, for every protocol."""

import pytest

import workbench as wb
from workbench.views.player import dissections, living
from workbench.widgets import compare
from workbench.widgets.compare import Compare
from workbench.widgets.deferred import Deferred
from workbench.widgets.laboratory import protocol_named
from workbench.widgets.protocol import protocol_names

WORKLOAD = [wb.subscribe(0, "TEMP GE 20", start_s=1), wb.publish(5, "TEMP IS 25", start_s=3, every_s=2)]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(compare, "Deferred", lambda: Deferred(0.0))


def run_of(name="Flooding", seed=1):
    scenario = wb.Scenario(wb.topology.grid(2, 3), protocol_named(name), WORKLOAD, duration_s=9, seed=seed)
    return scenario.run(engine="reference")


def sent(run):
    return [row for row, event in enumerate(run.trace["event"].to_pylist()) if event == "sent"]


def pick(part, row, player=0):
    part.players[player].wire.selection = {"node": 0, "row": row, "time_s": 1.0}
    assert part.wait()
    return part.players[player].wire.dissected


@pytest.mark.parametrize("name", protocol_names())
def test_a_selected_message_is_dissected(name):
    run = run_of(name)
    row = sent(run)[-1]
    dissected = pick(Compare(run), row)
    (frame,) = run.frames([row]).to_pylist()
    digits, fields = dissected["frames"][dissected["at"][row]]
    assert digits == frame["frame"].hex()
    expected = wb.dissect(run, frame["frame"], frame["peer"] < 0).fields
    assert [field[0] for field in fields] == [field.name for field in expected] != []


def test_neighboring_messages_are_available_without_another_run(monkeypatch):
    run = run_of()
    part = Compare(run)
    rows = sent(run)
    dissected = pick(part, rows[3])
    monkeypatch.setattr(dissections, "frames_of", None)
    assert pick(part, rows[4]) is dissected and rows[4] in dissected["at"]


def test_distant_messages_of_a_long_run_are_fetched_on_selection(monkeypatch):
    monkeypatch.setattr(dissections, "AROUND", 2)
    run = run_of()
    part, rows = Compare(run), sent(run)
    assert set(pick(part, rows[5])["at"]) == set(rows[3:7])
    assert set(pick(part, rows[0])["at"]) == set(rows[:2])


def test_only_the_player_of_the_selected_message_gets_its_bytes():
    runs = run_of(), run_of("Diffusion")
    part = Compare(*runs)
    row = sent(runs[1])[0]
    assert row in pick(part, row, player=1)["at"]
    assert part.players[0].wire.dissected == {}


def test_another_run_has_its_own_bytes():
    part = Compare(run_of())
    row = sent(part.players[0].run)[0]
    previous = pick(part, row)
    part.show((run_of(seed=2),))
    assert part.players[0].wire.dissected == {}
    assert pick(part, None) == {}
    assert pick(part, row) not in ({}, previous)


def test_a_run_that_cannot_be_played_again_has_a_note_with_the_reason():
    run = run_of()
    object.__setattr__(run, "engine", "motes")
    assert "a live run on motes cannot be replayed" in pick(Compare(run), sent(run)[0])["note"]


def test_a_row_of_the_previous_run_has_no_message():
    run = run_of()
    row_without_frame = next(row for row in range(run.trace.num_rows) if row not in sent(run))
    assert f"row {row_without_frame} of the trace" in pick(Compare(run), row_without_frame)["note"]


def test_replaying_a_large_run_is_announced(monkeypatch):
    monkeypatch.setattr(living, "LARGE", 0)
    run = run_of()
    part, dissections = Compare(run), []
    part.players[0].wire.observe(lambda change: dissections.append(change.new), "dissected")
    pick(part, sent(run)[0])
    assert ["executed again" in dissection["note"] for dissection in dissections] == [True, False]
