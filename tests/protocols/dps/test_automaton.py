"""The automaton of a link: its table is complete, each entry happens or never does, both engines act by it."""

import pytest

import workbench as wb
from tests.protocols.dps.alone import Fuzz
from tests.protocols.dps.checks import ring
from tests.repository import REPOSITORY
from workbench.protocols.dps import automaton
from workbench.protocols.dps.automaton import (
    ACTION_MEANINGS,
    ACTION_NAMES,
    ACTIVE,
    ANSWERED,
    CHANGED,
    GONE,
    INPUT_MEANINGS,
    INPUT_NAMES,
    LINKING,
    LOOP,
    MUTED,
    NEEDED,
    QUIET,
    REPLACE,
    STATE_MEANINGS,
    STATE_NAMES,
    TABLE,
    Entry,
)
from workbench.protocols.dps.links import _ACTIONS, Links
from workbench.protocols.dps.views.automaton import draw

STATES, INPUTS = range(len(STATE_NAMES)), range(len(INPUT_NAMES))
ENTRIES = [(state, what) for state in STATES for what in INPUTS]


def test_table_has_an_entry_for_each_state_and_whatever_comes():
    assert sorted(TABLE) == list(STATES)
    for state in STATES:
        assert sorted(TABLE[state]) == list(INPUTS)
    for state, what in ENTRIES:
        entry = TABLE[state][what]
        assert entry.why and entry.state in (None, *STATES)
        assert not (entry.state is None and entry.does), "what never comes has no actions"


def test_each_state_input_and_action_has_a_name_and_a_meaning():
    assert len(STATE_NAMES) == len(STATE_MEANINGS)
    assert len(INPUT_NAMES) == len(INPUT_MEANINGS)
    assert len(ACTION_NAMES) == len(ACTION_MEANINGS) == len(_ACTIONS)
    assert {action for state, what in ENTRIES for action in TABLE[state][what].does} == set(range(len(ACTION_NAMES)))
    for names, kind in ((STATE_NAMES, "state"), (INPUT_NAMES, "input"), (ACTION_NAMES, "action")):
        for number, name in enumerate(names):
            assert getattr(automaton, name.upper().replace(" ", "_")) == number, (kind, name)


@pytest.fixture
def come(monkeypatch):
    """The entries that are looked up."""
    found = set()
    look_up = Links._come

    def note(self, remote, what, now):
        found.add((remote.state, what))
        look_up(self, remote, what, now)

    monkeypatch.setattr(Links, "_come", note)
    return found


def named(entries):
    return sorted((STATE_NAMES[state], INPUT_NAMES[what]) for state, what in entries)


def test_each_entry_comes_in_some_run_and_what_never_comes_in_none(come):
    wanted = {(state, what) for state, what in ENTRIES if TABLE[state][what].state is not None}
    for seed in range(400):
        fuzz = Fuzz(seed)
        for _ in range(120):
            fuzz.step()
        if seed >= 10 and come >= wanted:
            break
    assert named(wanted - come) == []
    assert named(come - wanted) == []


# The fast twin


def test_the_twins_arrays_are_the_table():
    from workbench.protocols.dps.fast.state import automaton_arrays

    next_states, firsts, actions = automaton_arrays()
    for number, (state, what) in enumerate(ENTRIES):
        entry = TABLE[state][what]
        assert next_states[number] == (state if entry.state is None else entry.state)
        assert tuple(actions[firsts[number] : firsts[number + 1]]) == entry.does
    assert len(actions) == firsts[-1]


def test_what_takes_a_links_place_or_is_told_changes_sets_off_no_more_of_that():
    # The twin's function for it does not call itself.
    for state in STATES:
        assert not {REPLACE, automaton.UPDATE} & {*TABLE[state][NEEDED].does, *TABLE[state][CHANGED].does}


def traces():
    """The digests of a run with loops, outages and signs of life, of both engines."""
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
    ("state", "what", "after", "does"),
    [
        (ACTIVE, LOOP, ACTIVE, ()),
        (LINKING, ANSWERED, ACTIVE, (automaton.STOP_WAITING,)),
        (ACTIVE, CHANGED, ACTIVE, (automaton.TELL,)),
        (ACTIVE, automaton.LOST, GONE, (automaton.NOTE_REVISION, automaton.REMOVE, automaton.ASK_LATER)),
        (MUTED, QUIET, MUTED, (automaton.STOP_WAITING,)),
        (MUTED, NEEDED, ACTIVE, (automaton.STOP_WAITING, automaton.TELL_IN_FULL)),
        (GONE, automaton.BEGUN, ACTIVE, (automaton.ANSWER_IN_FULL,)),
    ],
)
def test_changing_an_entry_changes_both_engines_alike(monkeypatch, state, what, after, does):
    before = traces()
    monkeypatch.setitem(TABLE[state], what, Entry(after, does, "for a try"))
    reference, fast = traces()
    assert reference == fast != before[0] == before[1]


# The drawing


def test_drawing_in_the_docs_is_made_from_the_table():
    committed = (REPOSITORY / "docs/images/dps-links.svg").read_text(encoding="utf-8")
    assert committed == draw().to_svg(), "python -m workbench.protocols.dps.views.automaton docs/images/dps-links.svg"
