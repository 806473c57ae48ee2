"""What a class looks at beside DPS's meshes: messages taken apart, topics and bits, decisions, false positives."""

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
ASKED = st.lists(st.one_of(LEVEL, st.just("+")), min_size=1, max_size=4).map("/".join)


def covers(inspection):
    """Whether the parts follow on each other and are all of the bytes."""
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
def test_every_message_is_taken_apart_and_said_in_words(name):
    inspection = dps_message.inspect_message(MESSAGES[name])
    assert not inspection.error and covers(inspection)
    assert inspection.message == wire.decode(MESSAGES[name])
    assert inspection.name in name
    assert "not read" not in {part.kind for part in inspection.parts}


def test_parts_are_the_fields_of_the_message():
    said = {part.name: part for part in dps_message.inspect_message(PUBLICATION).parts}
    message = wire.decode(PUBLICATION)
    assert said["port"].notation == f"1: {message.port}"
    assert said["filter"].meaning.startswith(f"{message.filter.popcount} of 256 bits set")
    assert said["topics"].notation == '11: ["house/kitchen/temp"]'
    assert said["data"].meaning == '"21.5"'
    flags = {part.name: part for part in dps_message.inspect_message(SUBSCRIPTION).parts}["flags"]
    assert flags.meaning == "answer requested, counts hops"


def test_captured_messages_are_taken_apart(dps_captured):
    kinds = set()
    for one in dps_captured["messages"]:
        inspection = dps_message.inspect_message(one["hex"])
        assert not inspection.error and covers(inspection)
        assert inspection.notation and not inspection.notation.endswith("/")
        kinds |= {part.kind for part in inspection.parts}
    assert {"filter", "needs", "encrypted or signed"} <= kinds


def test_readings_in_a_publication_are_said_as_attributes():
    sent = DPS().make_node(3, wb.draws.Stream(1))
    sent.start(0)
    subscriber = DPS().make_node(4, wb.draws.Stream(2))
    subscriber.start(0)
    subscriber.subscribe(wb.parse("TEMP GE 20"), 0)
    subscriber.link(3, 0)
    for _ in range(3):
        for frame_of, to, address in ((subscriber, sent, 4), (sent, subscriber, 3)):
            for _, frame in frame_of.take_frames():
                to.receive(frame, address, 1, False)
    sent.publish(wb.parse("TEMP IS 26.5"), 2)
    frame = next(frame for _, frame in sent.take_frames() if wire.describe(frame)[0] == "publication")
    said = {part.name: part.meaning for part in dps_message.inspect_message(frame).parts}
    assert said["data"] == "attributes: TEMP IS 26.5"


def test_a_multicast_has_its_envelope_as_a_part():
    inspection = dps_message.inspect_message(coap.wrap(PUBLICATION, 7))
    assert covers(inspection) and inspection.parts[0].kind == "envelope" and not inspection.error
    assert inspection.message == wire.decode(PUBLICATION)
    assert "end of the envelope" in dps_message.inspect_message(coap.wrap(PUBLICATION[:40], 7)).to_html()


@pytest.mark.parametrize("size", range(len(PUBLICATION)))
def test_what_is_cut_short_is_shown_as_far_as_it_goes(size):
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
def test_brackets_as_deep_as_a_datagram_are_no_trouble(opening):
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
def test_diagnostic_notation_is_what_was_encoded(value):
    def said(item):
        if isinstance(item, bool) or item is None:
            return {True: "true", False: "false", None: "null"}[item]
        if isinstance(item, bytes):
            return f"h'{item.hex()}'"
        if isinstance(item, list):
            return f"[{', '.join(map(said, item))}]"
        if isinstance(item, dict):
            return "{" + ", ".join(f"{said(key)}: {said(one)}" for key, one in item.items()) + "}"
        return str(item)

    assert dps_message.diagnostic(cbor2.dumps(value)) == said(value)


@pytest.mark.parametrize(
    "data, said",
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
def test_other_items_have_a_notation_too(data, said):
    assert dps_message.diagnostic(bytes.fromhex(data)) == said


def test_hex_with_a_wrong_digit_is_refused():
    with pytest.raises(ParameterError, match="pairs of digits"):
        dps_message.inspect_message("85 0g")


def test_what_comes_from_a_message_is_no_html():
    frame = messages.conversation("<b>&/x", "<b>&/+", b"<script>")["3: publication of the publisher"]
    page = dps_message.inspect_message(frame, ["<i>/+"]).to_html()
    assert "<script>" not in page and "<b>&" not in page and "<i>" not in page
    assert "&lt;script&gt;" in page


def test_a_topic_that_is_none_is_said_beside_the_others():
    page = dps_message.inspect_message(PUBLICATION, ["a//", "house/#"]).to_html()
    assert "a topic neither begins nor ends with one" in page and "house/#" in page


def test_a_widget_shows_what_is_chosen_or_written_and_says_what_is_wrong():
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
@given(TOPIC, ASKED)
def test_a_topic_that_matches_is_always_found_in_the_filter(topic, asked):
    vector = BitVector.of(topics.publication_items(topic), 256)
    (told,) = dps_message_page.compare_topics(vector, [asked], as_publication=True)
    if topics.matches([topic], [asked]) and told.bits:
        assert told.is_included and told.bits_found == told.bits


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
    every = {place for bits in table["bits"] for place in bits}
    assert sorted(every) == BitVector.of(topics.publication_items("a/b"), 128, 2).positions()
    assert len(dps_steps.topic_bits("#", False)) == 0
    with pytest.raises(ParameterError, match="multiple of 64"):
        dps_steps.topic_bits("a", True, 100)
    with pytest.raises(AttributeFormatError, match="is a wildcard"):
        dps_steps.topic_bits("a/+", True)


def test_bits_are_drawn_where_they_are():
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
@given(TOPIC, st.lists(ASKED, min_size=1, max_size=4), st.sampled_from([64, 128, 8192]))
def test_a_decision_is_what_a_node_would_do(topic, asked, filter_bits):
    decision = dps_steps.routing_steps(topic, asked, filter_bits)
    protocol = DPS(filter_bits=filter_bits)
    near, far = (protocol.make_node(address, wb.draws.Stream(address + 1)) for address in (0, 1))
    for node in (near, far):
        node.start(0)
    for one in asked:
        far.subscribe_topics(one, 0)
    far.link(0, 0)
    for _ in range(4):
        for node, other, address in ((far, near, 1), (near, far, 0)):
            for _, frame in node.take_frames():
                other.receive(frame, address, 0, False)
    near.publish_topics(topic, b"", 1)
    goes = any(wire.describe(frame)[0] == "publication" for _, frame in near.take_frames())
    assert decision.is_forwarded == goes
    if decision.wanted and all(topics.subscription_items(one) for one in asked):
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


def test_the_widget_for_topics_decides_anew_with_each_field():
    explorer = dps_steps.topic_explorer("a/b", ["a/+"], 64)
    published, asked, numbers, picture = explorer.widget.children
    assert "wanted by a/+" in picture.value
    published.value = "c/d"
    assert "wanted by" not in picture.value
    numbers.children[0].value = 512
    assert "of 512 bits" in picture.value
    asked.value = "a/#/b"
    assert "may only be the last segment" in picture.value
    asked.value = ""
    assert "subscriptions is empty" in picture.value


# False positives


def test_measured_false_positives_are_those_of_theory():
    table = dps_false_positives.false_positive_table(
        (64, 128, 256), hashes=(1, 2), subscriptions=(1, 10), publications=80
    )
    assert len(table) == 12
    alone = table[table["subscriptions"] == 1]
    for row in alone[alone["theory"] > 1e-3].itertuples():
        assert row.measured == pytest.approx(row.theory, rel=0.4)
    links = table[table["subscriptions"] == 10]
    assert links["theory"].isna().all() and (links["filters"] == 100).all()


def test_standard_error_is_about_how_much_the_measured_shares_differ_between_seeds():
    tables = [
        dps_false_positives.false_positive_table(
            (256,), hashes=(1,), subscriptions=(5,), publications=100, links=40, seed=seed
        )
        for seed in range(8)
    ]
    rows = [table.iloc[0] for table in tables]
    spread = np.std([row["measured"] for row in rows], ddof=1)
    # A single trial a pair would be told some 10 times as exact as that.
    assert 0.3 < np.mean([row["error"] for row in rows]) / spread < 3


def test_theory_says_less_for_longer_filters():
    expected = [dps_false_positives.expected(length, 3, 2) for length in dps_false_positives.LENGTHS]
    assert expected == sorted(expected, reverse=True) and 0 < expected[-1] < expected[0] <= 1


def test_charts_of_false_positives_show_what_was_never_seen_hollow():
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


def test_frames_in_vain_become_fewer_with_longer_filters():
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


def test_protocols_stand_beside_each_other_with_all_their_bytes():
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
    assert [told["name"] for told in drawing.record()["runs"]] == ["DPS", "Flooding"]
    with pytest.raises(ParameterError, match="no rows"):
        beside.beside_chart(table.iloc[:0])
