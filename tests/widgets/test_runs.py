"""Runs in the background: the newest request wins, and a stopped run keeps its rows."""

import threading

import pytest

import workbench as wb
from workbench.sim import runner
from workbench.widgets import runs as runs_module
from workbench.widgets.history import State
from workbench.widgets.run_panel import RunPanel
from workbench.widgets.runs import Runs

SHORT = wb.Scenario(wb.topology.line(3), wb.Flooding(), [wb.subscribe(0, "TEMP GE 1"), wb.publish(2, "TEMP IS 2")])
# A long run that starts soon, because a reading costs only a list entry before it is published.
LONG = wb.Scenario(wb.topology.line(3), wb.Flooding(), [wb.publish(0, "TEMP IS 2", every_s=1)], duration_s=200_000)


@pytest.fixture
def player(monkeypatch):
    """Yield a `Runs` on the reference engine, and its reports by kind, with an event that the first share sets."""
    monkeypatch.setattr(runs_module, "engine_for", lambda scenario: "reference")
    reports = {"done": [], "failed": [], "shares": [], "is_under_way": threading.Event()}

    def share(share_done):
        reports["shares"].append(share_done)
        reports["is_under_way"].set()

    background = Runs(
        lambda state, runs: reports["done"].append((state, runs)),
        lambda state, message: reports["failed"].append(message),
        share,
    )
    yield background, reports
    background.close()


def test_a_state_is_played(player):
    runs, reports = player
    runs.request(State(SHORT))
    assert runs.wait(300)
    ((state, (run,)),) = reports["done"]
    assert state.scenario is SHORT and run.metrics["delivery_ratio"] == 1.0


def test_two_protocols_give_two_runs(player):
    runs, reports = player
    runs.request(State(SHORT, wb.Diffusion()))
    assert runs.wait(300)
    assert [run.scenario.protocol for run in reports["done"][0][1]] == [wb.Flooding(), wb.Diffusion()]


def test_the_newest_request_wins(player):
    runs, reports = player
    runs.request(State(LONG))
    assert reports["is_under_way"].wait(300)
    runs.request(State(SHORT))
    assert runs.wait(300)
    assert [state.scenario for state, _ in reports["done"]] == [SHORT]


def test_a_stopped_run_keeps_its_rows(player):
    runs, reports = player
    runs.request(State(LONG))
    assert reports["is_under_way"].wait(300)
    runs.stop()
    assert runs.wait(300)
    ((_, (run,)),) = reports["done"]
    assert 0 < run.scenario.duration_s < LONG.duration_s and len(run.trace)


def test_stopped_runs_of_a_comparison_have_the_same_duration(player):
    runs, reports = player
    runs.request(State(LONG, wb.Gossip()))
    assert reports["is_under_way"].wait(300)
    runs.stop()
    assert runs.wait(300)
    ((_, (first, second)),) = reports["done"]
    assert 0 < first.scenario.duration_s == second.scenario.duration_s < LONG.duration_s


def test_an_error_that_ends_a_run_is_reported_and_the_next_request_is_played(player, monkeypatch):
    runs, reports = player
    monkeypatch.setattr(runner, "play", lambda scenario, **_: 1 / 0)
    runs.request(State(SHORT))
    assert runs.wait(300)
    assert reports["failed"] == ["the run ended with ZeroDivisionError: division by zero"]
    monkeypatch.undo()
    runs.request(State(SHORT))
    assert runs.wait(300) and len(reports["done"]) == 1


def test_a_panel_without_a_scenario_has_a_note():
    panel = RunPanel()
    panel.run_button.click()
    assert "The panel has nothing to run" in panel.message.value and not panel.busy
