"""Runs in the background: the newest wish wins, and a stop keeps what there is."""

import threading

import pytest

import workbench as wb
from workbench.sim import runner
from workbench.widgets import runs as runs_module
from workbench.widgets.history import State
from workbench.widgets.run_panel import RunPanel
from workbench.widgets.runs import Runs

SHORT = wb.Scenario(wb.topology.line(3), wb.Flooding(), [wb.subscribe(0, "TEMP GE 1"), wb.publish(2, "TEMP IS 2")])
# It plays for long, and begins soon: a reading costs nothing before it is published but a place in a list.
LONG = wb.Scenario(wb.topology.line(3), wb.Flooding(), [wb.publish(0, "TEMP IS 2", every_s=1)], duration_s=200_000)


@pytest.fixture
def player(monkeypatch):
    """A `Runs` on the reference engine, and what it told: (done, failed, shares), and when the first share came."""
    monkeypatch.setattr(runs_module, "engine_for", lambda scenario: "reference")
    told = {"done": [], "failed": [], "shares": [], "is_under_way": threading.Event()}

    def share(part):
        told["shares"].append(part)
        told["is_under_way"].set()

    made = Runs(
        lambda state, runs: told["done"].append((state, runs)),
        lambda state, said: told["failed"].append(said),
        share,
    )
    yield made, told
    made.close()


def test_a_state_is_played(player):
    runs, told = player
    runs.request(State(SHORT))
    assert runs.wait(300)
    ((state, (run,)),) = told["done"]
    assert state.scenario is SHORT and run.metrics["delivery_ratio"] == 1.0


def test_two_protocols_give_two_runs(player):
    runs, told = player
    runs.request(State(SHORT, wb.Diffusion()))
    assert runs.wait(300)
    assert [run.scenario.protocol for run in told["done"][0][1]] == [wb.Flooding(), wb.Diffusion()]


def test_the_newest_wish_wins(player):
    runs, told = player
    runs.request(State(LONG))
    assert told["is_under_way"].wait(300)
    runs.request(State(SHORT))
    assert runs.wait(300)
    assert [state.scenario for state, _ in told["done"]] == [SHORT]


def test_a_stop_keeps_what_there_is(player):
    runs, told = player
    runs.request(State(LONG))
    assert told["is_under_way"].wait(300)
    runs.stop()
    assert runs.wait(300)
    ((_, (run,)),) = told["done"]
    assert 0 < run.scenario.duration_s < LONG.duration_s and len(run.trace)


def test_stop_in_a_comparison_leaves_runs_of_one_length(player):
    runs, reports = player
    runs.request(State(LONG, wb.Gossip()))
    assert reports["is_under_way"].wait(300)
    runs.stop()
    assert runs.wait(300)
    ((_, (left, right)),) = reports["done"]
    assert 0 < left.scenario.duration_s == right.scenario.duration_s < LONG.duration_s


def test_what_ends_a_run_is_a_sentence_and_the_next_wish_is_played(player, monkeypatch):
    runs, told = player
    monkeypatch.setattr(runner, "play", lambda scenario, **_: 1 / 0)
    runs.request(State(SHORT))
    assert runs.wait(300)
    assert told["failed"] == ["the run ended with ZeroDivisionError: division by zero"]
    monkeypatch.undo()
    runs.request(State(SHORT))
    assert runs.wait(300) and len(told["done"]) == 1


def test_a_panel_without_a_scenario_says_so():
    panel = RunPanel()
    panel.run_button.click()
    assert "The panel has nothing to run" in panel.message.value and not panel.busy
