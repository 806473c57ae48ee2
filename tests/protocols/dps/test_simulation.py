"""DPS in simulation: workloads of attributes and topics on topologies, its events in the trace, and its cost."""

import networkx as nx
import pytest

import workbench as wb
from workbench.attributes.text import parse
from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.dps import mapping

WORKLOAD = [
    wb.subscribe([3, 9], "TEMP GE 20, X EQ_ANY", start_s=5),
    wb.subscribe(7, 'TOPIC EQ "room/+/light"'),
    wb.subscribe(2, "X EQ 1", start_s=5),
    wb.publish([0, 5, 11], "TEMP IS 25.5, X IS 1", every_s=7, start_s=40),
    wb.publish(6, "TEMP IS 12, X IS 2", every_s=7, start_s=41),
    wb.publish(4, 'TOPIC IS "room/1/light", X IS 3', payload=b"on", every_s=9, start_s=40),
    wb.publish(4, 'TOPIC IS "room/light"', every_s=9, start_s=42),
]
TOPOLOGIES = {
    "grid": wb.topology.grid(4, 4),
    "ring": wb.topology.ring(16),
    "disc": wb.topology.disc(30, width_m=100, height_m=60, seed=3, radius_m=25),
}


def scenario(topology="grid", workload=WORKLOAD, duration_s=100, **settings):
    return wb.Scenario(TOPOLOGIES[topology], wb.DPS(**settings), workload, duration_s=duration_s)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_everything_arrives_on_ideal_links_and_the_trace_depends_only_on_the_scenario(topology):
    original = scenario(topology)
    run = original.run()
    metrics = run.metrics
    assert (metrics["delivery_ratio"], metrics["wrong_deliveries"], metrics["duplicate_deliveries"]) == (1, 0, 0)
    assert metrics["expected"] > 60 and metrics["stretch"] >= 1
    assert run.trace_hash == wb.Scenario.from_json(original.to_json()).run().trace_hash


def test_metrics_without_a_trace_are_the_same():
    disc = scenario("disc")
    whole, counted = disc.run().metrics, disc.run(record="metrics").metrics
    assert whole.fillna(-1).to_dict() == counted.fillna(-1).to_dict()


def test_trace_contains_links_and_the_spread_of_filters():
    trace = scenario().run().trace.to_pandas()
    links = trace[trace.event == "link_set"]
    assert set(links.detail) >= {"linking", "active", "muted"}
    last = links.groupby(["node", "peer"]).detail.last()
    assert (last == "active").sum() >= 2 * 15
    received = trace[(trace.event == "interests_set") & (trace.peer >= 0)]
    own = trace[(trace.event == "interests_set") & (trace.peer < 0)]
    assert received.value.max() <= own.value.max() and set(own.node) == set(range(16))
    assert set(received.message) == {"subscription"} and (received.detail.astype(str).astype(int) >= 0).all()


def test_short_filters_cost_messages_and_lose_nothing():
    workload = [wb.subscribe(node, f"X EQ {node}", start_s=5) for node in range(8)]
    workload += [wb.publish(20, f"X IS {number}", start_s=40 + number) for number in range(20)]
    sent_publications, dead_ends = [], []
    for bits in (64, 8192):
        metrics = scenario("disc", workload, filter_bits=bits, count_muted=False).run().metrics
        assert (metrics["delivery_ratio"], metrics["wrong_deliveries"], metrics["duplicate_deliveries"]) == (1, 0, 0)
        sent_publications.append(metrics["sent_publication"])
        dead_ends.append(metrics.get("dropped_dead_end", 0))
    assert sent_publications[0] > sent_publications[1] and dead_ends[0] > dead_ends[1]


def test_one_way_and_poor_links_are_not_linked_over():
    graph = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 3, {"pdr": 0.4}), (3, 2)])
    nx.set_node_attributes(graph, {node: (10 * node, 0) for node in range(4)}, "pos")
    workload = [wb.subscribe([1, 2, 3], "X EQ 1"), wb.publish(0, "X IS 1", start_s=20)]
    trace = wb.Scenario(graph, wb.DPS(), workload, duration_s=30).run().trace.to_pandas()
    assert set(trace[trace.event == "sent"].node) == {0, 1}
    trace = wb.Scenario(graph, wb.DPS(worst_link=0.3), workload, duration_s=30).run().trace.to_pandas()
    assert set(trace[trace.event == "sent"].node) == {0, 1, 2, 3}


def test_a_node_is_linked_again_after_an_outage():
    line = wb.topology.line(4)
    workload = [
        wb.subscribe(0, "X EQ 1"),
        wb.subscribe(0, "X EQ 2", start_s=30),
        wb.outage(1, 20, 60),
        wb.publish(3, "X IS 1", every_s=5, start_s=100),
        wb.publish(3, "X IS 2", every_s=5, start_s=101),
    ]
    protocol = wb.DPS(update_s=1.0, link_loss_s=5.0, relink_s=5.0)
    run = wb.Scenario(line, protocol, workload, duration_s=130).run()
    assert run.metrics["delivery_ratio"] == 1
    trace = run.trace.to_pandas()
    assert "gone" in set(trace[trace.event == "link_set"].detail)


def test_retained_publications_reach_later_subscribers():
    workload = [wb.publish(0, "X IS 1", start_s=5), wb.subscribe(15, "X EQ 1", start_s=30)]
    trace = scenario(workload=workload, ttl_s=60).run().trace.to_pandas()
    assert len(trace[trace.event == "delivered"]) == 1
    trace = scenario(workload=workload).run().trace.to_pandas()
    assert len(trace[trace.event == "delivered"]) == 0


def test_sinks_acknowledge_on_request():
    trace = scenario(acknowledge=True).run().trace.to_pandas()
    acknowledged = trace[trace.event == "acknowledged"]
    delivered = trace[(trace.event == "delivered")]
    assert len(acknowledged) == len(delivered) > 60 and set(acknowledged.node) == {0, 5, 11, 4}


def test_other_protocols_match_topics_byte_by_byte():
    workload = [wb.subscribe(7, 'TOPIC EQ "room/+/light"'), wb.publish(4, 'TOPIC IS "room/1/light"', start_s=30)]
    assert scenario(workload=workload).run().metrics["expected"] == 1
    flooded = wb.Scenario(TOPOLOGIES["grid"], wb.Flooding(), workload, duration_s=40).run()
    assert flooded.metrics["expected"] == 0 and flooded.metrics["wrong_deliveries"] == 0


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("TEMP IS 26.5, X IS -3", ("TEMP/2650", "X/-30")),
        ("TEMP IS 1, TEMP IS 2", ("TEMP/100", "TEMP/200")),
        ('TOPIC IS "a/b", TEMP IS 0', ("a/b", "TEMP/0")),
        ("PAYLOAD IS 0x01, PAYLOAD IS 0x02", ("PAYLOAD/bytes",)),
        ("177 IS 5", ("177/5",)),
    ],
)
def test_topics_of_a_reading(text, topics):
    assert mapping.publication_topics(parse(text)) == topics


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("TEMP EQ 26.5", ("TEMP/2650",)),
        ("TEMP GE 20, TEMP LE 30, X NE 1", ("TEMP/+", "X/+")),
        ("TEMP EQ_ANY, INTERVAL IS 5", ("TEMP/+",)),
        ('TOPIC EQ "a/+/#"', ("a/+/#",)),
        ('PAYLOAD EQ "on"', ("PAYLOAD/+",)),
        ("", ("+/+",)),
    ],
)
def test_topics_of_a_subscription(text, topics):
    assert mapping.subscription_topics(parse(text)) == topics


def test_blobs_of_custom_keys_are_hex_digits():
    wb.register_key(180, "NAME", type="blob")
    assert mapping.publication_topics(parse('NAME IS "ab"')) == ("NAME/0x6162",)
    assert mapping.subscription_topics(parse('NAME EQ "ab"')) == ("NAME/0x6162",)


def test_attributes_become_topics_with_any_separators():
    workload = [
        wb.subscribe(0, "TEMP GE 25"),
        wb.subscribe(1, "TEMP EQ 26"),
        wb.subscribe(2, "", match_all=True),
        wb.publish(9, "TEMP IS 26", start_s=30),
        wb.publish(9, "TEMP IS 20", start_s=31),
    ]
    metrics = scenario(workload=workload, separators="._").run().metrics
    assert (metrics["delivery_ratio"], metrics["delivered"]) == (1, 4)


def test_match_all_gets_every_reading():
    workload = [wb.subscribe(0, "", match_all=True), wb.publish(9, "X IS 1", start_s=30)]
    assert scenario(workload=workload).run().metrics["delivery_ratio"] == 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"filter_bits": 100}, "multiple of 64"),
        ({"separators": ""}, "`separators` of DPS is empty"),
        ({"separators": "+"}, "wildcard"),
        ({"hashes": 9}, "hashes is 9"),
    ],
)
def test_invalid_settings_are_refused(settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        wb.DPS(**settings)


def test_topics_that_cannot_be_subscribed_to_are_refused():
    for text in ('TOPIC NE "a"', "TOPIC EQ_ANY", 'TOPIC EQ "a/b+"', "TOPIC EQ 0xff"):
        with pytest.raises((AttributeFormatError, wb.ScenarioError), match="TOPIC|topic"):
            scenario(workload=[wb.subscribe(0, text)]).run()
