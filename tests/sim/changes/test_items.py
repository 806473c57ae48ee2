"""Items of changes as values: JSON and back, hashes, and a sentence for each invalid argument."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests import network_items
from tests.families import examples
from workbench.errors import DataError, ParameterError, ScenarioError
from workbench.sim import workload
from workbench.sim.changes.measured import LinkQualities

TOPOLOGY = wb.topology.disc(8, 50, 50, 25, seed=1)


@settings(max_examples=examples(300))
@given(network_items.changes(TOPOLOGY, 30.0, most=5))
def test_items_and_scenarios_are_the_same_after_json(items):
    for item in items:
        assert workload.from_dict(json.loads(json.dumps(workload.to_dict(item)))) == item
    scenario = wb.Scenario(TOPOLOGY, wb.Flooding(), items)
    again = wb.Scenario.from_json(scenario.to_json())
    assert again == scenario and again.hash == scenario.hash


@settings(max_examples=examples(100))
@given(network_items.changes(TOPOLOGY, 30.0, most=1), network_items.changes(TOPOLOGY, 30.0, most=1))
def test_different_items_have_different_hashes(items, others):
    hashes = [wb.Scenario(TOPOLOGY, wb.Flooding(), each).hash for each in (items, others)]
    assert (hashes[0] == hashes[1]) == (items == others)


def test_fields_with_their_default_are_left_out_so_that_files_stay_short():
    assert workload.to_dict(wb.crash(3, 5)) == {"crash": {"at": 3, "start_s": 5.0}}
    assert workload.to_dict(wb.join([1, 2], 5)) == {"join": {"at": [1, 2], "start_s": 5.0}}
    assert workload.to_dict(wb.burst_loss(2, 1)) == {"burst_loss": {"good_s": 2.0, "bad_s": 1.0}}
    assert workload.to_dict(wb.jam(1, 2, 3)) == {"jam": {"x_m": 1.0, "y_m": 2.0, "radius_m": 3.0}}
    assert workload.to_dict(wb.move("all", wb.mobility.RandomWaypoint()))["move"]["along"]["kind"] == "random_waypoint"


def test_scenario_without_changes_has_the_hash_of_earlier_versions():
    items = [wb.subscribe(0, "TEMP GE 20"), wb.publish(8, "TEMP IS 25", every_s=2), wb.outage([3, 4], 2, 5)]
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), items, wb.Radio(), 10, 7)
    assert scenario.hash == "5e667e9753388b8a"
    assert (
        scenario.run(engine="reference").trace_hash
        == "fd69d7d7835b0f8f6df6afb2d45b51eb9b0480f9238d77672370d5b98bde1ccf"
    )


PATH = [(1, 0, 0)]
QUALITIES = LinkQualities([0], [1], [2], [0.5])
INVALID = [
    (lambda: wb.crash(0, -1), r"start_s is -1; it must be a number of seconds, 0 to \d+"),
    (lambda: wb.crash(0, float("nan")), "start_s is nan; it must be a number of seconds, 0 to"),
    (lambda: wb.crash(0, "soon"), "start_s is 'soon'; it must be a number of seconds, 0 to"),
    (lambda: wb.crash(0, 5, 4), r"stop_s is 4\.0, before start_s 5\.0; it must be start_s or later"),
    (lambda: wb.crash([], 5), "the argument `at` is \\[\\]; it must be a node number, a list of node numbers, or"),
    (lambda: wb.crash([1, 1], 5), "the argument `at` is \\[1, 1\\]; it must name each node once"),
    (lambda: wb.join("some", 5), "the argument `at` is 'some'; it must be a node number, a list of node numbers, or"),
    (lambda: wb.join(0, None), "start_s is None; it must be a number of seconds, 0 to"),
    (lambda: wb.leave(0, True), "start_s is True; it must be a number of seconds, 0 to"),
    (lambda: wb.leave(1.5, 3), "the argument `at` is 1.5; it must be a node number, a list of node numbers, or"),
    (lambda: wb.partition("all", 1), 'the argument `at` is "all"; it must name the nodes on one side of the partition'),
    (lambda: wb.partition(0, 2, 1), r"stop_s is 1\.0, before start_s 2\.0; it must be start_s or later"),
    (lambda: wb.move(0, []), r"Waypoints: points is \[\]; it must be a list of 1 to 1,000,000 points"),
    (lambda: wb.move(0, 7), r"Waypoints: points is 7; it must be a list of 1 to 1,000,000 points"),
    (lambda: wb.move(0, [(0, 1)]), r"Waypoints: point 0 is \(0, 1\); it must be \(time_s, x_m, y_m\), three finite"),
    (
        lambda: wb.move(0, [(5, 0, 0), (4, 0, 0)]),
        r"Waypoints: point 1 is at 4\.0 s, .* at 5\.0 s; times must ascend",
    ),
    (lambda: wb.move(0, PATH, step_s=0), r"step_s is 0; it must be a number of seconds, 0\.001 to"),
    (lambda: wb.move(0, PATH, radius_m=0), r"radius_m is 0; it must be a number from 0\.001 to \S+ m"),
    (lambda: wb.burst_loss(0, 1), r"good_s is 0; it must be a number of seconds, 0\.001 to"),
    (lambda: wb.burst_loss(1, -1), r"bad_s is -1; it must be a number of seconds, 0\.001 to"),
    (lambda: wb.burst_loss(1, 1, 1.5), r"bad_pdr is 1\.5; it must be a number from 0 to 1"),
    (lambda: wb.burst_loss(1, 1, start_s=3, stop_s=2), r"stop_s is 2\.0, before start_s 3\.0; it must be start_s"),
    (lambda: wb.jam(None, 0, 1), "x_m is None; it must be a number from"),
    (lambda: wb.jam(0, float("inf"), 1), "y_m is inf; it must be a number from"),
    (lambda: wb.jam(0, 0, -1), "radius_m is -1; it must be a number from 0 to"),
    (lambda: wb.jam(0, 0, 1, every_s=1), "every_s is 1 and for_s is None; give both, with for_s below every_s"),
    (lambda: wb.jam(0, 0, 1, for_s=1), "every_s is None and for_s is 1; give both, with for_s below every_s"),
    (lambda: wb.jam(0, 0, 1, every_s=1, for_s=1), "every_s is 1 and for_s is 1; give both, with for_s below every_s"),
    (lambda: wb.jam(0, 0, 1, every_s=0.0005, for_s=0.0001), r"every_s is 0\.0005; it must be at least 0\.001 s"),
    (
        lambda: LinkQualities([], [], [], []),
        "the link trace has columns of different or invalid lengths .time_s 0, .*; all columns must have the same",
    ),
    (
        lambda: LinkQualities([0, 1], [1], [2], [1]),
        "the link trace has columns of different or invalid lengths .time_s 2, transmitter 1",
    ),
    (lambda: LinkQualities([0], [1], [1], [1]), "the link trace has a link from node 1 to itself; a link joins two"),
    (lambda: LinkQualities([0], [1.5], [2], [1]), r"the link trace has the node number 1\.5; node numbers"),
    (lambda: LinkQualities([0], [1], [2], [1.5]), r"the link trace has a pdr of 1\.5; it must be a number from 0 to 1"),
    (
        lambda: LinkQualities([-1], [1], [2], [1]),
        r"the link trace has a time_s of -1\.0; it must be a number from 0 to",
    ),
    (
        lambda: LinkQualities(["x"], [1], [2], [1]),
        r"the column time_s of the link trace is \['x'\]; it must be a list of numbers",
    ),
    (
        lambda: LinkQualities([1, 1], [1, 1], [2, 2], [1, 0]),
        "the link trace has two delivery ratios of the link 1 -> 2 at 1 s;",
    ),
]


@pytest.mark.parametrize("index", range(len(INVALID)))
def test_invalid_argument_is_an_error_of_one_sentence(index):
    make, sentence = INVALID[index]
    with pytest.raises((ScenarioError, ParameterError), match=f"^{sentence}") as caught:
        make()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        (
            [wb.crash(99, 1)],
            "workload item 0 is at node 99, which the topology does not have; its 8 nodes are numbered",
        ),
        ([wb.join(0, 1), wb.partition(9, 1)], "workload item 1 is at node 9, which the topology does not have"),
        ([wb.move([0, 8], PATH)], "workload item 0 is at node 8, which the topology does not have"),
        (
            [wb.link_trace(LinkQualities([0], [1], [50], [0.5]))],
            "workload item 0 is at node 50, which the topology does not have",
        ),
        ([wb.move(0, PATH), wb.move("all", PATH)], "workload items 0 and 1 both move node 0; leave one out"),
        ([wb.move(0, PATH, radius_m=5), wb.move(1, PATH)], "workload item 1 has radius_m None, and item 0 has 5"),
    ],
)
def test_item_that_does_not_fit_the_network_is_an_error(items, sentence):
    with pytest.raises(ScenarioError, match=f"^{sentence}"):
        wb.Scenario(TOPOLOGY, wb.Flooding(), items)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"crash": {"at": 0}}, "workload item: crash lacks the field start_s; its fields are: at, start_s, stop_s"),
        ({"crash": {"at": 0, "start": 1}}, r"workload item: crash has no field 'start' \(did you mean start_s\?\)"),
        ({"jam": {"x_m": 0, "y_m": 0, "radius_m": "x"}}, "workload item: radius_m is 'x'; it must be a number from"),
        ({"move": {"at": 0, "along": {"kind": "walk"}}}, "workload item: .*walk"),
        ({"link_trace": {"trace": {"times_s": [0]}}}, "workload item: trace is .*; it must be an object with times_s"),
        ({"link_trace": {"trace": 5}}, "workload item: trace is 5; it must be an object with times_s"),
        ({"burst_loss": 3}, "workload item: burst_loss is 3; it must be an object with fields"),
    ],
)
def test_invalid_json_is_an_error_of_one_sentence(values, sentence):
    with pytest.raises(ScenarioError, match=f"^{sentence}"):
        workload.from_dict(values)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("time_s,transmitter,receiver\n0,1,2\n", r".*links\.csv.*pdr"),
        ("time_s,transmitter,receiver,pdr\n0,1,2,good\n", r".*line 2, column pdr: 'good'; it must be a number"),
        ("time_s,transmitter,receiver,pdr\n0,1,x,0.5\n", r".*line 2, column receiver"),
    ],
)
def test_invalid_table_is_an_error_that_names_the_place(tmp_path, text, sentence):
    file = tmp_path / "links.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=f"^{sentence}"):
        wb.link_trace(str(file))


@given(st.floats(allow_nan=True), st.floats(allow_nan=True))
def test_any_pair_of_times_is_an_item_or_an_error_of_the_workbench(start_s, stop_s):
    for make in (wb.crash, wb.partition):
        try:
            item = make(0, start_s, stop_s)
        except ScenarioError as error:
            assert "_s is " in str(error) or "stop_s must be later" in str(error)
        else:
            assert item.start_s < item.stop_s
