"""The state of a lab: changes, undo, and what happens to what speaks of nodes that are gone."""

import pytest

import workbench as wb
from workbench.topology import edits
from workbench.widgets import session as session_module
from workbench.widgets.session import Session, State

WORKLOAD = [wb.subscribe([0, 3], "TEMP GE 1"), wb.publish(5, "TEMP IS 2"), wb.publish("all", "TEMP IS 3")]


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(session_module, "_ONE_GESTURE_S", 0.0)
    return Session(State(wb.Scenario(wb.topology.grid(2, 3), wb.TinyMQ(roots=(0, 5)), WORKLOAD)))


def test_a_change_is_the_next_state_and_can_be_undone_and_redone(session):
    first = session.state
    assert session.change(seed=7) and session.change(duration_s=5)
    assert (session.scenario.seed, session.scenario.duration_s) == (7, 5.0)
    session.undo()
    session.undo()
    assert session.state == first and not session.can_undo and session.can_redo
    session.redo()
    assert session.scenario.seed == 7
    assert session.change(seed=8) and not session.can_redo


def test_what_cannot_be_is_a_sentence_and_changes_nothing(session):
    before = session.state
    assert not session.change(duration_s=-1)
    assert "duration_s is -1" in session.error and session.state is before and not session.can_undo
    assert session.change(duration_s=3) and session.error == ""


def test_what_changes_nothing_is_no_step(session):
    assert session.change(seed=session.scenario.seed) and not session.can_undo


def test_the_moves_of_a_slider_are_one_step(session, monkeypatch):
    monkeypatch.setattr(session_module, "_ONE_GESTURE_S", 60.0)
    for seed in range(10, 20):
        session.change(seed=seed)
    session.change(duration_s=9)
    session.undo()
    assert session.scenario.seed == 19
    session.undo()
    assert session.scenario.seed == 1


def test_the_moves_of_a_generators_slider_are_one_step(session, monkeypatch):
    monkeypatch.setattr(session_module, "_ONE_GESTURE_S", 60.0)
    for columns in (4, 3, 2):
        session.change(topology=wb.topology.grid(2, columns))
    session.change(topology=wb.topology.grid(3, 2))
    session.undo()
    assert len(session.scenario.topology) == 4
    session.undo()
    assert len(session.scenario.topology) == 6 and not session.can_undo


def test_what_is_no_slider_is_a_step_of_its_own_however_quickly_it_is_done(session, monkeypatch):
    monkeypatch.setattr(session_module, "_ONE_GESTURE_S", 60.0)
    states = [session.state]
    for x_m in (5.0, 15.0):
        session.change(topology=edits.with_node(session.scenario.topology, (x_m, 5.0)))
        states.append(session.state)
    for link in ((6, 0), (7, 0)):
        session.change(topology=edits.with_links(session.scenario.topology, {link: 1.0}))
        states.append(session.state)
    for node in (1, 2):
        session.change(workload=(*session.scenario.workload, wb.publish(node, "TEMP IS 4")))
        states.append(session.state)
    for beside in (wb.Flooding(), wb.Gossip()):
        session.change(beside=beside)
        states.append(session.state)
    for before in reversed(states[:-1]):
        session.undo()
        assert session.state == before
    assert not session.can_undo


def test_what_was_at_nodes_that_are_taken_away_goes_with_them(session):
    smaller = session.scenario.topology.subgraph([0, 1, 2]).copy()
    assert session.change(topology=smaller)
    assert [item.at for item in session.scenario.workload] == [(0,), "all"]
    assert session.scenario.protocol.roots == (0,)


def test_a_protocol_that_loses_all_its_roots_gets_another(session):
    assert session.change(topology=session.scenario.topology.subgraph([1, 2]).copy())
    assert session.scenario.protocol.roots == (1,)


def test_two_protocols_play_the_same(session):
    assert session.change(beside=wb.Flooding())
    one, other = session.state.scenarios
    assert (one, other.protocol) == (session.scenario, wb.Flooding())
    assert one.replace(protocol=wb.Flooding()) == other
    assert session.change(beside=None) and len(session.state.scenarios) == 1


def test_a_protocol_beside_that_cannot_play_it_is_refused(session):
    assert not session.change(beside=wb.TinyMQ(roots=(77,)))
    assert "node 77" in session.error and session.state.beside is None
