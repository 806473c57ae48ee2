"""The workload: order of actions, reading and writing of the plain form, and errors for wrong items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import attributes, outage, parse, publish, subscribe
from workbench.errors import AttributeFormatError, ScenarioError, WorkbenchError
from workbench.sensor_field import SensorField
from workbench.sim import workload
from workbench.sim.workload import FAIL, PUBLISH, RECOVER, SUBSCRIBE, UNSUBSCRIBE

SECOND = 1_000_000
NODES = (0, 1, 2, 3)


def actions(*items, duration_s=10, seed=1):
    """Return [(time_s, kind, node), ...] of a workload, in order."""
    expanded = workload.expand(items, NODES, duration_s * SECOND, seed)
    return [(action.time_us / SECOND, action.kind, action.node) for action in expanded]


# --- order of actions ---


def test_single_publication_happens_once():
    assert actions(publish(2, "TEMP IS 26", start_s=1.5)) == [(1.5, PUBLISH, 2)]


def test_periodic_publication_ends_before_its_stop_and_before_the_end_of_the_run():
    assert [time for time, *_ in actions(publish(2, "TEMP IS 26", every_s=2, start_s=1, stop_s=5))] == [1, 3]
    assert [time for time, *_ in actions(publish(2, "TEMP IS 26", every_s=4))] == [0, 4, 8]
    assert actions(publish(2, "TEMP IS 26", start_s=10)) == []


def test_subscription_starts_and_ends_at_its_times():
    assert actions(subscribe(1, "TEMP GE 25", start_s=2, stop_s=4)) == [(2, SUBSCRIBE, 1), (4, UNSUBSCRIBE, 1)]
    assert actions(subscribe(1, "TEMP GE 25", expires_s=4)) == [(0, SUBSCRIBE, 1)]


def test_outage_fails_and_recovers_or_lasts_to_the_end():
    assert actions(outage(1, 2, 4)) == [(2, FAIL, 1), (4, RECOVER, 1)]
    assert actions(outage(1, 2)) == [(2, FAIL, 1)]


def test_outage_without_duration_is_ignored():
    assert actions(outage(1, 2, 2)) == actions(outage(1, 2, 2 + 1e-9)) == []


def test_at_selects_all_nodes_or_the_listed_ones():
    assert [node for *_, node in actions(publish("all", "TEMP IS 26"))] == [0, 1, 2, 3]
    assert [node for *_, node in actions(publish([3, 1], "TEMP IS 26"))] == [1, 3]


def test_at_one_instant_outages_precede_the_application_and_readings_are_last():
    items = [
        publish(0, "TEMP IS 26", start_s=5),
        subscribe(0, "TEMP GE 1", start_s=1, stop_s=5),
        subscribe(0, "TEMP GE 2", start_s=5),
        outage(1, 5),
        outage(0, 4, 5),
    ]
    at_five = [kind for time, kind, _ in actions(*items) if time == 5]
    assert at_five == [RECOVER, FAIL, SUBSCRIBE, UNSUBSCRIBE, PUBLISH]


def test_stagger_gives_each_node_its_own_phase_within_the_period():
    item = publish("all", "TEMP IS 26", every_s=5, start_s=1, stagger=True)
    first = {}
    for time, _, node in actions(item):
        first.setdefault(node, time)
    assert len(set(first.values())) == 4 and all(1 <= time < 6 for time in first.values())
    assert actions(item) == actions(item) != actions(item, seed=2)
    for node, start in first.items():
        assert [t for t, _, n in actions(item) if n == node] == pytest.approx(
            [start + 5 * i for i in range(2) if start + 5 * i < 10]
        )


# --- plain form ---

TIMES = st.floats(0, 1e6) | st.integers(0, 10**6)
PERIODS = st.none() | st.floats(0.001, 1e6)
ADDRESSES = st.just("all") | st.integers(0, 99) | st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True)
ITEMS = st.one_of(
    st.builds(subscribe, ADDRESSES, st.just("TEMP GE 25"), PERIODS, TIMES, match_all=st.booleans()),
    st.builds(
        publish,
        ADDRESSES,
        st.sampled_from(["TEMP IS 26", SensorField(base=12.5, hot_spot_path=((0.5, 0.5),))]),
        PERIODS,
        TIMES,
        payload=st.binary(max_size=9),
    ),
    st.builds(publish, ADDRESSES, st.just("TEMP IS 26"), st.floats(0.001, 1e6), TIMES, stagger=st.booleans()),
    st.builds(outage, ADDRESSES, TIMES),
)


@given(ITEMS)
def test_plain_form_is_read_back_as_the_same_item(item):
    assert workload.from_dict(workload.to_dict(item)) == item


def test_plain_form_leaves_out_default_values():
    assert workload.to_dict(subscribe(1, "TEMP GE 25")) == {"subscribe": {"at": 1, "what": "TEMP GE 25"}}
    plain = workload.to_dict(publish([1, 2], "TEMP IS 26", every_s=5, payload=b"\x01\xff"))
    assert plain == {"publish": {"at": [1, 2], "what": "TEMP IS 26", "every_s": 5.0, "payload": "01ff"}}


def test_numbers_of_numpy_are_accepted():
    assert publish(np.int64(3), "TEMP IS 26", every_s=np.float32(2)) == publish(3, "TEMP IS 26", every_s=2)
    assert publish(np.arange(3), "TEMP IS 26") == publish([0, 1, 2], "TEMP IS 26")


# --- errors ---


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: subscribe("some", "TEMP GE 25"), ["at", "'some'", '"all"']),
        (lambda: subscribe([], "TEMP GE 25"), ["at", "[]", "node number"]),
        (lambda: subscribe(1.5, "TEMP GE 25"), ["at", "1.5"]),
        (lambda: subscribe([1, 2.5], "TEMP GE 25"), ["at", "2.5"]),
        (lambda: subscribe(["1"], "TEMP GE 25"), ["at", "['1']"]),
        (lambda: subscribe(True, "TEMP GE 25"), ["at", "True"]),
        (lambda: subscribe([1, 2, 1], "TEMP GE 25"), ["at", "1", "once"]),
        (lambda: subscribe(1, 5), ["what", "5", "TEMP GE 25"]),
        (lambda: subscribe(1, SensorField()), ["what", "TEMP GE 25"]),
        (lambda: subscribe(1, {"TEMP": 25}), ["what", "{'TEMP': 25}", "such as 'TEMP EQ 25'"]),
        (lambda: subscribe(1, {"WARMTH": 25}), ["what", "such as 'TEMP GE 25'"]),
        (lambda: publish(1, 25), ["what", "25", "text such as 'TEMP IS 25'"]),
        (lambda: publish(1, {"WARMTH": 25}), ["key is WARMTH", "known keys are"]),
        (lambda: subscribe(1, ["TEMP GE 20", "X LE 3"]), ["one text with commas: 'TEMP GE 20, X LE 3'"]),
        (lambda: publish(1, "TEMP IS 26", payload="hello"), ["must be bytes such as b'hello'"]),
        (lambda: publish(1, {}), ["at least one attribute"]),
        (lambda: publish(1, "TEMP GE 25"), ["not IS", "use IS instead of GE"]),
        (lambda: publish(1), ["publish lacks the argument what", "publish(at, what,"]),
        (lambda: subscribe(1, "TEMP GE 25", expires_s=0), ["expires_s", "0"]),
        (lambda: subscribe(1, "TEMP GE 25", expires_s=float("inf")), ["expires_s", "inf"]),
        (lambda: subscribe(1, "TEMP GE 25", start_s=-1), ["start_s", "-1"]),
        (lambda: subscribe(1, "TEMP GE 25", start_s=None), ["start_s", "None"]),
        (lambda: subscribe(1, "TEMP GE 25", start_s="5"), ["start_s", "'5'"]),
        (lambda: subscribe(1, "TEMP GE 25", start_s=3, stop_s=2), ["stop_s", "2", "3"]),
        (lambda: subscribe(1, "TEMP GE 25", match_all="yes"), ["match_all", "'yes'", "True or False"]),
        (lambda: publish(1, "TEMP IS 26", every_s=0), ["every_s", "0"]),
        (lambda: publish(1, "TEMP IS 26", every_s=1e-9), ["every_s", "1e-09"]),
        (lambda: publish(1, "TEMP IS 26", every_s=float("nan")), ["every_s", "nan"]),
        (lambda: publish(1, "TEMP IS 26", every_s=10**400), ["every_s"]),
        (lambda: publish(1, "TEMP IS 26", payload="text"), ["payload", "'text'", "bytes"]),
        (lambda: publish(1, "TEMP IS 26", payload=5), ["payload", "5", "bytes"]),
        (lambda: publish(1, "TEMP IS 26", payload=bytes(70_000)), ["payload", "70000", "63750"]),
        (lambda: publish("all", "TEMP IS 26", stagger=True), ["stagger", "every_s is missing"]),
        (lambda: publish(1, "TEMP IS 26", stagger=1), ["stagger", "1", "True or False"]),
        (lambda: publish(1, SensorField(key="DEPTH")), ["key is DEPTH", "known keys are"]),
        (lambda: publish(1, SensorField(key="PAYLOAD")), ["PAYLOAD", "blob"]),
        (lambda: outage(1, 5, 4), ["stop_s", "4", "5"]),
        (lambda: outage(1, True), ["start_s", "True"]),
    ],
)
def test_wrong_argument_is_named_with_the_allowed_values(make, words):
    with pytest.raises(WorkbenchError) as error:
        make()
    for word in words:
        assert word in str(error.value)


def test_subscription_without_constraints_is_refused_unless_it_is_explicit():
    with pytest.raises(AttributeFormatError, match="match_all"):
        subscribe(1, "TEMP IS 25")
    assert subscribe(1, "TEMP IS 25", match_all=True).match_all


def test_what_accepts_text_a_mapping_or_attributes_and_is_stored_as_text():
    assert publish(1, {"TEMP": 25, "TOPIC": "a/b"}) == publish(1, 'TEMP IS 25, TOPIC IS "a/b"')
    assert publish(1, attributes(TEMP=25)) == publish(1, parse("TEMP IS 25")) == publish(1, "TEMP IS 25")
    assert subscribe(1, parse("TEMP >= 25")) == subscribe(1, "TEMP GE 25")


def test_publication_with_constraints_is_refused():
    with pytest.raises(AttributeFormatError, match="not IS"):
        publish(1, "TEMP GE 25")


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        (5, ["workload item", "5"]),
        ({}, ["workload item", "subscribe"]),
        ({"subscribe": {}, "publish": {}}, ["workload item"]),
        ({"forget": {}}, ["forget", "subscribe"]),
        ({"subscribe": []}, ["subscribe", "[]", "object"]),
        ({"subscribe": {"at": 1}}, ["subscribe", "lacks", "what"]),
        ({"outage": {"at": 1}}, ["outage", "lacks", "start_s"]),
        ({"subscribe": {"at": 1, "what": "TEMP GE 25", "until": 5}}, ["'until'", "stop_s"]),
        ({"publish": {"at": 1, "what": "TEMP IS 26", "payload": "xyz"}}, ["payload", "'xyz'", "hex"]),
        ({"publish": {"at": 1, "what": "TEMP IS 26", "payload": 5}}, ["payload", "5", "hex"]),
        ({"publish": {"at": 1, "what": {"warmth": 5}}}, ["warmth"]),
    ],
)
def test_wrong_plain_form_is_named_with_its_position(plain, words):
    with pytest.raises(ScenarioError) as error:
        workload.from_dict(plain)
    for word in ["workload item", *words]:
        assert word in str(error.value)


def test_item_at_an_unknown_node_is_refused_with_the_existing_nodes():
    with pytest.raises(ScenarioError, match="item 1 is at node 7.*4 nodes.*0 to 3"):
        workload.check_nodes([subscribe("all", "TEMP GE 25"), outage([1, 7], 0)], NODES)
