"""Filters that send later: a delay, several samples at once, and the mean at the end of each period."""

import pytest

import workbench as wb
from tests.both_engines import assert_same_trace
from tests.network import Network, taken
from workbench.attributes.text import parse
from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.filters import Filter, register_filter

LINE = [(0, 1), (1, 2), (2, 3)]


class Delay:
    """Hold each reading back for a second; of several, send the last."""

    def __init__(self):
        self.emits_at_us = None
        self.held = None

    def decide(self, attributes, origin, now):
        self.held, self.emits_at_us = attributes, now + 1_000_000

    def emit(self, now):
        self.emits_at_us = None
        return self.held


class Collect:
    """Collect readings, and send all of them every two seconds."""

    def __init__(self):
        self.emits_at_us = None
        self.readings = []

    def decide(self, attributes, origin, now):
        self.readings.append(attributes)
        if self.emits_at_us is None:
            self.emits_at_us = now + 2_000_000

    def emit(self, now):
        self.emits_at_us, readings, self.readings = None, self.readings, []
        return readings


class Stuck(Delay):
    """A wrong filter, which stays due."""

    def emit(self, now):
        return None


class Mixed(Delay):
    """A wrong filter, whose samples do not begin with the same key."""

    def emit(self, now):
        self.emits_at_us = None
        return [parse("TEMP IS 1"), parse("X IS 1")]


@pytest.fixture(autouse=True)
def registered():
    for kind in (Delay, Collect, Stuck, Mixed):
        register_filter(kind.__name__.lower(), kind)


def network_with(*filters):
    network = Network(Diffusion(filters=filters), LINE)
    return network, network.subscribe(0, "TEMP GE 0")


def test_filter_delays_a_reading():
    network, subscription = network_with(Filter("delay", at=1))
    network.publish(3, "TEMP IS 26")
    network.advance(0.999)
    assert taken(subscription) == []
    network.advance(0.001)
    assert taken(subscription) == ["TEMP IS 26"]


def test_filter_emits_several_samples_as_an_aggregate():
    network, subscription = network_with(Filter("collect", at=2))
    for degrees in (20, 21, 22):
        network.publish(3, f"TEMP IS {degrees}")
        network.advance(0.5)
    assert taken(subscription) == []
    sent_before = len(network.hops("data"))
    network.advance(1)
    assert taken(subscription) == ["TEMP IS 20", "TEMP IS 21", "TEMP IS 22"]
    assert len(network.hops("data")) == sent_before + 2


def test_emitted_samples_pass_the_filters_behind():
    network, subscription = network_with(
        Filter("collect", key=200, at=2), Filter("threshold_alarm", key=210, high=20.5, low=10, at=2)
    )
    for degrees in (20, 21, 22):
        network.publish(3, f"TEMP IS {degrees}")
    network.advance(2)
    assert taken(subscription) == ["TEMP IS 21"]


def test_flush_sends_the_mean_of_each_period_and_of_the_last():
    network, subscription = network_with(Filter("neighborhood_average", at=1, period_s=2, flush=True))
    for degrees in (20, 24, 30):
        network.publish(3, f"TEMP IS {degrees}")
        network.publish(2, f"TEMP IS {degrees + 2}")
        network.advance(1)
    # The latest readings of the first period are 24 and 26; those of the second 30 and 32.
    assert taken(subscription) == ["TEMP IS 25"]
    network.advance(1)
    assert taken(subscription) == ["TEMP IS 31"]
    network.advance(10)
    assert taken(subscription) == []


def test_source_that_filters_its_own_readings_emits_them():
    network, subscription = network_with(Filter("delay", at=3))
    network.publish(3, "TEMP IS 26")
    network.advance(1)
    assert taken(subscription) == ["TEMP IS 26"]


@pytest.mark.parametrize(
    ("name", "error", "sentence"),
    [
        ("stuck", ParameterError, "filter stuck: emits_at_us is 1000000 after emit"),
        ("mixed", AttributeFormatError, "filter mixed emitted several samples; all must begin with the same key"),
    ],
)
def test_wrong_emission_is_refused_in_a_sentence(name, error, sentence):
    network, _ = network_with(Filter(name, at=1))
    network.publish(3, "TEMP IS 26")
    with pytest.raises(error, match=sentence):
        network.advance(2)


def scenario(**settings):
    workload = [wb.subscribe(0, "TEMP GE 0"), wb.publish((7, 8), "TEMP IS 26", every_s=1, start_s=1, stagger=True)]
    protocol = Diffusion(filters=(Filter("neighborhood_average", at=1, period_s=3, **settings),))
    return wb.Scenario(wb.topology.line(9), protocol, workload, duration_s=30)


def test_emitted_mean_counts_for_the_reading_that_it_replaces():
    metrics = scenario(flush=True).run().metrics
    assert metrics.delivered >= 8
    assert metrics.wrong_deliveries == 0


def test_both_engines_emit_the_same():
    assert_same_trace(scenario(flush=True))
    two = (
        Filter("neighborhood_average", key=200, at=(1, 3, 5), period_s=1.5, flush=True),
        Filter("running_mean", key=210),
        Filter("neighborhood_average", key=220, at=3, period_s=4, flush=True),
    )
    assert_same_trace(scenario().replace(protocol=Diffusion(filters=two)))


def test_single_emitted_sample_may_have_its_first_key_twice():
    twice = [wb.publish(8, "TEMP IS 20, TEMP IS 27", start_s=1)]
    flushing = scenario(flush=True)
    flushing = flushing.replace(workload=(*flushing.workload[:1], *twice))
    assert_same_trace(flushing)
    assert flushing.run().metrics.delivered == 1


def test_single_emitted_sample_may_have_constraints_and_several_may_not():
    for name, is_refused in (("delay", False), ("collect", True)):
        network = Network(Diffusion(matching="two-way", filters=(Filter(name, at=1),)), LINE)
        subscription = network.subscribe(0, "TEMP GE 0, INSTANCE IS 4")
        for reading in ("TEMP IS 26, INSTANCE EQ 4", "TEMP IS 27, INSTANCE EQ 4"):
            network.publish(3, reading)
        if is_refused:
            with pytest.raises(AttributeFormatError, match="and have no constraints"):
                network.advance(3)
        else:
            network.advance(3)
            assert taken(subscription) == ["TEMP IS 27, INSTANCE EQ 4"]
