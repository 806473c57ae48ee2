"""The automaton of a link: its table is complete, every entry occurs or is impossible, and both engines follow it."""

import pytest

import workbench as wb
from tests.protocols.dps.alone import Fuzz
from tests.protocols.dps.checks import ring
from tests.repository import REPOSITORY
from workbench.protocols.dps import automaton
from workbench.protocols.dps.automaton import (
    ACTIVE,
    ANSWERED,
    CHANGED,
    GONE,
    LINKING,
    LOOP,
    MUTED,
    NEEDED,
    QUIET,
    TABLE,
    Action,
    Entry,
    Input,
    State,
)
from workbench.protocols.dps.links import _ACTIONS, Links
from workbench.protocols.dps.views.automaton import draw

ENTRIES = [(state, event) for state in State for event in Input]


def test_table_has_an_entry_for_each_state_and_input():
    assert sorted(TABLE) == list(State)
    for state in State:
        assert sorted(TABLE[state]) == list(Input)
    for state, event in ENTRIES:
        entry = TABLE[state][event]
        assert entry.reason and entry.state in (None, *State)
        assert not (entry.state is None and entry.actions), "an input that never comes has no actions"


def test_each_state_input_and_action_has_a_name_and_a_meaning():
    assert {action for state, event in ENTRIES for action in TABLE[state][event].actions} == {*Action}
    assert [method.__name__ for method in _ACTIONS] == [f"_{action.name.lower()}" for action in Action]
    for codes in (State, Input, Action):
        assert [*codes] == [*range(len(codes))]
        assert all(code.label and code.meaning for code in codes)
    for code in (*State, *Input):
        assert getattr(automaton, code.name) is code


@pytest.fixture
def come(monkeypatch):
    """Return the set of entries that are looked up."""
    entries = set()
    look_up = Links._apply

    def note(self, remote, event, now):
        entries.add((State(remote.state), Input(event)))
        look_up(self, remote, event, now)

    monkeypatch.setattr(Links, "_apply", note)
    return entries


def named(entries):
    return sorted((state.label, event.label) for state, event in entries)


@pytest.mark.family
def test_each_entry_occurs_in_some_run_unless_it_is_impossible(come):
    wanted = {(state, event) for state, event in ENTRIES if TABLE[state][event].state is not None}
    for seed in range(400):
        fuzz = Fuzz(seed)
        for _ in range(120):
            fuzz.step()
        if seed >= 10 and come >= wanted:
            break
    assert named(wanted - come) == []
    assert named(come - wanted) == []


# The fast twin


def test_the_arrays_of_the_twin_equal_the_table():
    from workbench.protocols.dps.fast.state import automaton_arrays

    next_states, firsts, actions = automaton_arrays()
    for number, (state, event) in enumerate(ENTRIES):
        entry = TABLE[state][event]
        assert next_states[number] == (state if entry.state is None else entry.state)
        assert tuple(actions[firsts[number] : firsts[number + 1]]) == entry.actions
    assert len(actions) == firsts[-1]


def test_replacing_a_link_and_announcing_changes_cause_no_further_ones():
    # The twin's function for these actions does not call itself.
    for state in State:
        assert not {Action.REPLACE, Action.UPDATE} & {*TABLE[state][NEEDED].actions, *TABLE[state][CHANGED].actions}


def traces():
    """Return the digests of a run with loops, outages and keep-alives, for both engines."""
    protocol = wb.DPS(update_s=0.2, link_loss_s=1.0, relink_s=1.0, recheck_s=4.0)
    workload = [
        wb.subscribe([0, 3], "TEMP GE 25"),
        wb.subscribe(1, "TEMP GE 30", start_s=20),
        wb.publish("all", "TEMP IS 26", every_s=2, start_s=3, stagger=True),
        *[wb.outage(node, 10 + 10 * node, 15 + 10 * node) for node in range(3)],
    ]
    scenario = wb.Scenario(ring(6), protocol, workload, duration_s=45)
    return [scenario.run(engine=engine).trace_hash for engine in ("reference", "fast")]


@pytest.mark.parametrize(
    ("state", "event", "after", "does"),
    [
        (ACTIVE, LOOP, ACTIVE, ()),
        (LINKING, ANSWERED, ACTIVE, (Action.STOP_WAITING,)),
        (ACTIVE, CHANGED, ACTIVE, (Action.SEND_CHANGE,)),
        (ACTIVE, automaton.LOST, GONE, (Action.NOTE_REVISION, Action.REMOVE, Action.REPORT_END)),
        (MUTED, QUIET, MUTED, (Action.STOP_WAITING,)),
        (MUTED, NEEDED, ACTIVE, (Action.STOP_WAITING, Action.SEND_ALL)),
        (GONE, automaton.BEGUN, ACTIVE, (Action.ANSWER_IN_FULL,)),
    ],
)
def test_changing_an_entry_changes_both_engines_alike(monkeypatch, state, event, after, does):
    before = traces()
    monkeypatch.setitem(TABLE[state], event, Entry(after, does, "for a try"))
    reference, fast = traces()
    assert reference == fast != before[0] == before[1]


# The drawing


def test_drawing_in_the_docs_equals_the_table():
    committed = (REPOSITORY / "docs/images/dps-links.svg").read_text(encoding="utf-8")
    assert committed == draw().to_svg(), "python -m workbench.protocols.dps.views.automaton docs/images/dps-links.svg"
