"""Matching of repeated keys: by default any value meets a constraint, strictly one value meets all (A11)."""

import pytest

import workbench as wb
from tests.both_engines import assert_same_trace
from tests.network import Network, taken
from workbench.protocols.diffusion import Diffusion

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
