"""Storage of composed scenarios on disk."""

import pytest

import workbench as wb
from workbench.errors import ScenarioError
from workbench.widgets.history import State
from workbench.widgets.store import Store

SCENARIO = wb.Scenario(wb.topology.line(4), wb.Diffusion(), [wb.subscribe(0, "TEMP GE 1")], seed=9)


@pytest.fixture
def store(tmp_path):
    return Store("lab", tmp_path / "below")


def saved(store, state, opened_with="x"):
    store.write(state, opened_with)
    store.flush()


def test_a_stored_state_is_restored(store):
    state = State(SCENARIO.replace(seed=3), wb.Flooding(ttl=9))
    saved(store, state)
    assert store.read(None) == state


def test_workload_at_unknown_nodes_is_restored(store):
    state = State(SCENARIO, None, (wb.subscribe([0, 31], "TEMP GE 1"), wb.publish(37, "TEMP IS 2")))
    saved(store, state)
    assert store.read(None) == state and store.read(None).workload == state.composed


def test_only_the_newest_of_many_quick_states_is_written(store):
    for seed in range(5):
        store.write(State(SCENARIO.replace(seed=seed)), "x")
    store.flush()
    assert store.read(None).scenario.seed == 4
    assert [path.name for path in store.path.parent.iterdir()] == ["lab.json"]


def test_a_lab_opened_with_another_scenario_starts_with_it(store):
    saved(store, State(SCENARIO.replace(seed=3)), SCENARIO.hash)
    assert store.read(SCENARIO).scenario.seed == 3
    assert store.read(SCENARIO.replace(duration_s=1)) is None


def test_a_missing_file_restores_nothing(store):
    assert store.read(None) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": "workbench-lab"}', '{"format": "other", "version": 1}', "\0"]
)
def test_an_unreadable_file_is_renamed_and_not_lost(store, text):
    store.path.parent.mkdir()
    store.path.write_text(text)
    assert store.read(None) is None
    assert store.path.with_suffix(".kept-1.json").read_text() == text
    assert "cannot be shown" in store.message and "kept-1.json" in store.message
    store.path.write_text(text)
    assert store.read(None) is None and store.path.with_suffix(".kept-2.json").exists()


@pytest.mark.parametrize("name", ["", "../up", "a b", "x" * 61])
def test_an_invalid_file_name_is_refused(name):
    with pytest.raises(ScenarioError, match="the lab's name"):
        Store(name)
