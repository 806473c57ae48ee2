"""Views of DPS besides its meshes: dissected messages, topics and bits, routing decisions, false positives."""

import cbor2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from figures import beside, messages
from figures import false_positives as dps_false_positives
from lessons.figures import topics as dps_steps
from workbench.errors import AttributeFormatError, DecodeError, ParameterError
from workbench.protocols.dps import DPS, topics, wire
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.views import (
    message as dps_message,
)
from workbench.protocols.dps.views import (
    page as dps_message_page,
)
from workbench.protocols.dps.wire import coap
from workbench.views import palette
from workbench.views.drawing import Circle, Text

MESSAGES = messages.conversation(filter_bits=256)
PUBLICATION = MESSAGES["3: publication of the publisher"]
SUBSCRIPTION = MESSAGES["1: subscription of the subscriber"]
LEVEL = st.text("abc", min_size=1, max_size=2)
TOPIC = st.lists(LEVEL, min_size=1, max_size=4).map("/".join)
SUBSCRIPTIONS = st.lists(st.one_of(LEVEL, st.just("+")), min_size=1, max_size=4).map("/".join)


def covers(inspection):
    """Return whether the parts are adjacent and cover all bytes."""
    ends = [0, *(part.end for part in inspection.parts)]
    return [part.start for part in inspection.parts] == ends[:-1] and ends[-1] == len(inspection.data)


# Messages


def test_a_conversation_has_one_message_of_each_kind():
    assert [name.split(": ")[1] for name in MESSAGES] == [
        "subscription of the subscriber",
        "subscription ack of the publisher",
        "publication of the publisher",
        "acknowledgement of the subscriber",
    ]
    assert wire.decode(PUBLICATION).data == b"21.5"


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_is_dissected_and_described(name):
    inspection = dps_message.inspect_message(MESSAGES[name])
    assert not inspection.error and covers(inspection)
    assert inspection.message == wire.decode(MESSAGES[name])
    assert inspection.name in name
    assert "not read" not in {part.kind for part in inspection.parts}


def test_parts_are_the_fields_of_the_message():
    parts = {part.name: part for part in dps_message.inspect_message(PUBLICATION).parts}
    message = wire.decode(PUBLICATION)
    assert parts["port"].notation == f"1: {message.port}"
    assert parts["filter"].meaning.startswith(f"{message.filter.popcount} of 256 bits set")
    assert parts["topics"].notation == '11: ["house/kitchen/temp"]'
    assert parts["data"].meaning == '"21.5"'
    flags = {part.name: part for part in dps_message.inspect_message(SUBSCRIPTION).parts}["flags"]
    assert flags.meaning == "answer requested, counts hops"


def test_captured_messages_are_dissected(dps_captured):
    kinds = set()
    for message in dps_captured["messages"]:
        inspection = dps_message.inspect_message(message["hex"])
        assert not inspection.error and covers(inspection)
        assert inspection.notation and not inspection.notation.endswith("/")
        kinds |= {part.kind for part in inspection.parts}
    assert {"filter", "needs", "encrypted or signed"} <= kinds


def test_readings_in_a_publication_are_displayed_as_attributes():
    publisher = DPS().make_node(3, wb.draws.Stream(1))
    publisher.start(0)
    subscriber = DPS().make_node(4, wb.draws.Stream(2))
    subscriber.start(0)
    subscriber.subscribe(wb.parse("TEMP GE 20"), 0)
    subscriber.link(3, 0)
    for _ in range(3):
        for frame_of, to, address in ((subscriber, publisher, 4), (publisher, subscriber, 3)):
            for _, frame in frame_of.take_frames():
                to.receive(frame, address, 1, False)
    publisher.publish(wb.parse("TEMP IS 26.5"), 2)
    frame = next(frame for _, frame in publisher.take_frames() if wire.describe(frame)[0] == "publication")
    meanings = {part.name: part.meaning for part in dps_message.inspect_message(frame).parts}
    assert meanings["data"] == "attributes: TEMP IS 26.5"


def test_the_envelope_of_a_multicast_is_a_part():
    inspection = dps_message.inspect_message(coap.wrap(PUBLICATION, 7))
    assert covers(inspection) and inspection.parts[0].kind == "envelope" and not inspection.error
    assert inspection.message == wire.decode(PUBLICATION)
    assert "end of the envelope" in dps_message.inspect_message(coap.wrap(PUBLICATION[:40], 7)).to_html()


@pytest.mark.parametrize("size", range(len(PUBLICATION)))
def test_a_truncated_message_is_displayed_up_to_its_end(size):
    inspection = dps_message.inspect_message(PUBLICATION[:size])
    assert covers(inspection)
    with pytest.raises(DecodeError) as error:
        wire.decode(PUBLICATION[:size])
    assert inspection.error == str(error.value)
    assert "Not a message" in inspection.to_html()


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=30).map(lambda tail: PUBLICATION[:50] + tail)))
def test_any_bytes_can_be_inspected(data):
    inspection = dps_message.inspect_message(data, ["a/b", "a/+"])
    assert covers(inspection)
    assert bool(inspection.error) == (inspection.message is None)
    assert f"{len(data):,} bytes" in inspection.to_html()


@pytest.mark.parametrize("opening", [b"\x81", b"\xa1\x01", b"\xc1"])
def test_the_deepest_nesting_in_a_datagram_is_inspected(opening):
    inspection = dps_message.inspect_message(opening * 10_000)
    assert inspection.error and covers(inspection)
    assert "…" in inspection.to_html()


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.one_of(st.integers(-(1 << 63), 1 << 63), st.binary(max_size=8), st.booleans(), st.none()),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.integers(0, 20), inner, max_size=4)),
        max_leaves=12,
    )
)
def test_diagnostic_notation_shows_the_encoded_value(value):
    def notation(item):
        if isinstance(item, bool) or item is None:
            return {True: "true", False: "false", None: "null"}[item]
        if isinstance(item, bytes):
            return f"h'{item.hex()}'"
        if isinstance(item, list):
            return f"[{', '.join(map(notation, item))}]"
        if isinstance(item, dict):
            return "{" + ", ".join(f"{notation(key)}: {notation(content)}" for key, content in item.items()) + "}"
        return str(item)

    assert dps_message.diagnostic(cbor2.dumps(value)) == notation(value)


@pytest.mark.parametrize(
    "data, notation",
    [
        ("6161", '"a"'),
        ("c100", "1(0)"),
        ("f7", "undefined"),
        ("f0", "simple(16)"),
        ("f93c00", "float'3c00'"),
        ("62220a", '"\\"\\u000a"'),
        ("80", "[]"),
        ("a0", "{}"),
    ],
)
def test_other_items_have_a_diagnostic_notation(data, notation):
    assert dps_message.diagnostic(bytes.fromhex(data)) == notation


def test_hex_with_a_wrong_digit_is_refused():
    with pytest.raises(ParameterError, match="pairs of digits"):
        dps_message.inspect_message("85 0g")


def test_content_of_a_message_is_escaped():
    frame = messages.conversation("<b>&/x", "<b>&/+", b"<script>")["3: publication of the publisher"]
    page = dps_message.inspect_message(frame, ["<i>/+"]).to_html()
    assert "<script>" not in page and "<b>&" not in page and "<i>" not in page
    assert "&lt;script&gt;" in page


def test_an_invalid_topic_is_reported_beside_the_others():
    page = dps_message.inspect_message(PUBLICATION, ["a//", "house/#"]).to_html()
    assert "a topic neither begins nor ends with one" in page and "house/#" in page


def test_a_widget_shows_the_chosen_or_entered_message_and_its_errors():
    explorer = messages.message_explorer(MESSAGES, ["house/#"])
    choice, digits, given_topics, picture = explorer.widget.children
    assert "subscription" in picture.value and explorer.still == picture.value
    choice.value = "3: publication of the publisher"
    assert "house/kitchen/temp" in picture.value
    given_topics.value = "garden/#"
    assert "garden/#" in picture.value
    digits.value = "00"
    assert "Not a message" in picture.value
    digits.value = "zz"
    assert "pairs of digits" in picture.value
    assert "text/html" in explorer._repr_mimebundle_()


# Topics and bits


@settings(max_examples=100, deadline=None)
@given(TOPIC, SUBSCRIPTIONS)
def test_a_topic_that_matches_is_always_found_in_the_filter(topic, subscribed):
    vector = BitVector.of(topics.publication_items(topic), 256)
    (comparison,) = dps_message_page.compare_topics(vector, [subscribed], as_publication=True)
    if topics.matches([topic], [subscribed]) and comparison.bits:
        assert comparison.is_included and comparison.bits_found == comparison.bits


@settings(max_examples=50, deadline=None)
@given(st.lists(TOPIC, min_size=1, max_size=4))
def test_the_topics_of_a_filter_explain_all_of_its_bits(named):
    vector = BitVector(512)
    for topic in named:
        vector |= BitVector.of(topics.publication_items(topic), 512)
    by_place = dps_message_page.positions(vector, dps_message_page.compare_topics(vector, named, as_publication=True))
    assert list(by_place) == vector.positions() and all(by_place.values())


def test_a_table_of_a_topic_has_its_items_and_their_bits():
    table = dps_steps.topic_bits("a/b", True, 128, 2)
    assert table["item"].tolist() == topics.publication_items("a/b")
    every = {position for bits in table["bits"] for position in bits}
    assert sorted(every) == BitVector.of(topics.publication_items("a/b"), 128, 2).positions()
    assert len(dps_steps.topic_bits("#", False)) == 0
    with pytest.raises(ParameterError, match="multiple of 64"):
        dps_steps.topic_bits("a", True, 100)
    with pytest.raises(AttributeFormatError, match="is a wildcard"):
        dps_steps.topic_bits("a/+", True)


def test_bits_are_drawn_at_their_positions():
    vector = BitVector.at([0, 63, 64], 128)
    drawing = dps_steps.bits_drawing({"v": vector}, BitVector.at([63], 128))
    filled = [item for item in drawing.items if getattr(item, "fill", None) in ("#0072B2", "#E69F00")]
    assert [item.fill for item in filled] == ["#0072B2", "#E69F00", "#0072B2"]
    (x0, y0), (x63, y63), (x64, y64) = (item.points[0] for item in filled)
    assert x0 == x64 and y0 == y63 and x63 > x0 and y64 > y0
    with pytest.raises(ParameterError, match="of a single length"):
        dps_steps.bits_drawing({"a": BitVector(64), "b": BitVector(128)})
    with pytest.raises(ParameterError, match="1024 can be drawn"):
        dps_steps.bits_drawing({"a": BitVector(8192)})


# Decisions


@settings(max_examples=80, deadline=None)
@given(TOPIC, st.lists(SUBSCRIPTIONS, min_size=1, max_size=4), st.sampled_from([64, 128, 8192]))
def test_a_decision_equals_that_of_a_node(topic, subscribed, filter_bits):
    decision = dps_steps.routing_steps(topic, subscribed, filter_bits)
    protocol = DPS(filter_bits=filter_bits)
    near, far = (protocol.make_node(address, wb.draws.Stream(address + 1)) for address in (0, 1))
    for node in (near, far):
        node.start(0)
    for topics_ in subscribed:
        far.subscribe_topics(topics_, 0)
    far.link(0, 0)
    for _ in range(4):
        for node, receiver, address in ((far, near, 1), (near, far, 0)):
            for _, frame in node.take_frames():
                receiver.receive(frame, address, 0, False)
    near.publish_topics(topic, b"", 1)
    goes = any(wire.describe(frame)[0] == "publication" for _, frame in near.take_frames())
    assert decision.is_forwarded == goes
    if decision.wanted and all(topics.subscription_items(topics_) for topics_ in subscribed):
        assert goes
    assert decision.is_false_positive == (goes and not topics.matches([topic], list(decision.wanted) or ["no"]))


def test_a_decision_is_drawn_with_its_sentence():
    decision = dps_steps.routing_steps("house/kitchen/temp", ["house/+/temp", "garden/#"], 256)
    assert decision.verdict() == "It goes over the link: all needs are met; wanted by house/+/temp."
    assert decision.verdict() in [item.text for item in decision.drawing().items if isinstance(item, Text)]
    apart = dps_steps.routing_steps("x", "y", 8192)
    assert apart.verdict().startswith("It does not go over the link: filter and interests have no bit in common")
    wrong = dps_steps.routing_steps(
        "cellar/pump/flow", ["house/+/temp", "garden/#", "house/attic/+", "shed/+/light"], 64
    )
    assert wrong.is_false_positive and wrong.verdict().endswith("a false positive.")
    with pytest.raises(ParameterError, match="subscriptions is empty"):
        dps_steps.routing_steps("a", [])


def test_the_widget_for_topics_updates_with_each_field():
    explorer = dps_steps.topic_explorer("a/b", ["a/+"], 64)
    published, subscribed, numbers, picture = explorer.widget.children
    assert "wanted by a/+" in picture.value
    published.value = "c/d"
    assert "wanted by" not in picture.value
    numbers.children[0].value = 512
    assert "of 512 bits" in picture.value
    subscribed.value = "a/#/b"
    assert "may only be the last segment" in picture.value
    subscribed.value = ""
    assert "subscriptions is empty" in picture.value


# False positives


@pytest.mark.family
def test_measured_false_positives_agree_with_theory():
    table = dps_false_positives.false_positive_table(
        (64, 128, 256), hashes=(1, 2), subscriptions=(1, 10), publications=80
    )
    assert len(table) == 12
    alone = table[table["subscriptions"] == 1]
    for row in alone[alone["theory"] > 1e-3].itertuples():
        assert row.measured == pytest.approx(row.theory, rel=0.4)
    links = table[table["subscriptions"] == 10]
    assert links["theory"].isna().all() and (links["filters"] == 100).all()


@pytest.mark.family
def test_standard_error_approximates_the_spread_of_shares_between_seeds():
    tables = [
        dps_false_positives.false_positive_table(
            (256,), hashes=(1,), subscriptions=(5,), publications=100, links=40, seed=seed
        )
        for seed in range(8)
    ]
    rows = [table.iloc[0] for table in tables]
    spread = np.std([row["measured"] for row in rows], ddof=1)
    # Counting single trials of a pair as independent would give a standard error that is about 10 times too small.
    assert 0.3 < np.mean([row["error"] for row in rows]) / spread < 3


def test_theoretical_false_positives_decrease_with_the_filter_length():
    expected = [dps_false_positives.expected(length, 3, 2) for length in dps_false_positives.LENGTHS]
    assert expected == sorted(expected, reverse=True) and 0 < expected[-1] < expected[0] <= 1


def test_charts_of_false_positives_mark_zero_counts_with_hollow_marks():
    table = dps_false_positives.false_positive_table(
        (64, 8192), hashes=(1,), subscriptions=(1,), publications=50, links=20
    )
    assert list(table["measured"] == 0) == [False, True]
    drawing = dps_false_positives.false_positive_chart(table)
    shown = [item for item in drawing.items if isinstance(item, Circle)]
    assert [item.fill == palette.BACKGROUND for item in shown] == [False, True, False]
    assert "filter length (bits)" in [item.text for item in drawing.items if isinstance(item, Text)]
    with pytest.raises(ParameterError, match="lengths, hashes or subscriptions is empty"):
        dps_false_positives.false_positive_table(())


def test_longer_filters_cause_fewer_frames_in_vain():
    workload = [
        *(wb.subscribe(node, f'TOPIC EQ "a{node}/b/+"', start_s=3) for node in range(1, 7)),
        *(wb.publish(0, f'TOPIC IS "x{node}/y/z"', start_s=15 + node / 5) for node in range(8)),
        wb.publish(0, 'TOPIC IS "a6/b/c"', start_s=18),
    ]
    line = wb.topology.line(7)
    scenario = wb.Scenario(line, wb.DPS(update_s=0.2), workload, wb.Radio(loss="none"), duration_s=20)
    table = dps_false_positives.vain_table(scenario, (64, 8192))
    short, long = table.to_dict("records")
    assert short["delivery_ratio"] == long["delivery_ratio"] == 1
    assert short["needed"] == long["needed"] == 6
    assert short["in_vain"] > 0 == long["in_vain"] and short["fill"] > long["fill"]
    assert short["repeated"] == long["repeated"] == 0
    assert "64" in [item.text for item in dps_false_positives.vain_chart(table).items if isinstance(item, Text)]
    with pytest.raises(ParameterError, match="protocol is Flooding"):
        dps_false_positives.vain_table(scenario.replace(protocol=wb.Flooding()))


def test_protocols_are_compared_by_all_their_bytes():
    workload = [wb.subscribe(2, "TEMP EQ 26", start_s=2), wb.publish(0, "TEMP IS 26", start_s=8)]
    scenario = wb.Scenario(wb.topology.line(3), wb.DPS(), workload, wb.Radio(loss="none"), duration_s=10)
    runs = {"DPS": scenario.run(), "Flooding": scenario.replace(protocol=wb.Flooding()).run()}
    table = beside.beside_table(runs)
    for name, run in runs.items():
        row = table.loc[name]
        trace = run.trace.to_pandas()
        assert row["data_bytes"] + row["other_bytes"] == trace[trace["event"] == "sent"]["size_B"].sum()
        assert row["delivery_ratio"] == 1
    assert table.loc["Flooding", "other_bytes"] == 0 < table.loc["DPS", "other_bytes"]
    drawing = beside.beside_chart(runs)
    assert "Flooding" in [item.text for item in drawing.items if isinstance(item, Text)]
    assert drawing == beside.beside_chart(table)
    assert [run_record["name"] for run_record in drawing.record()["runs"]] == ["DPS", "Flooding"]
    with pytest.raises(ParameterError, match="no rows"):
        beside.beside_chart(table.iloc[:0])
