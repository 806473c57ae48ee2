"""Explanations of low delivery: each sentence appears for a run with that problem, and for no run that works."""

import re

import networkx as nx
import pytest

import workbench as wb
from workbench.analysis import accounts
from workbench.views.rich import bundle

IDEAL = wb.Radio(loss="none")
#   0 --- 1 --- 2 --- 3      the sink is node 0, the source node 3
LINE = wb.topology.line(4)
SUBSCRIPTION, PUBLICATION = wb.subscribe(0, "TEMP GE 1", start_s=5), wb.publish(3, "TEMP IS 5", start_s=10)
PROTOCOLS = [
    wb.Flooding(),
    wb.Gossip(forwarding_probability=1),
    wb.Diffusion(),
    wb.CodedDiffusion(),
    wb.TinyMQ(),
    wb.DPS(),
]


def run_of(protocol=None, workload=(SUBSCRIPTION, PUBLICATION), graph=LINE, radio=IDEAL, record="trace", **settings):
    scenario = wb.Scenario(
        graph, protocol or wb.Flooding(), workload, radio, **{"duration_s": 20, "seed": 1, **settings}
    )
    return scenario.run(engine="reference", record=record)


def explain_run(*args, **options):
    return run_of(*args, **options).explain().sentences


def one_way(*arcs):
    graph = nx.DiGraph()
    for position, node in enumerate(sorted({node for arc in arcs for node in arc})):
        graph.add_node(node, pos=(10.0 * position, 0.0))
    graph.add_edges_from(arcs, pdr=1.0)
    return graph


@pytest.mark.parametrize("record", ["trace", "metrics"])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: type(protocol).__name__)
def test_run_that_works_has_no_sentences(protocol, record):
    run = run_of(protocol, record=record)
    assert run.metrics["delivery_ratio"] == 1
    assert run.explain().sentences == ()
    assert str(run.explain()) == "1 of 1 readings that were expected were delivered."
    assert "run.explain()" not in "".join(bundle(run).values())


def test_a_run_without_subscriptions_is_described_without_a_number():
    run = run_of(workload=[PUBLICATION])
    assert "no reading expected" in repr(run) and "nan" not in repr(run)
    assert run.explain() == "No reading was expected to be delivered:\n- The workload has no subscriptions."


def test_a_low_delivery_ratio_is_displayed_with_the_call_that_explains_it():
    without_workload, with_losses = (
        run_of(workload=[]),
        run_of(workload=[SUBSCRIPTION, PUBLICATION], radio=wb.Radio(loss=1.0)),
    )
    assert bundle(without_workload)["text/plain"].endswith(
        "Nothing was expected to be delivered: run.explain() shows why."
    )
    assert "<br>Little was delivered: <code>run.explain()</code> shows why.</p>" in bundle(with_losses)["text/html"]


def test_an_explanation_is_shown_line_by_line_and_as_a_list():
    explanation = run_of(workload=[wb.subscribe(0, 'TOPIC EQ "<b>"')]).explain()
    assert (
        str(explanation).splitlines()[1:]
        == [f"- {sentence}" for sentence in explanation.sentences]
        == ["- The workload has no publications."]
    )
    assert "<li>The workload has no publications.</li>" in explanation._repr_html_()


@pytest.mark.parametrize(
    ("workload", "sentences"),
    [
        ([], ["The workload has no subscriptions.", "The workload has no publications."]),
        ([PUBLICATION], ["The workload has no subscriptions."]),
        (
            [wb.subscribe(0, "TEMP GE 1", start_s=30), PUBLICATION],
            ["A subscription (TEMP GE 1) starts at 30 s, and the run ends at 20 s."],
        ),
        (
            [SUBSCRIPTION, wb.publish([2, 3], "TEMP IS 5", start_s=20), wb.publish(3, "TEMP IS 5", start_s=25)],
            ["A publication (TEMP IS 5) starts at 20 s, and the run ends at 20 s (and 1 more like it)."],
        ),
        (
            [wb.subscribe(0, "TEMP GE 1", start_s=12), PUBLICATION],
            ["Node 0 subscribed to TEMP GE 1 at 12 s, after the last publication that matches, at 10 s."],
        ),
        (
            [wb.subscribe(0, "TEMP GE 1", stop_s=4), PUBLICATION],
            ["Node 0's subscription to TEMP GE 1 ended at 4 s, before the first publication that matches, at 10 s."],
        ),
        (
            [wb.subscribe(0, "TEMP GE 1", start_s=11, expires_s=2), wb.publish(3, "TEMP IS 5", every_s=5)],
            ["Node 0 subscribed to TEMP GE 1 from 11 s to 13 s, when nothing that matches was published."],
        ),
        (
            [SUBSCRIPTION, wb.publish([2, 3], "TEMP IS 5", every_s=1e6, stagger=True)],
            ["Nothing is published: with stagger, the first time is after the end (TEMP IS 5)."],
        ),
        (
            [SUBSCRIPTION, wb.publish(3, wb.SensorField(), every_s=1, start_s=6, stop_s=6)],
            ["Nothing is published: stop_s equals start_s (readings of a sensor field)."],
        ),
        (
            [SUBSCRIPTION, wb.publish(3, wb.Readings([8, 9], {"TEMP": [5, 6]}), start_s=2, stop_s=6)],
            ["Nothing is published: no reading has a time between start_s and the end (readings that were measured)."],
        ),
        (
            [SUBSCRIPTION, PUBLICATION, wb.outage(3, 8, 12)],
            ["Node 3 was down at 10 s, when it was to publish TEMP IS 5."],
        ),
        (
            [SUBSCRIPTION, PUBLICATION, wb.outage(0, 4, 6)],
            ["Node 0 was down at 5 s, when it was to subscribe to TEMP GE 1."],
        ),
        (
            [SUBSCRIPTION, PUBLICATION, wb.outage(0, 8, 12)],
            ["Node 0, which subscribed to TEMP GE 1, was down when 1 of the 1 publications that match were made."],
        ),
    ],
)  # fmt: skip
def test_late_subscription_or_publication_is_named(workload, sentences):
    assert explain_run(workload=workload) == tuple(sentences)


@pytest.mark.parametrize(
    ("wanted", "published", "why"),
    [
        ("TEMP GE 30", ["TEMP IS 5", "TEMP IS 20"],
         "TEMP GE 30 fails; published: from TEMP IS 5 to TEMP IS 20"),
        ("TEMP GE 1, HUMIDITY GE 1", ["TEMP IS 5"], "no publication has the key of HUMIDITY GE 1"),
        ("TEMP GE 10, TEMP LE 12", ["TEMP IS 5", "TEMP IS 20"],
         "each of its attributes is met, but never all of them by one publication"),
        ('TOPIC EQ "a/+"', ['TOPIC IS "a/b"'],
         'TOPIC EQ "a/+" is a pattern, and Flooding does not support patterns: it compares topics byte by byte'),
        ('TOPIC EQ "a"', ['TOPIC IS "b"'], 'TOPIC EQ "a" fails; published: TOPIC IS "b"'),
    ],
)  # fmt: skip
def test_the_attribute_that_no_publication_meets_is_named(wanted, published, why):
    workload = [wb.subscribe(0, wanted), *(wb.publish(3, offered, start_s=10) for offered in published)]
    assert explain_run(workload=workload) == (f"No publication matches {wanted}: {why}.",)


def test_many_unmatched_subscriptions_are_partly_explained_and_the_rest_is_counted():
    sentences = explain_run(workload=[*(wb.subscribe(0, f"TEMP GE {value}") for value in range(30, 40)), PUBLICATION])
    assert len(sentences) == 6
    assert sentences[-1] == "Nor does any publication match 5 other subscriptions."


def test_patterns_are_a_reason_only_for_protocols_that_do_not_support_them():
    workload = [wb.subscribe(0, 'TOPIC EQ "a/+"'), wb.publish(3, 'TOPIC IS "a/b"', start_s=10)]
    assert explain_run(wb.DPS(), workload) == ()
    (sentence,) = explain_run(wb.DPS(), [wb.subscribe(0, 'TOPIC EQ "c/+"'), *workload[1:]])
    assert sentence.endswith('TOPIC EQ "c/+" fails; published: TOPIC IS "a/b".')


def test_a_publisher_without_a_path_to_the_sink_is_named():
    (sentence,) = explain_run(graph=one_way((0, 1), (1, 0), (1, 3)))
    assert sentence.startswith("No path leads from node 3, which publishes, to node 0, which subscribes to TEMP GE 1;")


@pytest.mark.parametrize(
    ("protocol", "message"),
    [(wb.Diffusion(), "an interest"), (wb.TinyMQ(roots=(3,)), "a query"), (wb.DPS(), "an interest")],
    ids=lambda protocol: type(protocol).__name__,
)  # fmt: skip
def test_a_sink_that_receives_but_cannot_be_received_is_named(protocol, message):
    sentence = f"A path leads from node 3 to node 0, but none leads back, so {message} of node 0 cannot reach node 3."
    cut, whole = one_way((3, 1), (1, 3), (1, 0)), one_way((3, 1), (1, 3), (1, 0), (0, 1))
    assert sentence in explain_run(protocol, graph=cut)
    assert explain_run(protocol, graph=whole) == ()
    assert explain_run(wb.Flooding(), graph=cut) == ()


@pytest.mark.parametrize(
    ("protocol", "reaches"),
    [(wb.Flooding, 3), (wb.Gossip, 3), (wb.Diffusion, 3)],
    ids=["Flooding", "Gossip", "Diffusion"],
)
def test_a_ttl_is_a_reason_as_soon_as_it_is_one_hop_too_short(protocol, reaches):
    settings = {"forwarding_probability": 1} if protocol is wb.Gossip else {}
    assert explain_run(protocol(ttl=reaches, **settings)) == ()
    run = run_of(protocol(ttl=reaches - 1, **settings))
    assert run.metrics["delivered"] == 0
    account, sentence = run.explain().sentences
    assert account.startswith("Reading 0 of node 3, published at 10 s, did not reach node 0: ")
    assert f"ttl of {reaches - 1} hops" in sentence and "between node 3 and node 0 has 3 hops." in sentence


def test_losses_of_the_radio_are_named_with_their_reasons():
    assert explain_run(radio=wb.Radio(loss=1.0))[-1] == "100% of 1 receptions failed: 1 link."
    # Both neighbors of the sink forward the flood at once, without carrier sensing.
    ring = wb.topology.grid(2, 2)
    radio = wb.Radio(loss="none", collisions=True, jitter_ms=(1.0, 1.0))
    sentence = explain_run(graph=ring, radio=radio)[-1]
    assert re.fullmatch(r"\d+% of \d+ receptions failed: .*\d+ collision.*", sentence)


def test_frames_that_were_never_sent_are_named():
    sentences = explain_run(workload=[SUBSCRIPTION, PUBLICATION, wb.outage(3, 10.0001)])
    account, *other_sentences = sentences
    assert "did not reach node 0: node 3 went down before its frame was out, and gave it up at 10.0" in account
    assert other_sentences == ["No frame was sent.", "1 of 1 frames were given up before they were sent: 1 down."]


def test_a_reason_is_named_if_only_unexpected_readings_arrived():
    run = run_of(wb.TinyMQ(), [SUBSCRIPTION, PUBLICATION, wb.outage(0, 8, 12)])
    assert "delivered" in run.trace["event"].to_pylist() and run.metrics["expected"] == 0
    (sentence,) = run.explain().sentences
    assert sentence == (
        "Node 0, which subscribed to TEMP GE 1, was down when 1 of the 1 publications that match were made."
    )


def test_a_partial_delivery_is_explained_for_the_missing_readings():
    run = run_of(wb.DPS(), [wb.subscribe(0, "TEMP GE 1"), wb.publish(3, "TEMP IS 5", every_s=1.2, stop_s=4)])
    assert run.metrics["delivery_ratio"] == 0.5
    not_sent, not_linked = sorted(run.explain().sentences[:2], key=lambda sentence: "no link" in sentence)
    assert not_linked.startswith(
        "Reading 0 of node 3, published at 0 s, did not reach node 0: node 3 had it last, at 0 s;"
    )
    assert not_sent.startswith(
        "Reading 1 of node 3, published at 1.2 s, did not reach node 0: node 3 did not send it to"
    )


def test_publication_before_the_first_links_is_named():
    early = [wb.subscribe(0, "TEMP GE 1"), wb.publish(3, "TEMP IS 5")]
    (sentence,) = explain_run(wb.DPS(), early)
    assert sentence.endswith("the path continues to node 2, to which no link existed.")
    # The links are active by then, but the sink's interests have not arrived yet.
    (sentence,) = explain_run(wb.DPS(), [early[0], wb.publish(3, "TEMP IS 5", start_s=1.3)])
    assert sentence.endswith("on the path to node 0: node 3 had received no matching interest from node 2.")


def test_publication_before_queries_were_stored_is_named():
    early = [wb.subscribe(3, "TEMP GE 1"), wb.publish(0, "TEMP IS 5")]
    (sentence,) = explain_run(wb.TinyMQ(), early)
    assert "when the event reached node 0 at 0 s, no query of node 3 was stored there: " in sentence


def test_lost_event_does_not_count_as_unmatched():
    # All nodes are up when the event is published; its neighbors are off when its first frame arrives.
    workload = [wb.subscribe(0, "TEMP EQ 5"), wb.publish(3, "TEMP IS 5", start_s=10), wb.outage([0, 1, 2], 10.00001)]
    run = run_of(wb.TinyMQ(retries=0), workload)
    assert run.metrics["expected"] == 1 and run.metrics["delivered"] == 0 and run.metrics["lost_down"]
    assert not any("no query" in sentence for sentence in run.explain().sentences)


def test_nodes_that_never_joined_the_overlay_are_named():
    sentences = explain_run(wb.TinyMQ(), [SUBSCRIPTION, PUBLICATION, wb.outage(0, 0), wb.subscribe(1, "TEMP GE 1")])
    assert any(sentence.endswith("node 3, which had it at 10 s, had no position in a tree.") for sentence in sentences)


def test_without_a_trace_only_proven_facts_are_named():
    run = run_of(wb.DPS(), [wb.subscribe(0, "TEMP GE 1"), wb.publish(3, "TEMP IS 5")], record="metrics")
    assert run.explain().sentences == ()
    assert str(run.explain()).endswith('proves why; a run with record="trace" may show more.')


@pytest.mark.parametrize("protocol", [wb.TinyMQ(roots=(0, 77)), wb.Pub2Sub(roots=(77,))], ids=["TinyMQ", "Pub2Sub"])
def test_a_root_that_the_network_does_not_have_is_refused(protocol):
    name = type(protocol).__name__
    with pytest.raises(wb.ScenarioError, match=f"{name}: roots has node 77, which the topology does not have; its 4 n"):
        wb.Scenario(LINE, protocol)


@pytest.mark.parametrize(
    ("change", "sender", "receiver"),
    [
        (wb.partition([0, 1, 2], 10, 20), 3, 2),
        (wb.move(0, [(10, 0, 0), (11, 0, 500)], radius_m=12), 1, 0),
    ],
)
def test_a_link_that_was_missing_when_the_reading_was_sent_is_named(change, sender, receiver):
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(5, "TEMP IS 25", start_s=15), change]
    run = wb.Scenario(wb.topology.line(6), wb.Flooding(), workload, wb.Radio(loss="none"), 30).run()
    (account,) = accounts.accounts(run)
    assert (account.cause, account.node, account.neighbor) == ("out_of_range", sender, receiver)
    assert f"sent it at {account.time_us / 1e6:g} s; no link led to node {receiver} at that time" in run.explain()


def test_a_jammed_frame_is_named():
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(5, "TEMP IS 25", start_s=15), wb.jam(20, 0, 5, 10, 20)]
    run = wb.Scenario(wb.topology.line(6), wb.Flooding(), workload, wb.Radio(loss="none"), 30).run()
    assert "it was sent to node 2" in run.explain() and "lost (jammed)" in run.explain()
