"""What was composed, on disk."""

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


def test_a_state_is_there_again(store):
    state = State(SCENARIO.replace(seed=3), wb.Flooding(ttl=9))
    saved(store, state)
    assert store.read(None) == state


def test_workload_at_nodes_that_the_network_lacks_is_there_again(store):
    state = State(SCENARIO, None, (wb.subscribe([0, 31], "TEMP GE 1"), wb.publish(37, "TEMP IS 2")))
    saved(store, state)
    assert store.read(None) == state and store.read(None).workload == state.composed


def test_of_states_that_come_quickly_the_newest_is_written(store):
    for seed in range(5):
        store.write(State(SCENARIO.replace(seed=seed)), "x")
    store.flush()
    assert store.read(None).scenario.seed == 4
    assert [path.name for path in store.path.parent.iterdir()] == ["lab.json"]


def test_a_lab_that_is_opened_with_another_scenario_begins_with_that(store):
    saved(store, State(SCENARIO.replace(seed=3)), SCENARIO.hash)
    assert store.read(SCENARIO).scenario.seed == 3
    assert store.read(SCENARIO.replace(duration_s=1)) is None


def test_nothing_on_disk_is_nothing(store):
    assert store.read(None) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": "workbench-lab"}', '{"format": "other", "version": 1}', "\0"]
)
def test_a_file_that_cannot_be_read_is_put_aside_and_not_lost(store, text):
    store.path.parent.mkdir()
    store.path.write_text(text)
    assert store.read(None) is None
    assert store.path.with_suffix(".kept-1.json").read_text() == text
    assert "cannot be shown" in store.message and "kept-1.json" in store.message
    store.path.write_text(text)
    assert store.read(None) is None and store.path.with_suffix(".kept-2.json").exists()


@pytest.mark.parametrize("name", ["", "../up", "a b", "x" * 61])
def test_a_name_that_is_no_name_of_a_file_is_refused(name):
    with pytest.raises(ScenarioError, match="the lab's name"):
        Store(name)
