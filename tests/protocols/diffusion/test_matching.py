"""The rules of matching (A11): any value meets a constraint, one value meets all of its key, or both sides match."""

import pytest

import workbench as wb
from tests.both_engines import assert_same_trace
from tests.network import Network, taken
from workbench.analysis.explain import mismatch
from workbench.errors import AttributeFormatError, ScenarioError
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.filters import Filter, register_filter
from workbench.protocols.diffusion.wire import Data, Interest, encode_data, encode_interest
from workbench.public_names import PROTOCOLS

LINE = [(0, 1), (1, 2), (2, 3)]
# None of the two values lies between 25 and 30, but one is above 25 and one is below 30.
APART, TOGETHER = "TEMP IS 20, TEMP IS 35", "TEMP IS 20, TEMP IS 27"


@pytest.mark.parametrize(("matching", "delivered"), [("any", [APART, TOGETHER]), ("strict", [TOGETHER])])
def test_strict_matching_needs_one_value_that_meets_all_constraints_of_its_key(matching, delivered):
    network = Network(Diffusion(matching=matching), LINE)
    subscription = network.subscribe(0, "TEMP GE 25, TEMP LE 30")
    network.publish(3, APART)
    network.publish(3, TOGETHER)
    assert taken(subscription) == delivered
    # A source keeps a reading that no interest matches.
    assert len(network.nodes[3].samples) == 2 - len(delivered)


def test_strict_sink_takes_the_matching_reading_out_of_an_aggregate():
    network = Network(Diffusion(matching="strict"), LINE)
    network.publish(3, "TEMP IS 20")
    network.publish(3, "TEMP IS 27")
    subscription = network.subscribe(0, "TEMP GE 25, TEMP LE 30")
    network.advance(2)
    assert taken(subscription) == ["TEMP IS 27"]


@pytest.mark.parametrize(("matching", "expected"), [("any", 20), ("strict", 10)])
def test_both_engines_and_the_metrics_use_the_rule_of_the_scenario(matching, expected):
    workload = [
        wb.subscribe(0, "TEMP GE 25, TEMP LE 30"),
        wb.publish(8, APART, every_s=1, start_s=2),
        wb.publish(7, TOGETHER, every_s=1, start_s=2),
    ]
    scenario = wb.Scenario(wb.topology.grid(3, 3), Diffusion(matching=matching), workload, duration_s=12)
    assert_same_trace(scenario)
    metrics = scenario.run().metrics
    assert metrics.expected == metrics.delivered == expected
    assert metrics.wrong_deliveries == metrics.unexpected_deliveries == 0


def test_default_rule_keeps_the_hash_of_older_scenarios():
    scenario = wb.Scenario(wb.topology.line(2), Diffusion(), [wb.subscribe(0, "TEMP GE 25")])
    assert "matching" not in scenario.to_json()
    assert scenario.hash != scenario.replace(protocol=Diffusion(matching="strict")).hash


# Two-way matching

TWO_WAY = Diffusion(matching="two-way")
FOR_ROOM_4 = "TEMP IS 22, INSTANCE EQ 4"


def test_publication_with_a_constraint_is_only_for_subscriptions_that_meet_it():
    network = Network(TWO_WAY, LINE)
    meets = network.subscribe(0, "TEMP GE 20, INSTANCE IS 4")
    other_room = network.subscribe(0, "TEMP GE 20, INSTANCE IS 5")
    no_room = network.subscribe(1, "TEMP GE 20")
    too_warm = network.subscribe(1, "TEMP GE 25, INSTANCE IS 4")
    network.publish(3, FOR_ROOM_4)
    network.publish(3, "TEMP IS 23")
    assert taken(meets) == [FOR_ROOM_4, "TEMP IS 23"]
    assert taken(other_room) == taken(no_room) == ["TEMP IS 23"]
    assert taken(too_warm) == []


def test_reading_that_no_subscription_may_get_waits_at_its_source():
    network = Network(TWO_WAY, LINE)
    network.subscribe(0, "TEMP GE 20, INSTANCE IS 5")
    network.publish(3, FOR_ROOM_4)
    assert network.hops("data") == []
    subscription = network.subscribe(0, "TEMP GE 20, INSTANCE IS 4")
    network.advance(2)
    assert taken(subscription) == [FOR_ROOM_4]


def test_reading_with_constraints_is_not_aggregated():
    network = Network(TWO_WAY, LINE)
    readings = ["TEMP IS 22", "TEMP IS 23", FOR_ROOM_4, FOR_ROOM_4, "TEMP IS 24", "TEMP IS 25"]
    for reading in readings:
        network.publish(3, reading)
    subscription = network.subscribe(0, "TEMP GE 20, INSTANCE IS 4")
    network.advance(2)
    assert taken(subscription) == readings
    # Two aggregates of two readings, and two readings alone.
    assert network.hops("data").count((3, 2)) == 4


def test_reinforcement_moves_the_paths_of_data_with_constraints():
    network = Network(TWO_WAY, LINE)
    network.subscribe(0, "TEMP GE 20, INSTANCE IS 4")
    network.publish(3, FOR_ROOM_4)
    assert network.hops("reinforcement") == [(0, 1), (1, 2), (2, 3)]


def test_interval_holds_for_data_with_constraints():
    network = Network(TWO_WAY, LINE)
    subscription = network.subscribe(0, "TEMP GE 20, INSTANCE IS 4, INTERVAL IS 10")
    network.subscribe(0, "TEMP GE 20, INSTANCE IS 5, INTERVAL IS 1")
    for _ in range(3):
        network.publish(3, FOR_ROOM_4)
        network.advance(5)
    assert taken(subscription) == [FOR_ROOM_4] * 2


@pytest.mark.parametrize("matching", ["any", "strict"])
def test_node_that_does_not_match_two_ways_neither_publishes_nor_accepts_constraints(matching):
    network = Network(Diffusion(matching=matching), LINE)
    with pytest.raises(AttributeFormatError, match="only IS attributes describe data: use IS instead of EQ"):
        network.publish(3, FOR_ROOM_4)
    node = network.nodes[1]
    node.receive(encode_interest(Interest(1, 9, 0, 2, 50, 100, wb.parse("TEMP GE 20, INSTANCE IS 4"))), 2, 0)
    frame = encode_data(Data(1, 8, 0, 50, False, (), wb.parse(FOR_ROOM_4)), matching="two-way")
    node.receive(frame, 0, 0, False)
    assert [event.detail for event in node.take_events() if hasattr(event, "detail")][-1] == "malformed"


@pytest.mark.parametrize(
    ("reading", "message"),
    [("INSTANCE EQ 4", "only IS attributes describe data"), ("TEMP IS 22, INTERVAL LE 5", "constrains INTERVAL")],
)
def test_two_way_node_refuses_readings_that_are_not_data(reading, message):
    network = Network(TWO_WAY, LINE)
    with pytest.raises(AttributeFormatError, match=message):
        network.publish(3, reading)
    with pytest.raises(AttributeFormatError, match=message):
        wb.publish(3, reading)


def test_filters_keep_and_may_add_constraints():
    register_filter("for room 4", lambda attributes: (*attributes, *wb.parse("INSTANCE EQ 4")))
    mean, for_room_4 = Filter("running_mean", 200, at=2), Filter("for room 4", 210, at=2)
    for filters, reading in [((mean,), FOR_ROOM_4), ((for_room_4,), "TEMP IS 22")]:
        network = Network(Diffusion(matching="two-way", filters=filters), LINE)
        meets, other_room = (network.subscribe(0, f"TEMP GE 20, INSTANCE IS {room}") for room in (4, 5))
        network.publish(3, reading)
        network.publish(3, reading.replace("22", "26"))
        values = (22, 24) if mean in filters else (22, 26)
        assert taken(meets) == [f"TEMP IS {value}, INSTANCE EQ 4" for value in values]
        assert taken(other_room) == []
    network = Network(Diffusion(filters=(for_room_4,)), LINE)
    network.subscribe(0, "TEMP GE 20")
    with pytest.raises(AttributeFormatError, match="only IS attributes describe data"):
        network.publish(3, "TEMP IS 22")


ROOMS = [
    wb.subscribe(0, "TEMP GE 20, INSTANCE IS 4"),
    wb.subscribe(2, "TEMP GE 20, INSTANCE IS 5"),
    wb.subscribe(6, "TEMP GE 20"),
    wb.publish(8, FOR_ROOM_4, every_s=1, start_s=2),
    wb.publish(7, "TEMP IS 22, INSTANCE NE 4, INSTANCE EQ_ANY", every_s=1, start_s=2),
    wb.publish(5, "TEMP IS 22", every_s=1, start_s=2),
]


def test_both_engines_and_the_metrics_match_two_ways():
    scenario = wb.Scenario(wb.topology.grid(3, 3), TWO_WAY, ROOMS, duration_s=12)
    assert_same_trace(scenario)
    run = scenario.run()
    # Ten readings of node 8 for node 0, of node 7 for node 2, and of node 5 for all three subscribers.
    assert run.metrics.expected == run.metrics.delivered == 50
    assert run.metrics.wrong_deliveries == run.metrics.unexpected_deliveries == 0


def make_protocols():
    for name in PROTOCOLS:
        yield name, getattr(wb, name)
    yield "Diffusion", lambda: Diffusion(matching="strict")


@pytest.mark.parametrize(("name", "make"), list(make_protocols()))
def test_every_other_protocol_refuses_publications_with_constraints(name, make):
    protocol = make()
    assert not protocol.allows_constrained_data
    with pytest.raises(
        ScenarioError, match=r"^workload item 3: the publication .* use IS instead of EQ, or a protocol"
    ):
        wb.Scenario(wb.topology.grid(3, 3), protocol, ROOMS)
    two_way = wb.Scenario(wb.topology.grid(3, 3), TWO_WAY, ROOMS)
    with pytest.raises(ScenarioError, match="only IS attributes describe data"):
        two_way.replace(protocol=protocol)
    assert wb.Scenario.from_json(two_way.to_json()) == two_way


def test_mismatch_names_the_constraint_of_the_publication():
    reason = "the subscription has no IS attribute that meets INSTANCE EQ 4 of a publication"
    assert mismatch(TWO_WAY, "TEMP GE 20", [FOR_ROOM_4]) == reason
    assert mismatch(TWO_WAY, "TEMP GE 25, INSTANCE IS 4", [FOR_ROOM_4]).startswith("TEMP GE 25 fails")
    assert mismatch(TWO_WAY, "TEMP GE 20", [FOR_ROOM_4, "TEMP IS 10"]).startswith("each of its attributes is met")
    run = wb.Scenario(wb.topology.line(2), TWO_WAY, [wb.subscribe(0, "TEMP GE 20"), wb.publish(1, FOR_ROOM_4)]).run()
    assert reason in str(run.explain())
