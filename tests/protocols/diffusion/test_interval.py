"""INTERVAL: a source sends each sink readings only as often as the sink's interest allows."""

import pytest

import workbench as wb
from tests.both_engines import assert_same_trace
from tests.neighbor import hear, interest, listed_hops, make_node, of, reasons
from tests.network import SECOND, Network, taken
from workbench.analysis.expected import expected
from workbench.attributes.text import parse
from workbench.errors import EncodeError
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.events import Withheld
from workbench.protocols.diffusion.pacing import is_due
from workbench.sim.rows import Columns

LINE = [(0, 1), (1, 2), (2, 3)]
# Node 3 is the source; the sinks 0 and 4 are on different sides of it.
FORK = [(0, 1), (1, 3), (3, 2), (2, 4)]


def publish_each_second(network, source, count):
    for degrees in range(count):
        network.publish(source, f"TEMP IS {degrees}")
        network.advance(1)


def sent_at(node, reading, times_s):
    """Return the times at which a node sends the reading, if it publishes it at all of these times."""
    times_sent_s = []
    for now_s in times_s:
        node.publish(parse(reading), now_s * SECOND)
        times_sent_s += [now_s] * len(node.take_frames())
    return times_sent_s


@pytest.mark.parametrize(
    ("interval_s", "degrees"), [(1, [0, 1, 2, 3, 4, 5, 6]), (2, [0, 2, 4, 6]), (2.5, [0, 3, 6]), (4, [0, 4])]
)
def test_sink_gets_readings_no_more_often_than_its_interval(interval_s, degrees):
    network = Network(Diffusion(), LINE)
    subscription = network.subscribe(0, f"TEMP GE 0, INTERVAL IS {interval_s}")
    publish_each_second(network, 3, 7)
    assert taken(subscription) == [f"TEMP IS {each}" for each in degrees]
    # A reading that no sink needs costs no frame.
    assert len(network.hops("data")) == 3 * len(degrees)
    assert network.drops(3).get("interval", 0) == 7 - len(degrees)


def test_each_sink_has_its_own_interval_and_copies_list_the_sinks_that_get_none():
    network = Network(Diffusion(), FORK)
    often, seldom = network.subscribe(0, "TEMP GE 0"), network.subscribe(4, "TEMP GE 0, INTERVAL IS 3")
    publish_each_second(network, 3, 6)
    assert len(taken(often)) == 6
    assert taken(seldom) == ["TEMP IS 0", "TEMP IS 3"]
    assert [event.value for node, event in network.events if isinstance(event, Withheld)] == [1, 2, 4, 5]
    node = make_node()
    hear(node, interest("TEMP GE 0, INTERVAL IS 3", sink=9, hop=2))
    hear(node, interest("TEMP GE 0", sink=7, hop=2))
    for now, listed in ((0, ()), (1, (9,)), (2, (9,)), (3, ())):
        node.publish(parse("TEMP IS 1"), now * SECOND)
        assert listed_hops(node) == {2: listed}


def test_reading_up_to_a_sixteenth_of_the_interval_early_is_due():
    assert [is_due(at, 0, 1600) for at in (1499, 1500, 1600)] == [False, True, True]
    assert is_due(5, -1, 1600)
    assert is_due(5, 10, 1600), "the clock was set back"


def test_sink_gets_the_readings_that_the_faster_of_its_two_interests_requests():
    network = Network(Diffusion(), LINE)
    warm, hot = network.subscribe(0, "TEMP GE 0, INTERVAL IS 4"), network.subscribe(0, "TEMP GE 2, INTERVAL IS 2")
    publish_each_second(network, 3, 7)
    # 0 and 4 are due for the first interest, 2, 4 and 6 for the second.
    assert taken(hot) == ["TEMP IS 2", "TEMP IS 4", "TEMP IS 6"]
    assert taken(warm) == ["TEMP IS 0", "TEMP IS 2", "TEMP IS 4", "TEMP IS 6"]


def test_subscriptions_that_share_an_interest_get_readings_at_the_highest_rate():
    network = Network(Diffusion(), LINE)
    seldom = network.subscribe(0, "TEMP GE 0, INTERVAL IS 4")
    often = network.subscribe(0, "INTERVAL IS 2, TEMP GE 0")
    publish_each_second(network, 3, 5)
    assert taken(often) == taken(seldom) == ["TEMP IS 0", "TEMP IS 2", "TEMP IS 4"]


def test_faster_subscription_that_does_not_fit_its_frame_changes_nothing():
    node = make_node(profile="strict")
    node.subscribe(parse("TEMP GE 0, TEMP LE 9, INTERVAL IS 4"), 0)
    before = node.own_interests[0].attributes
    with pytest.raises(EncodeError):
        node.subscribe(parse("TEMP GE 0, TEMP LE 9, INTERVAL IS 2, INTERVAL IS 2, INTERVAL IS 2"), 0)
    assert node.own_interests[0].attributes == before
    assert len(node.subscriptions.open) == 1


def test_reinforcement_requests_more_readings_from_some_sources():
    node = make_node(refresh_s=0)
    hear(node, interest("TEMP GE 0, INTERVAL IS 4", hop=2))
    hear(node, interest("TEMP GE 0, TEMP LE 5, INTERVAL IS 1", hop=2, sequence=7), unicast=True)
    node.take_frames()
    assert sent_at(node, "TEMP IS 3", range(5)) == [0, 1, 2, 3, 4]
    assert sent_at(node, "TEMP IS 6", range(8, 13)) == [8, 12]


def test_source_that_is_a_sink_keeps_its_own_readings():
    network = Network(Diffusion(), LINE)
    own, far = network.subscribe(3, "TEMP GE 0, INTERVAL IS 2"), network.subscribe(0, "TEMP GE 0, INTERVAL IS 2")
    publish_each_second(network, 3, 4)
    assert len(taken(own)) == 4
    assert taken(far) == ["TEMP IS 0", "TEMP IS 2"]


def test_samples_that_waited_are_chosen_by_the_times_at_which_they_were_published():
    network = Network(Diffusion(), LINE)
    publish_each_second(network, 3, 4)
    subscription = network.subscribe(0, "TEMP GE 0, INTERVAL IS 2")
    network.advance(2)
    assert taken(subscription) == ["TEMP IS 0", "TEMP IS 2"]


def test_sink_beyond_the_memory_for_intervals_gets_all_readings():
    node = make_node(max_interests=1)
    hear(node, interest("TEMP GE 0, INTERVAL IS 4", sink=8))
    hear(node, interest("TEMP GE 0, INTERVAL IS 4", sink=9))
    node.publish(parse("TEMP IS 1"), 0)
    assert reasons(node.take_events()) == []
    node.publish(parse("TEMP IS 1"), SECOND)
    events = node.take_events()
    assert [event.peer for event in of(Withheld, events)] == [9]
    assert reasons(events) == []


def test_interval_of_an_evicted_interest_is_forgotten():
    node = make_node(max_interests=1)
    hear(node, interest("TEMP GE 0, INTERVAL IS 4"))
    hear(node, interest("X GE 0", sequence=2))
    node.publish(parse("X IS 1"), 0)
    assert node.pacing.paces == []


def scenario(*intervals):
    workload = [
        *(wb.subscribe(sink, f"TEMP GE 0{text}") for sink, text in zip((0, 35), intervals, strict=True)),
        wb.publish("all", wb.SensorField(), every_s=1, start_s=3, stagger=True),
    ]
    return wb.Scenario(wb.topology.grid(6, 6), wb.Diffusion(), workload, duration_s=20, seed=4)


def test_readings_that_are_withheld_are_not_expected():
    metrics = {text: scenario(text, text).run().metrics for text in ("", ", INTERVAL IS 5")}
    assert metrics[""].expected == 2 * 36 * 17
    # Every fifth reading of a source, from the first one that reaches a sink on: four in 17 s.
    assert metrics[", INTERVAL IS 5"].expected == pytest.approx(2 * 36 * 4, abs=36)
    assert metrics[", INTERVAL IS 5"].delivery_ratio > 0.99
    assert metrics[", INTERVAL IS 5"].sent_data < metrics[""].sent_data / 3


def test_both_engines_withhold_the_same_readings():
    assert_same_trace(scenario(", INTERVAL IS 2", ", INTERVAL IS 5"))
    with_filter = wb.Diffusion(filters=(wb.Filter("running_mean", match="TEMP GE 0"),))
    assert_same_trace(scenario("", ", INTERVAL IS 5").replace(protocol=with_filter))


def test_run_explains_only_readings_that_were_expected():
    run = scenario(", INTERVAL IS 5", ", INTERVAL IS 5").run(engine="reference")
    pairs = expected(run.scenario, Columns(run.trace)).pairs
    assert len(pairs.publication) == run.metrics.expected
