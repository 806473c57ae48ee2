"""The state of a lab: changes, undo, and references to removed nodes."""

import pytest

import workbench as wb
from workbench.topology import edits
from workbench.widgets import history as history_module
from workbench.widgets.history import History, State

WORKLOAD = [wb.subscribe([0, 3], "TEMP GE 1"), wb.publish(5, "TEMP IS 2"), wb.publish("all", "TEMP IS 3")]


@pytest.fixture
def history(monkeypatch):
    monkeypatch.setattr(history_module, "_ONE_GESTURE_S", 0.0)
    return History(State(wb.Scenario(wb.topology.grid(2, 3), wb.TinyMQ(roots=(0, 5)), WORKLOAD)))


def test_a_change_is_the_next_state_and_can_be_undone_and_redone(history):
    first = history.state
    assert history.change(seed=7) and history.change(duration_s=5)
    assert (history.scenario.seed, history.scenario.duration_s) == (7, 5.0)
    history.undo()
    history.undo()
    assert history.state == first and not history.can_undo and history.can_redo
    history.redo()
    assert history.scenario.seed == 7
    assert history.change(seed=8) and not history.can_redo


def test_an_invalid_change_gives_an_error_and_changes_nothing(history):
    before = history.state
    assert not history.change(duration_s=-1)
    assert "duration_s is -1" in history.error and history.state is before and not history.can_undo
    assert history.change(duration_s=3) and history.error == ""


def test_a_change_without_effect_is_not_a_step(history):
    assert history.change(seed=history.scenario.seed) and not history.can_undo


def test_the_moves_of_a_slider_are_one_step(history, monkeypatch):
    monkeypatch.setattr(history_module, "_ONE_GESTURE_S", 60.0)
    for seed in range(10, 20):
        history.change(seed=seed)
    history.change(duration_s=9)
    history.undo()
    assert history.scenario.seed == 19
    history.undo()
    assert history.scenario.seed == 1


def test_the_moves_of_a_generators_slider_are_one_step(history, monkeypatch):
    monkeypatch.setattr(history_module, "_ONE_GESTURE_S", 60.0)
    for columns in (4, 3, 2):
        history.change(topology=wb.topology.grid(2, columns))
    history.change(topology=wb.topology.grid(3, 2))
    history.undo()
    assert len(history.scenario.topology) == 4
    history.undo()
    assert len(history.scenario.topology) == 6 and not history.can_undo


def test_quick_changes_without_a_slider_are_separate_steps(history, monkeypatch):
    monkeypatch.setattr(history_module, "_ONE_GESTURE_S", 60.0)
    states = [history.state]
    for x_m in (5.0, 15.0):
        history.change(topology=edits.with_node(history.scenario.topology, (x_m, 5.0)))
        states.append(history.state)
    for link in ((6, 0), (7, 0)):
        history.change(topology=edits.with_links(history.scenario.topology, {link: 1.0}))
        states.append(history.state)
    for node in (1, 2):
        history.change(workload=(*history.scenario.workload, wb.publish(node, "TEMP IS 4")))
        states.append(history.state)
    for beside in (wb.Flooding(), wb.Gossip()):
        history.change(beside=beside)
        states.append(history.state)
    for before in reversed(states[:-1]):
        history.undo()
        assert history.state == before
    assert not history.can_undo


def test_workload_at_removed_nodes_is_not_played_and_returns_with_the_nodes(history):
    first = history.scenario.topology
    assert history.change(topology=first.subgraph([0, 1, 2]).copy())
    assert [item.at for item in history.scenario.workload] == [(0,), "all"]
    assert list(history.state.workload) == WORKLOAD
    assert history.scenario.protocol.roots == (0,)
    assert history.change(topology=first)
    assert list(history.scenario.workload) == WORKLOAD and history.state.composed is None


def test_workload_at_removed_nodes_may_be_edited_and_other_unknown_nodes_are_refused(history):
    assert history.change(topology=history.scenario.topology.subgraph([0, 1, 2]).copy())
    assert history.change(workload=[*WORKLOAD[:2], wb.publish([1, 5], "TEMP IS 4")])
    assert [item.at for item in history.scenario.workload] == [(0,), (1,)]
    assert [item.at for item in history.state.workload] == [(0, 3), (5,), (1, 5)]
    assert not history.change(workload=[*WORKLOAD, wb.publish(77, "TEMP IS 4")]) and "node 77" in history.error


def test_a_protocol_that_loses_all_its_roots_gets_a_new_root(history):
    assert history.change(topology=history.scenario.topology.subgraph([1, 2]).copy())
    assert history.scenario.protocol.roots == (1,)


def test_two_protocols_play_the_same_scenario(history):
    assert history.change(beside=wb.Flooding())
    first, second = history.state.scenarios
    assert (first, second.protocol) == (history.scenario, wb.Flooding())
    assert first.replace(protocol=wb.Flooding()) == second
    assert history.change(beside=None) and len(history.state.scenarios) == 1


def test_a_second_protocol_that_cannot_play_the_scenario_is_refused(history):
    assert not history.change(beside=wb.TinyMQ(roots=(77,)))
    assert "node 77" in history.error and history.state.beside is None


def test_protocol_is_not_compared_with_itself(history):
    assert history.change(beside=wb.Flooding())
    assert history.change(protocol=wb.Flooding()) and history.state.beside is None
    assert history.change(beside=wb.Flooding(ttl=3)) and history.state.beside == wb.Flooding(ttl=3)
